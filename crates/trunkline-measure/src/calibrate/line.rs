//! **Lines**: settings as lines for `postgresql.conf`, each with its measurement in a comment.
//!
//! ```text
//!   # 8 kB random reads: 16 in flight 5,100/s, 40 in flight 10,010/s. Confidence: high.
//!   # The default loses 49 % of them.
//!   effective_io_concurrency = 40
//!   # No method is measurably faster: fdatasync 812/s, open_datasync 808/s. Confidence: high.
//!   #wal_sync_method = fdatasync
//! ```
//! A line without a measured gain has the default and is commented out, so the lines as a whole are
//! never slower than the defaults because of a guess.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::confidence::Confidence;

/// Longest line of a comment.
const WIDTH: usize = 100;

/// What the lines are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// PostgreSQL 18.
    #[serde(rename = "18")]
    Postgres18,
    /// PostgreSQL 19.
    #[serde(rename = "19")]
    Postgres19,
    /// trunkline.
    #[serde(rename = "trunkline")]
    Trunkline,
}

impl Target {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 3] = [Self::Postgres18, Self::Postgres19, Self::Trunkline];

    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Postgres18 => "18",
            Self::Postgres19 => "19",
            Self::Trunkline => "trunkline",
        }
    }

    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres18 => "PostgreSQL 18",
            Self::Postgres19 => "PostgreSQL 19",
            Self::Trunkline => "trunkline",
        }
    }
}

/// A setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// The recommended value, the default, or a value that was measured to be better, but needs a check
    /// first.
    pub value: String,
    /// Whether the line is active, because the value was measured to be better than the default.
    pub changed: bool,
    /// Whether a server has to be restarted. Otherwise a reload is enough.
    pub restart: bool,
    /// What was measured.
    pub measurement: String,
    /// How much that can be trusted.
    pub confidence: Confidence,
    /// What the default would lose, in percent of what was measured, if that is known.
    pub loss_percent: Option<f64>,
    /// What the default would lose, in words. Empty if nothing was measured, because the setting has no
    /// effect.
    pub loss: String,
}

impl Line {
    /// A line that keeps the default.
    pub(crate) fn default(
        name: &str,
        value: &str,
        measurement: String,
        confidence: Confidence,
    ) -> Self {
        Self {
            name: name.to_owned(),
            value: value.to_owned(),
            changed: false,
            restart: false,
            measurement,
            confidence,
            loss_percent: None,
            loss: "Nothing faster was measured outside of the intervals, so the default stays."
                .to_owned(),
        }
    }

    /// A setting without effect, whose default is shown with the reason.
    pub(crate) fn unused(name: &str, value: &str, why: &str, confidence: Confidence) -> Self {
        let line = Self::default(name, value, why.to_owned(), confidence);
        Self { loss: String::new(), ..line }
    }

    /// The same line with another reason for keeping the default.
    pub(crate) fn because(self, why: &str) -> Self {
        Self { loss: why.to_owned(), ..self }
    }

    /// A change that is commented out, because something has to be checked first.
    pub(crate) fn held_back(self, why: &str) -> Self {
        let loss = format!("{} {why}", self.loss);
        Self { changed: false, loss, ..self }
    }

    /// A line that changes it.
    pub(crate) fn change(
        name: &str,
        value: impl ToString,
        measurement: String,
        confidence: Confidence,
        (loss_percent, loss): (Option<f64>, String),
    ) -> Self {
        let (name, value) = (name.to_owned(), value.to_string());
        let (changed, restart) = (true, false);
        Self { name, value, changed, restart, measurement, confidence, loss_percent, loss }
    }

    /// The same line for a setting that takes a restart.
    pub(crate) fn with_restart(self) -> Self {
        Self { restart: true, ..self }
    }

    /// The line as text, with its comment.
    pub fn text(&self) -> String {
        let Self { name, value, measurement, confidence, loss, .. } = self;
        let restart = if self.restart && self.changed { " Needs a restart." } else { "" };
        let comment = match loss.is_empty() {
            true => measurement.clone(),
            false => format!("{measurement} Confidence: {confidence}. {loss}{restart}"),
        };
        let mark = if self.changed { "" } else { "#" };
        format!("{}{mark}{name} = {value}\n", wrapped(&comment))
    }
}

/// The settings for one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// The server that they are for.
    pub target: Target,
    /// In the order of the file.
    pub lines: Vec<Line>,
}

impl Lines {
    /// All lines, ready for the configuration file.
    pub fn text(&self) -> String {
        self.lines.iter().map(Line::text).collect()
    }
}

/// A text as comment lines.
fn wrapped(text: &str) -> String {
    let (mut lines, mut line) = (String::new(), "#".to_owned());
    // Nothing may end the comment.
    for word in text.split_whitespace() {
        if line.len() > 1 && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(lines, "{line}");
            line = "#".to_owned();
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(lines, "{line}");
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_is_commented_out_and_a_change_is_not() {
        let line = Line::default("io_method", "worker", "Equal.".into(), Confidence::High);
        let expected = "# Equal. Confidence: high. Nothing faster was measured outside of the intervals, so the default\n\
                        # stays.\n\
                        #io_method = worker\n";
        assert_eq!(line.text(), expected);
        let loss = (Some(50.0), "The default loses 50 %.".to_owned());
        let line = Line::change("io_method", "io_uring", "Fast.".into(), Confidence::Low, loss);
        let expected = "# Fast. Confidence: low. The default loses 50 %. Needs a restart.\n\
                        io_method = io_uring\n";
        assert_eq!(line.with_restart().text(), expected);
    }

    #[test]
    fn a_comment_is_never_cut_into_a_setting() {
        let long = "word\nfsync = off ".repeat(30);
        let line = Line::default("a", "1", long, Confidence::Low);
        let text = line.text();
        assert!(text.lines().all(|line| line.starts_with('#') && line.len() <= WIDTH), "{text}");
        assert_eq!(text.lines().last(), Some("#a = 1"));
    }
}
