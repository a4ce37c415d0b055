//! **Transaction status**: the commit log and multixacts, and the tuple visibility they determine.
//!
//! ```text
//!   pg_xact/0000                two bits for each transaction      ── commit_log
//!   pg_multixact/offsets/0000   first member of each multixact     ┐
//!   pg_multixact/members/0000   members and their lock modes       ┴─ multixact
//!   a tuple's header + these    live, dead, aborted, in doubt      ── visibility
//! ```
//!
//! This module does no I/O: callers ask for an [`SlruPosition`] and pass in the bytes they read
//! there.
//!
//! Transaction IDs have 32 bits and wrap around. 0 is invalid, 1 is the bootstrap xid and 2 is the
//! frozen xid. All others are compared modulo 2^32: `a` is older than `b` if `b` is less than 2^31
//! ahead of `a` ([`precedes`]). Freezing keeps all xids in use within that distance.
//!
//! Mirrors PostgreSQL's `access/transam.h`.

pub mod commit_log;
pub mod multixact;
mod slru;
mod visibility;

pub use commit_log::XidStatus;
pub use slru::{SEGMENT_BYTES, SEGMENT_PAGES, SlruPosition};
pub use visibility::{RowState, XidStatusLookup, row_state};

/// `FirstNormalTransactionId`: the first xid that is assigned to an ordinary transaction.
pub const FIRST_NORMAL_XID: u32 = 3;

/// `TransactionIdPrecedes`: whether xid `a` is older than `b`. Xids below [`FIRST_NORMAL_XID`] are
/// older than all others; normal xids are compared modulo 2^32.
pub fn precedes(a: u32, b: u32) -> bool {
    if a < FIRST_NORMAL_XID || b < FIRST_NORMAL_XID {
        return a < b;
    }
    (a.wrapping_sub(b) as i32) < 0
}

/// Extends `xid` to a `FullTransactionId`, with the epoch in the upper half. `next` is the
/// cluster's next full xid. If `xid` is above the lower half of `next`, it was assigned before the
/// last wraparound and so belongs to the previous epoch. Xids below [`FIRST_NORMAL_XID`] have no
/// epoch.
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
