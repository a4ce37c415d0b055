//! **Transaction status.** Finds out whether a transaction has committed, using the cluster's
//! commit log (`pg_xact`) and multixacts. This is a read-only counterpart of PostgreSQL's
//! `transam.c`, `clog.c` and `multixact.c`.
//!
//! ```text
//!   row without  ──▶ Lookup: the scan's  ──▶ Transactions:       ┄┄▶ files, once the heap page
//!   hint bits        StatusPages             cached pages            is unlocked
//!                    (private)               (shared, 128 pages)
//! ```
//!
//! After a server has checked the visibility of a row, it sets hint bits in the row to record the
//! result. Therefore we only need a lookup (see [`Lookup`]) for rows without hint bits. One 8 kB
//! page of the commit log covers 32,768 transactions, so a command usually reads just a handful of
//! pages, and a cache of 1 MiB is enough for all of them.
//!
//! We only read data directories on which no server is running. Transaction statuses therefore
//! can't change, and we never have to invalidate either cache. If the commit log says that a
//! transaction is still in progress, the transaction was either prepared or interrupted by a crash.
//!
//! # Why not through the buffer pool
//!
//! We don't read commit log pages through the buffer pool. The pool caches relation pages, which
//! have a header that we verify, and which are stored in segments of 1 GiB named after the
//! relfilenode. Commit log pages, by contrast, have no header. They are stored in files of 32 pages
//! with a different naming scheme, and whether a page may be missing depends on the transaction.
//! The pool's read path would need an exception for each of these differences, just to save a
//! handful of reads per command. Instead, a session reads such a page into a frame that it leases
//! for the duration of the read.
//!
//! PostgreSQL doesn't keep commit log pages in shared buffers either. It has separate SLRU caches
//! for them, and never uses direct I/O to read or write them.

mod error;
mod heap_statuses;
mod page_cache;
mod page_read;
mod slru;
mod status;
mod status_pages;

pub use error::{MultixactProblem, SlruFault, SlruProblem, StatusId, TransactionError};
pub use status::{Lookup, Transactions};
pub use status_pages::StatusPages;
