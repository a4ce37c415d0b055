//! `client_encoding`: text that leaves for a client.
//!
//! Text columns are in UTF-8 when they get here. Other values are printed in the encoding of the
//! database, because arrays and composites contain text as it is stored. So there are two
//! conversions, and in the usual case, where both encodings are UTF8, neither of them does anything.
//!
//! Only UTF8, the encoding of the database and encodings of one byte per character are offered. For
//! the multibyte ones, the Encoding Standard of the web differs from PostgreSQL's tables in too many
//! characters.

use encoding_rs::Encoding;
use trunkline_sql::catalog::encoding_by_name;
use trunkline_sql::{SqlError, SqlState};

pub use trunkline_sql::catalog::ENCODINGS as CLIENT_ENCODINGS;

use crate::scan::TextEncoding;

const SQL_ASCII: i32 = 0;
const UTF8: i32 = 6;
const LATIN1: i32 = 8;
const LATIN5: i32 = 12;

/// How text of a database is converted for a client.
#[derive(Debug, Clone, Copy)]
pub struct ClientEncoding {
    /// The encoding of stored text, by its number.
    database: i32,
    /// The encoding that leaves. It is the database's if the client asks for `SQL_ASCII`.
    client: i32,
    stored: TextEncoding,
    target: Target,
}

/// How UTF-8 becomes the client's encoding.
#[derive(Debug, Clone, Copy)]
enum Target {
    Utf8,
    Latin1,
    Table(&'static Encoding),
}

impl ClientEncoding {
    /// A database and a client that both use UTF-8.
    pub const UTF8: Self =
        Self { database: UTF8, client: UTF8, stored: TextEncoding::Utf8, target: Target::Utf8 };

    /// The conversion from the encoding of a database to that of a client, both by their numbers in
    /// `pg_enc`.
    ///
    /// # Errors
    /// 0A000: we can't convert one of them.
    pub fn new(database: i32, client: i32) -> Result<Self, SqlError> {
        let stored = TextEncoding::new(database)?;
        // With SQL_ASCII on either side, the server doesn't convert.
        let client = if client == SQL_ASCII || database == SQL_ASCII { database } else { client };
        let is_single_byte = matches!(client, 8..=34);
        let target = match (client, TextEncoding::new(client)) {
            (SQL_ASCII | UTF8, _) => Target::Utf8,
            (LATIN1, _) => Target::Latin1,
            (_, Ok(TextEncoding::Table(table))) if is_single_byte || client == database => {
                Target::Table(table)
            }
            _ => {
                let name = encoding_name(client);
                let message = format!("client_encoding {name} is not supported by trunkline");
                return Err(SqlError::unsupported(message));
            }
        };
        Ok(Self { database, client, stored, target })
    }

    /// The number of an encoding by one of its names, in which case and punctuation don't count.
    pub fn by_name(name: &str) -> Option<i32> {
        encoding_by_name(name)
    }

    /// The name of the encoding that leaves.
    pub fn name(&self) -> &'static str {
        encoding_name(self.client)
    }

    /// Whether both convert in the same way.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.database, self.client) == (other.database, other.client)
    }

    /// Appends UTF-8, with `?` for characters that the client's encoding lacks.
    pub fn encode_lossy(&self, text: &str, out: &mut Vec<u8>) {
        for char in text.chars() {
            if self.encode_char(char, out).is_none() {
                out.push(b'?');
            }
        }
    }

    /// Text of the client in UTF-8.
    ///
    /// # Errors
    /// 22021: the text isn't valid.
    pub fn decode(&self, text: &[u8]) -> Result<String, SqlError> {
        let decoded = match self.target {
            Target::Latin1 => Some(text.iter().map(|&byte| char::from(byte)).collect()),
            Target::Table(table) => {
                let decoded = table.decode_without_bom_handling_and_without_replacement(text);
                decoded.map(std::borrow::Cow::into_owned)
            }
            Target::Utf8 => str::from_utf8(text).ok().map(str::to_owned),
        };
        decoded.filter(|decoded| !decoded.contains('\0')).ok_or_else(|| {
            let message = format!("invalid byte sequence for encoding \"{}\"", self.name());
            SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
        })
    }

    /// Whether any text may have to be converted.
    pub(super) fn converts(&self) -> bool {
        self.database != self.client || self.converts_utf8()
    }

    fn converts_utf8(&self) -> bool {
        !matches!(self.target, Target::Utf8)
    }

    /// Converts the text at the end of `out`, from `start`, which is in UTF-8.
    ///
    /// # Errors
    /// 22P05: the client's encoding lacks a character.
    #[inline]
    pub fn convert_utf8(&self, start: usize, out: &mut Vec<u8>) -> Result<(), SqlError> {
        if self.converts_utf8() { self.encode(start, out) } else { Ok(()) }
    }

    /// Converts the text at the end of `out`, from `start`, which is in the database's encoding.
    ///
    /// # Errors
    /// 22P05: the client's encoding lacks a character. 22021: the text isn't valid.
    #[inline]
    pub(super) fn convert_stored(&self, start: usize, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let text = out.get(start..).unwrap_or_default();
        if self.database == self.client || text.is_ascii() {
            return Ok(());
        }
        let Some(decoded) = self.stored.decode(text) else {
            let name = encoding_name(self.database);
            let message = format!("invalid byte sequence for encoding \"{name}\"");
            return Err(SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message));
        };
        let decoded = decoded.into_owned();
        out.truncate(start);
        out.extend_from_slice(&decoded);
        self.convert_utf8(start, out)
    }

    /// Converts UTF-8 that may not be ASCII.
    fn encode(&self, start: usize, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let text = out.get(start..).unwrap_or_default();
        if text.is_ascii() {
            return Ok(());
        }
        let Ok(text) = str::from_utf8(text) else {
            let message = "invalid byte sequence for encoding \"UTF8\"";
            return Err(SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message));
        };
        let mut converted = Vec::with_capacity(text.len());
        for char in text.chars() {
            self.encode_char(char, &mut converted).ok_or_else(|| self.missing(char))?;
        }
        out.truncate(start);
        out.extend_from_slice(&converted);
        Ok(())
    }

    /// Appends a character; `None` if the encoding lacks it.
    fn encode_char(&self, char: char, out: &mut Vec<u8>) -> Option<()> {
        if char.is_ascii() {
            out.push(char as u8);
            return Some(());
        }
        match self.target {
            Target::Utf8 => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            Target::Latin1 => out.push(u8::try_from(char).ok()?),
            Target::Table(table) => {
                let (mut text, mut buffer) = ([0; 4], [0; 8]);
                let text = &*char.encode_utf8(&mut text);
                let (result, _, written) = table
                    .new_encoder()
                    .encode_from_utf8_without_replacement(text, &mut buffer, true);
                let bytes = buffer.get(..written)?;
                // The Encoding Standard reads ISO 8859-9 as Windows-1254, which has more characters.
                let is_extra = self.client == LATIN5 && bytes.iter().any(|byte| *byte < 0xA0);
                if result != encoding_rs::EncoderResult::InputEmpty || is_extra {
                    return None;
                }
                out.extend_from_slice(bytes);
            }
        }
        Some(())
    }

    /// The error for a character that the client's encoding lacks.
    fn missing(&self, char: char) -> SqlError {
        let mut buffer = [0; 4];
        let bytes = char.encode_utf8(&mut buffer).bytes().map(|byte| format!("0x{byte:02x}"));
        let message = format!(
            "character with byte sequence {} in encoding \"UTF8\" has no equivalent in encoding \
             \"{}\"",
            bytes.collect::<Vec<_>>().join(" "),
            self.name()
        );
        SqlError::new(SqlState::UNTRANSLATABLE_CHARACTER, message)
    }
}

fn encoding_name(number: i32) -> &'static str {
    let at = usize::try_from(number).ok();
    at.and_then(|at| CLIENT_ENCODINGS.get(at)).unwrap_or(&"unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_every_spelling() {
        for (name, expected) in [
            ("UTF8", Some(6)),
            ("utf-8", Some(6)),
            ("Unicode", Some(6)),
            ("latin-1", Some(8)),
            ("ISO_8859_1", Some(8)),
            ("ISO-8859-5", Some(25)),
            ("win1252", Some(24)),
            ("windows-1252", Some(24)),
            ("SQL_ASCII", Some(0)),
            ("utf9", None),
        ] {
            assert_eq!(ClientEncoding::by_name(name), expected, "{name}");
        }
    }

    #[test]
    fn text_is_converted_or_refused() {
        let check = |database, client, text: &[u8], is_stored, expected: Result<&[u8], &str>| {
            let encoding = ClientEncoding::new(database, client).expect("both are supported");
            let mut out = [b"x", text].concat();
            let result = match is_stored {
                true => encoding.convert_stored(1, &mut out),
                false => encoding.convert_utf8(1, &mut out),
            };
            let found = result.as_ref().map(|()| &out[1..]).map_err(|error| error.code().as_str());
            assert_eq!(found, expected, "{database} {client}");
        };
        let umlauts = "Größe".as_bytes();
        check(6, 6, umlauts, false, Ok(umlauts));
        check(6, 8, umlauts, false, Ok(b"Gr\xF6\xDFe"));
        check(6, 8, umlauts, true, Ok(b"Gr\xF6\xDFe"));
        check(6, 0, umlauts, false, Ok(umlauts));
        // Text columns of a LATIN1 database arrive in UTF-8, and leave as they are stored.
        check(8, 0, umlauts, false, Ok(b"Gr\xF6\xDFe"));
        check(8, 8, b"Gr\xF6\xDFe", true, Ok(b"Gr\xF6\xDFe"));
        check(8, 6, b"Gr\xF6\xDFe", true, Ok(umlauts));
        check(8, 25, "ß".as_bytes(), false, Err("22P05"));
        check(6, 16, "€".as_bytes(), false, Ok(b"\xA4"));
        check(6, 8, "€".as_bytes(), false, Err("22P05"));
        check(6, 12, "€".as_bytes(), false, Err("22P05"));
        check(6, 12, "ğ".as_bytes(), false, Ok(b"\xF0"));
        check(6, 31, "€".as_bytes(), false, Ok(b"\x80"));
        assert_eq!(ClientEncoding::new(6, 35).expect_err("SJIS").code().as_str(), "0A000");
    }
}
