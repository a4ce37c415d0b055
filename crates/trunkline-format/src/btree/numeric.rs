//! `numeric_cmp`: compares two numerics by their stored digits.
//!
//! The display scale only controls how many digits are printed, so it is ignored: 1.0 and 1.00 are
//! equal.

use crate::numeric::{Finite, Numeric};
use std::cmp::Ordering;

/// What a numeric sorts by: first its sign or special value, then its digits.
struct Key<'a> {
    /// -2 and 2 for the infinities, 3 for NaN, otherwise the number's sign.
    sign: i8,
    weight: i32,
    digits: &'a [[u8; 2]],
}

/// Compares two payloads; `None` if either is not a valid numeric.
pub(crate) fn compare(left: &[u8], right: &[u8]) -> Option<Ordering> {
    let (left, right) = (key(left)?, key(right)?);
    let magnitude = || {
        let value = |digit: &[u8; 2]| i16::from_le_bytes(*digit);
        let digits = left.digits.iter().map(value).cmp(right.digits.iter().map(value));
        left.weight.cmp(&right.weight).then(digits)
    };
    Some(left.sign.cmp(&right.sign).then_with(|| match left.sign {
        1 => magnitude(),
        -1 => magnitude().reverse(),
        _ => Ordering::Equal,
    }))
}

fn key(payload: &[u8]) -> Option<Key<'_>> {
    let Finite { negative, mut weight, digits, .. } = match Numeric::parse(payload)? {
        Numeric::Finite(number) => number,
        Numeric::Special(header) => {
            let sign = [3, 2, 3, -2][usize::from(header >> 12 & 3)];
            return Some(Key { sign, weight: 0, digits: &[] });
        }
    };
    let mut digits = digits.as_chunks().0;
    // Servers strip zero digits at either end, but 0 must equal 0 whatever its weight.
    while let [[0, 0], rest @ ..] = digits {
        (digits, weight) = (rest, weight - 1);
    }
    while let [rest @ .., [0, 0]] = digits {
        digits = rest;
    }
    let sign = match (digits.is_empty(), negative) {
        (true, _) => 0,
        (false, true) => -1,
        (false, false) => 1,
    };
    Some(Key { sign, weight, digits })
}

#[cfg(test)]
mod tests {
    use super::compare;
    use crate::test_data::from_hex;
    use std::cmp::Ordering;

    /// Each value is below the next. Both the bytes and the order come from a real server.
    const ASCENDING: [&str; 14] = [
        "00F0",           // -Infinity
        "0040 0100 0100", // -10000, the long form
        "80A0 0200",      // -2.0
        "80A0 0100 8813", // -1.5
        "FFA0 0100",      // -0.0001
        "0080",           // 0
        "7E80 0100",      // 0.00000001
        "FF80 0100",      // 0.0001
        "0081 0100",      // 1.00
        "0080 0100 8813", // 1.5
        "0080 0200",      // 2
        "0180 0100",      // 10000
        "00D0",           // Infinity
        "00C0",           // NaN
    ];

    #[test]
    fn the_order_is_the_servers() {
        for (left, one) in ASCENDING.iter().enumerate() {
            for (right, other) in ASCENDING.iter().enumerate() {
                let found = compare(&from_hex(one), &from_hex(other));
                assert_eq!(found, Some(left.cmp(&right)), "{one} {other}");
            }
        }
    }

    #[test]
    fn what_is_only_printed_otherwise_is_equal() {
        for (one, other) in [
            ("0080 0100", "0081 0100"),
            ("0080", "0081"),
            ("0080", "0080 0000"),
            ("0080 0100", "0000 0000 0100"),
            ("0080 0100 0000", "0080 0100"),
            ("0180 0000 0100", "0080 0100"),
        ] {
            let found = compare(&from_hex(one), &from_hex(other));
            assert_eq!(found, Some(Ordering::Equal), "{one} {other}");
        }
        assert_eq!(compare(&[], &[0, 0x80]), None);
        assert_eq!(compare(&[0, 0], &[0, 0x80]), None);
    }
}
