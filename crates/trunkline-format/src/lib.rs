//! PostgreSQL's bytes on disk: pages, checksums, the control file, file names.
//!
//! ```text
//!   global/pg_control ── control ──▶ version, sizes, checksums on or off
//!   16384_fsm.3 ─────── segment ──▶ relation file number, fork, segment
//!   8192 bytes ──────── check ────▶ Good | New | Bad(why)
//!                         ├ checksum   the hash in pd_checksum
//!                         ├ page       header and line pointers
//!                         └ kind       which access method laid the page out
//!   rows ────────────── heap_page ─▶ 8192 bytes a server accepts
//! ```
//!
//! The crate does no I/O and holds no state. Its functions are total: any bytes in, a value or
//! the name of what is wrong out, never a panic, and no allocation except for what is returned.
//! It reads little-endian clusters of PostgreSQL 15 to 19 with 8 KiB blocks, and says so of others.

#![forbid(unsafe_code)]

mod bytes;
pub mod check;
pub mod checksum;
pub mod control;
pub mod heap_page;
pub mod ids;
pub mod kind;
pub mod page;
pub mod segment;
#[cfg(test)]
mod test_data;

pub use check::{CheckOptions, Finding, Verdict, check_page};
pub use checksum::page_checksum;
pub use control::{ClusterState, ControlError, ControlFile, PgVersion};
pub use heap_page::HeapPageBuilder;
pub use ids::{BLOCK_SIZE, BlockNo, Fork, Lsn, Oid, PageBytes, SEGMENT_BLOCKS};
pub use kind::PageKind;
pub use page::{LinePointer, LinePointerFlags, PageHeader};
pub use segment::{RelationFile, TempRelationFile};
