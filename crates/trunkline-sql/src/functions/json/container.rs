//! Reads and writes the containers that a `jsonb` is stored in.
//!
//! ```text
//!   u32 count and flags   a u32 for each entry: kind, and length or end   data of the entries
//! ```
//!
//! An object has its keys first, sorted by length and then by bytes, then its values. A value that is
//! not in a container is stored as an array of one element with a flag of its own. For example, the
//! value of `'{"a": 1}' -> 'a'` is copied out of the object into such an array. Nested containers are
//! copied as they are: their alignment is four bytes wherever they are. Mirrors `JsonbContainer` of
//! PostgreSQL's `utils/jsonb.h`.

use crate::error::{SqlError, SqlState};

const COUNT: u32 = 0x0FFF_FFFF;
const SCALAR: u32 = 0x1000_0000;
const OBJECT: u32 = 0x2000_0000;
const ARRAY: u32 = 0x4000_0000;
const IS_END: u32 = 0x8000_0000;
/// `JB_OFFSET_STRIDE`: one in this number of entries has the offset of its end.
const STRIDE: usize = 32;
/// The longest data of a container, in bytes.
const LENGTH_MAX: usize = COUNT as usize;

/// What a value is, by the number in its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::functions) enum Kind {
    String = 0,
    Number = 1,
    False = 2,
    True = 3,
    Null = 4,
    Container = 5,
}

/// A value in a container: its kind and its bytes, without padding. A number has a varlena header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::functions) struct Value<'a> {
    pub(in crate::functions) kind: Kind,
    pub(in crate::functions) bytes: &'a [u8],
}

fn damaged(what: &str) -> SqlError {
    SqlError::new(SqlState::DATA_CORRUPTED, format!("jsonb: {what}"))
}

/// A container and its entries.
#[derive(Debug)]
pub(in crate::functions) struct Container<'a> {
    pub(in crate::functions) is_object: bool,
    pub(in crate::functions) is_scalar: bool,
    /// The keys of an object.
    pub(in crate::functions) keys: Vec<&'a [u8]>,
    /// The elements of an array, or the values of an object.
    pub(in crate::functions) values: Vec<Value<'a>>,
}

impl<'a> Container<'a> {
    /// Reads the entries of a container.
    pub(in crate::functions) fn parse(bytes: &'a [u8]) -> Result<Self, SqlError> {
        let header = bytes.first_chunk().map(|word| u32::from_le_bytes(*word));
        let header = header.ok_or_else(|| damaged("too short"))?;
        let (is_object, is_scalar) = (header & OBJECT != 0, header & SCALAR != 0);
        let count = (header & COUNT) as usize;
        let total = if is_object { count * 2 } else { count };
        let split = bytes.get(4..).and_then(|rest| rest.split_at_checked(total * 4));
        let (words, data) = split.ok_or_else(|| damaged("more entries than bytes"))?;
        let mut entries = Vec::with_capacity(total);
        let mut start = 0;
        for word in words.as_chunks::<4>().0 {
            let word = u32::from_le_bytes(*word);
            let length = (word & COUNT) as usize;
            let end = if word & IS_END == 0 { start + length } else { length };
            entries.push(Self::entry(word, data, start, end)?);
            start = end;
        }
        let mut keys = Vec::new();
        if is_object {
            keys.extend(entries.drain(..count).map(|entry| entry.bytes));
        }
        Ok(Self { is_object, is_scalar, keys, values: entries })
    }

    fn entry(word: u32, data: &'a [u8], start: usize, end: usize) -> Result<Value<'a>, SqlError> {
        let kind = match word >> 28 & 7 {
            0 => Kind::String,
            1 => Kind::Number,
            2 => Kind::False,
            3 => Kind::True,
            4 => Kind::Null,
            5 => Kind::Container,
            _ => return Err(damaged("an entry of unknown kind")),
        };
        let is_aligned = matches!(kind, Kind::Number | Kind::Container);
        let start = if is_aligned { start.next_multiple_of(4) } else { start };
        let bytes = data.get(start..end).ok_or_else(|| damaged("an entry beyond its container"))?;
        Ok(Value { kind, bytes })
    }

    /// The value of a key.
    pub(in crate::functions) fn get(&self, key: &[u8]) -> Option<Value<'a>> {
        let order = |found: &&[u8]| found.len().cmp(&key.len()).then_with(|| (**found).cmp(key));
        let at = self.keys.binary_search_by(order).ok()?;
        self.values.get(at).copied()
    }

    /// The element with this number, from 0 or, if it is negative, from the end.
    pub(in crate::functions) fn nth(&self, number: i32) -> Option<Value<'a>> {
        if self.is_object {
            return None;
        }
        let at = match usize::try_from(number) {
            Ok(at) => at,
            Err(_) => self.values.len().checked_sub(number.unsigned_abs() as usize)?,
        };
        self.values.get(at).copied()
    }

    /// The value itself if this is not really a container.
    pub(in crate::functions) fn scalar(&self) -> Option<Value<'a>> {
        self.values.first().copied().filter(|_| self.is_scalar)
    }
}

impl<'a> Value<'a> {
    /// The entries of this value, if it is a container.
    pub(in crate::functions) fn container(&self) -> Result<Option<Container<'a>>, SqlError> {
        match self.kind {
            Kind::Container => Container::parse(self.bytes).map(Some),
            _ => Ok(None),
        }
    }

    /// The payload of a number.
    pub(in crate::functions) fn number(&self) -> Result<&'a [u8], SqlError> {
        self.bytes.get(4..).ok_or_else(|| damaged("a number without a header"))
    }

    /// This value as a `jsonb` of its own.
    pub(in crate::functions) fn to_jsonb(self) -> Result<Vec<u8>, SqlError> {
        match self.kind {
            Kind::Container => Ok(self.bytes.to_vec()),
            _ => write(ARRAY | SCALAR, &[], &[self]),
        }
    }
}

/// An array of these elements.
pub(in crate::functions) fn array(elements: &[Value<'_>]) -> Result<Vec<u8>, SqlError> {
    write(ARRAY, &[], elements)
}

/// An object of these pairs. Of equal keys, the last one counts.
pub(in crate::functions) fn object(
    mut pairs: Vec<(&[u8], Value<'_>)>,
) -> Result<Vec<u8>, SqlError> {
    pairs.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    pairs.reverse();
    pairs.dedup_by(|later, earlier| later.0 == earlier.0);
    pairs.reverse();
    let (keys, values): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let keys: Vec<Value<'_>> =
        keys.into_iter().map(|bytes| Value { kind: Kind::String, bytes }).collect();
    write(OBJECT, &keys, &values)
}

fn write(flags: u32, keys: &[Value<'_>], values: &[Value<'_>]) -> Result<Vec<u8>, SqlError> {
    let mut out = (flags | values.len() as u32).to_le_bytes().to_vec();
    let words = out.len();
    let data = words + (keys.len() + values.len()) * 4;
    out.resize(data, 0);
    for (at, value) in keys.iter().chain(values).enumerate() {
        let start = out.len();
        if matches!(value.kind, Kind::Number | Kind::Container) {
            out.resize(start.next_multiple_of(4), 0);
        }
        out.extend_from_slice(value.bytes);
        let (length, end) = (out.len() - start, out.len() - data);
        if end > LENGTH_MAX {
            let what = if flags == OBJECT { "object" } else { "array" };
            let message = format!(
                "total size of jsonb {what} elements exceeds the maximum of {LENGTH_MAX} bytes"
            );
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        let word = if at.is_multiple_of(STRIDE) { IS_END | end as u32 } else { length as u32 };
        let word = (word | (value.kind as u32) << 28).to_le_bytes();
        let place = out.get_mut(words + at * 4..words + at * 4 + 4);
        place.into_iter().for_each(|place| place.copy_from_slice(&word));
    }
    Ok(out)
}
