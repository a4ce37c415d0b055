//! Page reads: from block numbers to pages in buffers, as one I/O for several blocks.
//!
//! ```text
//!   start        PageReads: finds or allocates the buffers, claims them, issues the read
//!   request      what a caller asks for, and what became of it
//!   completion   the callback: checks each page and ends its claim
//!   policy       what to do with a damaged page
//! ```
//!
//! This is PostgreSQL's `StartReadBuffers`, `WaitReadBuffers` and `buffer_readv_complete`.

mod completion;
pub(crate) mod policy;
mod request;
mod start;

pub(crate) use self::request::{BlockResult, ReadRequest, ReadStart, location_of};
pub(crate) use self::start::PageReads;
