//! [`Aio`], the embedder's handle to an instance.
//!
//! It creates sessions, opens files, changes the settings that can change at run time, and exposes
//! statistics and the equivalent of `pg_aios`. The work is done by the layers below; this file only
//! delegates.

use crate::completion::in_flight::InFlight;
use crate::completion::roster::WorkerSettings;
use crate::instance::Instance;
use crate::limits::SESSIONS_MAX;
use crate::method::dispatcher::{Dispatcher, MethodStatus};
use crate::session::Session;
use crate::session::cancel::Notifier;
use crate::storage::file::{File, OpenOptions};
use crate::storage::region::Region;
use crate::tables::method_kind::MethodKind;
use crate::tables::snapshot::{IoRow, snapshot};
use crate::tables::statistics::{Counters, Latencies};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// An instance of asynchronous I/O. It is a reference-counted handle, and all clones refer to the
/// same instance.
///
/// When the last clone and the last session are dropped, the instance waits for the I/O in flight
/// and ends its threads. Two instances in one process share nothing. The region, the handle table
/// and every thread belong to one instance only.
#[derive(Debug, Clone)]
pub struct Aio {
    instance: Arc<Instance>,
}

/// All session slots of the instance are taken. The instance itself occupies one slot, so a caller
/// gets [`SESSIONS_MAX`] minus one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {} sessions", SESSIONS_MAX - 1)]
pub struct TooManySessions;

impl Aio {
    pub(crate) fn new(dispatcher: Dispatcher) -> Self {
        Self { instance: Arc::new(Instance::new(dispatcher)) }
    }

    fn dispatcher(&self) -> &Dispatcher {
        self.instance.dispatcher()
    }

    fn in_flight(&self) -> &InFlight {
        self.dispatcher().in_flight()
    }

    /// Starts a new session.
    ///
    /// Sessions are cheap to create but bounded in number, because every handle has a bitmap with
    /// one bit per session.
    ///
    /// # Errors
    /// The instance has 255 sessions already.
    pub fn session(&self) -> Result<Session, TooManySessions> {
        let id = self.instance.take_session().ok_or(TooManySessions)?;
        Ok(Session::new(Arc::clone(&self.instance), id))
    }

    /// Opens a file for I/O through this instance.
    ///
    /// # Errors
    /// Those of open(2). Anything but a regular file or a block device is refused.
    pub fn open(&self, path: &Path, options: OpenOptions) -> io::Result<File> {
        let (files, deferred) = (self.instance.files(), self.in_flight().completions().deferred());
        match File::open(files, path, options) {
            Err(error) if is_shortage(&error) && !deferred.is_empty() => {
                // Closing of abandoned files is deferred to idle workers, so their descriptors may
                // still be open. Close them now and retry once.
                deferred.close_all();
                File::open(files, path, options)
            }
            result => result,
        }
    }

    /// Creates a file that exists only in the storage of the instance's executor or method. It has
    /// no descriptor, so only a simulated storage can execute I/O on it.
    #[cfg(feature = "sim")]
    pub fn open_virtual(&self, path: &Path, device: u64, direct: bool) -> File {
        File::without_descriptor(self.instance.files(), path, device, direct)
    }

    /// The page region, from which callers lease aligned memory for I/O.
    pub fn region(&self) -> &Region {
        self.in_flight().region()
    }

    /// Returns a notifier, which wakes sessions by their numbers. The notifier does not keep the
    /// instance alive.
    pub fn notifier(&self) -> Notifier {
        Notifier::new(Arc::clone(self.in_flight().completions().sessions()))
    }

    /// Switches to another I/O method, or to the next best one that is available. I/O in flight
    /// stays with the method it was submitted through. Unlike `io_method` in PostgreSQL, this does
    /// not need a restart.
    pub fn set_method(&self, method: MethodKind) -> MethodStatus {
        self.dispatcher().switch(method);
        self.method_status()
    }

    /// The active method, the requested method, and why they differ.
    pub fn method_status(&self) -> MethodStatus {
        self.dispatcher().status()
    }

    /// Changes the worker pool's settings. Surplus workers end after their current I/O; missing
    /// ones are started as the load requires.
    pub fn set_workers(&self, workers: WorkerSettings) {
        self.in_flight().completions().pool().change_settings(workers);
    }

    /// Number of live worker threads.
    pub fn worker_count(&self) -> usize {
        self.in_flight().completions().pool().size()
    }

    /// Number of I/Os queued for workers.
    pub fn worker_queue_length(&self) -> usize {
        self.in_flight().completions().pool().queued()
    }

    /// Number of handles in use.
    pub fn handles_in_use(&self) -> u32 {
        self.in_flight().completions().handles().in_use()
    }

    /// Number of files open through the instance, including those that wait to be closed.
    pub fn open_files(&self) -> usize {
        self.instance.files().open_files()
    }

    /// All handles that are not idle: the rows of `pg_aios`. It takes no lock that I/O needs, so
    /// each row is consistent in itself, but the rows are not of the same instant.
    pub fn snapshot(&self) -> Vec<IoRow> {
        snapshot(self.in_flight().completions().handles(), self.instance.files())
    }

    /// All counters since the start. They are read one by one without a lock, so concurrent I/O may
    /// be counted in one counter and not yet in another.
    pub fn counters(&self) -> Counters {
        self.in_flight().completions().statistics().counters()
    }

    /// Distributions of device and wait times since the start.
    pub fn latencies(&self) -> Latencies {
        self.in_flight().completions().statistics().latencies()
    }
}

/// Whether the error means that the process or the system has run out of file descriptors.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
