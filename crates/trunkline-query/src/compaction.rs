//! The batches of sorts, without the memory of rows that aren't theirs.
//!
//! A sort takes the rows of a batch from many runs. Texts are views into the buffers of their run, so
//! each batch holds the buffers of all runs, and the next node counts them for each batch: a merge of
//! two tasks' sorts of 10 million texts asked for 111 MB, and a sort has 4. Copies of a batch's own
//! texts are a fraction of that.
//!
//! ```text
//!   SortPreservingMergeExec          SortPreservingMergeExec
//!     SortExec                  ──▶    CompactExec
//!                                        SortExec
//! ```

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, ByteViewType, StringViewType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use crate::pass_through::{PassThroughExec, Work};

/// Compacts the batches of all sorts of a plan.
#[derive(Debug)]
pub(crate) struct CompactSorts;

impl PhysicalOptimizerRule for CompactSorts {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| match plan.is::<SortExec>() {
            true => Ok(Transformed::yes(Compact::over(plan))),
            false => Ok(Transformed::no(plan)),
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "CompactSorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Copies the texts of a batch if their buffers are much larger than they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compact;

impl Compact {
    /// A node that compacts the batches of this one.
    pub(crate) fn over(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        PassThroughExec::over(input, Self)
    }
}

impl Work for Compact {
    const NAME: &'static str = "CompactExec";

    fn pass(&self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let schema = rows.schema();
        let compacted = rows.map(|batch| compacted(&batch?));
        Box::pin(RecordBatchStreamAdapter::new(schema, compacted))
    }
}

/// A batch with these rows.
fn compacted(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(|column| match column.data_type() {
        DataType::BinaryView => compacted_views::<BinaryViewType>(column),
        DataType::Utf8View => compacted_views::<StringViewType>(column),
        _ => Arc::clone(column),
    });
    let columns = columns.collect();
    Ok(match batch.num_columns() {
        0 => batch.clone(),
        _ => RecordBatch::try_new(batch.schema(), columns)?,
    })
}

/// An array with these values. It is the same if at least half of its buffers is in use.
fn compacted_views<T: ByteViewType>(column: &ArrayRef) -> ArrayRef {
    let views = column.as_byte_view::<T>();
    let held: usize = views.data_buffers().iter().map(|buffer| buffer.capacity()).sum();
    match held > views.total_buffer_bytes_used().saturating_mul(2) {
        true => Arc::new(views.gc()),
        false => Arc::clone(column),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::BinaryViewArray;

    use super::*;

    #[test]
    fn a_few_values_of_large_buffers_are_copied() {
        let long = [b'x'; 100];
        let all = BinaryViewArray::from_iter_values((0..1000).map(|_| &long[..]));
        let few: ArrayRef = Arc::new(all.slice(0, 10));
        let copied = compacted_views::<BinaryViewType>(&few);
        assert_eq!(&copied, &few);
        assert!(copied.get_buffer_memory_size() < 10_000, "{}", copied.get_buffer_memory_size());
        let all: ArrayRef = Arc::new(all);
        assert!(Arc::ptr_eq(&compacted_views::<BinaryViewType>(&all), &all));
    }
}
