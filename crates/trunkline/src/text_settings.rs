//! The PostgreSQL settings that change how values are printed, and their defaults.
//!
//! The engine doesn't define these settings, because only `copy` prints values. We keep them in a
//! separate module, because the parser for `-c NAME=VALUE` must be able to distinguish them from
//! the engine's settings.

/// Names and defaults of these settings. The defaults are the ones built into the server
/// (`boot_val`), not the values that `initdb` writes to `postgresql.conf`.
pub(crate) const TEXT_SETTINGS: [(&str, &str); 6] = [
    ("TimeZone", "GMT"),
    ("DateStyle", "ISO"),
    ("IntervalStyle", "postgres"),
    ("bytea_output", "hex"),
    ("extra_float_digits", "1"),
    ("lc_monetary", "C"),
];

/// Splits an assignment into the setting's name, converted to lower case, and its value. Returns
/// `None` if the setting isn't one of [`TEXT_SETTINGS`].
pub(crate) fn parse_text_setting(assignment: &str) -> Option<(String, &str)> {
    let (name, value) = assignment.split_once('=')?;
    let name = name.replace('-', "_").to_ascii_lowercase();
    let is_known = TEXT_SETTINGS.iter().any(|(known, _)| known.eq_ignore_ascii_case(&name));
    is_known.then_some((name, value))
}
