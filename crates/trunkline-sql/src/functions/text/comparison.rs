//! Comparisons of `text`, `name`, `bpchar`, `"char"` and `bytea`.
//!
//! For example, `texteq('a', 'a ')` is false, and `bpchareq('a', 'a ')` is true, because trailing
//! blanks don't count in a `bpchar`. Orders are those of the bytes; under a collation that orders
//! differently, the functions fail.

use std::cmp::Ordering;

use arrow_array::ArrayRef;

use crate::error::SqlError;
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Input, binary};

/// The kernels of this module.
pub(in crate::functions) const COMPARISONS: &[(&str, Kernel)] = &[
    ("texteq", |call| equal(call, |a: &str, b: &str| a == b)),
    ("textne", |call| equal(call, |a: &str, b: &str| a != b)),
    ("text_lt", |call| text_order(call, Ordering::is_lt)),
    ("text_le", |call| text_order(call, Ordering::is_le)),
    ("text_gt", |call| text_order(call, Ordering::is_gt)),
    ("text_ge", |call| text_order(call, Ordering::is_ge)),
    ("bttextcmp", |call| text_compare(call)),
    ("text_larger", |call| text_choice(call, |a, b| if a > b { a } else { b })),
    ("text_smaller", |call| text_choice(call, |a, b| if a < b { a } else { b })),
    ("nameeq", |call| equal(call, |a: &str, b: &str| a == b)),
    ("namene", |call| equal(call, |a: &str, b: &str| a != b)),
    ("namelt", |call| text_order(call, Ordering::is_lt)),
    ("namele", |call| text_order(call, Ordering::is_le)),
    ("namegt", |call| text_order(call, Ordering::is_gt)),
    ("namege", |call| text_order(call, Ordering::is_ge)),
    ("btnamecmp", |call| text_compare(call)),
    ("nameeqtext", |call| equal(call, |a: &str, b: &str| a == b)),
    ("namenetext", |call| equal(call, |a: &str, b: &str| a != b)),
    ("namelttext", |call| text_order(call, Ordering::is_lt)),
    ("nameletext", |call| text_order(call, Ordering::is_le)),
    ("namegttext", |call| text_order(call, Ordering::is_gt)),
    ("namegetext", |call| text_order(call, Ordering::is_ge)),
    ("btnametextcmp", |call| text_compare(call)),
    ("texteqname", |call| equal(call, |a: &str, b: &str| a == b)),
    ("textnename", |call| equal(call, |a: &str, b: &str| a != b)),
    ("textltname", |call| text_order(call, Ordering::is_lt)),
    ("textlename", |call| text_order(call, Ordering::is_le)),
    ("textgtname", |call| text_order(call, Ordering::is_gt)),
    ("textgename", |call| text_order(call, Ordering::is_ge)),
    ("bttextnamecmp", |call| text_compare(call)),
    ("text_pattern_lt", |call| order(call, |a: &str, b: &str| a < b)),
    ("text_pattern_le", |call| order(call, |a: &str, b: &str| a <= b)),
    ("text_pattern_gt", |call| order(call, |a: &str, b: &str| a > b)),
    ("text_pattern_ge", |call| order(call, |a: &str, b: &str| a >= b)),
    ("bttext_pattern_cmp", |call| {
        binary(call, |a: &str, b: &str| Ok(difference(a.as_bytes(), b.as_bytes())))
    }),
    ("bpchareq", |call| equal(call, |a: &str, b: &str| unpadded(a) == unpadded(b))),
    ("bpcharne", |call| equal(call, |a: &str, b: &str| unpadded(a) != unpadded(b))),
    ("bpcharlt", |call| bpchar_order(call, Ordering::is_lt)),
    ("bpcharle", |call| bpchar_order(call, Ordering::is_le)),
    ("bpchargt", |call| bpchar_order(call, Ordering::is_gt)),
    ("bpcharge", |call| bpchar_order(call, Ordering::is_ge)),
    ("bpcharcmp", |call| {
        call.check_order()?;
        binary(call, |a: &str, b: &str| Ok(bpchar_difference(a, b)))
    }),
    ("bpchar_larger", |call| {
        text_choice(call, |a, b| if unpadded(a) >= unpadded(b) { a } else { b })
    }),
    ("bpchar_smaller", |call| {
        text_choice(call, |a, b| if unpadded(a) <= unpadded(b) { a } else { b })
    }),
    ("bpchar_pattern_lt", |call| order(call, |a: &str, b: &str| unpadded(a) < unpadded(b))),
    ("bpchar_pattern_le", |call| order(call, |a: &str, b: &str| unpadded(a) <= unpadded(b))),
    ("bpchar_pattern_gt", |call| order(call, |a: &str, b: &str| unpadded(a) > unpadded(b))),
    ("bpchar_pattern_ge", |call| order(call, |a: &str, b: &str| unpadded(a) >= unpadded(b))),
    ("btbpchar_pattern_cmp", |call| binary(call, |a: &str, b: &str| Ok(bpchar_difference(a, b)))),
    ("chareq", |call| order(call, |a: u8, b: u8| a == b)),
    ("charne", |call| order(call, |a: u8, b: u8| a != b)),
    ("charlt", |call| order(call, |a: u8, b: u8| a < b)),
    ("charle", |call| order(call, |a: u8, b: u8| a <= b)),
    ("chargt", |call| order(call, |a: u8, b: u8| a > b)),
    ("charge", |call| order(call, |a: u8, b: u8| a >= b)),
    ("btcharcmp", |call| binary(call, |a: u8, b: u8| Ok(i32::from(a) - i32::from(b)))),
    ("byteaeq", |call| order(call, |a: &[u8], b: &[u8]| a == b)),
    ("byteane", |call| order(call, |a: &[u8], b: &[u8]| a != b)),
    ("bytealt", |call| order(call, |a: &[u8], b: &[u8]| a < b)),
    ("byteale", |call| order(call, |a: &[u8], b: &[u8]| a <= b)),
    ("byteagt", |call| order(call, |a: &[u8], b: &[u8]| a > b)),
    ("byteage", |call| order(call, |a: &[u8], b: &[u8]| a >= b)),
    ("byteacmp", |call| binary(call, |a: &[u8], b: &[u8]| Ok(difference(a, b)))),
    ("bytea_larger", |call| binary(call, |a: &[u8], b: &[u8]| Ok(a.max(b)))),
    ("bytea_smaller", |call| binary(call, |a: &[u8], b: &[u8]| Ok(a.min(b)))),
    ("uuid_eq", |call| order(call, |a: [u8; 16], b: [u8; 16]| a == b)),
    ("uuid_ne", |call| order(call, |a: [u8; 16], b: [u8; 16]| a != b)),
    ("uuid_lt", |call| order(call, |a: [u8; 16], b: [u8; 16]| a < b)),
    ("uuid_le", |call| order(call, |a: [u8; 16], b: [u8; 16]| a <= b)),
    ("uuid_gt", |call| order(call, |a: [u8; 16], b: [u8; 16]| a > b)),
    ("uuid_ge", |call| order(call, |a: [u8; 16], b: [u8; 16]| a >= b)),
    ("uuid_cmp", |call| binary(call, |a: [u8; 16], b: [u8; 16]| Ok(difference(&a, &b)))),
];

/// A `bpchar` as it is compared: without the blanks at its end.
pub(in crate::functions) fn unpadded(text: &str) -> &str {
    text.trim_end_matches(' ')
}

/// Compares as `memcmp` does on the platforms that PostgreSQL runs on, which clients can see: the
/// difference of the first bytes that differ. If there are none, the shorter value is less.
pub(in crate::functions) fn difference(a: &[u8], b: &[u8]) -> i32 {
    match a.iter().zip(b).find(|(a, b)| a != b) {
        Some((a, b)) => i32::from(*a) - i32::from(*b),
        None => a.len().cmp(&b.len()) as i32,
    }
}

fn bpchar_difference(a: &str, b: &str) -> i32 {
    difference(unpadded(a).as_bytes(), unpadded(b).as_bytes())
}

/// A comparison that doesn't depend on the collation.
fn order<'a, T: Input<'a>>(
    call: &'a Call<'_>,
    test: impl Fn(T, T) -> bool,
) -> Result<ArrayRef, SqlError> {
    binary(call, |a: T, b: T| Ok(test(a, b)))
}

/// An equality of texts.
fn equal<'a>(
    call: &'a Call<'_>,
    test: impl Fn(&'a str, &'a str) -> bool,
) -> Result<ArrayRef, SqlError> {
    call.check_equality()?;
    order(call, test)
}

fn text_order(call: &Call<'_>, test: fn(Ordering) -> bool) -> Result<ArrayRef, SqlError> {
    call.check_order()?;
    order(call, |a: &str, b: &str| test(a.cmp(b)))
}

fn bpchar_order(call: &Call<'_>, test: fn(Ordering) -> bool) -> Result<ArrayRef, SqlError> {
    call.check_order()?;
    order(call, |a: &str, b: &str| test(unpadded(a).cmp(unpadded(b))))
}

fn text_compare(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    call.check_order()?;
    binary(call, |a: &str, b: &str| Ok(difference(a.as_bytes(), b.as_bytes())))
}

/// The larger or the smaller of two texts.
fn text_choice<'a>(
    call: &'a Call<'_>,
    choose: impl Fn(&'a str, &'a str) -> &'a str,
) -> Result<ArrayRef, SqlError> {
    call.check_order()?;
    binary(call, |a: &str, b: &str| Ok(choose(a, b)))
}
