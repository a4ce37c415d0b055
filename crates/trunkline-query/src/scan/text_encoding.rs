//! Text of a database in another encoding than UTF-8.
//!
//! Arrow's strings are in UTF-8, so text is converted when it is decoded. As for names on the command
//! line, we use the Encoding Standard of the web, which has nearly all of PostgreSQL's encodings.

use std::borrow::Cow;

use encoding_rs::Encoding;
use trunkline_sql::SqlError;

/// How the text of a database becomes UTF-8.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TextEncoding {
    /// It is UTF-8 already, or it must be.
    Utf8,
    /// Every byte is the character of that number (`LATIN1`).
    Latin1,
    /// By a table.
    Table(&'static Encoding),
}

impl TextEncoding {
    /// The encoding with this number in `pg_database.encoding`.
    ///
    /// # Errors
    /// 0A000: we can't convert it.
    pub(crate) fn new(encoding: i32) -> Result<Self, SqlError> {
        // The numbers are those of PostgreSQL's `pg_enc`.
        let label = match encoding {
            // SQL_ASCII says nothing about characters that are not ASCII. They are valid if they
            // happen to be UTF-8.
            0 | 6 => return Ok(Self::Utf8),
            8 => return Ok(Self::Latin1),
            1 => "euc-jp",
            2 => "gbk",
            3 => "euc-kr",
            9 => "iso-8859-2",
            10 => "iso-8859-3",
            11 => "iso-8859-4",
            12 => "windows-1254",
            13 => "iso-8859-10",
            14 => "iso-8859-13",
            15 => "iso-8859-14",
            16 => "iso-8859-15",
            17 => "iso-8859-16",
            18 => "windows-1256",
            19 => "windows-1258",
            20 => "ibm866",
            21 => "windows-874",
            22 => "koi8-r",
            23 => "windows-1251",
            24 => "windows-1252",
            25 => "iso-8859-5",
            26 => "iso-8859-6",
            27 => "iso-8859-7",
            28 => "iso-8859-8",
            29 => "windows-1250",
            30 => "windows-1253",
            31 => "windows-1254",
            32 => "windows-1255",
            33 => "windows-1257",
            34 => "koi8-u",
            _ => return Err(unsupported(encoding)),
        };
        Encoding::for_label(label.as_bytes()).map(Self::Table).ok_or_else(|| unsupported(encoding))
    }

    /// Whether stored text has to be converted.
    pub(super) fn converts(self) -> bool {
        !matches!(self, Self::Utf8)
    }

    /// The text in UTF-8; `None` if it has characters that can't be converted.
    pub(crate) fn decode(self, stored: &[u8]) -> Option<Cow<'_, [u8]>> {
        Some(match self {
            _ if stored.is_ascii() => Cow::Borrowed(stored),
            Self::Utf8 => Cow::Borrowed(stored),
            Self::Latin1 => {
                let text: String = stored.iter().copied().map(char::from).collect();
                Cow::Owned(text.into_bytes())
            }
            Self::Table(table) => {
                let text = table.decode_without_bom_handling_and_without_replacement(stored)?;
                Cow::Owned(text.into_owned().into_bytes())
            }
        })
    }
}

fn unsupported(encoding: i32) -> SqlError {
    let message = format!("database encoding {encoding} is not supported by trunkline");
    SqlError::unsupported(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_converted_or_refused() {
        let check = |encoding: i32, stored: &[u8], expected: Option<&str>| {
            let encoding = TextEncoding::new(encoding).expect("known");
            let found = encoding.decode(stored).map(|text| text.into_owned());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{encoding:?}");
        };
        check(8, b"Gr\xF6\xDFe", Some("Größe"));
        check(23, b"\xCF\xF0\xE8", Some("При"));
        check(1, b"\xA4\xA2", Some("あ"));
        check(1, b"\xA4", None);
        check(6, "é".as_bytes(), Some("é"));
        assert_eq!(TextEncoding::new(7).expect_err("MULE_INTERNAL").code().as_str(), "0A000");
    }
}
