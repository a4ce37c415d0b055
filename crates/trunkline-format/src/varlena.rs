//! **Varlena**: variable-length value headers, inline compression and TOAST pointers.
//!
//! ```text
//!   first byte
//!   xxxxxxx1  not 01   one byte: length ≪ 1, its own byte included     payload from 1
//!   00000001           01, 18, then 16 bytes: where in TOAST           no payload here
//!   xxxxxx00           four bytes: length ≪ 2, its own four included   payload from 4
//!   xxxxxx10           the same, then raw size and method              compressed bytes from 8
//! ```
//! For example, `07 61 62` and `18 00 00 00 61 62` both represent the text "ab". The server
//! converts the header to the short form when it builds a tuple (see `heap_fill_tuple`), but not in
//! columns with storage `PLAIN`, so we must be able to read both forms.
//!
//! One-byte headers were added in PostgreSQL 8.3 to reduce the overhead of short values, and for
//! the same reason they are not aligned. The first byte of a varlena is never 0, so that a reader
//! can tell it apart from a padding byte. This requires the flag bits to be in the first byte in
//! memory, which is why the length is shifted left on little-endian machines.
//!
//! Mirrors `varattrib_4b`, `varattrib_1b_e` and `varatt_external` in PostgreSQL's `varatt.h`
//! (`postgres.h` in 15).

use crate::ids::Oid;
use crate::little_endian::read_at;
use crate::toast_compression::{self, CompressError, Method};
use thiserror::Error;

/// The maximum size of a value, including its four-byte header: 1 GiB - 1.
pub const VARLENA_MAX: u32 = 0x3FFF_FFFF;

/// Size of a four-byte header.
pub const HEADER: usize = 4;
/// Size of a TOAST pointer in bytes, including its two-byte header.
const POINTER: usize = 18;
/// `VARTAG_ONDISK`, the second byte of a TOAST pointer. Other tags mark in-memory values and never
/// appear on disk.
const TAG_ON_DISK: u8 = 18;
/// Size of an inline compressed value's header.
const COMPRESSED_HEADER: usize = 8;
/// Mask of the size in the word that combines size and method (`VARLENA_EXTSIZE_MASK`).
const SIZE_MASK: u32 = 0x3FFF_FFFF;
/// Bit position of the method in the same word.
const METHOD_SHIFT: u32 = 30;

/// A decoded varlena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Varlena<'a> {
    /// An uncompressed value.
    Plain(&'a [u8]),
    /// An inline compressed value.
    Compressed(Compressed<'a>),
    /// The value is in a TOAST table.
    External(ToastPointer),
}

/// A compressed value: the method, the uncompressed size and the compressed bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compressed<'a> {
    /// The compression method.
    pub method: Method,
    /// The uncompressed size without the header, which can be up to 1 GiB. It may be wrong if the
    /// value is damaged, so the caller must check it before allocating that much memory.
    pub raw_size: u32,
    /// The compressed bytes.
    pub bytes: &'a [u8],
}

/// A TOAST pointer (`varatt_external`) to a value that was too long for its tuple.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ToastPointer {
    /// The uncompressed size without header.
    pub raw_size: u32,
    /// The total size of all chunks.
    pub stored_size: u32,
    /// The compression method; `None` if the value is not compressed.
    pub method: Option<Method>,
    /// The value's ID in its TOAST table (`chunk_id`).
    pub value_id: u32,
    /// The TOAST table's OID. Note that this may not be the number in its file name, for example
    /// after a `VACUUM FULL`, so the caller must look up the relfilenode in `pg_class`.
    pub toast_relation: Oid,
}

/// The reason why bytes are not a valid varlena.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Error)]
pub enum VarlenaError {
    /// The value is truncated.
    #[error("a value of {wanted} bytes in {found} bytes")]
    Short {
        /// The size according to the header.
        wanted: u32,
        /// The number of bytes available.
        found: usize,
    },
    /// The length is less than the header's own size.
    #[error("a value of {length} bytes, fewer than its header has")]
    Length {
        /// The length in the header.
        length: u32,
    },
    /// A TOAST pointer with an in-memory tag, or a first byte of 0.
    #[error("a value with tag {tag}, expected 18")]
    Tag {
        /// The tag byte: the second byte of a TOAST pointer, otherwise the first byte.
        tag: u8,
    },
    /// An undefined compression method.
    #[error("compression method {number}, expected 0 or 1")]
    Method {
        /// The method number, 2 or 3.
        number: u8,
    },
    /// A TOAST pointer that contains impossible sizes. Either a size is larger than the maximum, or
    /// the stored size is larger than the raw size.
    #[error("a TOAST pointer to {stored_size} bytes for a value of {raw_size} bytes")]
    Sizes {
        /// `va_rawsize`, which includes the header.
        raw_size: u32,
        /// `va_extsize`: the total size of the chunks.
        stored_size: u32,
    },
    /// Extra bytes follow the value.
    #[error("a value of {length} bytes, {found} bytes found")]
    Trailing {
        /// The length in the header.
        length: u32,
        /// The number of bytes available.
        found: usize,
    },
    /// The compressed bytes are damaged.
    #[error(transparent)]
    Compress(#[from] CompressError),
    /// The value is out of line and must first be fetched from its TOAST table.
    #[error("the value is in a TOAST table")]
    External,
}

/// Returns the size of the value at the start of `bytes`, including its header, like `VARSIZE_ANY`.
/// The result is always between 1 and `bytes.len()`. We don't check whether the contents of the
/// value are valid.
///
/// # Errors
///
/// [`VarlenaError`]: `Short`, `Length` or `Tag`.
#[inline]
pub fn stored_length(bytes: &[u8]) -> Result<usize, VarlenaError> {
    let found = bytes.len();
    let first = read_at::<u8>(bytes, 0).ok_or(VarlenaError::Short { wanted: 1, found })?;
    let length = match first {
        0x01 => match read_at::<u8>(bytes, 1) {
            Some(TAG_ON_DISK) => POINTER,
            Some(tag) => return Err(VarlenaError::Tag { tag }),
            None => return Err(VarlenaError::Short { wanted: POINTER as u32, found }),
        },
        _ if first & 1 == 1 => usize::from(first >> 1),
        _ => {
            let wanted = HEADER as u32;
            let word = read_at::<u32>(bytes, 0).ok_or(VarlenaError::Short { wanted, found })?;
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
    /// Decodes `datum`, which must be exactly one value with its header.
    ///
    /// # Errors
    ///
    /// Any [`VarlenaError`] except `Compress` and `External`.
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

    /// Returns the value's payload. If the value is compressed, we clear `room` and decompress the
    /// value into it. Otherwise, we return a reference to the original bytes.
    ///
    /// # Errors
    ///
    /// [`VarlenaError::Compress`], or [`VarlenaError::External`] for an out-of-line value.
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
    /// Parses a word that contains both the raw size and the compression method, and the compressed
    /// data after it. In a compressed value that is stored inline, this word follows the varlena
    /// header. In a compressed value that is stored in a TOAST table, it is at the start of the
    /// first chunk.
    ///
    /// # Errors
    ///
    /// [`VarlenaError`]: `Short` or `Method`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, VarlenaError> {
        let short = VarlenaError::Short { wanted: 4, found: bytes.len() };
        let word = read_at::<u32>(bytes, 0).ok_or(short)?;
        let method = method_of(word)?;
        let bytes = bytes.get(4..).unwrap_or_default();
        Ok(Self { method, raw_size: word & SIZE_MASK, bytes })
    }

    /// Decompresses the value and appends it to `out`. This needs `raw_size` bytes of memory. If
    /// that is more than the compressed data could possibly expand to, we return an error without
    /// allocating any memory.
    ///
    /// # Errors
    ///
    /// [`CompressError`], in which case `out` is unchanged.
    pub fn decompress(&self, out: &mut Vec<u8>) -> Result<(), CompressError> {
        toast_compression::decompress(self.method, self.bytes, self.raw_size as usize, out)
    }
}

impl ToastPointer {
    /// Parses the 16 bytes after the two-byte header.
    fn parse(bytes: &[u8]) -> Result<Self, VarlenaError> {
        let short = VarlenaError::Short { wanted: POINTER as u32, found: bytes.len() + 2 };
        let word = |at| read_at::<u32>(bytes, at).ok_or(short);
        let (raw_size, info, value_id) = (word(0)?, word(4)?, word(8)?);
        let stored_size = info & SIZE_MASK;
        let sizes = VarlenaError::Sizes { raw_size, stored_size };
        if raw_size > VARLENA_MAX {
            return Err(sizes);
        }
        // va_rawsize includes the four-byte header of the uncompressed value, but va_extsize does
        // not. The value is compressed if and only if its stored size is less than its raw size
        // without the header (see `VARATT_EXTERNAL_IS_COMPRESSED`).
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
