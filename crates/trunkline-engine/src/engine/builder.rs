//! Builder for engines with options that aren't settings.
//!
//! The settings cover what a PostgreSQL administrator would tune. Tests, benchmarks and embedders
//! need more than that: they may want extra page memory in addition to the pool, an I/O instance
//! that is already running, a different file system, or a log.
//!
//! All page memory is a single region that belongs to the I/O instance. The pool takes its frames
//! from this region at startup; jobs and commit log lookups lease theirs later, from what is left.
//! Since the region can't grow, the builder must make it large enough for all of them in advance.

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

/// Default amount of page memory in addition to the pool, in bytes. It's needed because commit log
/// pages are not read into the pool: each session that is looking up a transaction needs a separate
/// frame.
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
    /// `max_sessions`, `max_files_per_process` and `io_direct`. This also allocates the pool's
    /// memory. The size of the pool and the number of sessions can't be changed later.
    ///
    /// If the I/O method isn't available, we fall back to the next best one. In that case,
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
    /// Uses a pool of `buffers` pages, overriding `shared_buffers`. The minimum is 16.
    pub fn buffers(self, buffers: u32) -> Self {
        Self { buffers, ..self }
    }

    /// Adds this much page memory, in bytes, for jobs that bypass the pool and read into private
    /// windows. This has no effect if the I/O instance is already running.
    pub fn extra_bytes(self, bytes: usize) -> Self {
        Self { extra_bytes: bytes, ..self }
    }

    /// Maximum number of files to keep open, overriding `max_files_per_process`. A limit of 0 is
    /// treated as 1.
    pub fn open_files(self, limit: usize) -> Self {
        Self { open_files: limit, ..self }
    }

    /// Changes the settings of the I/O instance before it is started, such as its executor, its
    /// probe or its limits. You don't have to set the size of the page memory, because the engine
    /// does that itself. This has no effect if [`EngineBuilder::io`] has already been called.
    pub fn configure_io(mut self, change: impl FnOnce(Builder) -> Builder) -> Self {
        if let Io::Start(builder) = self.io {
            self.io = Io::Start(change(builder));
        }
        self
    }

    /// Uses an I/O instance that is already running. Its page memory must be large enough for the
    /// pool.
    pub fn io(self, aio: &Aio) -> Self {
        Self { io: Io::Running(aio.clone()), ..self }
    }

    /// Reads files from a different file system, such as a simulated disk. In that case, the engine
    /// can't write any files.
    pub fn file_system(self, system: impl FileSystem + 'static) -> Self {
        Self { files: Files::ReadOnly(Arc::new(system)), ..self }
    }

    /// Reads and writes files of a different file system, such as a simulated disk.
    pub fn writable_file_system(self, system: impl WritableFiles + 'static) -> Self {
        Self { files: Files::Writable(Arc::new(system)), ..self }
    }

    /// As [`EngineBuilder::writable_file_system`], for a file system that others use, too.
    pub fn writable_files(self, system: Arc<dyn WritableFiles>) -> Self {
        Self { files: Files::Writable(system), ..self }
    }

    /// Sets the write-ahead log. We don't write a dirty page until the log is durable up to that
    /// page's LSN. If you don't set a log, changes aren't logged.
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
