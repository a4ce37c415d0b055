//! Page reads: bring blocks into buffers, with one I/O for several consecutive blocks.
//!
//! A read has two halves that may run on different threads. The session that issues the read finds
//! or allocates the buffers, claims them and defines the I/O. The thread that reaps the completion
//! checks the pages and makes them valid. The pages are therefore usable by every session as soon
//! as the I/O completes, even if the issuer is busy or has ended.
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
