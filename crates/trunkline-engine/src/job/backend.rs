//! Pool backends for a job's workers.
//!
//! Workers must open their backends here, because [`Job::backend`] registers the backend's
//! canceller. Without that, cancelling the job would not interrupt a worker that is waiting for a
//! buffer, a lock or an I/O inside the pool.

use std::io;

use super::error::JobError;
use super::workers::Job;
use crate::pool::{Backend, BackendType, Policy, Pool, ReadWarning};

impl Job {
    /// Opens a backend whose waits end when the job stops.
    pub(crate) fn backend(
        &self,
        pool: &Pool,
        kind: BackendType,
        policy: Policy,
    ) -> Result<Backend, JobError> {
        let backend = pool.backend(kind);
        let mut backend = backend.map_err(|error| JobError::Start(io::Error::other(error)))?;
        self.cancel_on_stop(backend.session().canceller());
        backend.set_policy(policy);
        Ok(backend)
    }

    /// The backend type under which a worker appears in the statistics. In PostgreSQL, the leader
    /// of a parallel query takes part in the work, so we count the first worker as the leader.
    pub(crate) fn backend_type(worker: usize) -> BackendType {
        match worker {
            0 => BackendType::Standalone,
            _ => BackendType::BackgroundWorker,
        }
    }
}

/// Warnings about damaged pages, collected from the backends of all workers.
#[derive(Debug, Default)]
pub(crate) struct WarningLog {
    pub(crate) kept: Vec<ReadWarning>,
    /// How many warnings were dropped. We limit the number of warnings that a backend keeps,
    /// because there may be one for each page, so a badly damaged file could otherwise use up all
    /// memory.
    pub(crate) lost: u64,
}

impl WarningLog {
    /// Moves the warnings that a backend has collected into this log.
    pub(crate) fn take_from(&mut self, backend: &mut Backend) {
        let (mut kept, lost) = backend.take_warnings();
        self.kept.append(&mut kept);
        self.lost += lost;
    }
}
