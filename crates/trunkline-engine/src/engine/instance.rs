//! The engine itself, which is shared by all sessions. It opens sessions, opens relations by
//! number, and runs checkpoints.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use trunkline_aio::Aio;

use super::error::EngineError;
use crate::checkpoint::{CheckpointError, CheckpointOptions, CheckpointReport, checkpoint};
use crate::heap::{HeapScan, ScanOptions};
use crate::pool::{Backend, BackendType, Policy, Pool};
use crate::read_stream::BlockRange;
use crate::settings::Settings;
use crate::storage::{Layout, OpenFiles, Relation, Storage, StorageError};
use crate::transactions::Transactions;

/// An engine consists of an I/O instance, a buffer pool and an open-file table. All clones of it
/// refer to the same engine. When the last clone and the last session have been dropped, the engine
/// waits for any I/O still in flight and stops its threads.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    // Fields are dropped in this order. The pool must be dropped before the I/O instance, because
    // dropping the instance waits for any I/O that the pool has in flight.
    pool: Pool,
    files: OpenFiles,
    settings: Settings,
    aio: Aio,
}

impl Engine {
    pub(super) fn new(pool: Pool, files: OpenFiles, settings: Settings, aio: Aio) -> Self {
        Self(Arc::new(Inner { pool, files, settings, aio }))
    }

    /// Gives read-only access to the relations in `directory`, which are identified by number. Note
    /// that this skips all safety checks: we don't verify that this is a data directory, that no
    /// server is running on it, or that the cluster was shut down cleanly.
    pub fn storage(&self, directory: impl AsRef<Path>, layout: Layout) -> Storage {
        Storage::new(directory.as_ref(), layout, self.files(), self.is_direct())
    }

    /// Gives access to the relations of a cluster of our own, which are identified by number and
    /// can be created, changed and removed. You must never pass a PostgreSQL data directory here,
    /// because our changes aren't WAL-logged and a server wouldn't know about them.
    pub fn writable_storage(&self, directory: impl AsRef<Path>, layout: Layout) -> Storage {
        Storage::for_writing(directory.as_ref(), layout, self.files(), self.is_direct())
    }

    /// Opens a session, the counterpart of a PostgreSQL backend. A session issues I/O, holds pins,
    /// and waits. It can only be used by one thread at a time. Per-session settings, such as
    /// `zero_damaged_pages`, are copied into the session when it's opened.
    ///
    /// # Errors
    /// [`EngineError::TooManySessions`].
    pub fn session(&self) -> Result<Backend, EngineError> {
        let settings = self.settings();
        let mut session = self.pool().backend(BackendType::Client)?;
        session.set_policy(Policy::of(settings));
        session.set_flush_after(settings.backend_flush_after());
        Ok(session)
    }

    /// A sequential scan of one of our own tables. We have no commit log for such a table, so all
    /// of its rows must be frozen. To scan a table of a [`Cluster`](super::Cluster), use
    /// [`OpenRelation::scan`](super::OpenRelation::scan).
    ///
    /// # Errors
    /// [`StorageError`]: the table's length is unknown.
    pub fn scan(
        &self,
        session: &Backend,
        table: &Relation,
    ) -> Result<HeapScan<BlockRange>, StorageError> {
        let transactions = Arc::new(Transactions::all_frozen(table.storage()));
        HeapScan::of_table(session, table, &transactions, ScanOptions::of(self.settings()))
    }

    /// Writes out all pages that are currently dirty and fsyncs the files, as fast as possible,
    /// like PostgreSQL's `CHECKPOINT` command. This covers all writable clusters in the pool. Pages
    /// that become dirty while the checkpoint is running are left to the next checkpoint.
    ///
    /// # Errors
    /// See [`CheckpointError`].
    pub fn checkpoint(&self, session: &mut Backend) -> Result<CheckpointReport, CheckpointError> {
        self.checkpoint_paced(session, |_| {})
    }

    /// [`Engine::checkpoint`] that `pace` may slow down. It is called after each page with the fraction of pages that
    /// are written, from 0 to 1, and may sleep (`checkpoint_completion_target`).
    ///
    /// # Errors
    /// See [`CheckpointError`].
    pub fn checkpoint_paced(
        &self,
        session: &mut Backend,
        pace: impl FnMut(f64),
    ) -> Result<CheckpointReport, CheckpointError> {
        checkpoint(self.pool(), session, CheckpointOptions::of(self.settings()), pace)
    }

    /// The shared buffer pool.
    pub fn pool(&self) -> &Pool {
        &self.0.pool
    }

    /// The I/O instance.
    pub fn aio(&self) -> &Aio {
        &self.0.aio
    }

    /// The open-file table.
    pub fn files(&self) -> &OpenFiles {
        &self.0.files
    }

    /// The settings the engine was started with.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub(super) fn is_direct(&self) -> bool {
        self.settings().io_direct_data()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("buffers", &self.pool().buffers())
            .field("method", &self.aio().method_status().used)
            .finish_non_exhaustive()
    }
}
