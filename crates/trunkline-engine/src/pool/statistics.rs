//! I/O statistics: what `pg_stat_io` shows, by backend type, object, context and relation.
//!
//! Each session counts in its own [`Tally`], and adds it to a shared cell from time to time, so
//! counting a hit doesn't touch a shared cache line. A read is counted when it is issued, and is
//! attributed to the session that issued it.
//!
//! Wait time and device time are tracked separately. PostgreSQL 18 tracks only how long sessions
//! waited (`track_io_timing`). With asynchronous reads, that says little about the device, because
//! a read stream that looks ahead far enough never waits, no matter how slow the device is.

use super::replacement::ring_buffer::Strategy;
use crate::storage::{Relation, RelationLocator};
use std::collections::BTreeMap;
use std::time::Duration;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_aio::facade::{Arc, Mutex};

/// Kind of session (`pg_stat_io.backend_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BackendType {
    /// A session that serves a client.
    Client,
    /// A worker of a parallel scan.
    BackgroundWorker,
    /// A command of this program that runs without a server.
    Standalone,
    /// The thread that runs checkpoints.
    Checkpointer,
    /// The thread that keeps clean buffers available.
    BackgroundWriter,
}

impl BackendType {
    /// PostgreSQL's name.
    pub fn name(self) -> &'static str {
        match self {
            BackendType::Client => "client backend",
            BackendType::BackgroundWorker => "background worker",
            BackendType::Standalone => "standalone backend",
            BackendType::Checkpointer => "checkpointer",
            BackendType::BackgroundWriter => "background writer",
        }
    }
}

/// Kind of the files (`pg_stat_io.object`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IoObject {
    /// Permanent and unlogged relations, in the shared pool.
    Relation,
    /// Temporary relations, in a session's own pool.
    TempRelation,
    /// The commit log and multixacts, in the shared pool. PostgreSQL has them in `pg_stat_slru` instead.
    Slru,
}

impl IoObject {
    /// PostgreSQL's name.
    pub fn name(self) -> &'static str {
        match self {
            IoObject::Relation => "relation",
            IoObject::TempRelation => "temp relation",
            IoObject::Slru => "slru",
        }
    }
}

/// The row of `pg_stat_io` that a count belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoKey {
    /// Kind of session.
    pub backend: BackendType,
    /// Kind of the files.
    pub object: IoObject,
    /// Access strategy.
    pub context: Strategy,
    /// Number of the cluster ([`crate::storage::Storage::number`]).
    pub cluster: u16,
    /// The relation or SLRU.
    pub relation: RelationLocator,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counts of one row of the statistics, or of some part of it. Times are in
        /// nanoseconds.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Tally {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// Shared counts of one row.
        #[derive(Debug, Default)]
        struct Cell {
            $($name: AtomicU64,)*
        }

        impl Tally {
            /// Adds the counts of `other`.
            pub fn add(&mut self, other: &Tally) {
                $(self.$name += other.$name;)*
            }

            /// What was counted since `before`, an earlier copy of the same counts. If they have been
            /// reset in between, some of it is missing.
            pub fn since(&self, before: &Tally) -> Tally {
                Tally { $($name: self.$name.saturating_sub(before.$name),)* }
            }
        }

        impl Cell {
            /// Moves the counts of `tally` into the cell.
            fn absorb(&self, tally: &mut Tally) {
                $(if tally.$name > 0 {
                    self.$name.fetch_add(tally.$name, Ordering::Relaxed);
                })*
                *tally = Tally::default();
            }

            fn reset(&self) {
                $(self.$name.store(0, Ordering::Relaxed);)*
            }

            fn tally(&self) -> Tally {
                Tally { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Pages found in the pool, or being read in by another session.
    hits,
    /// Hits on pages that another session was reading in.
    joins,
    /// Reads issued.
    reads,
    /// Blocks of these reads.
    read_blocks,
    /// Writes that succeeded.
    writes,
    /// Blocks written.
    written_blocks,
    /// Ranges whose writeback was started (`sync_file_range`).
    writebacks,
    /// Extensions of relations.
    extends,
    /// Blocks that relations were extended by.
    extended_blocks,
    /// Valid pages evicted to make room for others.
    evictions,
    /// Buffers of a ring reused for the ring's next page.
    reuses,
    /// Number of times that a session waited for a page, or executed the page's read itself.
    waits,
    /// Total time of these waits.
    wait_nanos,
    /// Time that the device took for reads.
    device_nanos,
    /// Blocks with a wrong checksum.
    checksum_failures,
}

impl Tally {
    /// Counts a wait for a page.
    pub(crate) fn add_wait(&mut self, time: Duration) {
        self.waits += 1;
        self.wait_nanos += u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    }

    /// Counts the time that the device took for a read.
    pub(crate) fn add_device_time(&mut self, time: Duration) {
        self.device_nanos += u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    }

    /// Bytes of the reads.
    pub fn read_bytes(&self) -> u64 {
        self.read_blocks * trunkline_format::BLOCK_SIZE as u64
    }

    /// Time that sessions waited for pages.
    pub fn wait_time(&self) -> Duration {
        Duration::from_nanos(self.wait_nanos)
    }

    /// Time that the device took, summed over reads.
    pub fn device_time(&self) -> Duration {
        Duration::from_nanos(self.device_nanos)
    }
}

/// The statistics of one pool.
#[derive(Debug)]
pub(crate) struct Statistics {
    object: IoObject,
    cells: Mutex<BTreeMap<IoKey, Arc<Cell>>>,
    /// When the counts were last reset, in microseconds since 2000.
    reset_at: Mutex<Option<i64>>,
}

impl Statistics {
    /// No counts yet.
    pub(crate) fn new(object: IoObject) -> Self {
        Self { object, cells: Mutex::default(), reset_at: Mutex::default() }
    }

    /// The key of a session's work on a relation.
    pub(crate) fn key(
        &self,
        backend: BackendType,
        context: Strategy,
        relation: &Relation,
    ) -> IoKey {
        self.key_of(backend, context, relation.storage().number(), relation.locator())
    }

    /// Like `Statistics::key`, but for a caller that doesn't have the relation's storage.
    pub(crate) fn key_of(
        &self,
        backend: BackendType,
        context: Strategy,
        cluster: u16,
        relation: RelationLocator,
    ) -> IoKey {
        let object = relation.slru().map_or(self.object, |_| IoObject::Slru);
        IoKey { backend, object, context, cluster, relation }
    }

    fn cell(&self, key: IoKey) -> Arc<Cell> {
        Arc::clone(self.cells.lock().entry(key).or_default())
    }

    /// Sets all counts to zero. Sessions keep their cells, so the cells remain.
    pub(crate) fn reset(&self, time: i64) {
        self.cells.lock().values().for_each(|cell| cell.reset());
        *self.reset_at.lock() = Some(time);
    }

    /// When the counts were last reset.
    pub(crate) fn reset_at(&self) -> Option<i64> {
        *self.reset_at.lock()
    }

    /// All rows, in the order of their keys.
    pub(crate) fn rows(&self) -> Vec<(IoKey, Tally)> {
        self.cells.lock().iter().map(|(key, cell)| (*key, cell.tally())).collect()
    }
}

/// Number of hits that a session counts before it publishes them.
const UNPUBLISHED_HITS_MAX: u64 = 256;

/// The counts of one session, stream or writer, and the shared cell to which they are published. A
/// writer switches between many relations, so it remembers the cell of the last relation and looks
/// up another one only when the relation changes.
#[derive(Debug)]
pub(crate) struct IoCounter {
    statistics: Arc<Statistics>,
    tally: Tally,
    /// Everything that was published so far, under any key.
    published: Tally,
    cell: Option<(IoKey, Arc<Cell>)>,
}

impl IoCounter {
    /// Creates a counter without a key. The caller must call [`IoCounter::count_as`] before
    /// anything is published.
    pub(crate) fn new(statistics: &Arc<Statistics>) -> Self {
        Self {
            statistics: Arc::clone(statistics),
            tally: Tally::default(),
            published: Tally::default(),
            cell: None,
        }
    }

    /// The shared statistics that this counter publishes to.
    pub(crate) fn statistics(&self) -> &Arc<Statistics> {
        &self.statistics
    }

    /// Switches to another key, under which everything is counted from now on. Returns true if the
    /// key has changed.
    pub(crate) fn count_as(&mut self, key: IoKey) -> bool {
        let changed = self.cell.as_ref().is_none_or(|(present, _)| *present != key);
        if changed {
            self.publish();
            self.cell = Some((key, self.statistics.cell(key)));
        }
        changed
    }

    /// The counts that haven't been published yet.
    pub(crate) fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// Everything counted since the counter was created, published or not.
    pub(crate) fn total(&self) -> Tally {
        let mut total = self.published;
        total.add(&self.tally);
        total
    }

    /// Publishes the counts if they include reads or many hits.
    pub(crate) fn publish_if_due(&mut self) {
        if self.tally.reads > 0 || self.tally.hits >= UNPUBLISHED_HITS_MAX {
            self.publish();
        }
    }

    /// Adds the counts to the shared statistics.
    pub(crate) fn publish(&mut self) {
        if let Some((_, cell)) = &self.cell {
            self.published.add(&self.tally);
            cell.absorb(&mut self.tally);
        }
    }
}

impl Drop for IoCounter {
    fn drop(&mut self) {
        self.publish();
    }
}
