//! **Replay for reading**: a crashed cluster, a snapshot or a base backup is read as if a server had
//! recovered it, without writing into the directory.
//!
//! ```text
//!   control file, backup_label ─▶ start ─▶ scan ─▶ chains of pages ─▶ page_building ─▶ pages
//!                                           │ ╰──▶ statuses, maps, counters, lengths
//!   LogFiles ───────────────────────────────╯
//! ```
//! The scan reads the log once and lists the records that rebuild each page. A page is built when a
//! session first reads it, so pages that no session reads cost nothing. Everything except relation
//! pages is kept as of the end of the log, or of the recovery target.
//!
//! | File | Question |
//! |---|---|
//! | `start` | where does replay start, and when are the files consistent? |
//! | `until` | at which moment does it stop? |
//! | `log_pass` | which record is next, and why is there none? |
//! | `scan` | what does each record mean for the cluster? |
//! | `page_effect` | what does a record mean for one page? |
//! | `page_chains` | which records rebuild a page, and how long is a relation? |
//! | `fork_changes`, `page_table` | what does the log say about one fork, and about a page of it? |
//! | `chain_builder` | how are chains built while the scan goes on? |
//! | `spilled_links` | where are the links that exceed `--replay-memory`? |
//! | `status_pages`, `counters` | which transactions have committed, and what is the next XID? |
//! | `record_reader` | what does the record at a place say? |
//! | `page_redo` | what does a record make of a page? |
//! | `page_building` | what are the contents of these pages? |
//! | `directory` | which of the files that `start` needs exist? |
//! | `prepared` | which transactions are prepared at the end? |
//!
//! [`Replay`] is the result. `storage` gets pages and lengths from it, `transactions` gets statuses, and
//! `catalog` gets relation maps.

mod chain_builder;
mod chain_link;
mod counters;
mod directory;
mod error;
mod fork_changes;
mod log_pass;
mod options;
mod page_building;
mod page_chains;
mod page_effect;
mod page_redo;
mod page_table;
mod prepared;
mod record_reader;
mod replayed;
mod report;
mod scan;
mod spilled_links;
mod start;
mod status_pages;
mod until;

pub use self::directory::mapped_tablespaces;
pub use self::error::ReplayError;
pub(crate) use self::fork_changes::{ForkChanges, PageSource};
pub use self::options::{REPLAY_MEMORY_MIN, ReplayOptions};
pub(crate) use self::page_building::RECORDS_MAX;
pub use self::page_chains::ForkKey;
pub use self::page_effect::{PageEffect, page_effects};
pub use self::page_redo::{PageRedoError, RecordPlace};
pub(crate) use self::prepared::{PreparedSource, prepared_transactions};
pub use self::replayed::{PageRecords, Replay};
pub use self::report::ReplayReport;
pub use self::start::{Consistency, ReplayStart, Situation, StartError, TimelineTarget};
pub use self::until::Until;
