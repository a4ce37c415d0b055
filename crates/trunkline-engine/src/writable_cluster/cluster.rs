//! How a cluster is opened and closed.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use trunkline_aio::Aio;
use trunkline_aio::facade::Mutex;
use trunkline_format::wal::SegmentSize;
use trunkline_format::{BLOCK_SIZE, ClusterState, ControlFile};

use super::commit_gate::CommitGate;
use super::commit_log::CommitLog;
use super::error::WritableClusterError;
use super::ids::Ids;
use super::lock_file::LockFile;
use super::locked_files::LockedFiles;
use super::multixacts::PooledMultixacts;
use super::options::WritableClusterOptions;
use super::session::WriteSession;
use super::shared::{CheckpointState, Shared};
use crate::checkpoint::CheckpointReport;
use crate::control_writer::ControlWriter;
use crate::engine::{Engine, EngineError};
use crate::log_writer::{Lane, LogFlusher, LogWriter, LogWriterError, LogWriterOptions};
use crate::page_change::Changer;
use crate::recovery::{
    Recovered, RecoveryError, RecoveryOptions, RecoveryProgress, RecoveryReport, recover,
};
use crate::storage::{KernelFiles, Layout, WritableFiles};

/// Page memory of a lane, and of a thread of a recovery, in bytes.
const LANE_BYTES: usize = 256 << 10;
/// The least `wal_buffers` in bytes. A record takes up to half of them: a split of a B-tree page has four images.
const WAL_BUFFERS_MIN: u32 = 128 << 10;
/// Lanes besides those of flushes: creation of segments, control file, and one to spare.
const OTHER_LANES: usize = 3;

/// A cluster that [`crate::new_cluster`] has made, open for writing. If it is dropped without
/// [`WritableCluster::close`], the next one that opens it recovers it.
pub struct WritableCluster {
    shared: Arc<Shared>,
    /// A session reserved for the shutdown checkpoint.
    closing: Option<WriteSession>,
    sessions: usize,
    recovered: Option<RecoveryReport>,
}

impl WritableCluster {
    /// Opens the cluster in `root`, after a recovery if it was not shut down. `progress` shows how far that is.
    ///
    /// # Errors
    /// [`WritableClusterError`].
    pub fn open(
        root: &Path,
        options: &WritableClusterOptions,
        progress: impl FnMut(RecoveryProgress),
    ) -> Result<Self, WritableClusterError> {
        let (aio, files) = lock(root, options)?;
        let recovered = recover_locked(&aio, &files, root, options, progress)?;
        let (control, log) = open_log(&aio, &files, root, options, &recovered)?;
        let log = Arc::new(log);
        let engine = Engine::builder(&options.settings)
            .io(&aio)
            .writable_files(Arc::clone(&files))
            .log(Arc::clone(&log))
            .open()?;
        let storage = engine.writable_storage(root, Layout::of(&control));
        let mut session = engine.session()?;
        let next_xid = control.checkpoint.next_xid as u32;
        let commit_log = CommitLog::open(&storage, &mut session, next_xid)?;
        let multixacts = PooledMultixacts::new(&storage, &control.checkpoint);
        engine.checkpoint(&mut session)?;
        drop(session);
        let writer = ControlWriter::new(&files, root);
        let mut checkpoint = CheckpointState { control, writer, lane: Lane::new(&aio)? };
        // From here on, a crash needs a recovery. The WAL that it needs begins at the shutdown checkpoint.
        checkpoint.write(control)?;
        let flusher = LogFlusher::start(&aio, &log, options.wal_writer_delay);
        let shared = Shared {
            flusher: flusher.map_err(EngineError::Start)?,
            checkpoint: Mutex::new(checkpoint),
            commit_log,
            multixacts,
            commit_gate: CommitGate::new(),
            ids: Ids::new(&control.checkpoint),
            storage,
            engine,
            log,
        };
        let (shared, recovered) = (Arc::new(shared), recovered.report);
        let mut cluster = Self { shared, closing: None, sessions: options.sessions, recovered };
        cluster.closing = Some(cluster.new_session()?);
        Ok(cluster)
    }

    /// Recovers the cluster in `root` if it was not shut down, and leaves it shut down. Returns what was done, or `None`
    /// if nothing was.
    ///
    /// # Errors
    /// [`WritableClusterError`].
    pub fn recover(
        root: &Path,
        options: &WritableClusterOptions,
        progress: impl FnMut(RecoveryProgress),
    ) -> Result<Option<RecoveryReport>, WritableClusterError> {
        let (aio, files) = lock(root, options)?;
        Ok(recover_locked(&aio, &files, root, options, progress)?.report)
    }

    /// What the recovery has done. `None` if there was none.
    pub fn recovered(&self) -> Option<&RecoveryReport> {
        self.recovered.as_ref()
    }

    /// The engine: pool, I/O instance and settings.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// The WAL.
    pub fn log(&self) -> &Arc<LogWriter> {
        &self.shared.log
    }

    /// Opens a session.
    ///
    /// # Errors
    /// [`WritableClusterError::NoWriteSession`], [`WritableClusterError::Closed`] or [`WritableClusterError::Engine`].
    pub fn session(&self) -> Result<WriteSession, WritableClusterError> {
        match self.closing {
            Some(_) => self.new_session(),
            None => Err(WritableClusterError::Closed),
        }
    }

    fn new_session(&self) -> Result<WriteSession, WritableClusterError> {
        let shared = Arc::clone(&self.shared);
        let backend = shared.engine.session()?;
        let none = WritableClusterError::NoWriteSession { sessions: self.sessions };
        let changer = Changer::new(&shared.log).ok_or(none)?;
        Ok(WriteSession { shared, backend, changer })
    }

    /// Shuts the cluster down: a server, or the next engine, starts without recovery. The directory is free when the
    /// cluster and all of its relations are dropped. Sessions of [`WritableCluster::engine`] must not change pages.
    ///
    /// # Errors
    /// [`WritableClusterError::InUse`] if sessions are open; this can be called again when they are gone.
    /// [`WritableClusterError::Closed`] if it was called before. After any other error, the cluster needs a recovery.
    pub fn close(&mut self) -> Result<CheckpointReport, WritableClusterError> {
        // This cluster, and its own session.
        if Arc::strong_count(&self.shared) > 2 {
            return Err(WritableClusterError::InUse);
        }
        let mut session = self.closing.take().ok_or(WritableClusterError::Closed)?;
        session.shut_down()
    }
}

/// Starts an I/O instance, and keeps others out of the directory, which must be ours.
fn lock(
    root: &Path,
    options: &WritableClusterOptions,
) -> Result<(Aio, Arc<dyn WritableFiles>), WritableClusterError> {
    let aio = start_io(options)?;
    let lock = LockFile::create(root)?;
    let files = LockedFiles::new(KernelFiles::new(&aio), lock);
    Ok((aio, Arc::new(files)))
}

fn recover_locked(
    aio: &Aio,
    files: &Arc<dyn WritableFiles>,
    root: &Path,
    options: &WritableClusterOptions,
    progress: impl FnMut(RecoveryProgress),
) -> Result<Recovered, RecoveryError> {
    let recovery = RecoveryOptions {
        threads: options.recovery_threads,
        memory: options.recovery_memory,
        io: Some(options.settings.clone()),
        ..RecoveryOptions::new(options.scratch.clone())
    };
    recover(aio, files, root, &recovery, progress)
}

/// Starts an I/O instance whose page memory is enough for the pool, lanes and a recovery.
fn start_io(options: &WritableClusterOptions) -> Result<Aio, WritableClusterError> {
    let settings = &options.settings;
    let threads = options.recovery_threads.max(1) as usize;
    let lanes = options.flushes.most() + OTHER_LANES + 2 * threads;
    let pool = settings.shared_buffers() as usize * BLOCK_SIZE;
    let bytes = (pool + lanes * LANE_BYTES + 64 * BLOCK_SIZE).max(2 << 20);
    let sessions = settings.max_sessions() + (lanes + options.sessions) as u32;
    let started = settings.io_builder().sessions(sessions).region_bytes(bytes).start();
    Ok(started.map_err(EngineError::Start)?)
}

/// Opens the WAL where it ends. Returns it, and the control file of a running cluster.
fn open_log(
    aio: &Aio,
    files: &Arc<dyn WritableFiles>,
    root: &Path,
    options: &WritableClusterOptions,
    recovered: &Recovered,
) -> Result<(ControlFile, LogWriter), LogWriterError> {
    let control = &recovered.control;
    let Some(segment_size) = SegmentSize::new(control.wal_segment_size) else {
        unreachable!("the control file was checked when it was read");
    };
    let log = LogWriterOptions {
        buffers: options.wal_buffers.max(WAL_BUFFERS_MIN),
        // One for the cluster's own session.
        inserters: options.sessions + 1,
        sync_method: options.wal_sync_method,
        direct: options.wal_direct,
        direct_init: options.wal_init_direct,
        min_wal_size: options.min_wal_size,
        wal_keep_size: options.wal_keep_size,
        flushes: options.flushes,
        full_page_writes: options.full_page_writes,
        compresses: options.wal_compression,
        checks_redo: options.wal_consistency_checking,
        ..LogWriterOptions::after_shutdown(control, segment_size, recovered.wal_end)
    };
    let log = LogWriter::open(aio, Arc::clone(files), root, log)?;
    Ok((ControlFile { state: ClusterState::InProduction, ..*control }, log))
}

impl fmt::Debug for WritableCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { log, engine, flusher, .. } = &*self.shared;
        f.debug_struct("WritableCluster")
            .field("log", log)
            .field("engine", engine)
            .field("flusher", flusher)
            .finish_non_exhaustive()
    }
}
