//! **PostgreSQL's on-disk format**: decodes the pages, tuples, values, indexes, catalogs and
//! control files of PostgreSQL 15 to 19.
//!
//! This crate only converts between bytes and values. It doesn't do any I/O or keep any state, so
//! it can be used in a recovery tool just as well as in a storage engine:
//!
//! ```
//! use trunkline_format::{HeapPageBuilder, TupleBuilder, Verdict};
//! use trunkline_format::{CheckOptions, Fork, check_page, heap_rows};
//!
//! // A heap page as a server writes it: block 7 with one row, (1, 'one').
//! let mut row = TupleBuilder::new();
//! row.int4(1).text("one");
//! let mut builder = HeapPageBuilder::new(7);
//! builder.push(&row.tuple())?;
//! let page = builder.finish(true);
//!
//! let options = CheckOptions { checksums: true, fork: Fork::Main };
//! assert_eq!(check_page(&page, 7, &options), Verdict::Good);
//! for tuple in heap_rows(&page) {
//!     assert_eq!(tuple?.data(), b"\x01\0\0\0\x09one");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # From bytes to text
//!
//! ```text
//!   pg_control ──────── control ───────▶ version, block size, checksums
//!   pg_filenode.map ─── relmap ────────▶ files of pg_class and pg_attribute
//!   16384_fsm.3 ─────── segment ───────▶ file number, fork, segment
//!   8192 bytes ──────── page_check ────▶ Good | New | Bad(finding)
//!      │ page             header and line pointers
//!      │ heap_tuple       tuple headers and hint bits ── transam ──▶ visible or not
//!      │ btree            index tuples, searches, checks of a page
//!      ▼
//!   tuple ───────────── deform ────────▶ datums
//!   datum ───────────── varlena ───────▶ payload, or a TOAST pointer; toast_compression
//!   payload ─────────── text_output ───▶ the text that SELECT shows; text_input goes back
//!   payload ─────────── binary ────────▶ the format that clients send and receive
//!
//!   pg_wal ──────────── wal ───────────▶ records, and the pages that they change
//! ```
//!
//! # Concepts
//!
//! - **Total functions.** Every function can be called with arbitrary bytes. It never panics, but
//!   returns either a value or an error that explains what is wrong. It only allocates memory for
//!   the result, and the amount is proportional to the size of the input. Our tests run every
//!   decoder on random and damaged bytes.
//! - **Versions.** If a layout differs between versions of PostgreSQL, the decoder takes a
//!   [`PgVersion`] argument. The caller should read the control file first to find out which
//!   version to pass.
//! - **Platform.** We only support clusters from 64-bit little-endian machines, with 8 kB blocks
//!   and 1 GB segments. [`ControlFile`] rejects all others.
//! - **Error context.** Errors contain the line pointer or the column where the problem was found.
//!   The caller must add the file name and the block number, because this crate doesn't know them.
//! - **Catalogs** are described once, as data: [`catalog`].
//!
//! # Reference
//!
//! Each module that decodes a C struct names the PostgreSQL header that defines it.

#![forbid(unsafe_code)]

pub mod align;
pub mod backup_label;
pub mod binary;
pub mod btree;
pub mod calendar;
pub mod catalog;
pub mod checksum;
pub mod control;
pub mod deform;
pub mod free_space_map;
pub mod heap_tuple;
pub mod ids;
pub mod index_tuple;
mod little_endian;
pub mod node_tree;
pub mod numeric;
pub mod page;
pub mod page_builder;
pub mod page_check;
pub mod page_kind;
pub mod relmap;
pub mod segment;
pub mod sequence;
mod stored_parts;
pub mod stored_record;
#[cfg(test)]
mod test_catalog;
#[cfg(test)]
mod test_data;
pub mod text_input;
pub mod text_output;
pub mod toast_compression;
pub mod transam;
mod tuple_builder;
pub mod varlena;
pub mod visibility_map;
pub mod wal;

pub use align::Align;
pub use checksum::{page_checksum, set_checksum};
pub use control::{
    CONTROL_FILE_SIZE, Checkpoint, ClusterState, ControlError, ControlFile, PgVersion,
};
pub use heap_tuple::{HeapTuple, Visible, heap_rows};
pub use ids::{BLOCK_SIZE, BlockNo, Fork, Lsn, Oid, PageBytes, SEGMENT_BLOCKS, Tid};
pub use page::{LinePointer, LinePointerFlags, PageHeader};
pub use page_builder::HeapPageBuilder;
pub use page_check::{CheckOptions, Finding, PageVerdict, Verdict, check_page, verify_page};
pub use page_kind::PageKind;
pub use segment::{RelationFile, TempRelationFile};
pub use tuple_builder::TupleBuilder;
