//! **PostgreSQL's on-disk format**: decodes the pages, tuples, values, indexes, catalogs and
//! control files of PostgreSQL 15 to 19.
//!
//! The crate turns bytes into values. It does no I/O and holds no state, so it is as useful in a
//! storage engine as in a recovery tool:
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
//!   payload ─────────── text_output ───▶ the text that SELECT shows
//! ```
//!
//! # Concepts
//!
//! - **Total functions.** Every function accepts arbitrary bytes. It returns a value or an error
//!   that says what is wrong, and never panics. It allocates memory only for its result, in
//!   proportion to its input. Tests feed every decoder random and damaged bytes.
//! - **Versions.** Where a layout differs between versions, the decoder takes a [`PgVersion`]. The
//!   control file is read first; its version decides how all others are decoded.
//! - **Platform.** Clusters must be little-endian, 64-bit, with 8 kB blocks and 1 GB segments.
//!   [`ControlFile`] refuses others.
//! - **Error context.** Errors report line pointers and columns. The caller adds the file and
//!   block, because this crate doesn't know them.
//! - **Catalogs** are described once, as data: [`catalog`].
//!
//! # Reference
//!
//! Each module that decodes a C struct names the PostgreSQL header that defines it.

#![forbid(unsafe_code)]

pub mod align;
pub mod btree;
mod calendar;
pub mod catalog;
pub mod checksum;
pub mod control;
pub mod deform;
pub mod free_space_map;
pub mod heap_tuple;
pub mod ids;
mod little_endian;
mod numeric;
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
