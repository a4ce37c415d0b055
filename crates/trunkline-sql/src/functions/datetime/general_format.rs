//! C's `%g`, with which some messages print numbers.
//!
//! For example, 1234567.0 is `1.23457e+06` and 0.5 is `0.5`.

/// The significant digits that `%g` prints.
const DIGITS: i32 = 6;

/// A number as C's `%g` prints it.
pub(in crate::functions) fn general(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-Infinity" } else { "Infinity" }.to_owned();
    }
    let scientific = format!("{number:.*e}", (DIGITS - 1) as usize);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent = exponent.parse::<i32>().unwrap_or_default();
    if (-4..DIGITS).contains(&exponent) {
        let fixed = format!("{number:.*}", (DIGITS - 1 - exponent) as usize);
        return without_zeros(&fixed).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs())
}

/// Removes trailing zeros of a fraction.
fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}
