//! **Transaction status**: the commit log and multixacts, and the tuple visibility they determine.
//!
//! ```text
//!   pg_xact/0000                two bits for each transaction      ── commit_log
//!   pg_multixact/offsets/0000   first member of each multixact     ┐
//!   pg_multixact/members/0000   members and their lock modes       ┴─ multixact
//!   a tuple's header + these    live, dead, aborted, in doubt      ── visibility
//! ```
//!
//! This module doesn't do any I/O. We tell the caller where to read (see [`SlruPosition`]), and the
//! caller then passes us the bytes it has read.
//!
//! Transaction IDs have 32 bits and wrap around. 0 is the invalid XID, 1 is the bootstrap XID, and
//! 2 is the frozen XID. All other XIDs are compared modulo 2^32: `a` is older than `b` if `b` is
//! less than 2^31 ahead of `a` (see [`precedes`]). This works because VACUUM freezes old tuples, so
//! that all XIDs still in use are close enough to each other.
//!
//! Mirrors PostgreSQL's `access/transam.h`.

pub mod commit_log;
pub mod multixact;
mod slru;
mod slru_files;
mod visibility;

pub use commit_log::XidStatus;
pub use slru::{SEGMENT_BYTES, SEGMENT_PAGES, SlruPosition};
pub use slru_files::Slru;
pub use visibility::{RowState, XidStatusLookup, row_state};

/// `FirstNormalTransactionId`: the first xid that is assigned to an ordinary transaction.
pub const FIRST_NORMAL_XID: u32 = 3;

/// Returns true if XID `a` is older than `b`, like `TransactionIdPrecedes`. Normal XIDs are
/// compared modulo 2^32. The special XIDs below [`FIRST_NORMAL_XID`] are older than all normal
/// ones.
pub fn precedes(a: u32, b: u32) -> bool {
    if a < FIRST_NORMAL_XID || b < FIRST_NORMAL_XID {
        return a < b;
    }
    (a.wrapping_sub(b) as i32) < 0
}

/// Converts `xid` to a `FullTransactionId`, which has the epoch in its upper half. `next` is the
/// next full XID that the cluster will assign. If `xid` is greater than the lower half of `next`,
/// it must have been assigned before the last wraparound, so it belongs to the previous epoch. The
/// special XIDs below [`FIRST_NORMAL_XID`] don't have an epoch.
pub fn full_xid(xid: u32, next: u64) -> u64 {
    let epoch = next >> 32;
    if xid < FIRST_NORMAL_XID {
        return u64::from(xid);
    }
    let epoch = if xid > next as u32 { epoch.saturating_sub(1) } else { epoch };
    epoch << 32 | u64::from(xid)
}

#[cfg(test)]
mod tests;
