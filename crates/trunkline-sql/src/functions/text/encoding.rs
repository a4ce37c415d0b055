//! Bytes as text: `encode`, `decode`, `to_hex`, and hashes.
//!
//! For example, `encode('\x0102', 'hex')` is `0102`, and `to_hex(-1)` is `ffffffff`.

use md5::Md5;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use crate::error::{SqlError, SqlState};
use crate::functions::call::Kernel;
use crate::functions::rows::{binary, unary};

/// The kernels of this module.
pub(in crate::functions) const ENCODING: &[(&str, Kernel)] = &[
    ("binary_encode", |call| {
        binary(call, |value: &[u8], name: &str| Ok(Format::named(name)?.encode(value)))
    }),
    ("binary_decode", |call| {
        binary(call, |text: &str, name: &str| Format::named(name)?.decode(text))
    }),
    ("to_hex32", |call| unary(call, |number: i32| Ok(format!("{number:x}")))),
    ("to_hex64", |call| unary(call, |number: i64| Ok(format!("{number:x}")))),
    ("to_oct32", |call| unary(call, |number: i32| Ok(format!("{number:o}")))),
    ("to_oct64", |call| unary(call, |number: i64| Ok(format!("{number:o}")))),
    ("to_bin32", |call| unary(call, |number: i32| Ok(format!("{number:b}")))),
    ("to_bin64", |call| unary(call, |number: i64| Ok(format!("{number:b}")))),
    ("md5_text", |call| unary(call, |text: &str| Ok(hex(&Md5::digest(text))))),
    ("md5_bytea", |call| unary(call, |value: &[u8]| Ok(hex(&Md5::digest(value))))),
    ("sha224_bytea", |call| unary(call, |value: &[u8]| Ok(Sha224::digest(value).to_vec()))),
    ("sha256_bytea", |call| unary(call, |value: &[u8]| Ok(Sha256::digest(value).to_vec()))),
    ("sha384_bytea", |call| unary(call, |value: &[u8]| Ok(Sha384::digest(value).to_vec()))),
    ("sha512_bytea", |call| unary(call, |value: &[u8]| Ok(Sha512::digest(value).to_vec()))),
];

/// A format that `encode` and `decode` know.
enum Format {
    Hex,
    Base64,
    Escape,
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

impl Format {
    fn named(name: &str) -> Result<Self, SqlError> {
        match name.to_ascii_lowercase().as_str() {
            "hex" => Ok(Self::Hex),
            "base64" => Ok(Self::Base64),
            "escape" => Ok(Self::Escape),
            _ => Err(invalid(format!("unrecognized encoding: \"{name}\""))),
        }
    }

    fn encode(&self, value: &[u8]) -> String {
        match self {
            Self::Hex => hex(value),
            Self::Base64 => base64(value),
            Self::Escape => escape(value),
        }
    }

    fn decode(&self, text: &str) -> Result<Vec<u8>, SqlError> {
        match self {
            Self::Hex => hex_bytes(text),
            Self::Base64 => base64_bytes(text),
            Self::Escape => escape_bytes(text.as_bytes()),
        }
    }
}

fn hex(value: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    value.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn hex_bytes(text: &str) -> Result<Vec<u8>, SqlError> {
    let digit = |letter: char| {
        let digit = letter.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        digit.ok_or_else(|| invalid(format!("invalid hexadecimal digit: \"{letter}\"")))
    };
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        // White space is allowed between bytes, not within one.
        if matches!(letter, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let high = digit(letter)?;
        let odd = || invalid("invalid hexadecimal data: odd number of digits");
        bytes.push(high << 4 | digit(letters.next().ok_or_else(odd)?)?);
    }
    Ok(bytes)
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// The length of a line of base64, in characters.
const BASE64_LINE: usize = 76;

fn base64(value: &[u8]) -> String {
    let mut text = String::with_capacity(value.len() / 3 * 4 + value.len() / 57 + 4);
    let digit = |bits: u32| char::from(BASE64.get(bits as usize & 63).copied().unwrap_or(b'='));
    for (at, group) in value.chunks(3).enumerate() {
        if at > 0 && (at * 4).is_multiple_of(BASE64_LINE) {
            text.push('\n');
        }
        let bits =
            (0..3).fold(0, |bits, at| bits << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
        text.push(digit(bits >> 18));
        text.push(digit(bits >> 12));
        text.push(if group.len() > 1 { digit(bits >> 6) } else { '=' });
        text.push(if group.len() > 2 { digit(bits) } else { '=' });
    }
    // A last line that is full is ended, too, unless it is padded.
    if !value.is_empty()
        && value.len().is_multiple_of(3)
        && text.len() % (BASE64_LINE + 1) == BASE64_LINE
    {
        text.push('\n');
    }
    text
}

fn base64_bytes(text: &str) -> Result<Vec<u8>, SqlError> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut digits, mut end) = (0_u32, 0, 0);
    for letter in text.chars() {
        let value = match letter {
            ' ' | '\t' | '\n' | '\r' => continue,
            '=' => {
                if end == 0 {
                    end = match digits {
                        2 => 1,
                        3 => 2,
                        _ => {
                            return Err(invalid("unexpected \"=\" while decoding base64 sequence"));
                        }
                    };
                }
                0
            }
            _ => {
                let place = BASE64.iter().position(|&digit| char::from(digit) == letter);
                place.ok_or_else(|| {
                    let what = "found while decoding base64 sequence";
                    invalid(format!("invalid symbol \"{letter}\" {what}"))
                })? as u32
            }
        };
        bits = bits << 6 | value;
        digits += 1;
        if digits == 4 {
            let [_, first, second, third] = bits.to_be_bytes();
            bytes.push(first);
            if end == 0 || end > 1 {
                bytes.push(second);
            }
            if end == 0 || end > 2 {
                bytes.push(third);
            }
            (bits, digits) = (0, 0);
        }
    }
    if digits != 0 {
        let hint = "Input data is missing padding, is truncated, or is otherwise corrupted.";
        return Err(invalid("invalid base64 end sequence").with_hint(hint));
    }
    Ok(bytes)
}

fn escape(value: &[u8]) -> String {
    let mut text = String::with_capacity(value.len());
    for &byte in value {
        match byte {
            b'\\' => text.push_str("\\\\"),
            0 | 0x80.. => text.push_str(&format!("\\{byte:03o}")),
            _ => text.push(char::from(byte)),
        }
    }
    text
}

fn escape_bytes(text: &[u8]) -> Result<Vec<u8>, SqlError> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((&first, after)) = rest.split_first() {
        let (byte, left) = match (first, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', left @ ..]) => {
                ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), left)
            }
            (b'\\', [b'\\', left @ ..]) => (b'\\', left),
            (b'\\', _) => {
                let message = "invalid input syntax for type bytea";
                return Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
            }
            _ => (first, after),
        };
        bytes.push(byte);
        rest = left;
    }
    Ok(bytes)
}
