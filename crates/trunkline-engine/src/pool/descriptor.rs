//! Buffer descriptors: the shared header of each buffer (PostgreSQL's `BufferDesc`,
//! `buf_internals.h`).
//!
//! A descriptor records which page a buffer contains, how many sessions have it pinned, whether it
//! is dirty, which I/O is in progress on it, and in which mode its content lock is held. Most of
//! this is kept in a single 64-bit atomic, the state word. Every change to that word is made with a
//! compare-exchange that also checks whether the change is allowed, so unlike PostgreSQL we don't
//! need a spinlock.
//!
//! ```text
//!   entry         BufferDescriptor: one cache line with tag, state word and I/O reference
//!   word          BufferWord: pin count, usage count, flags; the one function that changes them
//!   content_lock  the page's content lock, in the word
//!   io_claim      the right to read or write the page, in the word
//!   state         BufferState: a value of the word, its layout and its rules
//! ```

mod content_lock;
mod entry;
mod io_claim;
mod state;
#[cfg(test)]
mod tests;
mod word;

pub(crate) use self::content_lock::{LockMode, TryLock};
pub(crate) use self::entry::BufferDescriptor;
pub(crate) use self::io_claim::{ReadClaim, WriteClaim, WriteEnd};
pub(crate) use self::state::{BufferState, USAGE_MAX, flag};
pub(crate) use self::word::{BufferWord, ClockVisit, Unpinned};
