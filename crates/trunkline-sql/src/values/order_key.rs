//! **Order keys**: bytes that compare as PostgreSQL compares the values they are made from.
//!
//! Two values are equal if and only if their keys are, so keys also serve for grouping and joins. For
//! example, `1.0` and `1.00` have the same key, and so have `1 mon` and `30 days`.
//!
//! ```text
//!   numeric   1 -Infinity, 2 negative, 3 zero, 4 positive, 5 Infinity, 6 NaN;
//!             then the weight and each digit plus 1, and 0 at the end; inverted if negative
//!   interval  the microseconds, with months of 30 days, as 16 bytes with the sign flipped
//!   timetz    the time in UTC, then the zone, each with the sign flipped
//!   inet      family, network, length of the prefix, address
//!   bit       the bytes with 00 escaped as 00 FF, then 00 00, then the length
//! ```
//!
//! Other types need no bytes: a float is compared after -0 has become 0 and every NaN the same one, and
//! a `bpchar` without the blanks at its end. The carriers of the rest sort as they are.

use std::sync::Arc;

use arrow_array::builder::BinaryViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, StringViewArray};
use trunkline_format::numeric::{Finite, INFINITY, MINUS_INFINITY, Numeric};
use trunkline_format::text_output::{Base, StringType, Type};

use super::carrier::Carrier;
use super::payload_reader::PayloadReader;
use crate::error::{SqlError, SqlState};

/// How the values of a type are turned into keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderKey {
    /// The carrier's own order is PostgreSQL's. For text, it is that of the collation `C`.
    Natural,
    /// `float4`.
    Float4,
    /// `float8`.
    Float8,
    /// `bpchar`.
    Padded,
    /// `numeric`.
    Numeric,
    /// `interval`.
    Interval,
    /// `timetz`.
    Timetz,
    /// `inet`, `cidr`.
    Network,
    /// `bit`, `varbit`.
    Bits,
}

impl OrderKey {
    /// The keys of a type; `None` if PostgreSQL defines no order for it, or if it depends on more than
    /// the value, as for enums and arrays. For `xid` and `cid`, only equality has a meaning.
    pub fn of(ty: &Type) -> Option<Self> {
        let Type::Base(base) = ty else { return None };
        Some(match base {
            Base::Float4 => Self::Float4,
            Base::Float8 => Self::Float8,
            Base::Text(StringType::Bpchar) => Self::Padded,
            Base::Text(StringType::Json | StringType::NodeTree) => return None,
            Base::Numeric => Self::Numeric,
            Base::Interval => Self::Interval,
            Base::Timetz => Self::Timetz,
            Base::Inet | Base::Cidr => Self::Network,
            Base::Bits(_) => Self::Bits,
            Base::Bool
            | Base::Char
            | Base::Name
            | Base::Int2
            | Base::Int4
            | Base::Int8
            | Base::Money
            | Base::Text(_)
            | Base::Bytea
            | Base::Date
            | Base::Time
            | Base::Timestamp
            | Base::Timestamptz
            | Base::Uuid
            | Base::U32(_)
            | Base::U64(_)
            | Base::RegType(_)
            | Base::Tid
            | Base::Lsn
            | Base::Macaddr
            | Base::Macaddr8 => Self::Natural,
            _ => return None,
        })
    }

    /// Appends the key of one stored value. No key is the beginning of another one.
    ///
    /// # Errors
    /// XX001: the value is malformed. XX000: this type's keys are not bytes, which is a bug.
    pub fn append(self, payload: &[u8], key: &mut Vec<u8>) -> Result<(), SqlError> {
        let appended = match self {
            Self::Numeric => numeric(payload, key),
            Self::Interval => interval(payload, key),
            Self::Timetz => timetz(payload, key),
            Self::Network => network(payload, key),
            Self::Bits => bits(payload, key),
            _ => return Err(SqlError::internal("a key that is not bytes")),
        };
        appended.ok_or_else(|| SqlError::new(SqlState::DATA_CORRUPTED, "a value is malformed"))
    }

    /// The keys of an array's values. Nulls stay null.
    ///
    /// # Errors
    /// A value is malformed, or the array is not of the type's carrier, which is a bug.
    pub fn keys(self, array: &ArrayRef) -> Result<ArrayRef, SqlError> {
        let wrong = || SqlError::internal("an array is not of its type's carrier");
        let encode: fn(&[u8], &mut Vec<u8>) -> Option<()> = match self {
            Self::Natural => return Ok(array.clone()),
            Self::Float4 => {
                let floats = array.as_primitive_opt::<Float32Type>().ok_or_else(wrong)?;
                let canonical = |value: f32| if value.is_nan() { f32::NAN } else { value + 0.0 };
                return Ok(Arc::new(floats.unary::<_, Float32Type>(canonical)));
            }
            Self::Float8 => {
                let floats = array.as_primitive_opt::<Float64Type>().ok_or_else(wrong)?;
                let canonical = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
                return Ok(Arc::new(floats.unary::<_, Float64Type>(canonical)));
            }
            Self::Padded => {
                let texts = array.as_string_view_opt().ok_or_else(wrong)?;
                let texts = texts.iter().map(|text| text.map(|text| text.trim_end_matches(' ')));
                return Ok(Arc::new(texts.collect::<StringViewArray>()));
            }
            Self::Numeric => numeric,
            Self::Interval => interval,
            Self::Timetz => timetz,
            Self::Network => network,
            Self::Bits => bits,
        };
        let carrier = match self {
            Self::Interval => Carrier::Fixed(16),
            Self::Timetz => Carrier::Fixed(12),
            _ => Carrier::Bytes,
        };
        let mut reader = PayloadReader::new(carrier, array)?;
        let mut keys = BinaryViewBuilder::with_capacity(array.len());
        let mut key = Vec::new();
        for row in 0..array.len() {
            key.clear();
            let Some(payload) = reader.get(row) else {
                keys.append_null();
                continue;
            };
            encode(payload, &mut key)
                .ok_or_else(|| SqlError::new(SqlState::DATA_CORRUPTED, "a value is malformed"))?;
            keys.append_value(&key);
        }
        Ok(Arc::new(keys.finish()))
    }
}

fn numeric(payload: &[u8], key: &mut Vec<u8>) -> Option<()> {
    let Finite { negative, mut weight, digits, .. } = match Numeric::parse(payload)? {
        Numeric::Finite(number) => number,
        Numeric::Special(header) => {
            key.push(match header {
                MINUS_INFINITY => 1,
                INFINITY => 5,
                _ => 6,
            });
            return Some(());
        }
    };
    let mut digits = digits.as_chunks::<2>().0;
    // Zeros at either end don't change a number.
    while let [[0, 0], rest @ ..] = digits {
        (digits, weight) = (rest, weight - 1);
    }
    while let [rest @ .., [0, 0]] = digits {
        digits = rest;
    }
    if digits.is_empty() {
        key.push(3);
        return Some(());
    }
    let start = key.len() + 1;
    key.push(if negative { 2 } else { 4 });
    key.extend_from_slice(&flipped(weight));
    key.extend(digits.iter().flat_map(|&digit| (u16::from_le_bytes(digit) + 1).to_be_bytes()));
    key.extend_from_slice(&[0, 0]);
    if negative {
        key.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
    Some(())
}

/// A number as four bytes that sort like it.
fn flipped(number: i32) -> [u8; 4] {
    (number ^ i32::MIN).to_be_bytes()
}

/// Three parts of an interval, or two of a `timetz`.
fn parts(payload: &[u8]) -> Option<(i64, i32, Option<i32>)> {
    let (time, rest) = payload.split_first_chunk()?;
    let (second, rest) = rest.split_first_chunk()?;
    let third = rest.first_chunk().map(|third| i32::from_le_bytes(*third));
    Some((i64::from_le_bytes(*time), i32::from_le_bytes(*second), third))
}

fn interval(payload: &[u8], key: &mut Vec<u8>) -> Option<()> {
    let (micros, days, months) = parts(payload)?;
    let days = i128::from(months?) * 30 + i128::from(days);
    let span = days * 86_400_000_000 + i128::from(micros);
    key.extend_from_slice(&(span ^ i128::MIN).to_be_bytes());
    Some(())
}

fn timetz(payload: &[u8], key: &mut Vec<u8>) -> Option<()> {
    let (micros, zone, _) = parts(payload)?;
    let utc = micros.saturating_add(i64::from(zone) * 1_000_000);
    key.extend_from_slice(&(utc ^ i64::MIN).to_be_bytes());
    key.extend_from_slice(&flipped(zone));
    Some(())
}

/// The network has its host bits cleared. Of two networks, one of which contains the other, the larger
/// one comes first: either its bits are 0 where the smaller one's are not, or its prefix is shorter.
fn network(payload: &[u8], key: &mut Vec<u8>) -> Option<()> {
    let [family, prefix, address @ ..] = payload else { return None };
    key.push(*family);
    key.extend(address.iter().enumerate().map(|(at, byte)| {
        let kept = usize::from(*prefix).saturating_sub(at * 8).min(8) as u32;
        byte & !(0xFF_u8.checked_shr(kept).unwrap_or(0))
    }));
    key.push(*prefix);
    key.extend_from_slice(address);
    Some(())
}

/// Appends bytes so that no result is the beginning of another one: each 00 is followed by FF, and 00 00
/// is the end.
pub(crate) fn append_escaped(bytes: &[u8], key: &mut Vec<u8>) {
    for &byte in bytes {
        key.push(byte);
        if byte == 0 {
            key.push(0xFF);
        }
    }
    key.extend_from_slice(&[0, 0]);
}

fn bits(payload: &[u8], key: &mut Vec<u8>) -> Option<()> {
    let (length, bytes) = payload.split_first_chunk()?;
    append_escaped(bytes, key);
    key.extend_from_slice(&flipped(i32::from_le_bytes(*length)));
    Some(())
}
