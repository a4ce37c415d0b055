//! Errors, warnings and notices on standard error, as psql prints them.
//!
//! ```text
//! ERROR:  column "x" does not exist
//! LINE 1: select x
//!                ^
//! ```
//! Lines are counted in the whole text. A long line is cut on both sides of the position.

use std::io::{self, Write};

use serde::Serialize;
use trunkline_query::Notice;
use trunkline_sql::SqlError;

use super::screen::width_in_statement;
use crate::exit::Exit;

/// The widest part of a line that is shown, in columns.
const SHOWN_MAX: usize = 60;
/// At least this much is shown after the position of a line that is cut.
const AFTER_MIN: usize = 10;

/// How messages are printed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Messages {
    /// As JSON, one object per line.
    pub(super) json: bool,
    /// With the SQLSTATE.
    pub(super) verbose: bool,
}

#[derive(Serialize)]
struct JsonMessage<'m> {
    kind: &'m str,
    text: &'m str,
    sqlstate: &'m str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'m str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'m str>,
    /// In characters of the whole text, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_status: Option<u8>,
}

impl Messages {
    /// Prints the error of a statement in `text`.
    pub(super) fn error(self, error: &SqlError, text: &str) {
        self.print("ERROR", error, text, Some(Exit::Findings as u8));
    }

    /// Prints a notice or a warning.
    pub(super) fn notice(self, notice: &Notice, text: &str) {
        self.print(notice.severity.name(), &notice.fields, text, None);
    }

    fn print(self, severity: &str, fields: &SqlError, text: &str, exit_status: Option<u8>) {
        let printed = match self.json {
            true => {
                let message = JsonMessage {
                    kind: &severity.to_ascii_lowercase(),
                    text: fields.message(),
                    sqlstate: fields.code().as_str(),
                    detail: fields.detail(),
                    hint: fields.hint(),
                    position: fields.character(text),
                    exit_status,
                };
                serde_json::to_string(&message).unwrap_or_default() + "\n"
            }
            false => self.plain(severity, fields, text),
        };
        // If we can't even write there, the message is lost.
        let _ = io::stderr().write_all(printed.as_bytes());
    }

    fn plain(self, severity: &str, fields: &SqlError, text: &str) -> String {
        let code = match self.verbose {
            true => format!("{}: ", fields.code().as_str()),
            false => String::new(),
        };
        let mut printed = format!("{severity}:  {code}{}\n", fields.message());
        if let Some(offset) = fields.offset() {
            printed += &line_of(text, usize::try_from(offset).unwrap_or(usize::MAX));
        }
        for (name, value) in [("DETAIL", fields.detail()), ("HINT", fields.hint())] {
            if let Some(value) = value {
                printed += &format!("{name}:  {value}\n");
            }
        }
        printed
    }
}

/// The line around a byte offset and a mark below it.
fn line_of(text: &str, offset: usize) -> String {
    let offset = text.floor_char_boundary(offset);
    let (before, after) = text.split_at(offset);
    // A carriage return ends a line, too, and together with a line feed only one.
    let is_end = |char: char| matches!(char, '\n' | '\r');
    let number = before.replace("\r\n", "\n").matches(is_end).count() + 1;
    let left = before.rsplit(is_end).next().unwrap_or_default();
    let right = after.split(is_end).next().unwrap_or_default();
    let line: Vec<(char, usize)> = left
        .chars()
        .chain(right.chars())
        .map(|char| if char == '\t' { ' ' } else { char })
        .map(|char| (char, width_in_statement(char)))
        .collect();
    let width = |part: &[(char, usize)]| part.iter().map(|(_, width)| width).sum::<usize>();
    let position = left.chars().count();
    let (mut start, mut end) = (0, line.len());
    let span = |start: usize, end: usize| line.get(start..end).map_or(0, width);
    if span(0, end) > SHOWN_MAX {
        // The end is cut if the position stays in view, and otherwise both sides.
        let is_near_start = span(0, position) + AFTER_MIN <= SHOWN_MAX;
        if is_near_start {
            while span(start, end) > SHOWN_MAX {
                end -= 1;
            }
        } else {
            while span(position, end) > AFTER_MIN {
                end -= 1;
            }
            while span(start, end) > SHOWN_MAX {
                start += 1;
            }
        }
    }
    let mut shown = format!("LINE {number}: ");
    if start > 0 {
        shown += "...";
    }
    let mark = shown.len() + span(start, position);
    shown.extend(line.iter().take(end).skip(start).map(|(char, _)| char));
    if end < line.len() {
        shown += "...";
    }
    format!("{shown}\n{:mark$}^\n", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_below_the_position() {
        for (text, offset, expected) in [
            ("select x", 7, "LINE 1: select x\n               ^\n"),
            ("select 1,\r\n\tx from t", 12, "LINE 2:  x from t\n         ^\n"),
            ("select '日本', x", 17, "LINE 1: select '日本', x\n                       ^\n"),
            ("select", 6, "LINE 1: select\n              ^\n"),
        ] {
            assert_eq!(line_of(text, offset), expected, "{text}");
        }
    }

    #[test]
    fn long_lines_are_cut() {
        let long = format!("select {}, x, {}", "1".repeat(80), "2".repeat(80));
        let shown = line_of(&long, 89);
        assert!(shown.starts_with("LINE 1: ...111"), "{shown}");
        assert!(shown.contains(", x, 2222222...\n"), "{shown}");
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0].find('x'), lines[1].find('^'));
        let shown = line_of(&long, 0);
        assert!(shown.starts_with("LINE 1: select 1111"), "{shown}");
        assert_eq!(shown.lines().next().map(str::len), Some(8 + 60 + 3));
    }
}
