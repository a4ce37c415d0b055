//! Checkpoints: everything that was changed before a checkpoint began is on disk when it has ended.
//!
//! ```text
//!   mark    every dirty page, and sort the pages by tablespace, relation, fork and block
//!   write   tablespaces take turns, each by its share, through one write stream; spread over time or fast
//!   sync    every segment that was written since its last fsync, many in parallel
//! ```
//!
//! A page that is changed again after it was marked is written in its later state, which is correct
//! too. If another session is already writing the page, the checkpoint waits for that write. A
//! failed write leaves its page dirty and fails the checkpoint. A failed fsync fails every later
//! checkpoint as well, because the kernel may have dropped the pages that it could not write
//! (PostgreSQL panics: `data_sync_retry = off`).
//!
//! ```text
//!   run                 checkpoint(): one checkpoint, in the caller's thread
//!   checkpointer        the thread that runs timed and requested checkpoints
//!   background_writer   the thread that keeps clean buffers available, so that reads do not have to
//!                       flush a victim
//!   order, fsync        the order of the writes; syncing the segments
//!   supply              how many clean buffers the background writer provides
//!   error, report       why a checkpoint failed; what it did
//! ```

mod background_writer;
mod checkpointer;
mod error;
mod fsync;
mod order;
mod report;
mod run;
mod supply;

pub use background_writer::{BackgroundWriter, BackgroundWriterCounts, BackgroundWriterSettings};
pub use checkpointer::{Checkpointer, CheckpointerCounts, CheckpointerSettings};
pub use error::CheckpointError;
pub use report::{Cause, CheckpointEvent, CheckpointReport};
pub use run::{CheckpointOptions, checkpoint};
