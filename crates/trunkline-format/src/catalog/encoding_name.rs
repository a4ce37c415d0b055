//! Names of encodings (`pg_encoding_to_char`).
//!
//! ```
//! assert_eq!(trunkline_format::catalog::encoding_name(6), "UTF8");
//! ```

/// Returns PostgreSQL's name for an encoding (`pg_enc`), or `unknown`. The numbers can't change between versions,
/// because they are stored in `pg_database.encoding`.
pub fn encoding_name(encoding: i32) -> &'static str {
    const NAMES: &str = "SQL_ASCII EUC_JP EUC_CN EUC_KR EUC_TW EUC_JIS_2004 UTF8 MULE_INTERNAL \
        LATIN1 LATIN2 LATIN3 LATIN4 LATIN5 LATIN6 LATIN7 LATIN8 LATIN9 LATIN10 WIN1256 WIN1258 \
        WIN866 WIN874 KOI8R WIN1251 WIN1252 ISO_8859_5 ISO_8859_6 ISO_8859_7 ISO_8859_8 WIN1250 \
        WIN1253 WIN1254 WIN1255 WIN1257 KOI8U";
    let at = usize::try_from(encoding).ok();
    at.and_then(|at| NAMES.split(' ').nth(at)).unwrap_or("unknown")
}
