//! The PostgreSQL settings that change how values are printed, and their defaults.
//!
//! The engine does not know these settings: only `copy` prints values. They live apart from `copy`
//! because parsing `-c NAME=VALUE` must tell them from the engine's settings.

/// Name and default of each setting.
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
