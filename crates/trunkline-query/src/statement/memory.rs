//! How much memory the operations of a statement may have.
//!
//! As in PostgreSQL, `work_mem` is a limit of each operation of each task, and not of the statement. A
//! pool that the operations share would fail statements in which every operation spills as it should:
//! the merge of a sort can't spill, and finds that the other sorts have taken all there is.

use std::fmt;

use datafusion::common::{Result, resources_datafusion_err};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use trunkline_aio::facade::atomic::{AtomicUsize, Ordering};

/// The statement fails if an operation that can't spill needs more, so it may have more. The merge of
/// three tasks' sorts of 10 million rows needed 27 MB where one task had 8.
const WITHOUT_SPILLING: usize = 4;

/// What DataFusion calls the memory in which a task's sort merges what it has spilled.
const SORT_MERGE: &str = "ExternalSorterMerge";

/// Limits each reservation of memory.
#[derive(Debug)]
pub(super) struct OperationMemory {
    /// What an operation may have before it must spill, in bytes.
    spilling: usize,
    /// What the merge of a sort may have. It takes what it gets, and each task has one: a share for each
    /// of three tasks made 640 MB of a sort that needs 185 MB in one task.
    merging: usize,
    /// What another operation that can't spill may have, such as the hash table of a join that all tasks
    /// use.
    other: usize,
    reserved: AtomicUsize,
}

impl OperationMemory {
    /// Operations may have `limit` bytes, and those that can't spill [`WITHOUT_SPILLING`] times as much
    /// for each of the tasks, but for merges of sorts, of which each task has its own.
    pub(super) fn new(limit: usize, tasks: usize) -> Self {
        let merging = limit.saturating_mul(WITHOUT_SPILLING);
        let other = merging.saturating_mul(tasks);
        Self { spilling: limit, merging, other, reserved: AtomicUsize::new(0) }
    }
}

impl fmt::Display for OperationMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(limit: {} B)", self.name(), self.spilling)
    }
}

impl MemoryPool for OperationMemory {
    fn name(&self) -> &'static str {
        "operations"
    }

    fn grow(&self, _reservation: &MemoryReservation, additional: usize) {
        self.reserved.fetch_add(additional, Ordering::Relaxed);
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        self.reserved.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let consumer = reservation.consumer();
        // What has nothing yet has nothing to spill, so it must have at least one batch.
        let spills = consumer.can_spill() && reservation.size() > 0;
        let limit = match spills {
            true => self.spilling,
            false if consumer.name().starts_with(SORT_MERGE) => self.merging,
            false => self.other,
        };
        let wanted = reservation.size().saturating_add(additional);
        if wanted > limit {
            return Err(resources_datafusion_err!(
                "{} needs {} kB, and may have {} kB.",
                consumer.name(),
                wanted.div_ceil(1024),
                limit / 1024
            ));
        }
        self.grow(reservation, additional);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.reserved.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Unknown
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::execution::memory_pool::MemoryConsumer;

    use super::*;

    #[test]
    fn each_operation_has_its_own_memory() {
        let pool: Arc<dyn MemoryPool> = Arc::new(OperationMemory::new(100, 3));
        let sorts = [(); 3].map(|()| MemoryConsumer::new("Sort").with_can_spill(true));
        let sorts = sorts.map(|sort| sort.register(&pool));
        assert!(sorts.iter().all(|sort| sort.try_grow(100).is_ok()));
        assert!(sorts.iter().all(|sort| sort.try_grow(1).is_err()));
        let wide = MemoryConsumer::new("Sort").with_can_spill(true).register(&pool);
        assert!(wide.try_grow(200).is_ok(), "one batch");
        assert!(wide.try_grow(1).is_err(), "it spills what it has");
        drop(wide);
        let own = MemoryConsumer::new("ExternalSorterMerge[0]").register(&pool);
        assert!(own.try_grow(400).is_ok());
        assert!(own.try_grow(1).is_err(), "each task has such a merge");
        drop(own);
        let merge = MemoryConsumer::new("Merge").register(&pool);
        assert!(merge.try_grow(300).is_ok());
        let error = merge.try_grow(2000).expect_err("more than an operation may have");
        assert!(error.to_string().contains("Merge needs 3 kB, and may have 1 kB."), "{error}");
        assert_eq!(pool.reserved(), 600);
        drop((sorts, merge));
        assert_eq!(pool.reserved(), 0);
    }
}
