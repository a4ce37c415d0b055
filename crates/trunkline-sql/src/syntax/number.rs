//! **Numbers and parameters**: decimal, hexadecimal, octal and binary integers, fractions, exponents.
//!
//! `1_000` is an integer, `0x1F` is 31, `2147483648` and `1e3` are what PostgreSQL calls floats: the
//! binder decides whether they are `int8` or `numeric`. `1..2` is an integer, two dots and an integer.

use super::source::Source;
use super::token::TokenKind;
use crate::error::SqlError;

/// The parameter that starts here: a dollar sign and digits.
pub(super) fn parameter(source: &mut Source<'_>) -> Result<TokenKind, SqlError> {
    let start = source.at;
    source.at += 1;
    source.skip_while(|byte| byte.is_ascii_digit());
    let digits = source.text(start + 1..source.at);
    let end = source.at;
    source.skip_identifier();
    if source.at > end {
        return Err(source.error("trailing junk after parameter", start));
    }
    match digits.parse::<i32>() {
        Ok(number) => Ok(TokenKind::Parameter(number.unsigned_abs())),
        Err(_) => Err(source.error("parameter number too large", start)),
    }
}

/// The number that starts here.
pub(super) fn number(source: &mut Source<'_>) -> Result<TokenKind, SqlError> {
    let start = source.at;
    let kind = match (source.peek(0), source.peek(1)) {
        (Some(b'0'), Some(b'x' | b'X')) => prefixed(source, 16, "invalid hexadecimal integer")?,
        (Some(b'0'), Some(b'o' | b'O')) => prefixed(source, 8, "invalid octal integer")?,
        (Some(b'0'), Some(b'b' | b'B')) => prefixed(source, 2, "invalid binary integer")?,
        _ => decimal(source)?,
    };
    let end = source.at;
    source.skip_identifier();
    if source.at > end {
        return Err(source.error("trailing junk after numeric literal", start));
    }
    Ok(kind)
}

/// An integer with a prefix such as `0x`.
fn prefixed(source: &mut Source<'_>, radix: u32, invalid: &str) -> Result<TokenKind, SqlError> {
    let start = source.at;
    source.at += 2;
    let first = source.at;
    while digit_follows(source, radix) {
        source.at += if source.peek(0) == Some(b'_') { 2 } else { 1 };
    }
    if source.at == first {
        // Whatever letters follow belong to the token, as in `0xyz`.
        if source.peek(0) == Some(b'_') {
            source.at += 1;
        }
        let end = source.at;
        source
            .skip_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 128..));
        let message = if source.at > end { "trailing junk after numeric literal" } else { invalid };
        return Err(source.error(message, start));
    }
    let digits = source.text(first..source.at).replace('_', "");
    Ok(match i32::from_str_radix(&digits, radix) {
        Ok(value) => TokenKind::Integer(value),
        Err(_) => TokenKind::Float(source.text(start..source.at).replace('_', "")),
    })
}

/// Whether a digit is next, or an underscore before a digit.
fn digit_follows(source: &Source<'_>, radix: u32) -> bool {
    let is_digit = |ahead| source.peek(ahead).is_some_and(|byte| char::from(byte).is_digit(radix));
    is_digit(0) || (source.peek(0) == Some(b'_') && is_digit(1))
}

/// Decimal digits with single underscores between them.
fn skip_digits(source: &mut Source<'_>) {
    if !source.peek(0).is_some_and(|byte| byte.is_ascii_digit()) {
        return;
    }
    while digit_follows(source, 10) {
        source.at += if source.peek(0) == Some(b'_') { 2 } else { 1 };
    }
}

/// A decimal integer or fraction, possibly with an exponent.
fn decimal(source: &mut Source<'_>) -> Result<TokenKind, SqlError> {
    let start = source.at;
    skip_digits(source);
    let mut integer = true;
    if source.peek(0) == Some(b'.') && source.peek(1) != Some(b'.') {
        integer = false;
        source.at += 1;
        skip_digits(source);
    }
    if matches!(source.peek(0), Some(b'e' | b'E')) {
        let signed = matches!(source.peek(1), Some(b'+' | b'-'));
        let digit = 1 + usize::from(signed);
        if source.peek(digit).is_some_and(|byte| byte.is_ascii_digit()) {
            integer = false;
            source.at += digit;
            skip_digits(source);
        } else if signed {
            source.at += digit;
            return Err(source.error("trailing junk after numeric literal", start));
        }
    }
    let text = source.text(start..source.at).replace('_', "");
    Ok(match text.parse() {
        Ok(value) if integer => TokenKind::Integer(value),
        _ => TokenKind::Float(text),
    })
}
