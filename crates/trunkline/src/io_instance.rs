//! Starts the I/O instance with the command's settings, and warns if an I/O method is unavailable.
//!
//! If an I/O method is unavailable, we fall back to the next best one. We print a warning that
//! includes the reason and a hint on how to fix the problem. A server would refuse to start in this
//! case, but for a command-line tool, running slowly is better than not running at all. Note that
//! io_uring may also turn out to be unavailable when it is first used, so commands check again
//! after their job ([`IoInstance::report_fallbacks`]).

use std::cell::Cell;
use std::mem::ManuallyDrop;

use trunkline_aio::{Aio, MethodStatus};
use trunkline_engine::Engine;
use trunkline_engine::file_scan::ReadOptions;
use trunkline_engine::settings::{IoMethod, Settings};
use trunkline_format::BLOCK_SIZE;

use crate::exit::{Failure, message};
use crate::memory_available::memory_available;
use crate::output::human_bytes;

/// The page region is large enough for full-size read windows on this many mounts. With more
/// mounts, we have to make the windows smaller.
const MOUNTS_PLANNED: usize = 2;

/// Minimum size of the page region: one huge page.
const REGION_BYTES_MIN: usize = 2 << 20;

/// Memory for pages that are read outside the pool, such as commit log pages. A session never needs
/// more than one frame at a time, so this is enough for 64 concurrent sessions.
const BYTES_BESIDE_POOL: usize = 64 * BLOCK_SIZE;

/// A running I/O instance.
///
/// We never drop an I/O instance. Dropping it would wait for all I/O in flight, so a read that
/// hangs would keep the command from exiting. The kernel cleans up when the process exits.
pub(crate) struct IoInstance {
    aio: ManuallyDrop<Aio>,
    /// Number of fallbacks that were reported.
    reported: Cell<usize>,
}

impl IoInstance {
    /// Starts I/O for a job that reads whole files.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(crate) fn for_files(settings: &Settings) -> Result<IoInstance, Failure> {
        IoInstance::start(settings, read_window_bytes(settings))
    }

    /// Starts I/O with enough memory for a pool of `buffers`. The command may run another job
    /// before it creates the pool. That job needs `bytes_before_pool`, so we allocate whichever
    /// amount is larger.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(crate) fn for_pool(
        settings: &Settings,
        buffers: u32,
        bytes_before_pool: usize,
    ) -> Result<IoInstance, Failure> {
        let bytes = u64::from(buffers) * BLOCK_SIZE as u64;
        // The region gets its memory while the pool fills up. If there isn't enough, that would swap
        // out other programs or wake the OOM killer in the middle of the job, so we check first.
        if let Some(available) = memory_available()
            && bytes > available.bytes
        {
            let place = if available.is_of_group { " in its control group" } else { "" };
            let (wanted, available) = (human_bytes(bytes), human_bytes(available.bytes));
            let text = format!(
                "could not map shared memory: shared_buffers needs {wanted}, but only {available} \
                 are available{place}"
            );
            return Err(Failure::cannot_run(text).with_hint("reduce shared_buffers"));
        }
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let region_bytes = bytes.saturating_add(BYTES_BESIDE_POOL).max(bytes_before_pool);
        IoInstance::start(settings, region_bytes)
    }

    /// Starts I/O and an engine with a pool of `buffers`.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(crate) fn with_engine(
        settings: &Settings,
        buffers: u32,
    ) -> Result<(IoInstance, Engine), Failure> {
        let io = IoInstance::for_pool(settings, buffers, 0)?;
        let engine = io.engine(settings, buffers)?;
        Ok((io, engine))
    }

    /// Reports any fallback before the command starts its work, so that the user knows why it is
    /// slow.
    fn start(settings: &Settings, region_bytes: usize) -> Result<IoInstance, Failure> {
        let aio = settings
            .io_builder()
            .region_bytes(region_bytes.max(REGION_BYTES_MIN))
            .start()
            .map_err(|error| Failure::cannot_run(format_args!("could not start I/O: {error}")))?;
        let instance = IoInstance { aio: ManuallyDrop::new(aio), reported: Cell::new(0) };
        instance.report_fallbacks();
        Ok(instance)
    }

    pub(crate) fn aio(&self) -> &Aio {
        &self.aio
    }

    /// Name of the method in use.
    pub(crate) fn method_name(&self) -> &'static str {
        self.aio.method_status().used.name()
    }

    /// Switches to another method, and reports it if that is not available.
    pub(crate) fn set_method(&self, method: IoMethod) -> MethodStatus {
        let status = self.aio.set_method(method.into());
        self.report_fallbacks();
        status
    }

    /// Warns about methods that turned out to be unavailable since the last call.
    pub(crate) fn report_fallbacks(&self) {
        let fallbacks = self.aio.method_status().fallbacks;
        let reported = self.reported.replace(fallbacks.len());
        for fallback in fallbacks.iter().skip(reported) {
            message("warning", fallback);
            message("hint", fallback.fix());
        }
    }

    /// Creates an engine with a pool of `buffers` in the instance's memory.
    pub(crate) fn engine(&self, settings: &Settings, buffers: u32) -> Result<Engine, Failure> {
        Ok(Engine::builder(settings).io(&self.aio).buffers(buffers).open()?)
    }
}

/// Memory for the read windows of a job that reads whole files.
pub(crate) fn read_window_bytes(settings: &Settings) -> usize {
    ReadOptions::of(settings).region_bytes(MOUNTS_PLANNED)
}
