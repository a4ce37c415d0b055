//! **Log files**: finds the WAL segments of a cluster in `pg_wal` and archives, and reads them.
//!
//! ```text
//!   pg_wal, archives ─▶ names ─▶ segments by number ─▶ pieces of the log, for a LogReader
//!                        │             ▲
//!                        history files ╯  which timeline each segment is taken from
//! ```
//! | Rule | Reason |
//! |---|---|
//! | plain, `.gz`, `.lz4`, `.zst` and `.partial` files | what archives and `pg_receivewal` contain |
//! | the error for a missing segment names it and its neighbours | the log can't be read past it |
//! | `restore_command` and other configured commands are never executed | a directory may come from an untrusted source |
//!
//! A whole log is read once, in order, with asynchronous reads ahead of the scan (`read_ahead`). Building pages reads parts of it in any order, so the segments that it needs stay open (`open_segments`).

mod error;
mod history;
mod log_scan;
mod open_segments;
mod read_ahead;
mod segment_file;
mod segments;
#[cfg(test)]
mod test_segments;

pub use self::error::{LogFilesError, MissingSegment};
pub use self::history::History;
pub(crate) use self::log_scan::LogScan;
pub use self::segments::{FileCheck, LogFiles, SegmentCursor};
