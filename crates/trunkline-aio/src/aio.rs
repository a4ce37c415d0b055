//! [`Aio`], the embedder's handle to an instance.
//!
//! It makes sessions, opens files, changes the settings that may change at run time, and shows what
//! the instance does.

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

/// An instance of asynchronous I/O. Clones share it.
///
/// When the last clone and the last session are dropped, the instance waits for the I/O in flight
/// and ends its threads. Two instances in one process share nothing.
#[derive(Debug, Clone)]
pub struct Aio {
    instance: Arc<Instance>,
}

/// All session slots of the instance are taken.
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

    /// A new session.
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
                // Abandoned files keep their descriptors until a worker closes them.
                deferred.close_all();
                File::open(files, path, options)
            }
            result => result,
        }
    }

    /// A file that exists only in the storage of the instance's executor or method.
    #[cfg(feature = "sim")]
    pub fn open_virtual(&self, path: &Path, device: u64, direct: bool) -> File {
        File::without_descriptor(self.instance.files(), path, device, direct)
    }

    /// The page region.
    pub fn region(&self) -> &Region {
        self.in_flight().region()
    }

    /// A way to wake sessions by their numbers.
    pub fn notifier(&self) -> Notifier {
        Notifier::new(Arc::clone(self.in_flight().completions().sessions()))
    }

    /// Puts another method in force, or the next best one that is available. I/O in flight is not
    /// affected.
    pub fn set_method(&self, method: MethodKind) -> MethodStatus {
        self.dispatcher().switch(method);
        self.method_status()
    }

    /// Which method is in force, and why, if it is not the one that was requested.
    pub fn method_status(&self) -> MethodStatus {
        self.dispatcher().status()
    }

    /// Changes the settings of the worker pool.
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

    /// All handles that are not idle: the rows of `pg_aios`. Takes no lock that I/O needs.
    pub fn snapshot(&self) -> Vec<IoRow> {
        snapshot(self.in_flight().completions().handles(), self.instance.files())
    }

    /// All counters since the start.
    pub fn counters(&self) -> Counters {
        self.in_flight().completions().statistics().counters()
    }

    /// Distributions of device and wait times since the start.
    pub fn latencies(&self) -> Latencies {
        self.in_flight().completions().statistics().latencies()
    }
}

/// Whether the process or the system has no descriptor left.
fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
