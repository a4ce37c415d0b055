//! **Commit log** (`pg_xact`, formerly `pg_clog`): two status bits per transaction.
//!
//! ```text
//!   byte of transactions   4n+3 │ 4n+2 │ 4n+1 │ 4n
//!   bits                   7  6   5  4   3  2   1  0
//! ```
//! For example, the status of transaction 1,050,000 is stored on page 32, which is the first page
//! of file `0001`, in bits 0 and 1 of byte 356.
//!
//! The `SUB_COMMITTED` status is only used while a transaction is committing. If the transaction
//! and its subtransactions are on different pages, a server can't set the status of all of them
//! atomically, so it first marks the subtransactions that are on other pages as sub-committed. Note
//! that most readers don't need to look here at all, because the tuple's hint bits tell them what
//! they need to know.
//!
//! Mirrors PostgreSQL's `access/transam/clog.c`.

use super::slru::{SEGMENT_BYTES, SlruPosition};
use crate::ids::BLOCK_SIZE;

/// `CLOG_XACTS_PER_BYTE`: transactions per byte.
const XIDS_PER_BYTE: u32 = 4;

/// `CLOG_XACTS_PER_PAGE`: transactions per page.
pub const XIDS_PER_PAGE: u32 = BLOCK_SIZE as u32 * XIDS_PER_BYTE;

const _: () = assert!(SEGMENT_BYTES * XIDS_PER_BYTE as u64 == 1 << 20);

/// The commit log's directory, relative to the data directory.
pub const DIRECTORY: &str = "pg_xact";

/// `XidStatus`: a transaction's status in the commit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum XidStatus {
    /// In progress (0). If the cluster is stopped, the transaction was either prepared or
    /// interrupted by a crash.
    InProgress,
    /// Committed (1).
    Committed,
    /// Aborted (2).
    Aborted,
    /// A subtransaction that has committed, but whose parent has not committed yet (3). After a
    /// clean shutdown, no transaction has this status. The parent is recorded in `pg_subtrans`,
    /// which is not preserved across a restart.
    SubCommitted,
}

impl XidStatus {
    /// The statuses by number, and how they appear in a result column.
    const ALL: [(Self, &'static str); 4] = [
        (Self::InProgress, "in progress"),
        (Self::Committed, "committed"),
        (Self::Aborted, "aborted"),
        (Self::SubCommitted, "sub-committed"),
    ];

    /// Decodes the lowest two bits of `bits`.
    pub fn from_bits(bits: u8) -> Self {
        Self::ALL[usize::from(bits & 3)].0
    }

    /// Extracts the status of `xid` from `byte`, the byte at [`place`].
    pub fn in_byte(byte: u8, xid: u32) -> Self {
        Self::from_bits(byte >> (xid % XIDS_PER_BYTE * 2))
    }

    /// Replaces the status of `xid` in `byte`.
    #[must_use]
    pub fn set_in_byte(self, byte: u8, xid: u32) -> u8 {
        let shift = xid % XIDS_PER_BYTE * 2;
        byte & !(3 << shift) | (self as u8) << shift
    }
}

/// Prints the status as it appears in a result column.
impl std::fmt::Display for XidStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(Self::ALL[*self as usize].1)
    }
}

/// The position of a transaction's status bits.
pub fn place(xid: u32) -> SlruPosition {
    let byte = (xid % XIDS_PER_PAGE / XIDS_PER_BYTE) as usize;
    SlruPosition { page: u64::from(xid / XIDS_PER_PAGE), byte }
}

/// The name of a segment file within [`DIRECTORY`].
pub fn segment_name(segment: u64) -> String {
    format!("{segment:04X}")
}
