//! Bit strings: `bit(n)` and `bit varying`.
//!
//! A bit string is stored as the number of its bits and then the bits, the first one as the highest of
//! a byte. The unused bits of the last byte are zero. For example, `B'101'` is `03 00 00 00 a0`.
//! How bit strings compare is in [`super::comparisons`]. Mirrors PostgreSQL's `utils/adt/varbit.c`.

use super::call::{Call, Kernel};
use super::rows::{Reader, binary, each_row, ternary, unary};
use crate::error::{SqlError, SqlState};
use arrow_array::ArrayRef;

/// The most bits of a bit string (`VARBITMAXLEN`).
const LENGTH_MAX: usize = 2_147_483_640;

/// The kernels of this module.
pub(super) const KERNELS: &[(&str, Kernel)] =
    &[
        ("bit", |call| sized(call, true)),
        ("varbit", |call| sized(call, false)),
        ("bitfromint4", |call| {
            binary(call, |value: i32, length: i32| {
                Ok(Bits::of_number(i64::from(value), length).store())
            })
        }),
        ("bitfromint8", |call| {
            binary(call, |value: i64, length: i32| Ok(Bits::of_number(value, length).store()))
        }),
        ("bittoint4", |call| {
            unary(call, |value: &[u8]| {
                let number = Bits::parse(value)?.number(32, "integer out of range")?;
                Ok(number as u32 as i32)
            })
        }),
        ("bittoint8", |call| {
            unary(call, |value: &[u8]| {
                Ok(Bits::parse(value)?.number(64, "bigint out of range")? as i64)
            })
        }),
        ("bit_and", |call| merged(call, "AND", |a, b| a & b)),
        ("bit_or", |call| merged(call, "OR", |a, b| a | b)),
        ("bitxor", |call| merged(call, "XOR", |a, b| a ^ b)),
        ("bitnot", |call| {
            unary(call, |value: &[u8]| {
                let bits = Bits::parse(value)?;
                let bytes = bits.bytes.iter().map(|byte| !byte).collect();
                Ok(Bits { length: bits.length, bytes }.padded().store())
            })
        }),
        ("bitshiftleft", |call| {
            binary(call, |value: &[u8], by: i32| {
                Ok(Bits::parse(value)?.shifted_left(i64::from(by)).store())
            })
        }),
        ("bitshiftright", |call| {
            binary(call, |value: &[u8], by: i32| {
                Ok(Bits::parse(value)?.shifted_left(-i64::from(by)).store())
            })
        }),
        ("bitcat", |call| {
            binary(call, |left: &[u8], right: &[u8]| {
                Ok(Bits::parse(left)?.joined(&Bits::parse(right)?)?.store())
            })
        }),
        ("bitsubstr", |call| {
            ternary(call, |value: &[u8], start: i32, length: i32| {
                Ok(Bits::parse(value)?.substring(start, Some(length))?.store())
            })
        }),
        ("bitsubstr_no_len", |call| {
            binary(call, |value: &[u8], start: i32| {
                Ok(Bits::parse(value)?.substring(start, None)?.store())
            })
        }),
        ("bitoverlay", |call| overlaid(call, true)),
        ("bitoverlay_no_len", |call| overlaid(call, false)),
        ("bitlength", |call| unary(call, |value: &[u8]| length_of(value))),
        ("bit_length(bit)", |call| unary(call, |value: &[u8]| length_of(value))),
        ("bitoctetlength", |call| {
            unary(call, |value: &[u8]| Ok(Bits::parse(value)?.bytes.len() as i32))
        }),
        ("bit_bit_count", |call| {
            unary(call, |value: &[u8]| {
                let bits = Bits::parse(value)?;
                Ok(bits.bytes.iter().map(|byte| i64::from(byte.count_ones())).sum::<i64>())
            })
        }),
        ("bitgetbit", |call| {
            binary(call, |value: &[u8], number: i32| {
                let bits = Bits::parse(value)?;
                let at = bits.index(number)?;
                Ok(i32::from(bits.bit(at)))
            })
        }),
        ("bitsetbit", |call| {
            ternary(call, |value: &[u8], number: i32, new: i32| {
                let mut bits = Bits::parse(value)?;
                let at = bits.index(number)?;
                if !matches!(new, 0 | 1) {
                    let message = "new bit must be 0 or 1";
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
                }
                bits.set(at, new == 1);
                Ok(bits.store())
            })
        }),
        ("bitposition", |call| {
            binary(call, |value: &[u8], part: &[u8]| {
                let (bits, part) = (Bits::parse(value)?, Bits::parse(part)?);
                if bits.length == 0 || part.length > bits.length {
                    return Ok(0);
                }
                let mut starts = 0..=bits.length - part.length;
                let matches =
                    |start: usize| (0..part.length).all(|at| part.bit(at) == bits.bit(start + at));
                Ok(starts.find(|&start| matches(start)).map_or(0, |start| start as i32 + 1))
            })
        }),
    ];

/// A bit string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::functions) struct Bits {
    length: usize,
    bytes: Vec<u8>,
}

impl Bits {
    pub(in crate::functions) fn parse(value: &[u8]) -> Result<Self, SqlError> {
        let damaged = || SqlError::new(SqlState::DATA_CORRUPTED, "bit: of another length");
        let (length, bytes) = value.split_first_chunk::<4>().ok_or_else(damaged)?;
        let length = usize::try_from(i32::from_le_bytes(*length)).map_err(|_| damaged())?;
        if length > LENGTH_MAX || bytes.len() != length.div_ceil(8) {
            return Err(damaged());
        }
        Ok(Self { length, bytes: bytes.to_vec() })
    }

    pub(in crate::functions) fn store(&self) -> Vec<u8> {
        let mut out = (self.length as u32).to_le_bytes().to_vec();
        out.extend_from_slice(&self.bytes);
        out
    }

    fn zeros(length: usize) -> Self {
        Self { length, bytes: vec![0; length.div_ceil(8)] }
    }

    /// Clears the unused bits.
    fn padded(mut self) -> Self {
        let used = self.length % 8;
        if used > 0
            && let Some(last) = self.bytes.last_mut()
        {
            *last &= 0xFF_u8 << (8 - used);
        }
        self
    }

    fn bit(&self, at: usize) -> bool {
        self.bytes.get(at / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1)
    }

    fn set(&mut self, at: usize, value: bool) {
        let bit = 0x80_u8 >> (at % 8);
        if let Some(byte) = self.bytes.get_mut(at / 8) {
            *byte = if value { *byte | bit } else { *byte & !bit };
        }
    }

    /// The bits from `start`, at most `length` of them.
    fn part(&self, start: usize, length: usize) -> Self {
        let length = length.min(self.length.saturating_sub(start));
        let mut out = Self::zeros(length);
        let (first, shift) = (start / 8, start % 8);
        for (at, byte) in out.bytes.iter_mut().enumerate() {
            let high = self.bytes.get(first + at).copied().unwrap_or_default();
            let low = self.bytes.get(first + at + 1).copied().unwrap_or_default();
            let both = u16::from_be_bytes([high, low]) << shift;
            *byte = both.to_be_bytes()[0];
        }
        out.padded()
    }

    /// The same number of bits, moved to the left. Others become zero.
    fn shifted_left(&self, by: i64) -> Self {
        let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX).min(self.length);
        let zeros = Self::zeros(distance);
        match by >= 0 {
            true => self.part(distance, self.length).followed_by(&zeros),
            false => zeros.followed_by(&self.part(0, self.length - distance)),
        }
    }

    fn followed_by(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.length = self.length + other.length;
        let shift = self.length % 8;
        for &byte in &other.bytes {
            let [high, low] = (u16::from_be_bytes([byte, 0]) >> shift).to_be_bytes();
            match out.bytes.last_mut() {
                Some(last) if shift > 0 => {
                    *last |= high;
                    out.bytes.push(low);
                }
                _ => out.bytes.push(byte),
            }
        }
        out.bytes.truncate(out.length.div_ceil(8));
        out
    }

    fn joined(&self, other: &Self) -> Result<Self, SqlError> {
        if self.length + other.length > LENGTH_MAX {
            let message = format!("bit string length exceeds the maximum allowed ({LENGTH_MAX})");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        Ok(self.followed_by(other))
    }

    /// The bits from a place counted from 1, which may be before the first one.
    fn substring(&self, start: i32, length: Option<i32>) -> Result<Self, SqlError> {
        let end = match length {
            Some(length) if length < 0 => return Err(negative_length()),
            // As in the server, an end beyond 32 bits is that of the string.
            Some(length) => start.checked_add(length).map(i64::from),
            None => None,
        };
        let first = i64::from(start.max(1)) - 1;
        let last = end.map_or(self.length as i64, |end| end - 1).min(self.length as i64);
        let count = usize::try_from(last - first).unwrap_or_default();
        Ok(self.part(usize::try_from(first).unwrap_or_default(), count))
    }

    /// The low bits of a number, extended by its sign.
    fn of_number(value: i64, length: i32) -> Self {
        // Without a length, there is one bit.
        let length =
            usize::try_from(length).ok().filter(|&length| (1..=LENGTH_MAX).contains(&length));
        let length = length.unwrap_or(1);
        let mut bits = Self::zeros(length);
        for at in 0..length {
            // From the last bit, the lowest.
            let place = (length - 1 - at).min(63);
            bits.set(at, value >> place & 1 == 1);
        }
        bits
    }

    fn number(&self, length_max: usize, message: &str) -> Result<u64, SqlError> {
        if self.length > length_max {
            return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
        Ok((0..self.length).fold(0, |number, at| number << 1 | u64::from(self.bit(at))))
    }

    fn index(&self, number: i32) -> Result<usize, SqlError> {
        let at = usize::try_from(number).ok().filter(|&at| at < self.length);
        at.ok_or_else(|| {
            let last = self.length as i64 - 1;
            let message = format!("bit index {number} out of valid range (0..{last})");
            SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message)
        })
    }

    /// The memory used, in bytes.
    pub(in crate::functions) fn size(&self) -> usize {
        self.bytes.capacity()
    }

    /// Combines two strings of the same length. `name` is that of the operation.
    pub(in crate::functions) fn merged(
        &self,
        other: &Self,
        name: &str,
        merge: fn(u8, u8) -> u8,
    ) -> Result<Self, SqlError> {
        if self.length != other.length {
            let message = format!("cannot {name} bit strings of different sizes");
            return Err(SqlError::new(SqlState::STRING_DATA_LENGTH_MISMATCH, message));
        }
        let pairs = self.bytes.iter().zip(&other.bytes);
        let bytes = pairs.map(|(&one, &other)| merge(one, other)).collect();
        Ok(Self { length: self.length, bytes })
    }
}

fn length_of(value: &[u8]) -> Result<i32, SqlError> {
    Ok(Bits::parse(value)?.length as i32)
}

fn negative_length() -> SqlError {
    SqlError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed")
}

fn merged(call: &Call<'_>, name: &str, merge: fn(u8, u8) -> u8) -> Result<ArrayRef, SqlError> {
    binary(call, |left: &[u8], right: &[u8]| {
        Ok(Bits::parse(left)?.merged(&Bits::parse(right)?, name, merge)?.store())
    })
}

/// Casts to a length. An explicit cast cuts off or, if `exact`, fills up with zeros.
fn sized(call: &Call<'_>, exact: bool) -> Result<ArrayRef, SqlError> {
    ternary(call, |value: &[u8], length: i32, is_explicit: bool| {
        let mut bits = Bits::parse(value)?;
        let wanted =
            usize::try_from(length).ok().filter(|&wanted| (1..=LENGTH_MAX).contains(&wanted));
        let fits = |wanted: usize| match exact {
            true => bits.length == wanted,
            false => bits.length <= wanted,
        };
        let Some(wanted) = wanted.filter(|&wanted| !fits(wanted)) else {
            return Ok(value.to_vec());
        };
        if !is_explicit {
            let (code, message) = match exact {
                true => {
                    let found = bits.length;
                    let message =
                        format!("bit string length {found} does not match type bit({wanted})");
                    (SqlState::STRING_DATA_LENGTH_MISMATCH, message)
                }
                false => {
                    let message = format!("bit string too long for type bit varying({wanted})");
                    (SqlState::STRING_DATA_RIGHT_TRUNCATION, message)
                }
            };
            return Err(SqlError::new(code, message));
        }
        bits.bytes.resize(wanted.div_ceil(8), 0);
        bits.length = wanted;
        Ok(bits.padded().store())
    })
}

/// Replaces a part. Without a length, as many bits as the new ones.
fn overlaid(call: &Call<'_>, has_length: bool) -> Result<ArrayRef, SqlError> {
    let (values, parts) = (Reader::<&[u8]>::new(call, 0)?, Reader::<&[u8]>::new(call, 1)?);
    let starts = Reader::<i32>::new(call, 2)?;
    let lengths = if has_length { Some(Reader::<i32>::new(call, 3)?) } else { None };
    each_row(call.rows, |row| {
        let (Some(value), Some(part)) = (values.get(row), parts.get(row)) else { return Ok(None) };
        let Some(start) = starts.get(row) else { return Ok(None) };
        let (bits, part) = (Bits::parse(value)?, Bits::parse(part)?);
        let length = match &lengths {
            Some(lengths) => lengths.get(row),
            None => Some(part.length as i32),
        };
        let Some(length) = length else { return Ok(None) };
        if start <= 0 {
            return Err(negative_length());
        }
        let rest = start.checked_add(length).ok_or_else(|| {
            SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range")
        })?;
        let before = bits.substring(1, Some(start - 1))?;
        let after = bits.substring(rest, None)?;
        Ok(Some(before.joined(&part)?.joined(&after)?.store()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(text: &str) -> Bits {
        let mut bits = Bits::zeros(text.len());
        text.bytes().enumerate().for_each(|(at, digit)| bits.set(at, digit == b'1'));
        bits
    }

    /// Parts and shifts that don't begin at a byte give what they do on digits.
    #[test]
    fn parts_and_shifts_are_those_of_the_digits() {
        let text = "1011001110001111000010110";
        for start in 0..=text.len() {
            for end in start..=text.len() {
                assert_eq!(bits(text).part(start, end - start), bits(&text[start..end]));
                let joined = bits(&text[..start]).followed_by(&bits(&text[end..]));
                assert_eq!(joined, bits(&(text[..start].to_owned() + &text[end..])));
            }
            let zeros = "0".repeat(start);
            let left = bits(text).shifted_left(start as i64);
            assert_eq!(left, bits(&(text[start..].to_owned() + &zeros)));
            let right = bits(text).shifted_left(-(start as i64));
            assert_eq!(right, bits(&(zeros + &text[..text.len() - start])));
        }
    }
}
