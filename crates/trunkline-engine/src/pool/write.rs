//! Page writes: from dirty pages to I/O, with several neighbouring pages as one write.
//!
//! ```text
//!   request      what a caller asks for, and what became of it
//!   claim        claims one page, with its content lock, and sets its checksum
//!   start        PageWrites: claims pages, issues the write, takes note of its end
//!   copy         the same for one page that readers keep locked: from a copy
//!   completion   the callback: ends each claim, and makes what was written clean
//! ```

mod claim;
mod completion;
mod copy;
mod request;
mod start;

pub(crate) use self::request::{WriteRequest, WriteResult, WriteStart};
pub(crate) use self::start::PageWrites;
