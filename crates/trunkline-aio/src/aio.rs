//! [`Aio`], the embedder's handle to an instance.
//!
//! [`Aio`] creates sessions, opens files, changes run-time settings, and exposes statistics and the
//! equivalent of `pg_aios`. Apart from a retry in [`Aio::open`], this file only calls the layers
//! below.

use crate::completion::in_flight::InFlight;
use crate::completion::roster::WorkerSettings;
use crate::instance::Instance;
use crate::method::dispatcher::{Dispatcher, MethodStatus};
use crate::session::Session;
use crate::session::cancel::Notifier;
use crate::storage::file::{File, OpenOptions};
use crate::storage::region::{Populator, Region};
use crate::tables::method_kind::MethodKind;
use crate::tables::snapshot::{IoRow, snapshot};
use crate::tables::statistics::{Counters, Latencies};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// An instance of the asynchronous I/O subsystem. This is a reference-counted handle, and all its
/// clones refer to the same instance.
///
/// Dropping the last of its clones and sessions may block: it waits for the I/O in flight and then
/// stops the instance's threads. Two instances in the same process don't share anything: each has
/// its own region, handle table and threads.
#[derive(Debug, Clone)]
pub struct Aio {
    instance: Arc<Instance>,
}

/// All of the instance's sessions are in use. Retry after a session has ended, or start the
/// instance with more of them ([`crate::Builder::sessions`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many sessions: all {limit} are in use (max_sessions)")]
pub struct TooManySessions {
    /// The maximum number of sessions.
    pub limit: u32,
}

impl Aio {
    pub(crate) fn new(dispatcher: Dispatcher, populator: Populator) -> Self {
        Self { instance: Arc::new(Instance::new(dispatcher, populator)) }
    }

    fn dispatcher(&self) -> &Dispatcher {
        self.instance.dispatcher()
    }

    fn in_flight(&self) -> &InFlight {
        self.dispatcher().in_flight()
    }

    /// Starts a new session.
    ///
    /// Sessions are cheap to create, but their number is bounded by [`crate::Builder::sessions`],
    /// because all tables that contain sessions are allocated at start.
    ///
    /// # Errors
    /// All sessions are in use.
    pub fn session(&self) -> Result<Session, TooManySessions> {
        let limit = self.sessions_max();
        let id = self.instance.take_session().ok_or(TooManySessions { limit })?;
        Ok(Session::new(Arc::clone(&self.instance), id))
    }

    /// Maximum number of concurrent sessions ([`crate::Builder::sessions`]).
    pub fn sessions_max(&self) -> u32 {
        self.in_flight().completions().sessions().len() - 1
    }

    /// Opens a file for I/O through this instance.
    ///
    /// # Errors
    /// The errors of open(2). Also returns an error if the path is neither a regular file nor a
    /// block device.
    pub fn open(&self, path: &Path, options: OpenOptions) -> io::Result<File> {
        let (files, deferred) = (self.instance.files(), self.in_flight().completions().deferred());
        match File::open(files, path, options) {
            Err(error) if is_shortage(&error) && !deferred.is_empty() => {
                // Idle workers close abandoned files lazily, so some of their descriptors may still
                // be open. Close those files now, and then retry once.
                deferred.close_all();
                File::open(files, path, options)
            }
            result => result,
        }
    }

    /// Creates a file for use with a simulated executor or I/O method. Since the file doesn't have
    /// a descriptor, only the simulator can execute I/O on it.
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

    /// Switches to the given I/O method, or to the next best one if it isn't available. I/O that is
    /// already in flight stays with the method it was submitted through. In PostgreSQL, changing
    /// `io_method` requires a restart; here it doesn't.
    pub fn set_method(&self, method: MethodKind) -> MethodStatus {
        self.dispatcher().switch(method);
        self.method_status()
    }

    /// Returns the active method, the requested method, and the reason if they differ.
    pub fn method_status(&self) -> MethodStatus {
        self.dispatcher().status()
    }

    /// Changes the worker pool's settings. Surplus workers exit after their current I/O; additional
    /// workers are started as the load requires.
    pub fn set_workers(&self, workers: WorkerSettings) {
        self.in_flight().completions().pool().change_settings(workers);
    }

    /// Number of live worker threads.
    pub fn worker_count(&self) -> usize {
        self.in_flight().completions().pool().with_roster(|roster| roster.live())
    }

    /// Number of handles in use.
    pub fn handles_in_use(&self) -> u32 {
        self.in_flight().completions().handles().in_use()
    }

    /// Number of files open through the instance, including files waiting to be closed.
    pub fn open_files(&self) -> usize {
        self.instance.files().open_files()
    }

    /// Returns the equivalent of `pg_aios`: one row for each handle that is not idle. We don't take
    /// any lock that the I/O path needs. Each row is internally consistent, but since I/O continues
    /// during the scan, different rows may reflect slightly different points in time.
    pub fn snapshot(&self) -> Vec<IoRow> {
        snapshot(self.in_flight().completions().handles(), self.instance.files())
    }

    /// Returns all counters, accumulated since the instance started. We read the counters one after
    /// another without a lock, so an I/O that is running concurrently may already be included in
    /// one counter but not yet in another.
    pub fn counters(&self) -> Counters {
        self.in_flight().completions().statistics().counters()
    }

    /// Distributions of device and wait times since the instance started.
    pub fn latencies(&self) -> Latencies {
        self.in_flight().completions().statistics().latencies()
    }
}

/// Returns whether the error means that the process or the system has run out of file descriptors.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
