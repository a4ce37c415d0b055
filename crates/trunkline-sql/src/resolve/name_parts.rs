//! **Names in texts**, split at their dots: `public . "Order"` has the parts `public` and `Order`.
//!
//! The input functions of the `reg*` types read them, and all functions that take a name as a text.

use crate::error::{SqlError, SqlState};

/// `NAMEDATALEN` without the zero at the end.
const NAME_MAX: usize = 63;

/// 42602.
pub(super) fn wrong_syntax() -> SqlError {
    SqlError::new(SqlState::INVALID_NAME, "invalid name syntax")
}

/// The parts of a name between its dots, around which there may be spaces
/// (`stringToQualifiedNameList`).
///
/// # Errors
/// 42602: a part is empty, or isn't a name.
pub fn name_parts(text: &str) -> Result<Vec<String>, SqlError> {
    let is_space = |letter: char| matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}');
    let mut parts = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    loop {
        let (part, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_part(quoted)?,
            None => {
                let end = rest.find(|letter| letter == '.' || is_space(letter));
                let (part, behind) = rest.split_at(end.unwrap_or(rest.len()));
                if part.is_empty() {
                    return Err(wrong_syntax());
                }
                (part.to_ascii_lowercase(), behind)
            }
        };
        let length = part.floor_char_boundary(NAME_MAX);
        parts.push(part.get(..length).unwrap_or_default().to_owned());
        rest = behind.trim_start_matches(is_space);
        if rest.is_empty() {
            return Ok(parts);
        }
        rest = rest.strip_prefix('.').ok_or_else(wrong_syntax)?.trim_start_matches(is_space);
    }
}

/// A part up to its closing quote, and what is behind. Two quotes stand for one.
fn quoted_part(text: &str) -> Result<(String, &str), SqlError> {
    let (mut part, mut rest) = (String::new(), text);
    loop {
        let (before, behind) = rest.split_once('"').ok_or_else(wrong_syntax)?;
        part.push_str(before);
        match behind.strip_prefix('"') {
            Some(behind) => {
                part.push('"');
                rest = behind;
            }
            None => return Ok((part, behind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_at_dots() {
        let parts = |text: &str| name_parts(text).map(|parts| parts.join("|"));
        for (text, expected) in [
            ("Pick", "pick"),
            (" public . \"A b\"\"c\" ", "public|A b\"c"),
            ("a.b.c.d", "a|b|c|d"),
            ("pg_catalog.||/", "pg_catalog|||/"),
            ("\"a.b\".c", "a.b|c"),
        ] {
            assert_eq!(parts(text).as_deref(), Ok(expected), "{text}");
        }
        for text in ["", " ", "a b", "a.", ".a", "a..b", "\"a", "\"a\"b"] {
            let error = parts(text).expect_err("not a name");
            assert_eq!(error.code(), SqlState::INVALID_NAME, "{text}");
        }
    }

    #[test]
    fn long_names_are_cut_off() {
        let parts = name_parts(&"ä".repeat(40)).expect("a name");
        assert_eq!(parts.first().map(String::len), Some(62));
    }
}
