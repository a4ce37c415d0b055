//! Which method is in force, the live switch, and the fallback from one to the next.
//!
//! io_uring, io_uring without registration, worker, sync: each step down is recorded with its
//! reason. An I/O remembers the method it was submitted to, so a switch concerns only what is
//! submitted afterwards; threads of a method that was left stay, idle, until the instance ends.

use crate::core::Core;
use crate::fallback::{Fallback, Feature};
use crate::method::uring::{Uring, UringFeatures, UringSettings};
use crate::method::worker::{Pool, WorkerSettings};
use crate::method::{Batch, Method, MethodKind, SyncMethod};
use crate::sync::atomic::{AtomicU8, Ordering};
use crate::sync::{Arc, Mutex};
use std::fmt;

/// Which method was asked for, which one serves, and why they differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodStatus {
    /// The method asked for last.
    pub requested: MethodKind,
    /// The method that I/O is submitted to now.
    pub used: MethodKind,
    /// Steps down, oldest first.
    pub fallbacks: Vec<Fallback>,
    /// What the rings have, if there are any.
    pub uring: Option<UringFeatures>,
}

pub(crate) struct Methods {
    current: AtomicU8,
    requested: AtomicU8,
    pool: Pool,
    uring: Mutex<Option<Arc<Uring>>>,
    /// Broken rings; their drivers may still wait for what the kernel has accepted.
    retired: Mutex<Vec<Arc<Uring>>>,
    /// Held while switching, so that two switches come one after the other.
    switching: Mutex<()>,
    uring_settings: UringSettings,
    custom: Option<Arc<dyn Method>>,
    fallbacks: Mutex<Vec<Fallback>>,
}

impl fmt::Debug for Methods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Methods({})", self.current())
    }
}

impl Methods {
    pub(crate) fn new(
        workers: WorkerSettings,
        handles: usize,
        queue: usize,
        uring_settings: UringSettings,
        custom: Option<Arc<dyn Method>>,
    ) -> Self {
        Self {
            current: AtomicU8::new(MethodKind::Sync as u8),
            requested: AtomicU8::new(MethodKind::Sync as u8),
            pool: Pool::new(workers, handles, queue),
            uring: Mutex::new(None),
            retired: Mutex::default(),
            switching: Mutex::new(()),
            uring_settings,
            custom,
            fallbacks: Mutex::default(),
        }
    }

    pub(crate) fn current(&self) -> MethodKind {
        MethodKind::from_number(self.current.load(Ordering::SeqCst))
    }

    /// The method that serves: from the moment a ring breaks the workers, also before the switch.
    fn used(&self) -> MethodKind {
        match self.current() {
            MethodKind::IoUring if self.is_uring_broken() => MethodKind::Worker,
            current => current,
        }
    }

    fn is_uring_broken(&self) -> bool {
        self.uring.lock().as_ref().is_some_and(|uring| uring.is_broken())
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) fn status(&self) -> MethodStatus {
        MethodStatus {
            requested: MethodKind::from_number(self.requested.load(Ordering::SeqCst)),
            used: self.used(),
            fallbacks: self.fallbacks.lock().clone(),
            uring: self.uring.lock().as_ref().map(|uring| uring.features),
        }
    }

    pub(crate) fn submit(&self, core: &Arc<Core>, kind: MethodKind, batch: &mut Batch<'_>) {
        match kind {
            MethodKind::Sync => SyncMethod.submit(core, batch),
            MethodKind::Worker => self.pool.submit(batch),
            MethodKind::Custom => {
                if let Some(custom) = &self.custom {
                    custom.submit(core, batch);
                }
            }
            MethodKind::IoUring => {
                let uring = self.uring.lock().clone();
                if let Some(uring) = uring {
                    uring.submit(batch);
                }
                // A ring that has just broken takes nothing; the pool is always there beside it.
                if batch.remaining() > 0 {
                    self.pool.submit(batch);
                }
            }
        }
    }

    /// Puts `wanted` in force, or the next best method that can be had.
    pub(crate) fn switch(&self, core: &Arc<Core>, wanted: MethodKind) {
        let _switching = self.switching.lock();
        self.requested.store(wanted as u8, Ordering::SeqCst);
        let used = match wanted {
            MethodKind::Sync => MethodKind::Sync,
            MethodKind::Worker => self.worker_or_sync(core, MethodKind::Worker),
            MethodKind::Custom if self.custom.is_none() => {
                self.note(Fallback::recognise(Feature::Custom, libc::ENOSYS));
                self.worker_or_sync(core, MethodKind::Worker)
            }
            MethodKind::Custom => self.worker_or_sync(core, MethodKind::Custom),
            MethodKind::IoUring => match self.start_uring(core) {
                Ok(()) => self.worker_or_sync(core, MethodKind::IoUring),
                Err(errno) => {
                    self.note(Fallback::recognise(Feature::IoUring, errno));
                    self.worker_or_sync(core, MethodKind::Worker)
                }
            },
        };
        self.current.store(used as u8, Ordering::SeqCst);
        // A ring may have broken before it was in force.
        self.leave_broken_uring();
    }

    /// Every method but `sync` needs the pool: to execute, or to complete what was reaped.
    fn worker_or_sync(&self, core: &Arc<Core>, wanted: MethodKind) -> MethodKind {
        match self.pool.start(core) {
            Ok(()) => wanted,
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::EAGAIN);
                self.note(Fallback::recognise(Feature::Workers, errno));
                MethodKind::Sync
            }
        }
    }

    fn start_uring(&self, core: &Arc<Core>) -> Result<(), i32> {
        let serves = self.uring.lock().as_ref().is_some_and(|uring| !uring.is_broken());
        if serves {
            return Ok(());
        }
        let (started, notes) = Uring::start(core, self.uring_settings)?;
        let broken = self.uring.lock().replace(Arc::new(started));
        self.retired.lock().extend(broken);
        notes.into_iter().for_each(|note| self.note(note));
        Ok(())
    }

    /// A driver's ring has failed. Called before the driver refuses I/O, so that whoever is served
    /// by workers instead can read why.
    pub(crate) fn uring_breaks(&self, errno: i32) {
        self.note(Fallback::recognise(Feature::IoUring, errno));
    }

    /// Puts the workers in force if every driver refuses I/O.
    pub(crate) fn leave_broken_uring(&self) {
        if self.is_uring_broken() {
            let (uring, worker) = (MethodKind::IoUring as u8, MethodKind::Worker as u8);
            // Only if io_uring is in force; another switch may have come before us.
            let _ =
                self.current.compare_exchange(uring, worker, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    fn note(&self, fallback: Fallback) {
        let mut fallbacks = self.fallbacks.lock();
        if !fallbacks.contains(&fallback) {
            fallbacks.push(fallback);
        }
    }

    pub(crate) fn shut_down(&self) {
        let uring = self.uring.lock().take();
        let retired = std::mem::take(&mut *self.retired.lock());
        for uring in retired.iter().chain(&uring) {
            uring.shut_down();
        }
        if let Some(custom) = &self.custom {
            custom.shut_down();
        }
        self.pool.shut_down();
    }
}
