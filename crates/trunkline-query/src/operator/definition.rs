//! What an operator is: a description that plans contain, and a process that handles its rows.

use std::any::Any;
use std::fmt;

use arrow_array::RecordBatch;
use arrow_schema::{Field, SchemaRef, SortOptions};
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;

use crate::scan::Cancellation;

/// What an operator does with the rows of its input. Every row of the result has the columns of an
/// input row, and then those that the operator adds.
pub(crate) trait Operator: Any + fmt::Debug + Send + Sync {
    /// The name of the node in plans.
    fn name(&self) -> &'static str;

    /// The columns of the input that it reads.
    fn needs(&self) -> Vec<String>;

    /// The columns that it adds.
    fn added(&self) -> Vec<Field>;

    /// In which order it needs the rows, all of them in one stream; `None` if it handles rows one by
    /// one. The order may be empty.
    fn order(&self) -> Option<Vec<(String, SortOptions)>>;

    /// Whether rows can be dropped before the operator if a condition on columns of the input drops
    /// all rows that it would make of them.
    fn passes_filters(&self) -> bool;

    /// Starts to process the rows of one stream.
    fn start(&self, streams: Streams) -> Result<Box<dyn Process>>;
}

/// What a process connects.
#[derive(Debug)]
pub(crate) struct Streams {
    /// The columns of the input.
    pub(crate) input: SchemaRef,
    /// The columns of the result.
    pub(crate) output: SchemaRef,
    /// The memory that the process holds. It must be accounted here.
    pub(crate) memory: MemoryReservation,
    /// What long computations between two batches must check.
    pub(crate) cancellation: Cancellation,
    /// The most rows of a batch.
    pub(crate) rows_max: usize,
}

/// Turns batches into other batches.
pub(crate) trait Process: Send {
    /// Takes the next rows of the input. This is called only when [`Process::next`] has nothing more
    /// to return.
    fn push(&mut self, batch: RecordBatch) -> Result<()>;

    /// The input has ended.
    fn finish(&mut self) -> Result<()>;

    /// The next rows of the result; `None` if more input is needed, or at the end.
    fn next(&mut self) -> Result<Option<RecordBatch>>;

    /// Whether no more input is wanted.
    fn is_done(&self) -> bool {
        false
    }
}
