//! Parsers for numbers on the command line, with messages that name the valid range.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// A parser for whole numbers in `range`. The message is that of PostgreSQL's client programs:
/// `must be in range 1..64`.
pub(crate) fn number<N>(
    range: RangeInclusive<N>,
) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static
where
    N: TryFrom<i128> + PartialOrd + Display + Copy + Send + Sync + 'static,
{
    move |text| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err("expected a whole number".to_owned());
        }
        // A number with too many digits for this type is outside every range.
        let number = text.parse::<i128>().ok().and_then(|number| N::try_from(number).ok());
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| format!("must be in range {}..{}", range.start(), range.end()))
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn messages_name_the_range() {
        let parse = number(1..=64_u32);
        assert_eq!(parse("64"), Ok(64));
        for text in ["0", "65", "-1", "4294967297", "99999999999999999999999999999999999999999"] {
            assert_eq!(parse(text), Err("must be in range 1..64".to_owned()), "{text}");
        }
        for text in ["", "-", "x", "1x", "1.0", " 1"] {
            assert_eq!(parse(text), Err("expected a whole number".to_owned()), "{text}");
        }
        assert_eq!(number(-5..=i64::MAX)("-5"), Ok(-5));
    }
}
