//! The PostgreSQL settings that change how values are printed, and their defaults.
//!
//! The engine doesn't define these settings, because only `copy` prints values. They are in a
//! separate module because the parser of `-c NAME=VALUE` must distinguish them from the engine's
//! settings.

/// Name and default of each setting. The defaults are those built into the server (`boot_val`), not
/// those that `initdb` writes to `postgresql.conf`.
pub(crate) const TEXT_SETTINGS: [(&str, &str); 6] = [
    ("TimeZone", "GMT"),
    ("DateStyle", "ISO"),
    ("IntervalStyle", "postgres"),
    ("bytea_output", "hex"),
    ("extra_float_digits", "1"),
    ("lc_monetary", "C"),
];

/// Splits an assignment into the name in lower case and the value. Returns `None` if it does not
/// assign one of [`TEXT_SETTINGS`].
pub(crate) fn parse_text_setting(assignment: &str) -> Option<(String, &str)> {
    let (name, value) = assignment.split_once('=')?;
    let name = name.replace('-', "_").to_ascii_lowercase();
    let is_known = TEXT_SETTINGS.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name));
    is_known.then_some((name, value))
}
