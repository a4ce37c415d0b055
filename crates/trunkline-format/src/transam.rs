//! The fate of transactions: where it is recorded, and what it means for a row.
//!
//! ```text
//!   pg_xact/0000                two bits for each transaction      ── commit_log
//!   pg_multixact/offsets/0000   where a multixact's members begin  ┐
//!   pg_multixact/members/0000   who they are, and what they did    ┴─ multixact
//!   a tuple's header + these    live, dead, aborted, in doubt      ── visibility
//! ```
//!
//! These files have no page headers and no checksums; pages of 8 KiB are merely how servers cache
//! them, and 32 of them make a file. A file may be shorter, or missing: what was never written counts
//! as zeros. Nothing here reads: addresses go out, bytes come in.
//!
//! Transaction ids are 32 bits and go round: 0 is none, 1 and 2 are for the server itself, and of two
//! others one is older if less than half the circle lies between them ([`precedes`]).

pub mod commit_log;
pub mod multixact;
mod visibility;

use crate::ids::BLOCK_SIZE;

pub use commit_log::XidStatus;
pub use visibility::{RowState, XidStatusLookup, row_state};

/// The first id that an ordinary transaction can have.
pub const FIRST_NORMAL_XID: u32 = 3;

/// Pages of a full file.
pub const SEGMENT_PAGES: u64 = 32;

/// Bytes of a full file: 256 KiB.
pub const SEGMENT_BYTES: u64 = SEGMENT_PAGES * BLOCK_SIZE as u64;

/// A place in the numbered files of one directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlruPosition {
    /// The page, counted over all files from 0.
    pub page: u64,
    /// The byte within the page, below 8192.
    pub byte: usize,
}

impl SlruPosition {
    /// The number of the file.
    pub fn segment(self) -> u64 {
        self.page / SEGMENT_PAGES
    }

    /// The byte within the file.
    pub fn offset(self) -> u64 {
        self.page % SEGMENT_PAGES * BLOCK_SIZE as u64 + self.byte as u64
    }
}

/// Whether transaction `a` began before `b`. Ids below [`FIRST_NORMAL_XID`] are older than all
/// others; of the others the nearer way round the circle decides.
pub fn precedes(a: u32, b: u32) -> bool {
    if a < FIRST_NORMAL_XID || b < FIRST_NORMAL_XID {
        return a < b;
    }
    (a.wrapping_sub(b) as i32) < 0
}

/// The id of `xid` as it never repeats, epoch in the upper half, in a cluster whose next id is
/// `next`: the last one with this lower half that was given out; of ids below
/// [`FIRST_NORMAL_XID`] there is only one.
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
