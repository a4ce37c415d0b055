//! **Rounding** of the numbers in a report, done once, where a number is computed. JSON, CSV and the
//! page then all print the same digits.

/// Decimal places of times in seconds: nanoseconds.
pub(crate) const SECONDS_PLACES: i32 = 9;

/// Rounds to this number of decimal places.
pub(crate) fn rounded(value: f64, places: i32) -> f64 {
    let scale = 10_f64.powi(places);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn a_rounded_number_is_printed_with_few_digits() {
        assert_eq!(rounded(1.0 / 3.0, 6).to_string(), "0.333333");
        assert_eq!(rounded(123.456, 1).to_string(), "123.5");
        assert_eq!(rounded(2.0, 3).to_string(), "2");
        assert!(rounded(f64::NAN, 3).is_nan());
    }
}
