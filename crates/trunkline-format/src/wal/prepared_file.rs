//! **Files of prepared transactions**, in `pg_twophase`.
//!
//! ```text
//!   name   15, 16: XID, 8 hex digits; since 17: epoch and XID, 16 hex digits
//!   bytes  data of the prepare record │ CRC-32C
//!          ╰ magic │ size of the file │ XID │ …
//! ```
//! At first, a prepared transaction is only in the log. A checkpoint copies the data of the record into a file, since
//! the log before the checkpoint may go away.
//!
//! Mirrors `TwoPhaseFilePath` and `ReadTwoPhaseFile` in PostgreSQL's `access/transam/twophase.c`.

use thiserror::Error;

use super::transaction_end::PreparedTransaction;
use crate::control::PgVersion;
use crate::little_endian::read_at;

/// `TWOPHASE_MAGIC`: the first four bytes.
const MAGIC: u32 = 0x57F9_4534;

/// The reason why the file of a prepared transaction is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum PreparedFileError {
    /// The magic number is wrong.
    #[error("it begins with 0x{found:08X}, expected 0x{MAGIC:08X}", MAGIC = MAGIC)]
    Magic {
        /// The first four bytes.
        found: u32,
    },
    /// The file doesn't have the size that it names.
    #[error("it has {found} bytes, expected {expected}")]
    Size {
        /// The actual size.
        found: usize,
        /// The size that it names.
        expected: u32,
    },
    /// The checksum doesn't match the contents.
    #[error("it has the checksum 0x{found:08X}, computed 0x{computed:08X}")]
    Crc {
        /// The checksum in the file.
        found: u32,
        /// The checksum of its bytes.
        computed: u32,
    },
    /// The checksum is right, but a list is longer than the file.
    #[error("it ends inside of its lists")]
    Lists,
}

impl PreparedTransaction {
    /// The folder of the files, relative to the data directory.
    pub const DIRECTORY: &'static str = "pg_twophase";

    /// The XID in the name of a file; since 17, with its epoch. `None` if a server ignores a file of this name.
    pub fn xid_of_file(name: &str, version: PgVersion) -> Option<u64> {
        let digits = if version >= PgVersion::V17 { 16 } else { 8 };
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
        if name.len() != digits || !name.bytes().all(is_hex) {
            return None;
        }
        u64::from_str_radix(name, 16).ok()
    }

    /// Decodes the bytes of a file.
    ///
    /// # Errors
    /// [`PreparedFileError`].
    pub fn parse_file(bytes: &[u8], version: PgVersion) -> Result<Self, PreparedFileError> {
        let number = |at| read_at::<u32>(bytes, at).unwrap_or_default();
        let (magic, expected) = (number(0), number(4));
        if magic != MAGIC {
            return Err(PreparedFileError::Magic { found: magic });
        }
        let Some((data, crc)) =
            bytes.split_last_chunk().filter(|_| bytes.len() as u64 == u64::from(expected))
        else {
            return Err(PreparedFileError::Size { found: bytes.len(), expected });
        };
        let (found, computed) = (u32::from_le_bytes(*crc), crc32c::crc32c(data));
        if found != computed {
            return Err(PreparedFileError::Crc { found, computed });
        }
        Self::decode(data, version).ok_or(PreparedFileError::Lists)
    }
}
