//! The shared buffer pool: pages that everybody may use, read through I/O handles.
//!
//! ```text
//!   Backend (one per session)        ReadStream (look-ahead)         Pool (all share)
//!     read one page, lock it           many reads in flight            what is in it, eviction
//!          └──────────────┬──────────────────┘
//!                    read: start ──▶ table, clock, ring ──▶ frames ──▶ handle
//!                    complete: judge each page ──▶ word: VALID or IO_ERROR ──▶ wake who waits
//! ```
//!
//! # One page's way
//!
//! A session books a pin (`pins`: never refused for good, perhaps granted later). The mapping table
//! (`table`) says whether the page has a buffer. If it does and is valid, a compare-exchange on the
//! buffer's word (`state`) pins it: that is a hit. If somebody reads it, the session waits by
//! reference, for that I/O and nothing else. If nobody does, buffers that nobody needs are taken
//! (`clock`, or the `ring` of bulk work), then a handle, then the pages are claimed one by one under
//! their new names, and one I/O reads them all (`read`). Whoever completes it judges the pages
//! (`complete`) by the issuer's policy.
//!
//! # Rules
//!
//! - A page is valid, or under a read, never both; its bytes are reached by `frame` alone.
//! - An I/O under way has its own pin on each of its pages: an issuer may vanish at any time.
//! - Blocking resources (bookings, buffers, handles) are had before a page is claimed; nothing
//!   between the claim and the issue can block or fail but for a file that cannot be read so.
//! - Every end of a pin and of a lock is made known in one place (`Shared::unpin`, `unlock`).
//! - A session-local pool for temporary relations is a second pool that one session uses; workers
//!   and rings fill it like the first.

#[cfg(not(loom))]
mod backend;
#[cfg(not(loom))]
mod bulk_write;
mod clean_map;
mod clock;
#[cfg(not(loom))]
mod complete;
mod content_lock;
#[cfg(not(loom))]
mod descriptor;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod extend;
#[cfg(not(loom))]
mod frame;
mod io_claim;
#[cfg(not(loom))]
mod maintenance;
#[cfg(not(loom))]
mod pin;
#[cfg(not(loom))]
mod pins;
#[cfg(not(loom))]
pub(crate) mod read;
#[cfg(not(loom))]
mod residency;
#[cfg(not(loom))]
mod ring;
#[cfg(not(loom))]
mod sessions;
#[cfg(not(loom))]
mod shared;
mod state;
#[cfg(not(loom))]
mod stats;
#[cfg(not(loom))]
mod table;
#[cfg(not(loom))]
mod tag;
#[cfg(not(loom))]
pub(crate) mod write;
#[cfg(not(loom))]
mod write_back;
#[cfg(not(loom))]
pub(crate) mod write_behind;
#[cfg(not(loom))]
pub(crate) mod write_counts;
#[cfg(not(loom))]
mod written;

#[cfg(not(loom))]
pub use self::api::*;
#[cfg(not(loom))]
pub(crate) use self::{
    ring::Ring, shared::Shared, state::USAGE_MAX, state::flag, stats::Cell, tag::Tag,
};

#[cfg(not(loom))]
mod api {
    pub use super::backend::Backend;
    pub use super::bulk_write::BulkWrite;
    pub use super::complete::Policy;
    pub use super::error::{ReadError, ReadWarning};
    pub use super::extend::ExtendMethod;
    pub use super::frame::{Page, PageMut};
    pub use super::maintenance::{BufferRow, Evicted};
    pub use super::pin::{Pin, PinRef};
    pub use super::pins::PINS_GUARANTEED;
    pub use super::residency::RelationResidency;
    pub use super::ring::Strategy;
    pub use super::stats::{BackendType, IoKey, IoObject, Tally};
    pub use super::write::WriteError;
    use super::*;

    use crate::log::{Log, Unlogged};
    use std::fmt;
    use trunkline_aio::sync::Arc;
    use trunkline_aio::{Aio, TooManySessions};

    /// Buffers of the smallest pool (PostgreSQL's lower bound of `shared_buffers`).
    pub const BUFFERS_MIN: u32 = 16;

    /// A pool cannot be made.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum PoolError {
        /// Fewer buffers than [`BUFFERS_MIN`].
        TooSmall {
            /// Buffers asked for.
            buffers: u32,
        },
        /// The instance's page region has no run of so many free frames.
        NoMemory {
            /// Buffers asked for.
            buffers: u32,
        },
    }

    impl fmt::Display for PoolError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::TooSmall { buffers } => {
                    write!(f, "a pool of {buffers} buffers: {BUFFERS_MIN} are the fewest")
                }
                Self::NoMemory { buffers } => {
                    write!(f, "no memory for {buffers} buffers in the page region")
                }
            }
        }
    }

    impl std::error::Error for PoolError {}

    /// See the module. Clones are the same pool.
    #[derive(Debug, Clone)]
    pub struct Pool {
        pub(crate) shared: Arc<Shared>,
        aio: Aio,
    }

    impl Pool {
        /// A pool of `buffers` pages (`shared_buffers`) in the instance's page region.
        ///
        /// # Errors
        /// See [`PoolError`].
        pub fn new(aio: &Aio, buffers: u32) -> Result<Self, PoolError> {
            // One session may look ahead over most of an idle pool: the limiter leaves the others
            // half of what is free at any time.
            Self::make(aio, buffers, buffers / 4 * 3, false, Arc::new(Unlogged))
        }

        /// The same with a log that says what must be durable before a page is written.
        ///
        /// # Errors
        /// See [`PoolError`].
        pub fn with_log(aio: &Aio, buffers: u32, log: Arc<dyn Log>) -> Result<Self, PoolError> {
            Self::make(aio, buffers, buffers / 4 * 3, false, log)
        }

        /// A pool of `buffers` pages (`temp_buffers`) for the temporary relations of one session:
        /// looking ahead uses a quarter of it at most, as in PostgreSQL.
        ///
        /// # Errors
        /// See [`PoolError`].
        pub fn local(aio: &Aio, buffers: u32) -> Result<Self, PoolError> {
            Self::make(aio, buffers, buffers / 4, true, Arc::new(Unlogged))
        }

        fn make(
            aio: &Aio,
            buffers: u32,
            ahead: u32,
            local: bool,
            log: Arc<dyn Log>,
        ) -> Result<Self, PoolError> {
            if buffers < BUFFERS_MIN {
                return Err(PoolError::TooSmall { buffers });
            }
            let lease = aio.region().lease(buffers).ok_or(PoolError::NoMemory { buffers })?;
            let shared = Shared::new(lease, ahead, local, aio.notifier(), log);
            Ok(Self { shared: Arc::new(shared), aio: aio.clone() })
        }

        /// A backend with a new session.
        ///
        /// # Errors
        /// The instance has no session left.
        pub fn backend(&self, kind: BackendType) -> Result<Backend, TooManySessions> {
            Ok(Backend::new(&self.shared, self.aio.session()?, kind))
        }

        /// The I/O instance.
        pub fn aio(&self) -> &Aio {
            &self.aio
        }

        /// Buffers.
        pub fn buffers(&self) -> u32 {
            self.shared.count()
        }

        /// Complete rounds of the clock, and the buffer that it looks at next.
        pub fn clock_position(&self) -> (u64, u32) {
            self.shared.clock.position()
        }

        /// Everything counted since the start, by kind of work. Backends and streams show their
        /// counts now and then, and when they end.
        pub fn counts(&self) -> Vec<(IoKey, Tally)> {
            self.shared.stats.rows()
        }

        /// The sum of all counts.
        pub fn total(&self) -> Tally {
            let mut total = Tally::default();
            self.counts().iter().for_each(|(_, tally)| total.add(tally));
            total
        }

        /// Permits for pins that sessions hold now; see `pins`.
        pub fn permits(&self) -> u32 {
            self.shared.limiter.taken()
        }
    }
}
