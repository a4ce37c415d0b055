//! Builder for engines with options that aren't settings.
//!
//! Settings are what a PostgreSQL administrator tunes. Tests, benchmarks and embedders need more:
//! page memory in addition to the pool, an I/O instance that is already running, another file
//! system, or a log.
//!
//! All page memory is a single region owned by the I/O instance. The pool takes its frames from the
//! region at startup, and later jobs and commit log look-ups lease theirs from what's left. The
//! region can't grow, so the builder must make it large enough for everything up front.

use std::sync::Arc;
use trunkline_aio::{Aio, Builder};
use trunkline_format::BLOCK_SIZE;

use super::error::EngineError;
use super::instance::Engine;
use crate::log::{Log, Unlogged};
use crate::pool::Pool;
use crate::settings::Settings;
use crate::storage::{FileSystem, OpenFiles, WritableFiles};

/// Minimum page memory in bytes: one huge page on x86-64.
const REGION_BYTES_MIN: usize = 2 << 20;

/// Default page memory in addition to the pool, in bytes. Commit log pages are read into separate
/// frames, one for each session that is looking up a transaction.
const EXTRA_BYTES: usize = 64 * BLOCK_SIZE;

/// An engine's parts before it is started; see [`Engine::builder`].
#[must_use = "the engine is started by open()"]
pub struct EngineBuilder {
    settings: Settings,
    buffers: u32,
    extra_bytes: usize,
    open_files: usize,
    io: Io,
    files: Files,
    log: Arc<dyn Log>,
}

/// The I/O instance.
enum Io {
    /// Started by the engine, which determines its size.
    Start(Builder),
    Running(Aio),
}

/// The file system.
enum Files {
    Kernel,
    ReadOnly(Arc<dyn FileSystem>),
    Writable(Arc<dyn WritableFiles>),
}

impl Engine {
    /// Starts an engine with the given settings: `io_method` and its limits, `shared_buffers`,
    /// `max_files_per_process`, `io_direct`. Allocates the pool's memory, whose size is fixed from
    /// then on.
    ///
    /// If the I/O method isn't available, we fall back to the next best method. In that case
    /// [`Aio::method_status`] returns the reason, and a hint on how to fix it.
    ///
    /// # Errors
    /// [`EngineError::Start`] or [`EngineError::Pool`]: there is not enough memory.
    pub fn open(settings: &Settings) -> Result<Self, EngineError> {
        Self::builder(settings).open()
    }

    /// Builds an engine with options that aren't settings.
    pub fn builder(settings: &Settings) -> EngineBuilder {
        EngineBuilder {
            settings: settings.clone(),
            buffers: settings.shared_buffers(),
            extra_bytes: EXTRA_BYTES,
            open_files: settings.max_files_per_process() as usize,
            io: Io::Start(settings.io_builder()),
            files: Files::Kernel,
            log: Arc::new(Unlogged),
        }
    }
}

impl EngineBuilder {
    /// Uses a pool of `buffers` pages instead of `shared_buffers`; at least 16.
    pub fn buffers(self, buffers: u32) -> Self {
        Self { buffers, ..self }
    }

    /// Adds page memory, in bytes, for jobs that bypass the pool and read into private windows. Has
    /// no effect on an I/O instance that is already running.
    pub fn extra_bytes(self, bytes: usize) -> Self {
        Self { extra_bytes: bytes, ..self }
    }

    /// Keeps at most this many files open, instead of `max_files_per_process`; at least 1.
    pub fn open_files(self, limit: usize) -> Self {
        Self { open_files: limit, ..self }
    }

    /// Changes how the I/O instance is started, for example its executor, its probe or its limits.
    /// The engine sets the page memory size itself. Has no effect after [`EngineBuilder::io`].
    pub fn configure_io(mut self, change: impl FnOnce(Builder) -> Builder) -> Self {
        if let Io::Start(builder) = self.io {
            self.io = Io::Start(change(builder));
        }
        self
    }

    /// Uses an I/O instance that is already running. Its page memory must have room for the pool.
    pub fn io(self, aio: &Aio) -> Self {
        Self { io: Io::Running(aio.clone()), ..self }
    }

    /// Reads files from another file system, such as a simulated disk, but can't write any.
    pub fn file_system(self, system: impl FileSystem + 'static) -> Self {
        Self { files: Files::ReadOnly(Arc::new(system)), ..self }
    }

    /// Reads and writes another file system's files, such as those on a simulated disk.
    pub fn writable_file_system(self, system: impl WritableFiles + 'static) -> Self {
        Self { files: Files::Writable(Arc::new(system)), ..self }
    }

    /// Sets the log. Before a dirty page is written, the log must be durable up to that page's LSN.
    /// By default, changes aren't logged.
    pub fn log(self, log: impl Log + 'static) -> Self {
        Self { log: Arc::new(log), ..self }
    }

    /// Starts the engine.
    ///
    /// # Errors
    /// [`EngineError::Start`] or [`EngineError::Pool`]: there is not enough memory.
    pub fn open(self) -> Result<Engine, EngineError> {
        let aio = match self.io {
            Io::Running(aio) => aio,
            Io::Start(builder) => {
                let pool_bytes = (self.buffers as usize).saturating_mul(BLOCK_SIZE);
                let bytes = pool_bytes.saturating_add(self.extra_bytes).max(REGION_BYTES_MIN);
                builder.region_bytes(bytes).start().map_err(EngineError::Start)?
            }
        };
        let pool = Pool::with_log(&aio, self.buffers, self.log)?;
        let files = match self.files {
            Files::Kernel => OpenFiles::kernel(&aio, self.open_files),
            Files::ReadOnly(system) => OpenFiles::read_only(self.open_files, system),
            Files::Writable(system) => OpenFiles::writable(self.open_files, system),
        };
        Ok(Engine::new(pool, files, self.settings, aio))
    }
}

impl std::fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineBuilder").field("buffers", &self.buffers).finish_non_exhaustive()
    }
}
