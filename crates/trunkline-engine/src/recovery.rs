//! **Recovery** of our own clusters after a crash (`StartupXLOG`).
//!
//! ```text
//!   replay         reads the log once: the records of each page, lengths of files, transactions
//!   log synced; control file: "in crash recovery"
//!     plan         which files are created, extended, truncated and removed; pieces of segments
//!     page_writer  each thread takes pieces: bases are read together, pages built and written
//!     commit log and multixacts, fsync of all
//!   end            log erased after its end; a shutdown checkpoint; control file: "shut down"
//! ```
//! Records are not applied in the order of the log, as a server does, but page by page: each page is read at most
//! once and written once, and threads need not wait for each other. It is the redo with which crashed directories are
//! read ([`crate::replay`]); here the pages are written.
//!
//! A crash during recovery does no harm. The control file names the old checkpoint until the end, so the next
//! recovery begins there again, and redo skips records that a page already has.

mod end;
mod error;
mod options;
mod page_writer;
mod plan;
mod run;
mod status_writer;

pub use error::RecoveryError;
pub use options::{Recovered, RecoveryOptions, RecoveryProgress, RecoveryReport};
pub use run::recover;
