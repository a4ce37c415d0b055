//! `SIMILAR TO`: SQL's patterns as regular expressions.
//!
//! `a%(b|c)_` becomes `^(?:a.*(?:b|c).)$`. A pattern with two escaped quotes has three parts, of which
//! `SUBSTRING(text SIMILAR pattern ESCAPE '#')` returns the second one. The first part then takes as
//! little as possible: `x#"%#"y` becomes `^(?:x){1,1}?(.*){1,1}(?:y)$`.

use arrow_array::ArrayRef;

use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, binary, each_row, unary};

/// The kernels of this module.
pub(in crate::functions) const SIMILAR: &[(&str, Kernel)] = &[
    ("similar_to_escape_1", |call| unary(call, |pattern: &str| translated(pattern, "\\"))),
    ("similar_to_escape_2", |call| {
        binary(call, |pattern: &str, escape: &str| translated(pattern, escape))
    }),
    ("similar_escape", similar_escape),
];

/// The function of old views, in which a null is the default escape.
fn similar_escape(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let (pattern, escape) = (Reader::<&str>::new(call, 0)?, Reader::<&str>::new(call, 1)?);
    each_row(call.rows, |row| {
        let escape = escape.get(row).unwrap_or("\\");
        pattern.get(row).map(|pattern| translated(pattern, escape)).transpose()
    })
}

/// Where in brackets the translation is.
#[derive(Default)]
struct Brackets {
    depth: u32,
    /// 1 after the opening bracket, and 2 after a caret: there, a closing bracket stands for itself.
    start: u32,
}

impl Brackets {
    /// Follows a character in brackets.
    fn follow(&mut self, letter: char) {
        match letter {
            ']' if self.start > 2 => self.depth -= 1,
            '[' => self.depth += 1,
            _ => {}
        }
        self.start = if letter == '^' { self.start.saturating_add(1) } else { 3 };
    }
}

fn translated(pattern: &str, escape: &str) -> Result<String, SqlError> {
    let mut letters = escape.chars();
    let escape = letters.next();
    if letters.next().is_some() {
        let code = SqlState::INVALID_ESCAPE_SEQUENCE;
        return Err(SqlError::new(code, "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    let mut out = "^(?:".to_owned();
    let (mut brackets, mut after_escape, mut quotes) = (Brackets::default(), false, 0);
    for letter in pattern.chars() {
        if std::mem::take(&mut after_escape) {
            if letter == '"' && brackets.depth == 0 {
                out.push_str(separator(quotes)?);
                quotes += 1;
            } else {
                out.push('\\');
                out.push(letter);
                brackets.start = 3;
            }
            continue;
        }
        if Some(letter) == escape {
            after_escape = true;
            continue;
        }
        if brackets.depth > 0 {
            if letter == '\\' {
                out.push(letter);
            }
            out.push(letter);
            brackets.follow(letter);
            continue;
        }
        match letter {
            '[' => {
                out.push(letter);
                brackets = Brackets { depth: 1, start: 1 };
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '\\' | '.' | '^' | '$' => out.extend(['\\', letter]),
            _ => out.push(letter),
        }
    }
    out.push_str(")$");
    Ok(out)
}

/// What stands between two parts.
fn separator(number: u32) -> Result<&'static str, SqlError> {
    match number {
        0 => Ok("){1,1}?("),
        1 => Ok("){1,1}(?:"),
        _ => {
            let message = "SQL regular expression may not contain more than two \
                           escape-double-quote separators";
            Err(SqlError::new(SqlState::INVALID_USE_OF_ESCAPE_CHARACTER, message))
        }
    }
}
