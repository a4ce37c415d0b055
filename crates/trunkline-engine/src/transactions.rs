//! **Transaction status.** Looks up whether transactions committed, in the cluster's commit log
//! (`pg_xact`) and multixacts. This is a read-only counterpart of PostgreSQL's `transam.c`,
//! `clog.c` and `multixact.c`.
//!
//! ```text
//!   row without  ──▶ Lookup: the scan's  ──▶ Transactions:  ──▶ files
//!   hint bits        last statuses           cached pages
//!                    (private)               (shared, 128 pages)
//! ```
//!
//! Once a server has checked a row's visibility, hint bits in the row record the result, so only
//! rows without hint bits need a lookup, through [`Lookup`]. One 8 kB page covers 32,768
//! transactions. A command therefore reads just a handful of pages, and a cache of 1 MiB holds all
//! of them.
//!
//! We read the data directory while no server is running, so statuses don't change and neither
//! cache needs invalidation. A transaction that is still in progress according to the commit log is
//! either prepared or was interrupted by a crash.
//!
//! # Why not through the buffer pool
//!
//! The pool caches relation pages. Those pages have a header that we verify, and they're stored in
//! segments of 1 GiB whose file names follow from the relation locator. Commit log pages, by
//! contrast, have no header. Their files have 32 pages and their own naming scheme, and a missing
//! or short file reads as zeros. The pool's read path would need an exception for each of these
//! differences, only to save a handful of reads per command. So instead, a session reads such a
//! page into a frame that it leases just for that read.
//!
//! PostgreSQL doesn't keep these pages in shared buffers either, but in its SLRU caches, and never
//! uses direct I/O for them.

mod error;
mod page_cache;
mod slru;
mod status;

pub use error::{MultixactProblem, TransactionError};
pub use status::{Lookup, Transactions, XidStatusCache};
