//! The texts of `regprocedure` and `regoperator`: a name and the types of arguments
//! (`parseNameAndArgTypes`).

use super::name_parts::name_parts;
use crate::error::{SqlError, SqlState};

/// `FUNC_MAX_ARGS`.
const ARGUMENTS_MAX: usize = 100;

/// A name and the types of arguments, none of which has been looked up.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Signature<'a> {
    /// The parts of the name.
    pub(super) parts: Vec<String>,
    /// The types. `None` is `NONE`.
    pub(super) types: Vec<Option<&'a str>>,
}

/// Splits such a text. `allow_none` says whether the type `NONE` stands for no argument.
///
/// # Errors
/// 42602, 22P02, 54023.
pub(super) fn parse_signature(text: &str, allow_none: bool) -> Result<Signature<'_>, SqlError> {
    let wrong = |what: &str| SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, what);
    let mut is_quoted = false;
    let open = text.find(|letter| {
        is_quoted ^= letter == '"';
        letter == '(' && !is_quoted
    });
    let open = open.ok_or_else(|| wrong("expected a left parenthesis"))?;
    let (name, rest) = text.split_at(open);
    let parts = name_parts(name)?;
    let rest = rest.strip_prefix('(').unwrap_or(rest).trim_end_matches(is_space);
    let list = rest.strip_suffix(')').ok_or_else(|| wrong("expected a right parenthesis"))?;
    let (mut types, mut rest, mut had_comma) = (Vec::new(), list, false);
    loop {
        rest = rest.trim_start_matches(is_space);
        if rest.is_empty() {
            if had_comma {
                return Err(wrong("expected a type name"));
            }
            return Ok(Signature { parts, types });
        }
        let end = type_end(rest).ok_or_else(|| wrong("improper type name"))?;
        let (name, behind) = rest.split_at(end);
        had_comma = behind.starts_with(',');
        rest = behind.strip_prefix(',').unwrap_or(behind);
        let name = name.trim_end_matches(is_space);
        if types.len() == ARGUMENTS_MAX {
            return Err(SqlError::new(SqlState::TOO_MANY_ARGUMENTS, "too many arguments"));
        }
        types.push(if allow_none && name.eq_ignore_ascii_case("none") { None } else { Some(name) });
    }
}

fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

/// Where the first type of a list ends; `None` if a quote or a parenthesis isn't closed.
fn type_end(list: &str) -> Option<usize> {
    let (mut is_quoted, mut depth) = (false, 0_i32);
    for (at, letter) in list.char_indices() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted && depth == 0 => return Some(at),
            '(' | '[' if !is_quoted => depth += 1,
            ')' | ']' if !is_quoted => depth -= 1,
            _ => {}
        }
    }
    (!is_quoted && depth == 0).then_some(list.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_split_at_commas() {
        let types = |text: &str| {
            let signature = parse_signature(text, true)?;
            let shown: Vec<&str> = signature.types.iter().map(|ty| ty.unwrap_or("-")).collect();
            Ok::<String, SqlError>(format!("{}:{}", signature.parts.join("."), shown.join("|")))
        };
        for (text, expected) in [
            ("f()", "f:"),
            ("f( )", "f:"),
            ("A.\"f(\" (int, numeric(10,2) ,\"a,b\") ", "a.f(:int|numeric(10,2)|\"a,b\""),
            ("-(None,int)", "-:-|int"),
        ] {
            assert_eq!(types(text).as_deref(), Ok(expected), "{text}");
        }
        for (text, expected) in [
            ("abs", "expected a left parenthesis"),
            ("abs(int", "expected a right parenthesis"),
            ("abs(int,)", "expected a type name"),
            ("abs(numeric(1)", "improper type name"),
            ("(int)", "invalid name syntax"),
        ] {
            let error = types(text).expect_err("not a signature");
            assert_eq!(error.message(), expected, "{text}");
        }
    }
}
