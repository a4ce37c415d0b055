//! **Varlena**: headers of variable-length values, inline compression, and TOAST pointers.
//!
//! ```text
//!   first byte
//!   xxxxxxx1  not 01   one byte: length ≪ 1, its own byte included     payload from 1
//!   00000001           01, 18, then 16 bytes: where in TOAST           no payload here
//!   xxxxxx00           four bytes: length ≪ 2, its own four included   payload from 4
//!   xxxxxx10           the same, then raw size and method              compressed bytes from 8
//! ```
//! `07 61 62` and `18 00 00 00 61 62` are both "ab". The server shortens headers when it forms a
//! tuple (`heap_fill_tuple`), except in columns with storage `PLAIN`. Readers must accept both.
//!
//! One-byte headers (PostgreSQL 8.3) are not aligned, which saves most of the overhead of short
//! values. The first byte of a varlena is never 0, so a reader can distinguish padding from a
//! header. The length bits of little-endian machines are shifted up for this reason: the flag bits
//! must be in the first byte in memory.
//!
//! Mirrors `varattrib_4b`, `varattrib_1b_e` and `varatt_external` of PostgreSQL's `varatt.h`
//! (`postgres.h` in 15).

use crate::ids::Oid;
use crate::little_endian::{u8_at, u32_at};
use crate::toast_compression::{self, CompressError, Method};
use thiserror::Error;

/// The most bytes of a value, its four-byte header included: 1 GiB less one.
pub const VARLENA_MAX: u32 = 0x3FFF_FFFF;

/// Bytes of a four-byte header.
pub const HEADER: usize = 4;
/// Bytes of a pointer to TOAST, its two-byte header included.
const POINTER: usize = 18;
/// `VARTAG_ONDISK`, the second byte of a TOAST pointer. Other tags are for values in memory and
/// are never stored.
const TAG_ON_DISK: u8 = 18;
/// Bytes of the header of a value that is compressed in its row.
const COMPRESSED_HEADER: usize = 8;
/// In the word that holds a size and a method: the size.
const SIZE_MASK: u32 = 0x3FFF_FFFF;
/// In the same word: where the method begins.
const METHOD_SHIFT: u32 = 30;

/// One stored value, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Varlena<'a> {
    /// These bytes are the value.
    Plain(&'a [u8]),
    /// The value, compressed in place.
    Compressed(Compressed<'a>),
    /// The value is in a TOAST table.
    External(ToastPointer),
}

/// A compressed value: the method, the uncompressed size and the compressed bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compressed<'a> {
    /// How.
    pub method: Method,
    /// Bytes of the value without header, up to 1 GiB. Damaged bytes can claim any size, so check
    /// it before allocating.
    pub raw_size: u32,
    /// The compressed bytes.
    pub bytes: &'a [u8],
}

/// A TOAST pointer (`varatt_external`): where a value that was too long for its tuple is stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ToastPointer {
    /// Bytes of the value, no header included.
    pub raw_size: u32,
    /// Bytes of all chunks together.
    pub stored_size: u32,
    /// How it is compressed, `None` if it is not.
    pub method: Option<Method>,
    /// The value's number in its TOAST table (`chunk_id`).
    pub value_id: u32,
    /// The OID of the TOAST table. Its relfilenode can differ, for example after `VACUUM FULL`, so
    /// the file is found through `pg_class`.
    pub toast_relation: Oid,
}

/// Bytes that are no value of variable length.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub enum VarlenaError {
    /// The bytes end before the header says so.
    #[error("a value of {wanted} bytes in {found} bytes")]
    Short {
        /// Bytes that the header asks for.
        wanted: u32,
        /// Bytes there are.
        found: usize,
    },
    /// The length does not even cover the header.
    #[error("a value of {length} bytes, fewer than its header has")]
    Length {
        /// The length.
        length: u32,
    },
    /// A pointer to something in a server's memory, or a first byte of 0.
    #[error("a value with tag {tag}, expected 18")]
    Tag {
        /// The tag byte; of a pointer the second byte.
        tag: u8,
    },
    /// A compression method without a meaning.
    #[error("compression method {number}, expected 0 or 1")]
    Method {
        /// Its number, 2 or 3.
        number: u8,
    },
    /// A pointer whose sizes cannot be: larger than any value, or stored larger than it is.
    #[error("a TOAST pointer to {stored_size} bytes for a value of {raw_size} bytes")]
    Sizes {
        /// What the value is said to have, header included.
        raw_size: u32,
        /// What its chunks are said to have.
        stored_size: u32,
    },
    /// More bytes than the value has.
    #[error("a value of {length} bytes, {found} bytes found")]
    Trailing {
        /// The length that the header says.
        length: u32,
        /// Bytes there are.
        found: usize,
    },
    /// The compressed bytes are damaged.
    #[error(transparent)]
    Compress(#[from] CompressError),
    /// The value is not here: it has to be fetched from its TOAST table first.
    #[error("the value is in a TOAST table")]
    External,
}

/// `VARSIZE_ANY`: the length in bytes, including the header, of the value at the start of `bytes`.
/// It is at least 1 and at most `bytes.len()`. The contents are not checked.
///
/// # Errors
///
/// [`VarlenaError`]: `Short`, `Length` or `Tag`.
#[inline]
pub fn stored_length(bytes: &[u8]) -> Result<usize, VarlenaError> {
    let found = bytes.len();
    let first = u8_at(bytes, 0).ok_or(VarlenaError::Short { wanted: 1, found })?;
    let length = match first {
        0x01 => match u8_at(bytes, 1) {
            Some(TAG_ON_DISK) => POINTER,
            Some(tag) => return Err(VarlenaError::Tag { tag }),
            None => return Err(VarlenaError::Short { wanted: POINTER as u32, found }),
        },
        _ if first & 1 == 1 => usize::from(first >> 1),
        _ => {
            let wanted = HEADER as u32;
            let word = u32_at(bytes, 0).ok_or(VarlenaError::Short { wanted, found })?;
            let least = if word & 2 == 0 { HEADER } else { COMPRESSED_HEADER };
            let length = word >> 2;
            if (length as usize) < least {
                return Err(VarlenaError::Length { length });
            }
            length as usize
        }
    };
    if length > found {
        return Err(VarlenaError::Short { wanted: length as u32, found });
    }
    Ok(length)
}

impl<'a> Varlena<'a> {
    /// Takes `datum` apart: a whole value, header included, and nothing else.
    ///
    /// # Errors
    ///
    /// [`VarlenaError`], but for `Compress` and `External`.
    #[inline]
    pub fn parse(datum: &'a [u8]) -> Result<Self, VarlenaError> {
        let length = stored_length(datum)?;
        if length != datum.len() {
            return Err(VarlenaError::Trailing { length: length as u32, found: datum.len() });
        }
        match datum {
            [0x01, _, pointer @ ..] => ToastPointer::parse(pointer).map(Self::External),
            [first, payload @ ..] if first & 1 == 1 => Ok(Self::Plain(payload)),
            [first, ..] if first & 2 == 0 => {
                Ok(Self::Plain(datum.get(HEADER..).unwrap_or_default()))
            }
            _ => Compressed::parse(datum.get(HEADER..).unwrap_or_default()).map(Self::Compressed),
        }
    }

    /// The value's bytes. They are borrowed if stored uncompressed. Otherwise they are decompressed
    /// into `room`, which is cleared first.
    ///
    /// # Errors
    ///
    /// [`VarlenaError::Compress`], or [`VarlenaError::External`] for a value that is elsewhere.
    pub fn payload<'r>(self, room: &'r mut Vec<u8>) -> Result<&'r [u8], VarlenaError>
    where
        'a: 'r,
    {
        match self {
            Self::Plain(payload) => Ok(payload),
            Self::Compressed(compressed) => {
                room.clear();
                compressed.decompress(room)?;
                Ok(room)
            }
            Self::External(_) => Err(VarlenaError::External),
        }
    }
}

impl<'a> Compressed<'a> {
    /// Parses a word of raw size and method, and the compressed bytes after it. An inline
    /// compressed value has them after its length word. The joined chunks of a compressed TOAST
    /// value begin with them.
    ///
    /// # Errors
    ///
    /// [`VarlenaError`]: `Short` or `Method`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, VarlenaError> {
        let short = VarlenaError::Short { wanted: 4, found: bytes.len() };
        let word = u32_at(bytes, 0).ok_or(short)?;
        let method = method_of(word)?;
        let bytes = bytes.get(4..).unwrap_or_default();
        Ok(Self { method, raw_size: word & SIZE_MASK, bytes })
    }

    /// Appends the value to `out`. Allocates the raw size, and nothing if the compressed bytes
    /// cannot expand to that size.
    ///
    /// # Errors
    ///
    /// [`CompressError`]; `out` is as before.
    pub fn decompress(&self, out: &mut Vec<u8>) -> Result<(), CompressError> {
        toast_compression::decompress(self.method, self.bytes, self.raw_size as usize, out)
    }
}

impl ToastPointer {
    /// From the 16 bytes behind the header.
    fn parse(bytes: &[u8]) -> Result<Self, VarlenaError> {
        let short = VarlenaError::Short { wanted: POINTER as u32, found: bytes.len() + 2 };
        let word = |at| u32_at(bytes, at).ok_or(short);
        let (raw_size, info, value_id) = (word(0)?, word(4)?, word(8)?);
        let stored_size = info & SIZE_MASK;
        let sizes = VarlenaError::Sizes { raw_size, stored_size };
        if raw_size > VARLENA_MAX {
            return Err(sizes);
        }
        // va_rawsize counts the four-byte header of the uncompressed value; va_extsize does not.
        // A stored size below the payload size is the only mark of a compressed value
        // (`VARATT_EXTERNAL_IS_COMPRESSED`).
        let payload = raw_size.checked_sub(HEADER as u32).ok_or(sizes)?;
        let method = match payload.cmp(&stored_size) {
            std::cmp::Ordering::Less => return Err(sizes),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(method_of(info)?),
        };
        let toast_relation = Oid(word(12)?);
        Ok(Self { raw_size: payload, stored_size, method, value_id, toast_relation })
    }
}

fn method_of(word: u32) -> Result<Method, VarlenaError> {
    let number = (word >> METHOD_SHIFT) as u8;
    Method::from_number(number).ok_or(VarlenaError::Method { number })
}

#[cfg(test)]
mod tests;
