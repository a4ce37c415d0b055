//! **TOAST compression**: pglz, PostgreSQL's own method, and lz4 (since PostgreSQL 14).
//!
//! A compressed value stores its raw size, and a value that decompresses to any other size is
//! damaged. Damaged bytes must not cost much memory. Each method has a largest possible ratio (273
//! for pglz, 255 for lz4), so a raw size beyond that is refused before memory is allocated.
//!
//! The method's number and its place mirror PostgreSQL's `access/toast_compression.h`.

mod pglz;

use std::fmt;

/// How a value is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Method {
    /// PostgreSQL's own (0).
    Pglz,
    /// An lz4 block (1), since PostgreSQL 14.
    Lz4,
}

impl Method {
    /// From the two bits in a value's header.
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Pglz),
            1 => Some(Self::Lz4),
            _ => None,
        }
    }

    /// From the letter in `pg_attribute.attcompression`; `None` for the server's default.
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            b'p' => Some(Self::Pglz),
            b'l' => Some(Self::Lz4),
            _ => None,
        }
    }

    /// The most bytes that `compressed` bytes can make.
    fn most(self, compressed: usize) -> usize {
        match self {
            // A match of 3 bytes makes 3 + 15 + 255.
            Self::Pglz => compressed.saturating_mul(pglz::MATCH_MAX),
            Self::Lz4 => compressed.saturating_mul(255),
        }
    }
}

/// As `pg_column_compression` names it.
impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pglz => "pglz",
            Self::Lz4 => "lz4",
        })
    }
}

/// Compressed bytes that are damaged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("{compressed} bytes compressed with {method} do not make {raw_size} bytes")]
pub struct CompressError {
    /// How they were to be decompressed.
    pub method: Method,
    /// How many compressed bytes there are.
    pub compressed: usize,
    /// How many bytes were to come out.
    pub raw_size: usize,
}

/// Appends the `raw_size` bytes that `bytes` are compressed from to `out`.
///
/// # Errors
///
/// [`CompressError`] if they make anything else; `out` is as before.
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
