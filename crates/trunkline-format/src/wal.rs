//! **Write-ahead log** (WAL): the pages and records of `pg_wal`, versions 15 to 19.
//!
//! A server logs every change of a page before the page reaches its file, and every transaction's
//! end. From a consistent copy of the files and the log that follows it, one can compute what the
//! server's pages looked like at any later moment. This module decodes the log; nothing here
//! reads files.
//!
//! ```text
//!   segment file    000000010000000000000002 ── segment_name ──▶ timeline, position
//!      │ pages      8 kB each ───────────────── page_header ───▶ version, address, continuation
//!      ▼
//!   LogReader ───── one record at a time, or the reason for the end (log_end)
//!      ▼
//!   Record ──────── block references, images, main data
//!      ├─ image ────────────▶ a page, decompressed
//!      ├─ resource_manager ─▶ `Heap`, `INSERT`
//!      ├─ describe ─────────▶ `off: 7, flags: 0x00`
//!      ├─ transaction_end ──▶ commit, abort, prepare as values
//!      ├─ effect ───────────▶ what it does outside of pages, as a value
//!      ├─ redo ─────────────▶ the page after the record
//!   new_record ──── the other direction: a record from its parts
//! ```
//! # Example
//!
//! ```
//! use trunkline_format::wal::{LogChunk, LogEvent, LogIdentity, LogReader, SegmentSize};
//! use trunkline_format::Lsn;
//!
//! let segment_size = SegmentSize::new(16 << 20).unwrap();
//! let log = LogIdentity { segment_size, system_identifier: None };
//! let mut reader = LogReader::new(log, Lsn(0x0100_0028));
//! assert_eq!(reader.wanted(), Lsn(0x0100_0000));
//! // A page that was never written ends the log.
//! let chunk = LogChunk { start: reader.wanted(), bytes: &[0; 8192] };
//! let Some(LogEvent::End(end)) = reader.next(&chunk) else { panic!("no end") };
//! assert_eq!(end.reason.to_string(), "page is empty");
//! ```
//!
//! # Versions
//!
//! The magic of a page names the major version, and nothing names the minor one. Minor releases
//! have changed records, so within a version we go by what a record contains (decision 0040).

mod block_ref;
mod describe;
mod effect;
mod fields;
pub mod heap_flags;
mod image;
mod invalidation;
mod locator;
mod log_end;
mod new_record;
mod page_header;
mod prepared_file;
mod reader;
mod record;
pub mod redo;
pub mod resource_manager;
mod segment_name;
#[cfg(test)]
mod test_log;
#[cfg(test)]
mod tests;
mod transaction_end;
mod usable_position;
mod zstd_frame;

pub use block_ref::BlockRef;
pub use describe::{Description, RelationNames, describe};
pub use effect::{Effect, EffectError, Multixact, Parameters, Truncation};
pub use image::{ImageCompression, ImageError, PageImage};
pub use invalidation::Invalidation;
pub use locator::RelFileLocator;
pub use log_end::{EndReason, LogEnd};
pub use new_record::{ImageMode, ImagePolicy, NewBlock, NewRecord, NewRecordError, RecordBuffer};
pub use page_header::{
    LOG_PAGE_SIZE, LONG_HEADER_SIZE, LogIdentity, LogPageError, LogPageHeader, LongHeader,
    SHORT_HEADER_SIZE,
};
pub use prepared_file::PreparedFileError;
pub use reader::{LogChunk, LogEvent, LogReader, LogRecord};
pub use record::{
    BLOCK_ID_MAX, RECORD_HEADER_SIZE, RECORD_SIZE_MAX, Record, RecordError, RecordHeader,
    record_crc,
};
pub use resource_manager::ResourceManager;
pub use segment_name::{SegmentName, SegmentSize};
pub use transaction_end::{
    DroppedStatistics, OriginPosition, Outcome, PreparedTransaction, TransactionEnd,
};
pub use usable_position::UsablePositions;
