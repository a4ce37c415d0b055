//! Patterns for names of schemas and tables, as psql and `pg_dump -n` and `-t` have them.
//!
//! `*` stands for any number of characters and `?` for one. ASCII letters are folded to lower case.
//! In double quotes, every character stands for itself. A dot separates the schema from the table.
//!
//! ```text
//!   app.*        all tables of schema app
//!   *.orders_?   orders_1, orders_2 … of every schema
//!   "Odd*Name"   one table of schema public
//! ```
//! psql's patterns may also contain regular expressions. We refuse their characters outside quotes:
//! if we took them for ordinary characters, the pattern would match other tables than in psql.

use std::fmt::Display;

use trunkline_engine::catalog::NameProblem;

/// Characters outside quotes that psql would pass to the regular expression.
const REGULAR_EXPRESSION: &[u8] = b"|+()[]{}^\\";

/// An element of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Byte(u8),
    /// `?`.
    Any,
    /// `*`.
    Many,
}

/// A pattern for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamePattern(Vec<Element>);

/// A pattern for a table, with a pattern for its schema if there is a dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TablePattern {
    pub(super) schema: Option<NamePattern>,
    pub(super) table: NamePattern,
}

impl NamePattern {
    /// Parses the pattern of a schema.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        match <[Self; 1]>::try_from(parse_parts(text)?) {
            Ok([name]) => Ok(name),
            Err(_) => Err(improper(text, NameProblem::TooManyParts)),
        }
    }

    /// Whether a name matches the pattern.
    pub(super) fn matches(&self, name: &[u8]) -> bool {
        matches(&self.0, name)
    }
}

impl TablePattern {
    /// Parses the pattern of a table, with or without its schema.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let mut parts = parse_parts(text)?;
        let table = parts.pop().ok_or_else(|| improper(text, NameProblem::Empty))?;
        let schema = parts.pop();
        match parts.is_empty() {
            true => Ok(Self { schema, table }),
            false => Err(improper(text, NameProblem::TooManyParts)),
        }
    }
}

fn improper(text: &[u8], why: impl Display) -> String {
    format!("invalid pattern: \"{}\": {why}", String::from_utf8_lossy(text))
}

/// Splits a pattern at dots outside quotes, and folds letters outside quotes.
fn parse_parts(text: &[u8]) -> Result<Vec<NamePattern>, String> {
    let (mut parts, mut part, mut quoted) = (Vec::new(), Vec::new(), false);
    let mut rest = text.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            // Two quotes within quotes stand for one.
            b'"' if quoted && rest.next_if_eq(&b'"').is_some() => part.push(Element::Byte(b'"')),
            b'"' => quoted = !quoted,
            _ if quoted => part.push(Element::Byte(byte)),
            b'.' => parts.push(NamePattern(std::mem::take(&mut part))),
            b'*' => part.push(Element::Many),
            b'?' => part.push(Element::Any),
            _ if REGULAR_EXPRESSION.contains(&byte) => {
                let byte = char::from(byte);
                let why = format!("regular expressions are not supported; quote the \"{byte}\"");
                return Err(improper(text, why));
            }
            _ => part.push(Element::Byte(byte.to_ascii_lowercase())),
        }
    }
    if quoted {
        return Err(improper(text, NameProblem::OpenQuote));
    }
    parts.push(NamePattern(part));
    if parts.iter().any(|part| part.0.is_empty()) {
        return Err(improper(text, NameProblem::Empty));
    }
    Ok(parts)
}

/// Matches a name without recursion. If the rest doesn't match, the last `*` takes one more
/// character. We never have to go back to an earlier `*`, because the last one can take the same
/// characters.
fn matches(pattern: &[Element], name: &[u8]) -> bool {
    let (mut at, mut next, mut last_many) = (0, 0, None);
    loop {
        match (pattern.get(next), name.get(at)) {
            (None, None) => return true,
            (Some(Element::Many), _) => {
                last_many = Some((next, at));
                next += 1;
                continue;
            }
            (Some(Element::Any), Some(_)) => {
                at = character_end(name, at);
                next += 1;
                continue;
            }
            (Some(Element::Byte(wanted)), Some(found)) if wanted == found => {
                at += 1;
                next += 1;
                continue;
            }
            _ => {}
        }
        match &mut last_many {
            Some((many, taken)) if *taken < name.len() => {
                *taken = character_end(name, *taken);
                (at, next) = (*taken, *many + 1);
            }
            _ => return false,
        }
    }
}

/// The end of the UTF-8 character at `at`. In a name that can't be converted to UTF-8, `?` may
/// therefore stand for more or less than one character.
fn character_end(name: &[u8], at: usize) -> usize {
    let is_start = |at: &usize| name.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
    (at + 1..=name.len()).find(is_start).unwrap_or(name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_psql() {
        for (pattern, name, expected) in [
            ("Orders", "orders", true),
            ("\"Orders\"", "orders", false),
            ("\"Orders\"", "Orders", true),
            ("o*s", "orders", true),
            ("o*d*s", "orders", true),
            ("o*d*x", "orders", false),
            ("*", "", true),
            ("?", "é", true),
            ("??", "é", false),
            ("a*?b", "aéb", true),
            ("a*b*", "aab", true),
            ("*ab", "aab", true),
            ("\"a*\"", "ab", false),
            ("\"a*\"", "a*", true),
            ("\"a\"\"b\"", "a\"b", true),
            ("a\"B?\"c*", "aB?cd", true),
            ("a$", "a$", true),
        ] {
            let parsed = NamePattern::parse(pattern.as_bytes()).expect(pattern);
            assert_eq!(parsed.matches(name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn tables_have_at_most_a_schema() {
        let parsed = TablePattern::parse(b"a*.\"b.c\"").expect("a pattern");
        assert!(parsed.schema.is_some_and(|schema| schema.matches(b"app")));
        assert!(parsed.table.matches(b"b.c"));
        assert!(TablePattern::parse(b"t").is_ok_and(|pattern| pattern.schema.is_none()));
        for (pattern, why) in [
            ("a.b.c", "too many dotted names"),
            ("a.", "zero-length identifier"),
            ("", "zero-length identifier"),
            ("\"a", "unterminated quoted identifier"),
            ("a|b", "quote the \"|\""),
            ("a[0-9]", "quote the \"[\""),
        ] {
            let error = TablePattern::parse(pattern.as_bytes()).expect_err(pattern);
            assert!(error.contains(why), "{error}");
        }
    }
}
