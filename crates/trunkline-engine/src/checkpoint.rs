//! Checkpoints: write out every page that was dirty when the checkpoint began, and then fsync the
//! files (PostgreSQL's `CheckPointBuffers`: `BufferSync`, then `ProcessSyncRequests`). Once a
//! checkpoint has completed, all earlier changes are durable in the data files, so redo can start
//! from there.
//!
//! ```text
//!   mark    every dirty page, and sort the pages by tablespace, relation, fork and block
//!   write   tablespaces take turns, each by its share, through one write stream; spread over time or fast
//!   sync    every segment that was written since its last fsync, many in parallel
//! ```
//!
//! The order of the phases matters. We mark all dirty pages before writing the first one, because
//! otherwise pages that keep getting dirtied could prevent the checkpoint from ever finishing. And
//! we must not issue any fsync until all writes have completed, because an fsync only covers writes
//! that completed before it was issued.
//!
//! If a page is changed again after it was marked, the checkpoint writes the newer contents, which
//! is fine. If another session is already writing a marked page, the checkpoint must wait for that
//! write. A failed write leaves its page dirty and fails the checkpoint. A failed fsync also fails
//! every later checkpoint: the kernel may have marked the pages it couldn't write as clean, so a
//! second fsync would report success even though data has been lost. PostgreSQL panics in this case
//! (`data_sync_retry = off`).
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
