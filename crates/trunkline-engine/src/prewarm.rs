//! **Prewarming.** Loads relations into the buffer pool or the kernel's page cache, as PostgreSQL's
//! `pg_prewarm` does. It also reports how many of the blocks were cached before and afterwards.
//!
//! ```text
//!   names, fork, first, last ── target ──▶ ranges of blocks of relations
//!     buffer    read stream ──▶ pages verified, in the buffer pool         (buffer)
//!     read      raw file scan ──▶ in the page cache                        (cache)
//!     prefetch  posix_fadvise ──▶ in the page cache, at some later time    (advice)
//! ```
//!
//! If a directory is read through its log, the pool gets the pages as of the end of the log, also those that are
//! in no file yet. The kernel's cache gets the part of them that is in files.
//!
//! The `read` and `prefetch` modes always read through the page cache, even if `io_direct` is set,
//! because direct reads would not leave anything in the cache.
//!
//! In all three modes, each mount has its own workers (in `buffer` and `prefetch` mode, just one),
//! so that a hung file system doesn't hold up the others.
//! Unlike `pg_prewarm`, which stops at the first damaged block, we report damaged blocks and skip
//! them. A page for whose records we have no redo rule is skipped too, and isn't reported as damaged.

mod advice;
mod block_range;
mod buffer;
mod cache;
mod pool_report;
mod report;
mod selection;
mod target;
mod unbuilt_pages;

pub use self::advice::prefetch;
pub use self::block_range::{advise_blocks, read_blocks};
pub use self::buffer::into_pool;
pub use self::cache::prewarm;
pub use self::pool_report::{BufferOptions, BufferReport};
pub use self::report::{Failures, PrewarmReport, Unchecked, cached_part};
pub use self::selection::{Choice, SelectError, Selection, View, select};
pub use self::target::Target;
