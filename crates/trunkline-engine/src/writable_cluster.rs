//! **A cluster of our own, open for writing**: its WAL, pages, transactions and checkpoints.
//!
//! ```text
//!   open ─▶ lock_file ─▶ recovery, if it was not shut down ─▶ log, engine ─▶ control file: "in production"
//!              session:  begin ─▶ changes of pages ─▶ commit: record, flush, commit log
//!   checkpoint ─▶ redo point ─▶ commits in progress, pages ─▶ record ─▶ control file ─▶ old segments
//!   close ─▶ the same without anything beside it ─▶ control file: "shut down"
//! ```
//! | File | Question |
//! |---|---|
//! | `cluster` | how is the cluster opened and closed? |
//! | `session` | what can one session do? |
//! | `shared` | what do sessions share? |
//! | `ids` | which XID and OID is next? |
//! | `commit_log` | which transactions have committed? |
//! | `multixacts` | which transactions share a lock on a row? |
//! | `commit_gate` | which commits are between their record and the commit log? |
//! | `checkpoint` | from where would redo start? |
//! | `lock_file`, `locked_files` | does another process use the directory, and until when does this one? |
//!
//! There are no catalogs, waits for row locks, or snapshots yet: the caller must know which relations exist, and ensure that no two
//! sessions change the same row. [`crate::heap_writer`] writes rows.

mod checkpoint;
mod cluster;
mod commit_gate;
mod commit_log;
mod error;
mod ids;
mod lock_file;
mod locked_files;
mod multixacts;
mod options;
mod session;
mod shared;

pub use cluster::WritableCluster;
pub use error::WritableClusterError;
pub use options::WritableClusterOptions;
pub use session::{Durability, Transaction, WriteSession};
