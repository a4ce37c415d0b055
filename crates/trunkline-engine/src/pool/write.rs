//! Page writes: flush dirty pages, combining adjacent blocks into one vectored write (PostgreSQL's
//! `FlushBuffer`).
//!
//! Eviction, the background writer, checkpoints and relation extension all flush pages through this
//! module, so all of the rules are enforced in one place. The WAL must be flushed before the page.
//! The checksum must be computed when the page can no longer change. The segment must be queued for
//! fsync before its pages count as clean. Only a complete write makes a page clean.
//!
//! ```text
//!   request      what a caller asks for, and what became of it
//!   claim        claims one page, with its content lock, and sets its checksum
//!   start        PageWrites: claims pages, issues the write, takes its result
//!   copy         writes a copy of one page, if readers keep the page locked
//!   completion   the callback: ends each claim, and marks written pages clean
//! ```

mod claim;
mod completion;
mod copy;
mod request;
mod start;

pub(crate) use self::request::{WriteRequest, WriteResult, WriteStart};
pub(crate) use self::start::PageWrites;
