//! **Transaction status.** Looks up whether transactions committed, in the commit log (`pg_xact`)
//! and in the multixacts of a cluster.
//!
//! ```text
//!   row without hint bits ──▶ Lookup: the scan's last statuses ──▶ Transactions: cached pages ──▶ files
//!                             private to the scan               shared, 128 pages
//! ```
//!
//! Once a server has checked a row's visibility, hint bits in the row record the result. Only the
//! remaining rows need a lookup, through [`Lookup`]. A page of 8 KiB covers 32,768 transactions.
//! Only a handful of pages is ever read, and a cache of 1 MiB keeps them.
//!
//! # Why not through the buffer pool
//!
//! The pool caches pages of relations. Those pages have a header that is verified, they are in
//! segments of 1 GiB, and three numbers name their files. Commit log pages have no header, are in
//! files of 32 pages with names of their own, and read as zeros if the file is missing or short.
//! The pool's read path would need an exception for each of these differences, to save a handful of
//! reads per command. So a session reads such a page into a frame that it leases for the read.
//! PostgreSQL keeps these pages in caches of their own too (SLRU), and never reads them with direct
//! I/O.

mod error;
mod page_cache;
mod slru;
mod status;

pub use error::{MultixactProblem, TransactionError};
pub use status::{Lookup, Transactions, XidStatusCache};
