//! **TOAST compression**: pglz, PostgreSQL's own method, and lz4 (since PostgreSQL 14).
//!
//! A compressed value contains its uncompressed size, so if it decompresses to a different size, it
//! must be damaged. The size itself can also be damaged, and we must not allocate gigabytes of
//! memory because of that. Each compression method has a maximum compression ratio, which is 273
//! for pglz and 255 for lz4. If the stored size would require a higher ratio, we report an error
//! before allocating any memory.
//!
//! The method numbers mirror PostgreSQL's `access/toast_compression.h`.

mod pglz;

use std::fmt;

/// A compression method.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Method {
    /// pglz, PostgreSQL's own method (0).
    Pglz,
    /// An lz4 block (1), since PostgreSQL 14.
    Lz4,
}

impl Method {
    /// Decodes the two method bits in a value's header.
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Pglz),
            1 => Some(Self::Lz4),
            _ => None,
        }
    }

    /// Decodes the letter in `pg_attribute.attcompression`; `None` means the server's default.
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            b'p' => Some(Self::Pglz),
            b'l' => Some(Self::Lz4),
            _ => None,
        }
    }

    /// The maximum size that `compressed` bytes can decompress to.
    fn most(self, compressed: usize) -> usize {
        match self {
            // A 3-byte match expands to at most 3 + 15 + 255 bytes.
            Self::Pglz => compressed.saturating_mul(pglz::MATCH_MAX),
            Self::Lz4 => compressed.saturating_mul(255),
        }
    }
}

/// Prints the method's name like `pg_column_compression`.
impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pglz => "pglz",
            Self::Lz4 => "lz4",
        })
    }
}

/// The compressed bytes are damaged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("{compressed} bytes compressed with {method} do not make {raw_size} bytes")]
pub struct CompressError {
    /// The compression method.
    pub method: Method,
    /// The number of compressed bytes.
    pub compressed: usize,
    /// The expected number of decompressed bytes.
    pub raw_size: usize,
}

/// Decompresses `bytes` to exactly `raw_size` bytes and appends them to `out`.
///
/// # Errors
///
/// [`CompressError`] if the bytes don't decompress to exactly that size. In that case, `out` is not
/// changed.
pub fn decompress(
    method: Method,
    bytes: &[u8],
    raw_size: usize,
    out: &mut Vec<u8>,
) -> Result<(), CompressError> {
    let error = CompressError { method, compressed: bytes.len(), raw_size };
    if raw_size > method.most(bytes.len()) {
        return Err(error);
    }
    let before = out.len();
    out.resize(before + raw_size, 0);
    let room = out.get_mut(before..).unwrap_or_default();
    let made = match method {
        Method::Pglz => pglz::decompress(bytes, room),
        Method::Lz4 => {
            matches!(lz4_flex::block::decompress_into(bytes, room), Ok(made) if made == raw_size)
        }
    };
    if made {
        return Ok(());
    }
    out.truncate(before);
    Err(error)
}

#[cfg(test)]
pub(crate) mod tests;
