//! `regexp_replace`.
//!
//! `\1` to `\9` in the replacement stand for groups, and `\&` for the whole match. For example,
//! `regexp_replace('foobar', 'b(..)', '[\1]')` is `foo[ar]`.

use arrow_array::ArrayRef;

use super::flags::Flags;
use super::matcher::{Captures, Regex};
use super::searching::{Compiler, after, from_one, start_of};
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, each_row};

/// The kernels of this module.
pub(in crate::functions) const REPLACING: &[(&str, Kernel)] = &[
    ("textregexreplace_noopt", |call| replace(call, &[])),
    ("textregexreplace", |call| replace(call, &[Extra::Options])),
    ("textregexreplace_extended_no_n", |call| replace(call, &[Extra::Start])),
    ("textregexreplace_extended_no_flags", |call| replace(call, &[Extra::Start, Extra::Number])),
    ("textregexreplace_extended", |call| {
        replace(call, &[Extra::Start, Extra::Number, Extra::Options])
    }),
];

/// What the arguments after the replacement are.
#[derive(Clone, Copy, PartialEq)]
enum Extra {
    /// The character at which to start, from 1.
    Start,
    /// Which match to replace, from 1; 0 is all.
    Number,
    Options,
}

fn replace(call: &Call<'_>, extra: &[Extra]) -> Result<ArrayRef, SqlError> {
    let mut compiler = Compiler::new(call)?;
    let text = |number| Reader::<&str>::new(call, number);
    let (subject, pattern, replacement) = (text(0)?, text(1)?, text(2)?);
    let place = |wanted: Extra| extra.iter().position(|found| *found == wanted).map(|at| at + 3);
    let number = |wanted| place(wanted).map(|at| Reader::<i32>::new(call, at)).transpose();
    let (start, which) = (number(Extra::Start)?, number(Extra::Number)?);
    let options = place(Extra::Options).map(text).transpose()?;
    let is_null = |row| call.arguments.iter().any(|argument| argument.is_null(row));
    each_row(call.rows, |row| {
        let found = (subject.get(row), pattern.get(row), replacement.get(row));
        let (Some(subject), Some(pattern), Some(replacement)) = found else { return Ok(None) };
        if is_null(row) {
            return Ok(None);
        }
        let start = start.as_ref().and_then(|start| start.get(row)).unwrap_or(1);
        let skipped = from_one("start", start)?;
        let which = match &which {
            Some(which) => Some(count(which.get(row).unwrap_or(1))?),
            None => None,
        };
        let flags = match options.as_ref().and_then(|options| options.get(row)) {
            Some(options) => parse_options(options, which.is_none())?,
            None => Flags::NONE,
        };
        let which = which.unwrap_or(if flags.global { 0 } else { 1 });
        let regex = compiler.get(pattern, flags.once())?;
        replaced(regex, subject, replacement, start_of(subject, skipped), which).map(Some)
    })
}

/// The number of the match to replace.
fn count(number: i32) -> Result<usize, SqlError> {
    usize::try_from(number).map_err(|_| {
        let message = format!("invalid value for parameter \"n\": {number}");
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
    })
}

/// The options of `regexp_replace`. In the form with four arguments, a number was probably meant to be
/// the start.
fn parse_options(options: &str, is_fourth: bool) -> Result<Flags, SqlError> {
    Flags::parse(options).map_err(|error| {
        if is_fourth && options.starts_with(|letter: char| letter.is_ascii_digit()) {
            return error.with_hint(
                "If you meant to use regexp_replace() with a start parameter, cast the fourth \
                 argument to integer explicitly.",
            );
        }
        error
    })
}

/// Replaces match number `which`, or all if that is 0.
fn replaced(
    regex: &Regex,
    text: &str,
    replacement: &str,
    start: Option<usize>,
    which: usize,
) -> Result<String, SqlError> {
    let (mut out, mut copied, mut count) = (String::with_capacity(text.len()), 0, 0);
    let mut from = start;
    while let Some(at) = from {
        let Some(captures) = regex.captures(text, at)? else { break };
        let Some(found) = captures.first().cloned().flatten() else { break };
        from = after(text, &found);
        count += 1;
        if which != 0 && count != which {
            continue;
        }
        out.push_str(text.get(copied..found.start).unwrap_or_default());
        append(text, replacement, &captures, &mut out);
        copied = found.end;
        if which != 0 {
            break;
        }
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Ok(out)
}

/// Appends the replacement of one match.
fn append(text: &str, replacement: &str, captures: &Captures, out: &mut String) {
    let mut rest = replacement;
    while let Some((before, escape)) = rest.split_once('\\') {
        out.push_str(before);
        let mut letters = escape.chars();
        let letter = letters.next();
        let group = match letter {
            Some('&') => Some(0),
            Some(digit @ '1'..='9') => digit.to_digit(10),
            _ => None,
        };
        match (group, letter) {
            (Some(group), _) => {
                let range = captures.get(group as usize).cloned().flatten();
                out.push_str(range.and_then(|range| text.get(range)).unwrap_or_default());
            }
            (None, Some('\\')) => out.push('\\'),
            // Any other escape stands for itself, and what follows is ordinary text.
            (None, _) => {
                out.push('\\');
                rest = escape;
                continue;
            }
        }
        rest = letters.as_str();
    }
    out.push_str(rest);
}
