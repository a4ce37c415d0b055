//! **Full-page images**: a copy of a page in a record, without its hole, and often compressed.
//!
//! ```text
//!   page     header, line pointers │ hole: only zeros │ tuples, special space
//!   stored   header, line pointers │ tuples, special space         or these, compressed
//! ```
//! The server logs an image at the first change of a page after a checkpoint, because a crash may
//! tear the page. Redo then starts from the image instead of the file. With
//! `wal_consistency_checking`, images are only there to compare them with what redo made.
//!
//! **Compression bombs.** An image is at most 8 kB, so its decompressed size is known in advance
//! and can't be chosen by the record. pglz and lz4 decompress into that space and fail if it is
//! too small; `zstd_frame` bounds what a zstd frame can make its decoder allocate.
//!
//! Mirrors `XLogRecordBlockImageHeader` in PostgreSQL's `access/xlogrecord.h`.

use std::fmt;

use thiserror::Error;

use crate::ids::{BLOCK_SIZE, PageBytes};
use crate::toast_compression::{self, Method};

use super::zstd_frame;

/// How an image is compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImageCompression {
    /// pglz.
    Pglz,
    /// An lz4 block.
    Lz4,
    /// A zstd frame.
    Zstd,
}

/// Prints the value of `wal_compression`.
impl fmt::Display for ImageCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pglz => "pglz",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        })
    }
}

/// The image of a page in a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageImage<'b> {
    stored: &'b [u8],
    hole_offset: u16,
    hole_length: u16,
    compression: Option<ImageCompression>,
    applies: bool,
}

/// An image that can't be decompressed to a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error(
    "image of {stored} bytes, compressed with {compression}, does not decompress to {expected} bytes"
)]
pub struct ImageError {
    /// The method.
    pub compression: ImageCompression,
    /// The stored length.
    pub stored: usize,
    /// The length without the hole.
    pub expected: usize,
}

impl<'b> PageImage<'b> {
    /// `BKPIMAGE_HAS_HOLE`.
    pub(super) const HAS_HOLE: u8 = 0x01;
    /// `BKPIMAGE_APPLY`.
    pub(super) const APPLY: u8 = 0x02;
    /// `BKPIMAGE_COMPRESS_LZ4`.
    pub(super) const LZ4: u8 = 0x08;
    /// `BKPIMAGE_COMPRESSED`: any of the three methods.
    pub(super) const COMPRESSED: u8 = 0x1C;

    /// An image with these flags. `None` if more than one compression method is named. Unknown
    /// flags are ignored, as by the server.
    pub(super) fn new(
        stored: &'b [u8],
        flags: u8,
        hole_offset: u16,
        hole_length: u16,
    ) -> Option<Self> {
        let compression = match flags & Self::COMPRESSED {
            0 => None,
            0x04 => Some(ImageCompression::Pglz),
            Self::LZ4 => Some(ImageCompression::Lz4),
            0x10 => Some(ImageCompression::Zstd),
            _ => return None,
        };
        let applies = flags & Self::APPLY != 0;
        Some(Self { stored, hole_offset, hole_length, compression, applies })
    }

    /// The same image with its bytes at another place.
    pub(super) fn of(self, stored: &'b [u8]) -> Self {
        Self { stored, ..self }
    }

    /// The bytes in the record.
    pub fn stored(&self) -> &'b [u8] {
        self.stored
    }

    /// Where the hole begins; 0 without a hole.
    pub fn hole_offset(&self) -> u16 {
        self.hole_offset
    }

    /// The length of the hole.
    pub fn hole_length(&self) -> u16 {
        self.hole_length
    }

    /// How the image is compressed.
    pub fn compression(&self) -> Option<ImageCompression> {
        self.compression
    }

    /// Whether redo restores the page from this image. Otherwise the image is only to compare.
    pub fn applies(&self) -> bool {
        self.applies
    }

    /// The length without the hole, decompressed.
    fn unpacked_length(&self) -> usize {
        BLOCK_SIZE.saturating_sub(usize::from(self.hole_length))
    }

    /// Restores the page.
    ///
    /// # Errors
    ///
    /// [`ImageError`] if the image doesn't decompress to a page. `page` has undefined contents
    /// then.
    pub fn restore(&self, page: &mut PageBytes) -> Result<(), ImageError> {
        let Some(compression) = self.compression else {
            self.fill(self.stored, page);
            return Ok(());
        };
        let expected = self.unpacked_length();
        let mut unpacked = Vec::new();
        let is_unpacked = match compression {
            ImageCompression::Pglz => self.unpack(Method::Pglz, &mut unpacked),
            ImageCompression::Lz4 => self.unpack(Method::Lz4, &mut unpacked),
            ImageCompression::Zstd => {
                unpacked.resize(expected, 0);
                zstd_frame::decompress(self.stored, &mut unpacked)
            }
        };
        if !is_unpacked {
            return Err(ImageError { compression, stored: self.stored.len(), expected });
        }
        self.fill(&unpacked, page);
        Ok(())
    }

    fn unpack(&self, method: Method, out: &mut Vec<u8>) -> bool {
        toast_compression::decompress(method, self.stored, self.unpacked_length(), out).is_ok()
    }

    /// Copies the two parts of a page around its hole.
    fn fill(&self, unpacked: &[u8], page: &mut PageBytes) {
        page.fill(0);
        let offset = usize::from(self.hole_offset);
        let (before, after) = unpacked.split_at_checked(offset).unwrap_or((unpacked, &[]));
        if let Some(room) = page.get_mut(..before.len()) {
            room.copy_from_slice(before);
        }
        let start = offset + usize::from(self.hole_length);
        if let Some(room) = page.get_mut(start..).filter(|room| room.len() == after.len()) {
            room.copy_from_slice(after);
        }
    }
}
