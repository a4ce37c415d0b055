//! PostgreSQL's bytes on disk: pages, checksums, the control file, file names.
//!
//! ```text
//!   global/pg_control ── control ──▶ version, sizes, checksums on or off
//!   16384_fsm.3 ─────── segment ──▶ relation file number, fork, segment
//!   8192 bytes ──────── check ────▶ Good | New | Bad(why)
//!                         ├ checksum   the hash in pd_checksum
//!                         ├ page       header and line pointers
//!                         ├ kind       which access method laid the page out
//!                         └ heap_tuple the rows, and whether they are visible
//!   values ── row ───── heap_page ─▶ 8192 bytes a server accepts
//! ```
//!
//! The crate does no I/O and holds no state. Its functions are total: any bytes in, a value or
//! the name of what is wrong out, never a panic, and no allocation except for what is returned.
//! It reads little-endian clusters of PostgreSQL 15 to 19 with 8 KiB blocks, and says so of others.

#![forbid(unsafe_code)]

pub mod align;
pub mod btree;
pub mod catalog;
pub mod checksum;
pub mod control;
pub mod deform;
pub mod free_space_map;
pub mod heap_tuple;
pub mod ids;
mod little_endian;
pub mod page;
pub mod page_builder;
pub mod page_check;
pub mod page_kind;
pub mod relmap;
pub mod segment;
pub mod sequence;
#[cfg(test)]
mod test_data;
pub mod text_output;
pub mod toast_compression;
pub mod transam;
mod tuple_builder;
pub mod varlena;
pub mod visibility_map;

pub use align::Align;
pub use checksum::page_checksum;
pub use control::{ClusterState, ControlError, ControlFile, PgVersion};
pub use heap_tuple::{HeapTuple, Visible, heap_rows};
pub use ids::{BLOCK_SIZE, BlockNo, Fork, Lsn, Oid, PageBytes, SEGMENT_BLOCKS, Tid};
pub use page::{LinePointer, LinePointerFlags, PageHeader};
pub use page_builder::HeapPageBuilder;
pub use page_check::{CheckOptions, Finding, PageVerdict, Verdict, check_page, verify_page};
pub use page_kind::PageKind;
pub use segment::{RelationFile, TempRelationFile};
pub use tuple_builder::TupleBuilder;
