//! Names in the encodings of databases: how they are shown, and how they can be typed.
//!
//! A database stores names in its own encoding. On the command line and in lists, they are in UTF-8.
//! psql has the server convert them; we use the Encoding Standard of the web (`encoding_rs`), which
//! has nearly all of PostgreSQL's encodings. A few characters differ, and `EUC_TW`, `EUC_JIS_2004`
//! and `MULE_INTERNAL` are missing. Names with such characters are shown with escapes, and must be
//! typed as the bytes that are stored.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use encoding_rs::Encoding;
use trunkline_engine::catalog::{Database, QualifiedName, RelationInfo};
pub(crate) use trunkline_format::catalog::encoding_name;

use crate::exit::Failure;

/// SQL_ASCII. The shared catalogs contain names from databases with different encodings, but they
/// don't record the encoding of a name.
pub(crate) const SHARED_CATALOG_ENCODING: i32 = 0;

/// Converts a name in the encoding of a database to UTF-8.
///
/// In a name that we can't convert, non-ASCII bytes are shown as escapes such as `\xE4`. In that
/// case we also double every backslash, so that two different names never look the same.
pub(crate) fn shown_name(name: &[u8], encoding: i32) -> String {
    let may_have_backslash = ["UTF8", "LATIN1"].contains(&encoding_name(encoding));
    match decoded(name, encoding) {
        Some(text) if may_have_backslash || !text.contains('\\') => text,
        _ => name.iter().fold(String::new(), |mut shown, &byte| {
            match byte {
                b'\\' => shown.push_str("\\\\"),
                0..=127 => shown.push(char::from(byte)),
                _ => shown.push_str(&format!("\\x{byte:02X}")),
            }
            shown
        }),
    }
}

/// Looks up a relation whose name was typed on the command line.
pub(crate) fn resolve<'d>(
    database: &'d Database,
    typed: &OsStr,
) -> Result<&'d RelationInfo, Failure> {
    let typed = typed.as_bytes();
    // A database's own name is in a shared catalog, so it need not be in that database's encoding.
    let database_name = QualifiedName::parse(typed).ok().and_then(|name| name.database);
    let spellings = spellings(typed, database.info().encoding);
    let found = spellings.iter().find_map(|spelling| {
        let name = QualifiedName::parse(spelling).ok()?;
        database.resolve_name(&QualifiedName { database: database_name.clone(), ..name }).ok()
    });
    match found {
        Some(found) => Ok(found),
        // This fails, and the error has the name that was typed.
        None => database
            .resolve(typed)
            .map_err(|error| with_encoding_hint(error.into(), typed, database)),
    }
}

/// Returns what a name on the command line may be in a database: the name in the encoding of the
/// database, and the bytes that were typed.
pub(crate) fn spellings(typed: &[u8], encoding: i32) -> Vec<Cow<'_, [u8]>> {
    let text = str::from_utf8(typed).ok().filter(|text| !text.is_ascii());
    let converted = text.and_then(|text| encoded(text, encoding));
    converted.map(Cow::Owned).into_iter().chain([Cow::Borrowed(typed)]).collect()
}

/// The form of stored names that a pattern is compared with. The rule is that of [`spellings`], but we
/// convert what is stored instead of what was typed, so that `?` in a pattern stands for a character.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NameForm {
    /// In UTF-8, or as they are stored if we can't convert them.
    Utf8,
    /// As they are stored.
    Stored,
}

impl NameForm {
    /// The forms to try, in this order. A name in the encoding of the database may be valid UTF-8
    /// too, so if a pattern in UTF-8 matches nothing, we take it for what is stored.
    pub(crate) fn of_pattern(pattern: &OsStr) -> &'static [Self] {
        match pattern.to_str() {
            Some(text) if text.is_ascii() => &[Self::Utf8],
            Some(_) => &[Self::Utf8, Self::Stored],
            None => &[Self::Stored],
        }
    }

    /// A stored name in this form.
    pub(crate) fn of(self, name: &[u8], encoding: i32) -> Cow<'_, [u8]> {
        match self {
            Self::Utf8 => decoded(name, encoding)
                .map_or(Cow::Borrowed(name), |text| Cow::Owned(text.into_bytes())),
            Self::Stored => Cow::Borrowed(name),
        }
    }
}

/// Adds a hint to the error for a name that wasn't found, if we couldn't convert the name.
pub(crate) fn with_encoding_hint(failure: Failure, typed: &[u8], database: &Database) -> Failure {
    let encoding = database.info().encoding;
    let name = encoding_name(encoding);
    let is_same = typed.is_ascii() || ["UTF8", "SQL_ASCII"].contains(&name);
    if is_same || spellings(typed, encoding).len() > 1 {
        return failure;
    }
    failure.with_hint(format_args!("type the name in UTF-8, or in the database's encoding, {name}"))
}

/// Converts to UTF-8; `None` if that would lose something, or if we don't know the encoding.
fn decoded(name: &[u8], encoding: i32) -> Option<String> {
    match encoding_name(encoding) {
        "UTF8" | "SQL_ASCII" => str::from_utf8(name).ok().map(str::to_owned),
        "LATIN1" => Some(name.iter().copied().map(char::from).collect()),
        _ if name.is_ascii() => str::from_utf8(name).ok().map(str::to_owned),
        other => {
            let text =
                standard(other)?.decode_without_bom_handling_and_without_replacement(name)?;
            // Several byte strings may stand for one character.
            (encoded(&text, encoding)? == name).then(|| text.into_owned())
        }
    }
}

/// Converts from UTF-8; `None` if the encoding lacks a character, or if there is nothing to convert.
fn encoded(text: &str, encoding: i32) -> Option<Vec<u8>> {
    let encoding = encoding_name(encoding);
    if encoding == "LATIN1" {
        return text.chars().map(|char| u8::try_from(char).ok()).collect();
    }
    let (bytes, _, has_unmappable) = standard(encoding)?.encode(text);
    let ascii = |bytes: &[u8]| bytes.iter().copied().filter(u8::is_ascii).collect::<Vec<u8>>();
    // In PostgreSQL's encodings, an ASCII byte always is an ASCII character.
    let is_same = ascii(&bytes) == ascii(text.as_bytes());
    (!has_unmappable && is_same).then(|| bytes.into_owned())
}

/// The encoding of the Encoding Standard that is one of PostgreSQL's, or a superset of it.
fn standard(name: &str) -> Option<&'static Encoding> {
    Some(match name {
        "EUC_JP" => encoding_rs::EUC_JP,
        "EUC_CN" => encoding_rs::GBK,
        "EUC_KR" => encoding_rs::EUC_KR,
        "LATIN2" => encoding_rs::ISO_8859_2,
        "LATIN3" => encoding_rs::ISO_8859_3,
        "LATIN4" => encoding_rs::ISO_8859_4,
        "LATIN5" => encoding_rs::WINDOWS_1254,
        "LATIN6" => encoding_rs::ISO_8859_10,
        "LATIN7" => encoding_rs::ISO_8859_13,
        "LATIN8" => encoding_rs::ISO_8859_14,
        "LATIN9" => encoding_rs::ISO_8859_15,
        "LATIN10" => encoding_rs::ISO_8859_16,
        "WIN866" => encoding_rs::IBM866,
        "WIN874" => encoding_rs::WINDOWS_874,
        "WIN1250" => encoding_rs::WINDOWS_1250,
        "WIN1251" => encoding_rs::WINDOWS_1251,
        "WIN1252" => encoding_rs::WINDOWS_1252,
        "WIN1253" => encoding_rs::WINDOWS_1253,
        "WIN1254" => encoding_rs::WINDOWS_1254,
        "WIN1255" => encoding_rs::WINDOWS_1255,
        "WIN1256" => encoding_rs::WINDOWS_1256,
        "WIN1257" => encoding_rs::WINDOWS_1257,
        "WIN1258" => encoding_rs::WINDOWS_1258,
        "KOI8R" => encoding_rs::KOI8_R,
        "KOI8U" => encoding_rs::KOI8_U,
        "ISO_8859_5" => encoding_rs::ISO_8859_5,
        "ISO_8859_6" => encoding_rs::ISO_8859_6,
        "ISO_8859_7" => encoding_rs::ISO_8859_7,
        "ISO_8859_8" => encoding_rs::ISO_8859_8,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EUC_JP: i32 = 1;
    const EUC_CN: i32 = 2;
    const EUC_KR: i32 = 3;
    const EUC_TW: i32 = 4;
    const UTF8: i32 = 6;
    const LATIN1: i32 = 8;
    const LATIN2: i32 = 9;
    const WIN1251: i32 = 23;

    #[test]
    fn encodings_have_the_names_of_postgresql() {
        for (number, name) in [(0, "SQL_ASCII"), (6, "UTF8"), (8, "LATIN1"), (24, "WIN1252")] {
            assert_eq!(encoding_name(number), name);
        }
        for (number, name) in [(34, "KOI8U"), (35, "unknown"), (-1, "unknown")] {
            assert_eq!(encoding_name(number), name);
        }
        // All others are converted by other means, or not at all.
        let unknown = ["SQL_ASCII", "EUC_TW", "EUC_JIS_2004", "UTF8", "MULE_INTERNAL", "LATIN1"];
        for name in (0..35).map(encoding_name) {
            assert_eq!(standard(name).is_none(), unknown.contains(&name), "{name}");
        }
    }

    #[test]
    fn different_names_stay_different_in_every_encoding() {
        let names: [&[u8]; 4] = [b"t\xE4", "t\u{e4}".as_bytes(), b"t\\xE4", b"t"];
        let shown = |encoding| names.map(|name| shown_name(name, encoding));
        assert_eq!(shown(LATIN1), ["tä", "tÃ¤", "t\\xE4", "t"]);
        assert_eq!(shown(LATIN2), ["tä", "tĂ¤", "t\\\\xE4", "t"]);
        assert_eq!(shown(EUC_JP), ["t\\xE4", "t辰", "t\\\\xE4", "t"]);
        assert_eq!(shown(EUC_TW), ["t\\xE4", "t\\xC3\\xA4", "t\\\\xE4", "t"]);
        assert_eq!(shown(SHARED_CATALOG_ENCODING), ["t\\xE4", "tä", "t\\\\xE4", "t"]);
    }

    #[test]
    fn a_name_can_be_typed_as_it_is_shown_or_stored() {
        for (stored, encoding, shown) in [
            (&b"t\xE4"[..], LATIN1, "tä"),
            (b"\xC6\xFC\xCB\xDC", EUC_JP, "日本"),
            (b"\xF2\xE0\xE1", WIN1251, "таб"),
            ("日本".as_bytes(), UTF8, "日本"),
            ("日本".as_bytes(), SHARED_CATALOG_ENCODING, "日本"),
        ] {
            assert_eq!(shown_name(stored, encoding), shown);
            assert_eq!(spellings(shown.as_bytes(), encoding)[0], stored, "{shown}");
            assert!(spellings(stored, encoding).contains(&Cow::Borrowed(stored)), "{shown}");
        }
        // There is nothing to convert, or no way to.
        for (typed, encoding) in [("t", LATIN1), ("日", LATIN1), ("д", LATIN2), ("日", EUC_TW)] {
            assert_eq!(spellings(typed.as_bytes(), encoding), [typed.as_bytes()], "{typed}");
        }
    }

    /// The Encoding Standard has characters of which one byte or the only byte is ASCII.
    #[test]
    fn only_ascii_characters_have_ascii_bytes() {
        for (typed, encoding) in [("¥", EUC_JP), ("‾", EUC_JP), ("丂", EUC_CN), ("갂", EUC_KR)]
        {
            assert_eq!(spellings(typed.as_bytes(), encoding), [typed.as_bytes()], "{typed}");
        }
        assert_eq!(shown_name(b"\x81A", EUC_KR), "\\x81A");
    }
}
