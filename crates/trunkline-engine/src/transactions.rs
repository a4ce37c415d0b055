//! **Transaction status.** Looks up whether transactions committed, in the commit log (`pg_xact`)
//! and in the multixacts of a cluster: PostgreSQL's `transam.c`, `clog.c` and `multixact.c`,
//! read-only.
//!
//! ```text
//!   row without  ──▶ Lookup: the scan's  ──▶ Transactions:  ──▶ files
//!   hint bits        last statuses           cached pages
//!                    (private)               (shared, 128 pages)
//! ```
//!
//! Once a server has checked a row's visibility, hint bits in the row record the result. Only rows
//! without hint bits need a lookup, through [`Lookup`]. One 8 kB page covers 32,768 transactions,
//! so a command reads only a handful of pages, and a cache of 1 MiB keeps all of them.
//!
//! The data directory is read while no server runs, so statuses do not change. Neither cache needs invalidation, and a
//! transaction that is still in progress in the commit log was in progress when the server stopped.
//!
//! # Why not through the buffer pool
//!
//! The pool caches pages of relations. Those pages have a header that is verified, they are in
//! segments of 1 GiB, and a relation locator names their files. Commit log pages have no header.
//! Their files have 32 pages and names of their own, and a missing or short file reads as zeros.
//! The pool's read path would need an exception for each of these differences, only to save a
//! handful of reads per command. A session therefore reads such a page into a frame that it leases
//! for the read.
//!
//! PostgreSQL keeps these pages out of shared buffers too, in its SLRU caches, and never reads them
//! with direct I/O.

mod error;
mod page_cache;
mod slru;
mod status;

pub use error::{MultixactProblem, TransactionError};
pub use status::{Lookup, Transactions, XidStatusCache};
