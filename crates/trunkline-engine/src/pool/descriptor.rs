//! Buffer descriptors: what the pool knows about each buffer, besides the bytes of its page.
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
