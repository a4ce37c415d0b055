//! Names as UTF-8, from the encoding of their database, and the names of encodings.

/// SQL_ASCII. The shared catalogs contain names from databases with different encodings, but they
/// don't record the encoding of a name.
pub(super) const SHARED_CATALOG_ENCODING: i32 = 0;

/// Converts a name in the encoding of a database to UTF-8.
///
/// Names in UTF-8 are shown unchanged, and LATIN1 is the only encoding that we convert. In all
/// other encodings, and in names that aren't valid in their encoding, non-ASCII bytes are shown as
/// escapes such as `\xE4`. In that case we also double every backslash, so that two different names
/// never look the same.
pub(super) fn shown_name(name: &[u8], encoding: i32) -> String {
    let encoding = encoding_name(encoding);
    if encoding == "LATIN1" {
        return name.iter().copied().map(char::from).collect();
    }
    match str::from_utf8(name) {
        Ok(text) if text.is_ascii() && !text.contains('\\') => text.to_owned(),
        Ok(text) if encoding == "UTF8" => text.to_owned(),
        Ok(text) if encoding == "SQL_ASCII" && !text.contains('\\') => text.to_owned(),
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

/// Returns PostgreSQL's name for an encoding (`pg_enc`). The numbers can't change between versions,
/// because they are stored in `pg_database.encoding`.
pub(crate) fn encoding_name(encoding: i32) -> &'static str {
    const NAMES: &str = "SQL_ASCII EUC_JP EUC_CN EUC_KR EUC_TW EUC_JIS_2004 UTF8 MULE_INTERNAL \
        LATIN1 LATIN2 LATIN3 LATIN4 LATIN5 LATIN6 LATIN7 LATIN8 LATIN9 LATIN10 WIN1256 WIN1258 \
        WIN866 WIN874 KOI8R WIN1251 WIN1252 ISO_8859_5 ISO_8859_6 ISO_8859_7 ISO_8859_8 WIN1250 \
        WIN1253 WIN1254 WIN1255 WIN1257 KOI8U";
    let at = usize::try_from(encoding).ok();
    at.and_then(|at| NAMES.split(' ').nth(at)).unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_have_the_names_of_postgresql() {
        for (number, name) in [(0, "SQL_ASCII"), (6, "UTF8"), (8, "LATIN1"), (24, "WIN1252")] {
            assert_eq!(encoding_name(number), name);
        }
        for (number, name) in [(34, "KOI8U"), (35, "unknown"), (-1, "unknown")] {
            assert_eq!(encoding_name(number), name);
        }
    }

    #[test]
    fn different_names_stay_different_in_every_encoding() {
        const LATIN1: i32 = 8;
        const LATIN2: i32 = 9;
        let names: [&[u8]; 4] = [b"t\xE4", "t\u{e4}".as_bytes(), b"t\\xE4", b"t"];
        let shown = |encoding| names.map(|name| shown_name(name, encoding));
        assert_eq!(shown(LATIN1), ["tä", "tÃ¤", "t\\xE4", "t"]);
        assert_eq!(shown(LATIN2), ["t\\xE4", "t\\xC3\\xA4", "t\\\\xE4", "t"]);
        assert_eq!(shown(SHARED_CATALOG_ENCODING), ["t\\xE4", "tä", "t\\\\xE4", "t"]);
    }
}
