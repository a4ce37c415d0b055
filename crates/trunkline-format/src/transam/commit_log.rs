//! The commit log (`pg_xact`, formerly `pg_clog`): two status bits for each transaction.
//!
//! ```text
//!   byte of transactions   4n+3 │ 4n+2 │ 4n+1 │ 4n
//!   bits                   7  6   5  4   3  2   1  0
//! ```
//! Transaction 1,050,000 is in page 32, which is the first of file `0001`; byte 356, bits 0 and 1.
//!
//! `SUB_COMMITTED` exists only while a commit sets the bits of a transaction and its
//! subtransactions on several pages, which cannot be done atomically. Hint bits in tuples save
//! readers most look-ups here.
//!
//! Mirrors PostgreSQL's `access/transam/clog.c`.

use super::{SEGMENT_BYTES, SlruPosition};
use crate::ids::BLOCK_SIZE;

/// Transactions of one byte.
const XIDS_PER_BYTE: u32 = 4;

/// Transactions of one page.
pub const XIDS_PER_PAGE: u32 = BLOCK_SIZE as u32 * XIDS_PER_BYTE;

const _: () = assert!(SEGMENT_BYTES * XIDS_PER_BYTE as u64 == 1 << 20);

/// The directory below the data directory.
pub const DIRECTORY: &str = "pg_xact";

/// `XidStatus`: the state of a transaction in the commit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum XidStatus {
    /// In progress (0). In a cluster that is not running: prepared, or interrupted by a crash.
    InProgress,
    /// Committed (1).
    Committed,
    /// Rolled back (2).
    Aborted,
    /// A committed subtransaction whose parent has not committed yet (3). A server that stopped
    /// cleanly leaves none. `pg_subtrans`, which names the parent, does not survive a restart.
    SubCommitted,
}

impl XidStatus {
    /// From the lowest two bits.
    pub fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::InProgress,
            1 => Self::Committed,
            2 => Self::Aborted,
            _ => Self::SubCommitted,
        }
    }

    /// The status of `xid` in `byte`, which is at [`place`].
    pub fn in_byte(byte: u8, xid: u32) -> Self {
        Self::from_bits(byte >> (xid % XIDS_PER_BYTE * 2))
    }
}

/// As a column of results has it.
impl std::fmt::Display for XidStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::InProgress => "in progress",
            Self::Committed => "committed",
            Self::Aborted => "aborted",
            Self::SubCommitted => "sub-committed",
        })
    }
}

/// The position of a transaction's status.
pub fn place(xid: u32) -> SlruPosition {
    let byte = (xid % XIDS_PER_PAGE / XIDS_PER_BYTE) as usize;
    SlruPosition { page: u64::from(xid / XIDS_PER_PAGE), byte }
}

/// The name of a file within [`DIRECTORY`].
pub fn segment_name(segment: u64) -> String {
    format!("{segment:04X}")
}
