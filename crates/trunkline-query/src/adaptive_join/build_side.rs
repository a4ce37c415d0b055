//! The build side of a join, collected until it ends or reaches the limit.

use std::pin::pin;
use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::Result;
use datafusion::common::utils::memory::{RecordBatchMemoryCounter, estimate_memory_size};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::future::{Either, select, try_join_all};
use futures::{StreamExt, stream};
use tokio::sync::watch;
use trunkline_aio::facade::atomic::{AtomicUsize, Ordering};

/// All partitions of the build side.
pub(super) struct BuildSide {
    /// Their rows: those that were collected, and then the rest.
    pub(super) partitions: Vec<SendableRecordBatchStream>,
    /// Whether all rows were collected.
    pub(super) is_complete: bool,
}

/// Totals over all partitions.
#[derive(Debug, Default)]
struct Collected {
    bytes: AtomicUsize,
    rows: AtomicUsize,
}

impl Collected {
    /// Adds rows. Returns what a hash table of all rows so far would use, in bytes.
    fn add(&self, bytes: usize, rows: usize) -> Result<usize> {
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let rows = self.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        // A bucket has a hash and the number of a row; each row has the number of the next one in its
        // bucket.
        let table = estimate_memory_size::<(u64, u32)>(rows, 0)?;
        Ok(bytes.saturating_add(table).saturating_add(rows.saturating_mul(size_of::<u32>())))
    }
}

impl BuildSide {
    /// Collects the rows of `input` until a hash table of them would use more than `limit` bytes.
    /// Partitions are collected at the same time, because the node below may need a consumer for each
    /// of them to go on.
    ///
    /// # Errors
    /// Those of the input.
    pub(super) async fn collect(
        input: &Arc<dyn ExecutionPlan>,
        limit: usize,
        context: &Arc<TaskContext>,
    ) -> Result<Self> {
        let collected = Collected::default();
        let (full, is_full) = watch::channel(false);
        let mut partitions = Vec::new();
        for partition in 0..input.output_partitioning().partition_count() {
            let consumer = MemoryConsumer::new("BuildSide");
            partitions.push(Partition {
                rows: input.execute(partition, Arc::clone(context))?,
                batches: Vec::new(),
                reservation: consumer.register(context.memory_pool()),
                counter: RecordBatchMemoryCounter::new(),
                ended: false,
            });
        }
        let collecting = partitions
            .into_iter()
            .map(|partition| partition.collect(limit, &collected, &full, is_full.clone()));
        let done = try_join_all(collecting).await?;
        let is_complete = done.iter().all(|partition| partition.ended);
        let partitions = done.into_iter().map(Partition::all_rows).collect();
        Ok(Self { partitions, is_complete })
    }
}

/// A partition of the input.
struct Partition {
    rows: SendableRecordBatchStream,
    /// With the memory that was reserved for each of them, in bytes.
    batches: Vec<(RecordBatch, usize)>,
    reservation: MemoryReservation,
    counter: RecordBatchMemoryCounter,
    /// Whether there are no more rows.
    ended: bool,
}

impl Partition {
    /// Collects rows until there are no more, or until all partitions together have reached the limit.
    async fn collect(
        mut self,
        limit: usize,
        collected: &Collected,
        full: &watch::Sender<bool>,
        mut is_full: watch::Receiver<bool>,
    ) -> Result<Self> {
        loop {
            let stopped = pin!(is_full.wait_for(|is_full| *is_full));
            let batch = match select(stopped, self.rows.next()).await {
                Either::Left(_) => return Ok(self),
                Either::Right((None, _)) => {
                    self.ended = true;
                    return Ok(self);
                }
                Either::Right((Some(batch), _)) => batch?,
            };
            let bytes = self.counter.count_batch(&batch);
            let rows = batch.num_rows();
            // The limit is checked below; this only shows what is used.
            self.reservation.grow(bytes);
            self.batches.push((batch, bytes));
            if collected.add(bytes, rows)? > limit {
                full.send_replace(true);
            }
        }
    }

    /// The rows that were collected, and then the rest.
    fn all_rows(self) -> SendableRecordBatchStream {
        let schema = self.rows.schema();
        let (rest, reservation) = (self.rows, self.reservation);
        let collected = stream::iter(self.batches).map(move |(batch, bytes)| {
            // The next node accounts for what it keeps.
            reservation.shrink(bytes);
            Ok(batch)
        });
        let rest = if self.ended { stream::empty().left_stream() } else { rest.right_stream() };
        Box::pin(RecordBatchStreamAdapter::new(schema, collected.chain(rest)))
    }
}
