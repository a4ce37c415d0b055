//! `float4` and `float8`.
//!
//! The number is the closest one to the text, with ties to even. Numbers that are too large, or too
//! close to 0, are errors, but subnormal numbers are accepted.
//!
//! Mirrors `float8in_internal` of PostgreSQL's `utils/adt/float.c`.

use super::c_text::{float_length, skip_space};
use super::error::InputError;

/// Splits off a NaN or an infinity, and returns it together with the text after it.
fn special(text: &str) -> Option<(f64, &str)> {
    const WORDS: [(&str, f64); 9] = [
        ("nan", f64::NAN),
        ("infinity", f64::INFINITY),
        ("+infinity", f64::INFINITY),
        ("-infinity", f64::NEG_INFINITY),
        ("inf", f64::INFINITY),
        ("+inf", f64::INFINITY),
        ("-inf", f64::NEG_INFINITY),
        ("+nan", f64::NAN),
        ("-nan", f64::NAN),
    ];
    WORDS.into_iter().find_map(|(word, value)| {
        let (start, rest) = text.split_at_checked(word.len())?;
        start.eq_ignore_ascii_case(word).then_some((value, rest))
    })
}

/// Parses the number at the start of `text`, and returns it with the text after it and after any
/// white space. `round` converts digits to the float type, and `type_name` and `all` are for
/// messages.
fn prefix<'a>(
    text: &'a str,
    type_name: &str,
    all: &str,
    float_name: &str,
    round: impl Fn(&str) -> f64,
) -> Result<(f64, &'a str), InputError> {
    let text = skip_space(text);
    if let Some((value, rest)) = special(text) {
        return Ok((value, skip_space(rest)));
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.starts_with("0x") || unsigned.starts_with("0X") {
        let what = "hexadecimal floating-point numbers are not supported by trunkline";
        return Err(InputError::unsupported(what));
    }
    let split = text.split_at_checked(float_length(text));
    let (number, rest) =
        split.filter(|(number, _)| !number.is_empty()).ok_or(InputError::syntax(type_name, all))?;
    let value = round(number);
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if value.is_infinite() || value == 0.0 && !is_zero {
        let message = format!("\"{number}\" is out of range for type {float_name}");
        return Err(InputError::new("22003", message));
    }
    Ok((value, skip_space(rest)))
}

/// A `float8` that is a part of a value of type `type_name`, whose complete text is `all`. Returns
/// the text after it too.
pub(super) fn float8_prefix<'a>(
    text: &'a str,
    type_name: &str,
    all: &str,
) -> Result<(f64, &'a str), InputError> {
    let round = |number: &str| number.parse().unwrap_or(f64::NAN);
    prefix(text, type_name, all, "double precision", round)
}

/// A `float8`.
pub(super) fn float8(text: &str) -> Result<f64, InputError> {
    let name = "double precision";
    let (value, rest) = float8_prefix(text, name, text)?;
    if rest.is_empty() { Ok(value) } else { Err(InputError::syntax(name, text)) }
}

/// A `float4`.
pub(super) fn float4(text: &str) -> Result<f32, InputError> {
    let round = |number: &str| f64::from(number.parse::<f32>().unwrap_or(f32::NAN));
    let (value, rest) = prefix(text, "real", text, "real", round)?;
    if rest.is_empty() { Ok(value as f32) } else { Err(InputError::syntax("real", text)) }
}
