//! Encodings by their names, of which some have several.
//!
//! ```
//! use trunkline_sql::catalog::{ENCODINGS, encoding_by_name};
//! let latin1 = encoding_by_name("ISO-8859-1").and_then(|number| ENCODINGS.get(number as usize));
//! assert_eq!(latin1, Some(&"LATIN1"));
//! ```

/// The names of PostgreSQL's encodings, by their number in `pg_enc`.
pub const ENCODINGS: [&str; 42] = [
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

/// Other names, in lower case and without punctuation.
const ALIASES: [(&str, i32); 36] = [
    ("abc", 19),
    ("alt", 20),
    ("euccn", 2),
    ("eucjis2004", 5),
    ("eucjp", 1),
    ("euckr", 3),
    ("euctw", 4),
    ("iso88591", 8),
    ("iso885910", 13),
    ("iso885913", 14),
    ("iso885914", 15),
    ("iso885915", 16),
    ("iso885916", 17),
    ("iso88592", 9),
    ("iso88593", 10),
    ("iso88594", 11),
    ("iso88595", 25),
    ("iso88596", 26),
    ("iso88597", 27),
    ("iso88598", 28),
    ("iso88599", 12),
    ("koi8", 22),
    ("mskanji", 35),
    ("muleinternal", 7),
    ("shiftjis", 35),
    ("shiftjis2004", 41),
    ("sqlascii", 0),
    ("tcvn", 19),
    ("tcvn5712", 19),
    ("unicode", 6),
    ("vscii", 19),
    ("win", 23),
    ("win932", 35),
    ("win936", 37),
    ("win949", 38),
    ("win950", 36),
];

/// The number of an encoding by one of its names, in which case and punctuation don't count.
pub fn encoding_by_name(name: &str) -> Option<i32> {
    let plain = |name: &str| -> String {
        let kept = name.chars().filter(char::is_ascii_alphanumeric);
        kept.map(|char| char.to_ascii_lowercase()).collect()
    };
    let wanted = plain(name);
    let wanted = match wanted.strip_prefix("windows") {
        Some(page) => format!("win{page}"),
        None => wanted,
    };
    let at = ENCODINGS.iter().position(|name| plain(name) == wanted);
    let alias = || ALIASES.iter().find(|(name, _)| *name == wanted).map(|(_, number)| *number);
    at.and_then(|at| i32::try_from(at).ok()).or_else(alias)
}
