//! Names in the encoding of the database, and in UTF-8.
//!
//! Statements are in UTF-8, because we convert them on arrival. Catalogs store names in the encoding
//! of the database.
//!
//! ```
//! use trunkline_sql::catalog::NameEncoding;
//! let latin1 = NameEncoding::new(8);
//! assert_eq!(latin1.encode("Größe").as_deref(), Some(&b"Gr\xF6\xDFe"[..]));
//! assert_eq!(latin1.decode(b"Gr\xF6\xDFe"), "Größe");
//! ```

use std::borrow::Cow;

/// `PG_SQL_ASCII`.
const SQL_ASCII: i32 = 0;

/// `PG_UTF8`.
const UTF8: i32 = 6;

/// `PG_LATIN1`.
const LATIN1: i32 = 8;

/// The encoding of a database's names. ASCII is the same in all of PostgreSQL's server encodings. We
/// convert other characters in `UTF8`, `SQL_ASCII` (taken to be UTF-8) and `LATIN1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameEncoding(i32);

impl NameEncoding {
    /// The encoding with this number in `pg_database.encoding`.
    pub fn new(encoding: i32) -> Self {
        Self(encoding)
    }

    /// A name as the catalogs store it. `None` if we can't convert it, in which case no object can be
    /// found by that name.
    pub fn encode(self, name: &str) -> Option<Cow<'_, [u8]>> {
        match self.0 {
            SQL_ASCII | UTF8 => Some(Cow::Borrowed(name.as_bytes())),
            _ if name.is_ascii() => Some(Cow::Borrowed(name.as_bytes())),
            LATIN1 => name.chars().map(|char| u8::try_from(char).ok()).collect(),
            _ => None,
        }
    }

    /// A stored name as text. Bytes that we can't convert are shown as escapes such as `\xE4`.
    pub fn decode(self, name: &[u8]) -> String {
        match self.0 {
            LATIN1 => name.iter().copied().map(char::from).collect(),
            SQL_ASCII | UTF8 => match str::from_utf8(name) {
                Ok(text) => text.to_owned(),
                Err(_) => escaped(name),
            },
            _ => escaped(name),
        }
    }
}

fn escaped(name: &[u8]) -> String {
    let mut shown = String::new();
    for &byte in name {
        match byte {
            0..=127 => shown.push(char::from(byte)),
            _ => shown.push_str(&format!("\\x{byte:02X}")),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_converted_are_not_found() {
        for (encoding, name, expected) in [
            (UTF8, "é", Some(&b"\xC3\xA9"[..])),
            (SQL_ASCII, "é", Some(b"\xC3\xA9")),
            (LATIN1, "é", Some(b"\xE9")),
            (LATIN1, "Ł", None),
            (9, "é", None),
            (9, "e", Some(b"e")),
        ] {
            assert_eq!(NameEncoding(encoding).encode(name).as_deref(), expected, "{name}");
        }
        assert_eq!(NameEncoding(UTF8).decode(b"a\xE9"), "a\\xE9");
        assert_eq!(NameEncoding(9).decode(b"a\xE9"), "a\\xE9");
    }
}
