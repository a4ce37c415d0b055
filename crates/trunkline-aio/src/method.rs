//! The seam between handles and the ways to carry them out.
//!
//! A method gets I/Os that are already SUBMITTED and must see to it that each of them reaches
//! [`Core::execute`] or [`Core::reap`] exactly once, without further help from the issuer. The
//! smallest implementation, `sync`, takes nothing, and the issuer executes inline: it is the
//! specification that the others are tested against.
//!
//! All methods share one contract: EINTR and EAGAIN are retried here and not seen by the issuer;
//! a short transfer, an error and the end of a file are reported as they are, never retried.

mod lanes;
pub(crate) mod ring;
mod supervisor;
mod sync;
pub(crate) mod uring;
pub(crate) mod worker;

pub(crate) use sync::Sync as SyncMethod;

use crate::core::Core;
use crate::limits::RETRIES_MAX;
use crate::sync::Arc;
use crate::wait::WaitRef;
use std::fmt;

/// The ways to carry out I/O (`io_method`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MethodKind {
    /// The issuer's own thread, at once.
    Sync = 0,
    /// A pool of threads that sizes itself.
    Worker = 1,
    /// Linux io_uring, by ring drivers.
    IoUring = 2,
    /// A method that the embedder brought (see [`crate::Builder::custom_method`]).
    Custom = 3,
}

impl MethodKind {
    /// The value of `io_method`.
    pub fn name(self) -> &'static str {
        match self {
            MethodKind::Sync => "sync",
            MethodKind::Worker => "worker",
            MethodKind::IoUring => "io_uring",
            MethodKind::Custom => "custom",
        }
    }

    pub(crate) fn from_number(number: u8) -> Self {
        match number {
            1 => MethodKind::Worker,
            2 => MethodKind::IoUring,
            3 => MethodKind::Custom,
            _ => MethodKind::Sync,
        }
    }
}

impl fmt::Display for MethodKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A SUBMITTED I/O. Whoever holds it must bring it to completion; there is one per I/O.
///
/// It names its instance and its generation, so that a method that serves two instances cannot use
/// the token of one with the other.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a submitted I/O that is dropped never completes"]
pub struct Submitted {
    pub(crate) instance: usize,
    pub(crate) io: WaitRef,
}

impl Submitted {
    pub(crate) fn index(&self) -> u32 {
        self.io.index
    }
}

/// A batch on its way to a method: take from the front what there is room for.
#[derive(Debug)]
pub struct Batch<'a> {
    pub(crate) core: &'a Core,
    pub(crate) indexes: &'a [u32],
    pub(crate) taken: usize,
}

impl Batch<'_> {
    /// I/Os left.
    pub fn remaining(&self) -> usize {
        self.indexes.len() - self.taken
    }

    /// Takes the next one; what is left in the batch the issuer executes inline.
    pub fn take(&mut self) -> Option<Submitted> {
        let index = self.indexes.get(self.taken)?;
        self.taken += 1;
        Some(self.core.token(*index))
    }
}

/// A way to carry out I/O.
///
/// It gets I/Os that are submitted, and sees to it that each of them reaches [`Core::execute`] or
/// [`Core::reap`] exactly once, without further help from the issuer. All methods have one contract:
/// EINTR and EAGAIN are executed again and not seen by the issuer, up to
/// [`RETRIES_MAX`] times ([`Core::execute`] does so, [`Core::reap`] asks for it); a short transfer, an
/// error and the end of a file are reported as they are.
pub trait Method: Send + std::marker::Sync {
    /// Takes I/Os over from a session, as many as there is room for: what it leaves in the batch the
    /// session executes itself. Must not block on I/O.
    fn submit(&self, core: &Arc<Core>, batch: &mut Batch<'_>);

    /// Stops the method's threads and waits for them. Called once, when nothing is in flight.
    fn shut_down(&self) {}
}

/// Whether a raw result means "execute it again", the same for every method.
pub(crate) fn should_retry(raw: i32, attempts: u32) -> bool {
    (raw == -libc::EINTR || raw == -libc::EAGAIN) && attempts < RETRIES_MAX
}
