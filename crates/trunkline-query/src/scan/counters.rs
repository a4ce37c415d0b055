//! What a scan has counted, for `EXPLAIN (ANALYZE)`.

use std::sync::Arc;
use std::time::Duration;

use trunkline_aio::facade::Mutex;
use trunkline_engine::pool::Tally;
use trunkline_engine::read_stream::StreamStats;

/// The counts of one partition of a scan.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScanCounts {
    /// Rows that a filter of the statement has removed.
    pub(crate) removed: u64,
    /// Rows that a filter has removed for which the index was searched.
    pub(crate) removed_by_recheck: u64,
    /// Rows that a filter of a join or a sort has removed.
    pub(crate) removed_late: u64,
    /// Streams of the table.
    pub(crate) streams: StreamStats,
    /// Hits, reads and times, those of TOAST included.
    pub(crate) buffers: Tally,
    /// Entries for which an index-only scan has looked at the table.
    pub(crate) heap_fetches: u64,
    /// Pages of a bitmap whose rows were known.
    pub(crate) exact: u64,
    /// Pages of a bitmap whose rows were not known.
    pub(crate) lossy: u64,
    /// The searches of indexes, in the order of the path. Pages of an index scan are in `buffers`.
    pub(crate) indexes: Vec<IndexCounts>,
}

/// The counts of a search of an index.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IndexCounts {
    /// How often it was executed.
    pub(crate) loops: u64,
    /// Entries that were added to a bitmap; rows that were found for the keys of a join.
    pub(crate) entries: u64,
    /// How long a bitmap was made, or rows were read for the keys of a join.
    pub(crate) time: Duration,
    /// Streams of the index.
    pub(crate) streams: StreamStats,
    /// Hits, reads and times of a bitmap's index pages.
    pub(crate) buffers: Tally,
}

impl ScanCounts {
    /// Adds the counts of another partition.
    pub(crate) fn add(&mut self, other: &Self) {
        self.removed += other.removed;
        self.removed_by_recheck += other.removed_by_recheck;
        self.removed_late += other.removed_late;
        self.streams.add(&other.streams);
        self.buffers.add(&other.buffers);
        self.heap_fetches += other.heap_fetches;
        self.exact += other.exact;
        self.lossy += other.lossy;
        if self.indexes.len() < other.indexes.len() {
            self.indexes.resize(other.indexes.len(), IndexCounts::default());
        }
        for (known, other) in self.indexes.iter_mut().zip(&other.indexes) {
            known.loops += other.loops;
            known.entries += other.entries;
            known.time += other.time;
            known.streams.add(&other.streams);
            known.buffers.add(&other.buffers);
        }
    }
}

/// The counts of a scan, by partition. All executions of a scan share them. Clones are the same
/// counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScanCounters(Arc<Mutex<Counters>>);

#[derive(Debug, Default)]
struct Counters {
    partitions: Vec<ScanCounts>,
    /// Streams that have not added their counts yet.
    open: usize,
}

impl ScanCounters {
    /// Adds counts of a partition.
    pub(super) fn add(&self, partition: usize, counts: &ScanCounts) {
        let mut counters = self.0.lock();
        if counters.partitions.len() <= partition {
            counters.partitions.resize(partition + 1, ScanCounts::default());
        }
        if let Some(known) = counters.partitions.get_mut(partition) {
            known.add(counts);
        }
    }

    /// A stream was opened, which will add its counts.
    pub(super) fn opened(&self) {
        self.0.lock().open += 1;
    }

    /// A stream has added its counts.
    pub(super) fn closed(&self) {
        self.0.lock().open -= 1;
    }

    /// Whether all streams have added their counts.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.lock().open == 0
    }

    /// The counts so far, by partition.
    pub(crate) fn partitions(&self) -> Vec<ScanCounts> {
        self.0.lock().partitions.clone()
    }
}

/// Pages that functions have read. Clones are the same counter.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageCounter(Arc<Mutex<Tally>>);

impl PageCounter {
    /// Adds hits, reads and times.
    pub(crate) fn add(&self, pages: &Tally) {
        self.0.lock().add(pages);
    }

    /// All that was added.
    pub(crate) fn total(&self) -> Tally {
        *self.0.lock()
    }
}
