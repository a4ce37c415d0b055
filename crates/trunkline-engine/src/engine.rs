//! The public entry point: an engine with its I/O instance, buffer pool and open files, and the
//! clusters opened in it.
//!
//! To read a single page, a program needs an I/O instance, a buffer pool, an open-file table, a
//! data directory and a session. [`Engine::open`] creates everything sessions share from the
//! [`Settings`]; opening a data directory or a session then takes just one more call.
//!
//! ```text
//!   Engine                      I/O instance, buffer pool, open files: shared by all sessions
//!     ├── session()             Backend: issues I/O, holds pins, waits; one per thread
//!     └── cluster(dir)          Cluster: a data directory and its catalog
//!           └── database(name)  OpenDatabase: a snapshot of its catalogs
//!                 └── relation(name)   OpenRelation: read a page, stream, scan rows
//! ```
//!
//! ```no_run
//! use trunkline_engine::{Engine, settings::Settings};
//!
//! let engine = Engine::open(&Settings::default())?;
//! let cluster = engine.cluster("/var/lib/postgresql/18/main")?;
//! let accounts = cluster.database("bench")?.relation("public.pgbench_accounts")?;
//! let mut session = engine.session()?;
//!
//! // One page.
//! let pin = accounts.read(&mut session, 7)?;
//! let page = session.read_lock(pin.page())?;
//! println!("page 7 starts with {:02x?}", &page[..8]);
//! drop(page);
//!
//! // All visible rows, with read-ahead.
//! let mut scan = accounts.scan(&session)?;
//! let mut rows = 0;
//! while let Some(page) = scan.next_page(&mut session)? {
//!     rows += page.len();
//! }
//! println!("{rows} rows");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! PostgreSQL data directories are always opened read-only. Our own relations can be written
//! through [`Engine::writable_storage`], but only by number, because we don't have a catalog for
//! them yet. [`Engine::builder`] covers everything that isn't a setting, such as a simulated disk
//! or a log.
//!
//! **Lifetime.** Sessions, clusters and relations keep the engine's parts alive, so a program can
//! drop them in any order.

mod builder;
mod cluster;
mod error;

use std::fmt;
use std::path::Path;

use std::sync::Arc;
use trunkline_aio::Aio;

use crate::checkpoint::{CheckpointError, CheckpointOptions, CheckpointReport, checkpoint};
use crate::datadir::{DataDir, OpenOptions};
use crate::heap::{HeapScan, ScanOptions};
use crate::pool::{Backend, BackendType, Policy, Pool};
use crate::read_stream::BlockRange;
use crate::settings::Settings;
use crate::storage::{Layout, OpenFiles, Relation, Storage, StorageError};
use crate::transactions::Transactions;

pub use self::builder::EngineBuilder;
pub use self::cluster::{Cluster, OpenDatabase, OpenRelation};
pub use self::error::EngineError;

/// An engine: I/O, a buffer pool and open files. Clones refer to the same engine. Once the last
/// clone and the last session have been dropped, the engine waits for I/O in flight and stops its
/// threads.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    // Fields are dropped in this order. The pool must come before the I/O instance, because
    // dropping the instance waits for the pool's I/O in flight.
    pool: Pool,
    files: OpenFiles,
    settings: Settings,
    aio: Aio,
}

impl Engine {
    /// Starts an engine with the given settings: `io_method` and its limits, `shared_buffers`,
    /// `max_files_per_process`, `io_direct`. Allocates the pool's memory, whose size is fixed from
    /// then on.
    ///
    /// If the I/O method isn't available, we fall back to the next best method. In that case
    /// [`Aio::method_status`] returns the reason and a hint how to fix it.
    ///
    /// # Errors
    /// [`EngineError::Start`] or [`EngineError::Pool`]: there is not enough memory.
    pub fn open(settings: &Settings) -> Result<Self, EngineError> {
        Self::builder(settings).open()
    }

    /// Builds an engine with options that aren't settings.
    pub fn builder(settings: &Settings) -> EngineBuilder {
        EngineBuilder::new(settings)
    }

    /// Opens a PostgreSQL data directory for reading. Fails if a server is running on it, if the
    /// cluster wasn't shut down cleanly, or if its version is unknown.
    ///
    /// # Errors
    /// [`EngineError::DataDir`].
    pub fn cluster(&self, directory: impl AsRef<Path>) -> Result<Cluster, EngineError> {
        Ok(self.cluster_of(DataDir::open(directory.as_ref(), OpenOptions::default())?))
    }

    /// The cluster in a data directory opened with custom options, such as
    /// [`OpenOptions::force_unclean`] or [`DataDir::with_tablespaces`].
    pub fn cluster_of(&self, dir: DataDir) -> Cluster {
        Cluster::new(self, dir)
    }

    /// The relations in `directory` by number, read-only. Note that this skips all safety checks:
    /// it doesn't verify that this is a data directory, that no server is running, or that the
    /// cluster was shut down cleanly.
    pub fn storage(&self, directory: impl AsRef<Path>, layout: Layout) -> Storage {
        Storage::new(directory.as_ref(), layout, self.files(), self.is_direct())
    }

    /// The relations of our own cluster, which may be created, changed and removed. `directory`
    /// must never be a PostgreSQL data directory: changes aren't WAL-logged, and a server wouldn't
    /// know about them.
    pub fn writable_storage(&self, directory: impl AsRef<Path>, layout: Layout) -> Storage {
        Storage::for_writing(directory.as_ref(), layout, self.files(), self.is_direct())
    }

    /// A session, the counterpart of PostgreSQL's backend: issues I/O, holds pins, and waits. Only
    /// one thread at a time may use it. Per-session settings, such as `zero_damaged_pages`, are
    /// copied into the session here.
    ///
    /// # Errors
    /// [`EngineError::TooManySessions`].
    pub fn session(&self) -> Result<Backend, EngineError> {
        let settings = self.settings();
        let mut session = self.pool().backend(BackendType::Client)?;
        session.set_policy(Policy {
            zero_damaged_pages: settings.zero_damaged_pages(),
            ignore_checksum_failure: settings.ignore_checksum_failure(),
        });
        session.set_flush_after(settings.backend_flush_after());
        Ok(session)
    }

    /// A sequential scan of one of our own tables. Such a table has no commit log, so all of its
    /// rows must be frozen. For a [`Cluster`]'s tables, see [`OpenRelation::scan`].
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

    /// Writes all currently dirty pages and syncs the files, as fast as possible (PostgreSQL's
    /// `CHECKPOINT` command). Covers all writable clusters in the pool. Pages dirtied during the
    /// checkpoint are left to the next checkpoint.
    ///
    /// # Errors
    /// See [`CheckpointError`].
    pub fn checkpoint(&self, session: &mut Backend) -> Result<CheckpointReport, CheckpointError> {
        checkpoint(self.pool(), session, CheckpointOptions::of(self.settings()), |_| {})
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

    fn is_direct(&self) -> bool {
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
