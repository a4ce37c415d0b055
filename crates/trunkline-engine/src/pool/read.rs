//! Page reads: read blocks into buffers, combining consecutive blocks into one I/O.
//!
//! A read has two halves, which may run on different threads. First, the session that issues the
//! read finds or allocates the buffers, claims them and defines the I/O. Later, the thread that
//! reaps the completion checks the pages and marks them valid. From then on, any session can use
//! the pages, even if the session that issued the read is busy or has exited.
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

pub(crate) use self::request::{BlockResult, ReadRequest, ReadStart};
pub(crate) use self::start::PageReads;
