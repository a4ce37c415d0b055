//! **Redo**: what a record makes of a page.
//!
//! ```text
//!   page before ──┐
//!                 ├──▶ redo(page, change, id) ──▶ page after, with its new position
//!   record, id ───┘
//! ```
//! One pure function, for everything that replays the log: recovery, reading a crashed directory page
//! by page, and checking a log. It can be one function since a block after a record depends only on
//! the block before it and on the record. A record never needs a second page, because that one might
//! be newer already, or come from an image.
//!
//! | The block has | Redo |
//! |---|---|
//! | an image to apply | is the image, whatever the page was |
//! | the flag that it is initialised | makes the page from the record alone |
//! | neither, and the page was never written | says so: [`Redone::MissingBase`] |
//! | neither, and the page's position is behind the record | does nothing |
//! | neither | applies the operation's rule |
//!
//! **Managers.** Heap, Heap2, Btree, Sequence and XLOG have rules for all operations. For others only
//! images are applied; everything else is [`Redone::NotSupported`].
//!
//! **Versions.** Rules differ by major version, and within one by what a record contains, since minor
//! releases have changed records. Pages that a record changes without a block reference are
//! [`derived_pages`].
//!
//! **Judge.** A server with `wal_consistency_checking = all` logs an image of each page after each
//! change. [`first_difference`] compares it with ours, under the server's own masks. Those images are
//! never applied.
//!
//! **Total.** Any bytes may be in a record and on a page. Redo then returns an error, and the page has
//! undefined contents. It never panics, and allocates nothing but what an image's decompression needs;
//! some rules take a copy of the page on the stack.
//!
//! Mirrors `XLogReadBufferForRedo` in PostgreSQL's `access/transam/xlogutils.c`.

mod btree;
mod change;
mod compaction;
mod error;
mod heap;
mod heap_page;
mod index_page;
mod map;
mod mask;
mod page_editor;
mod posting;
mod prune;
mod prune_header;
mod row;
mod rule;
mod sequence;
mod split;

pub use change::{Change, Redone, UNKNOWN_OPERATION};
pub use error::RedoError;
pub use map::{DerivedPage, cleared_map_bits, derived_pages, redo_derived};
pub use mask::first_difference;
pub use rule::{redo, requires_base, restore};
