//! SQL identifiers: parsing, quoting and suggestions for misspelt names.
//!
//! ASCII letters outside double quotes are folded to lower case. Text inside quotes is left as it
//! is, except that two consecutive double quotes stand for one. As in PostgreSQL, a longer name is
//! truncated to 63 bytes. Names are byte strings rather than text, because a database may use any
//! encoding.
//!
//! ```text
//!   Public.Accounts     public . accounts
//!   "My Schema"."a.b"   My Schema . a.b
//! ```

use std::fmt;

use thiserror::Error;

/// Bytes of the longest name: `NAMEDATALEN` - 1.
const NAME_MAX: usize = 63;

/// The largest edit distance between a misspelt name and a suggestion.
const DISTANCE_MAX: usize = 3;

/// Length of the shortest prefix for which we suggest the whole name.
const PREFIX_MIN: usize = 3;

/// Longer names are not compared, because computing the distance takes quadratic time.
const COMPARED_MAX: usize = 64;

/// A relation's name, with schema and database if given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualifiedName {
    /// The database, if given.
    pub database: Option<Vec<u8>>,
    /// The schema, if given.
    pub schema: Option<Vec<u8>>,
    /// The relation.
    pub relation: Vec<u8>,
}

/// Why a text is not a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NameProblem {
    /// A quote is not closed.
    #[error("unterminated quoted identifier")]
    OpenQuote,
    /// A part between dots or within quotes is empty.
    #[error("zero-length identifier")]
    Empty,
    /// Characters follow a closing quote.
    #[error("unexpected character after a quoted identifier")]
    AfterQuote,
    /// More parts than database, schema and relation.
    #[error("too many dotted names")]
    TooManyParts,
}

impl QualifiedName {
    /// Parses `text`.
    ///
    /// # Errors
    /// [`NameProblem`].
    pub fn parse(text: &[u8]) -> Result<Self, NameProblem> {
        let mut parts = Vec::new();
        let mut rest = text;
        loop {
            let (part, behind) = identifier(rest)?;
            parts.push(part);
            match behind.split_first() {
                None => break,
                Some((b'.', behind)) => rest = behind,
                Some(_) => return Err(NameProblem::AfterQuote),
            }
        }
        if parts.len() > 3 {
            return Err(NameProblem::TooManyParts);
        }
        let relation = parts.pop().ok_or(NameProblem::Empty)?;
        let schema = parts.pop();
        Ok(Self { database: parts.pop(), schema, relation })
    }
}

/// Whether a schema belongs to the system, by the rules of `pg_dump`. Temporary schemas do.
pub fn is_system_schema(name: &[u8]) -> bool {
    name.starts_with(b"pg_") || name == b"information_schema"
}

/// Quoted if needed.
impl fmt::Display for QualifiedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.database, &self.schema].into_iter().flatten() {
            write!(f, "{}.", quoted(part))?;
        }
        f.write_str(&quoted(&self.relation))
    }
}

/// The identifier at the start of `text`, and the rest.
fn identifier(text: &[u8]) -> Result<(Vec<u8>, &[u8]), NameProblem> {
    let (mut name, behind) = if let Some(quoted) = text.strip_prefix(b"\"") {
        quoted_identifier(quoted)?
    } else {
        let end = text.iter().position(|&byte| byte == b'.').unwrap_or(text.len());
        let (name, behind) = text.split_at_checked(end).unwrap_or((text, b""));
        (name.to_ascii_lowercase(), behind)
    };
    if name.is_empty() {
        return Err(NameProblem::Empty);
    }
    if name.len() > NAME_MAX {
        // Do not cut a UTF-8 character in half.
        let is_start = |at: &usize| name.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
        let end = (1..=NAME_MAX).rev().find(is_start).unwrap_or(NAME_MAX);
        name.truncate(end);
    }
    Ok((name, behind))
}

/// The identifier up to the closing quote, and the rest.
fn quoted_identifier(text: &[u8]) -> Result<(Vec<u8>, &[u8]), NameProblem> {
    let mut name = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.iter().position(|&byte| byte == b'"').ok_or(NameProblem::OpenQuote)?;
        let (part, behind) = rest.split_at_checked(end).ok_or(NameProblem::OpenQuote)?;
        name.extend_from_slice(part);
        let behind = behind.get(1..).unwrap_or_default();
        match behind.strip_prefix(b"\"") {
            Some(further) => {
                name.push(b'"');
                rest = further;
            }
            None => return Ok((name, behind)),
        }
    }
}

/// A name in double quotes, unless it is lower-case letters, digits and underscores.
///
/// Unlike `quote_identifier`, this doesn't quote keywords, because we never parse names as part of
/// a SQL statement.
pub fn quoted(name: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
    let text = String::from_utf8_lossy(name);
    if name.iter().all(plain) && name.first().is_some_and(|byte| !byte.is_ascii_digit()) {
        text.into_owned()
    } else {
        format!("\"{}\"", text.replace('"', "\"\""))
    }
}

/// Returns the best guess at what a misspelt name was meant to be. We consider all names that start
/// with `wanted` or differ from it only slightly, and choose the one with the smallest edit
/// distance. Case doesn't matter.
pub(super) fn nearest<'n>(
    wanted: &[u8],
    names: impl IntoIterator<Item = &'n [u8]>,
) -> Option<&'n [u8]> {
    let wanted = wanted.to_ascii_lowercase();
    // At most a third of the length, because a short name is close to many unrelated names.
    let most = DISTANCE_MAX.min(wanted.len() / 3).max(1);
    let near = names.into_iter().filter_map(|name| {
        let folded = name.to_ascii_lowercase();
        let distance = distance(&wanted, &folded)?;
        // A prefix matches regardless of the distance.
        let begins = wanted.len() >= PREFIX_MIN && folded.starts_with(&wanted);
        (distance <= most || begins).then_some((distance, name))
    });
    near.min().map(|(_, name)| name)
}

/// The Levenshtein distance in bytes; `None` if a name is too long.
fn distance(one: &[u8], other: &[u8]) -> Option<usize> {
    if one.len().max(other.len()) > COMPARED_MAX {
        return None;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, a) in one.iter().enumerate() {
        // The previous row's value diagonally above the current cell, and the current row's value
        // to the left of it.
        let (mut above, mut left) = (line, line + 1);
        for (cell, b) in row.iter_mut().skip(1).zip(other) {
            let replaced = above + usize::from(a != b);
            above = *cell;
            *cell = replaced.min(above + 1).min(left + 1);
            left = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = line + 1;
        }
    }
    row.last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_folded_unless_quoted() {
        let check = |text: &str, expected: &[&str]| {
            let name = QualifiedName::parse(text.as_bytes()).expect("a name");
            let parts = [name.database, name.schema, Some(name.relation)];
            let parts: Vec<String> = parts
                .into_iter()
                .flatten()
                .map(|part| String::from_utf8(part).expect("UTF-8"))
                .collect();
            assert_eq!(parts, expected, "{text}");
        };
        check("accounts", &["accounts"]);
        check("Public.Accounts", &["public", "accounts"]);
        check("db.\"My Schema\".\"a.b\"", &["db", "My Schema", "a.b"]);
        check("\"say \"\"hi\"\"\".X", &["say \"hi\"", "x"]);
        check("Äpfel", &["Äpfel"]);
        check(&"é".repeat(40), &[&"é".repeat(31)]);
        check(&"x".repeat(64), &[&"x".repeat(63)]);
    }

    #[test]
    fn invalid_names_are_refused() {
        let check = |text: &str, expected: &str| {
            let error = QualifiedName::parse(text.as_bytes()).expect_err("refused");
            assert_eq!(error.to_string(), expected, "{text}");
        };
        check("", "zero-length identifier");
        check("a.", "zero-length identifier");
        check(".a", "zero-length identifier");
        check("a..b", "zero-length identifier");
        check("\"\"", "zero-length identifier");
        check("\"a", "unterminated quoted identifier");
        check("\"a\"\"", "unterminated quoted identifier");
        check("\"a\"b", "unexpected character after a quoted identifier");
        check("a.b.c.d", "too many dotted names");
    }

    #[test]
    fn quoted_names_parse_to_themselves() {
        for name in ["a", "a_1", "A", "1a", "say \"hi\"", "a.b", "é", " "] {
            let written = quoted(name.as_bytes());
            let read = QualifiedName::parse(written.as_bytes()).expect("a name");
            assert_eq!(read.relation, name.as_bytes(), "{written}");
            assert_eq!(read.to_string(), written);
        }
        assert_eq!(quoted(b"plain"), "plain");
    }

    #[test]
    fn similar_names_are_suggested() {
        let names = ["pgbench_accounts", "pgbench_tellers", "t", "Orders"].map(str::as_bytes);
        let near = |wanted: &str| nearest(wanted.as_bytes(), names).map(String::from_utf8_lossy);
        assert_eq!(near("pgbench_acounts").as_deref(), Some("pgbench_accounts"));
        assert_eq!(near("pgbench_teler").as_deref(), Some("pgbench_tellers"));
        assert_eq!(near("orders").as_deref(), Some("Orders"));
        assert_eq!(near("pgbench").as_deref(), Some("pgbench_tellers"));
        assert_eq!(near("something"), None);
        assert_eq!(near(&"x".repeat(1000)), None);
        for (one, other, expected) in
            [("", "", 0), ("abc", "", 3), ("", "abc", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)]
        {
            assert_eq!(distance(one.as_bytes(), other.as_bytes()), Some(expected));
        }
    }
}
