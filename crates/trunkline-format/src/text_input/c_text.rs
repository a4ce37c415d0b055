//! The C functions that the server's input functions are built from: `isspace`, `strtol`, `strtoul`
//! and `strtod`.
//!
//! We keep what they accept: `strtoul` takes a sign, and with base 0, a leading `0` means octal. For
//! example, `'-1'::xid` is 4294967295.

/// `isspace` in the C locale.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 9..=13)
}

/// Removes white space at the start.
pub(crate) fn skip_space(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii() && is_space(c as u8))
}

/// Removes white space at both ends.
pub(crate) fn trim_space(text: &str) -> &str {
    skip_space(text).trim_end_matches(|c: char| c.is_ascii() && is_space(c as u8))
}

/// The first byte, 0 if there is none.
pub(crate) fn first(text: &str) -> u8 {
    text.as_bytes().first().copied().unwrap_or(0)
}

/// Splits off the longest prefix whose bytes satisfy `test`, which must be false for bytes above
/// ASCII.
pub(crate) fn split_while(text: &str, test: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|byte| !test(byte)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// The number at the start of a text.
pub(crate) struct Unsigned<'a> {
    /// The number modulo 2⁶⁴, negated if it had a minus sign. `u64::MAX` if it is too large.
    pub(crate) value: u64,
    /// Whether the number doesn't fit into 64 bits.
    pub(crate) overflow: bool,
    /// The text after the number.
    pub(crate) rest: &'a str,
}

/// `strtoul`. `None` if the text does not start with a number. A base of 0 allows the prefixes `0x`
/// and `0`.
pub(crate) fn unsigned(text: &str, base: u32) -> Option<Unsigned<'_>> {
    let text = skip_space(text);
    let negative = first(text) == b'-';
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let hex = || {
        let rest = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"))?;
        first(rest).is_ascii_hexdigit().then_some(rest)
    };
    let (base, digits) = match (base, hex()) {
        (0, Some(rest)) => (16, rest),
        (0, None) if first(digits) == b'0' => (8, digits),
        (0, None) => (10, digits),
        (base, _) => (base, digits),
    };
    let (digits, rest) = split_while(digits, |byte| char::from(byte).is_digit(base));
    if digits.is_empty() {
        return None;
    }
    Some(match u64::from_str_radix(digits, base) {
        Ok(value) if negative => Unsigned { value: value.wrapping_neg(), overflow: false, rest },
        Ok(value) => Unsigned { value, overflow: false, rest },
        Err(_) => Unsigned { value: u64::MAX, overflow: true, rest },
    })
}

/// `strtol` with base 10 into 64 bits: the number, which is `None` if it is too large, and the text
/// after it. Where there is no number, it is 0 and all of the text follows.
pub(crate) fn signed(text: &str) -> (Option<i64>, &str) {
    let trimmed = skip_space(text);
    let unsigned = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    let (digits, rest) = split_while(unsigned, |byte| byte.is_ascii_digit());
    if digits.is_empty() {
        return (Some(0), text);
    }
    let length = trimmed.len() - rest.len();
    (trimmed.get(..length).and_then(|number| number.parse().ok()), rest)
}

/// [`signed`], into 32 bits.
pub(crate) fn signed_32(text: &str) -> (Option<i32>, &str) {
    let (number, rest) = signed(text);
    (number.and_then(|number| i32::try_from(number).ok()), rest)
}

/// `atoi` of a text that has only digits: 0 for no digits, and the largest number if it is too large.
pub(crate) fn leading_int(text: &str) -> i32 {
    signed_32(text).0.unwrap_or(i32::MAX)
}

/// The length of the decimal floating-point number at the start of `text`, sign included. It has at
/// least one digit. 0 if there is none.
pub(crate) fn float_length(text: &str) -> usize {
    let digit = |byte: u8| byte.is_ascii_digit();
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, rest) = split_while(unsigned, digit);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => split_while(after, digit),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return 0;
    }
    let exponent = || {
        let rest = rest.strip_prefix(['e', 'E'])?;
        let (digits, rest) = split_while(rest.strip_prefix(['+', '-']).unwrap_or(rest), digit);
        (!digits.is_empty()).then_some(rest)
    };
    text.len() - exponent().unwrap_or(rest).len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_strtoul_and_strtod_end() {
        let parse = |text, base| {
            unsigned(text, base)
                .map(|number| (number.value, number.overflow, number.rest.to_owned()))
        };
        assert_eq!(parse(" -1x", 10), Some((u64::MAX, false, "x".into())));
        assert_eq!(parse("010", 0), Some((8, false, "".into())));
        assert_eq!(parse("09", 0), Some((0, false, "9".into())));
        assert_eq!(parse("0xg", 0), Some((0, false, "xg".into())));
        assert_eq!(parse("0x1F", 0), Some((31, false, "".into())));
        assert_eq!(parse("99999999999999999999", 10), Some((u64::MAX, true, "".into())));
        assert_eq!(parse("+", 10), None);
        assert_eq!(signed(" +12:"), (Some(12), ":"));
        assert_eq!(signed("-x"), (Some(0), "-x"));
        assert_eq!(signed_32("3000000000"), (None, ""));
        for (text, length) in
            [("1.5e3x", 5), ("1e", 1), (".", 0), ("-.5", 3), ("5.", 2), ("+1e+", 2)]
        {
            assert_eq!(float_length(text), length, "{text}");
        }
    }
}
