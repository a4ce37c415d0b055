//! **WAL insertion and flushing** (`XLogInsert`, `XLogFlush`). Sessions insert records concurrently without a lock, and
//! several flushes may be in flight. Otherwise a commit waits for the flush in flight, and then for its own.
//!
//! ```text
//!   Inserter                      LogWriter
//!   ────────                      ─────────
//!   room ───────────────────────▶ room: buffer space and segments for the records to come, or an error
//!   insert: assemble the record   reservation: a place for it, by one compare-exchange
//!           copy it ────────────▶ ring: the newest part of the WAL, with its page headers
//!   flush ──────────────────────▶ flushes: [claimed, complete) ─ lane: write, fdatasync ─▶ segment_store
//!                                 waiters, requests: sessions and tasks whose records are durable now
//! ```
//! The format is PostgreSQL's, and nothing of our own is in the WAL: a real server can recover it.
//!
//! ```text
//!   writer         the WAL;  flush: flushing it;  options
//!   inserter       inserting records
//!   reservation    places in the WAL, and which of them are still being written
//!   ring           WAL buffers;  record_copy: a record and its page headers in them
//!   room           buffer space that may still be used
//!   flushes        which flushes are in flight, and what they have made durable;  flush_limit: how many may be
//!   filler         records that end a block, so that flushes beside each other write different ones
//!   sync_method    how a flush writes and syncs;  sync_times: which way is faster
//!   flush_rates    how many flushes in flight pay;  flush_choice: what is measured when the log is opened
//!   lane           the I/O of one flush
//!   segment_store  files
//!   waiters        sessions that wait;  requests: tasks that wait
//!   flusher        the thread for tasks and asynchronous commits
//! ```

mod error;
mod filler;
mod flush;
mod flush_choice;
mod flush_limit;
mod flush_rates;
mod flusher;
mod flushes;
mod inserter;
mod lane;
mod options;
mod record_copy;
mod requests;
mod reservation;
mod ring;
mod room;
mod segment_store;
mod sync_method;
mod sync_times;
#[cfg(test)]
mod tests;
mod waiters;
mod writer;

pub use error::LogWriterError;
pub use flush_limit::FlushLimit;
pub use flush_rates::FlushRates;
pub use flusher::LogFlusher;
pub use inserter::Inserter;
pub(crate) use lane::Lane;
pub use options::LogWriterOptions;
pub use room::Room;
pub(crate) use segment_store::SegmentStore;
pub use sync_method::{UnknownSyncMethod, WalSyncMethod};
pub use sync_times::SyncTimes;
pub(crate) use writer::check_marker;
pub use writer::{LogWriter, RecordLocation};
