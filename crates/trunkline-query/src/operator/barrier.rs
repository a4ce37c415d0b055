//! A node that hides from the planner what it knows of its input.
//!
//! ```text
//!   … (SELECT max(a) AS m FROM t) x FULL JOIN u ON m = b ORDER BY m      barrier above the aggregate
//! ```
//!
//! An aggregate without groups has one row whatever its input is. A condition must not be evaluated
//! below it, also if it has no columns. And the planner takes its columns for constants, even where an
//! outer join has added nulls, so it would leave out sort keys.

use arrow_array::RecordBatch;
use arrow_schema::{Field, SortOptions};
use datafusion::common::Result;

use super::definition::{Operator, Process, Streams};

/// Passes rows on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Barrier;

impl Operator for Barrier {
    fn name(&self) -> &'static str {
        "Barrier"
    }

    fn needs(&self) -> Vec<String> {
        Vec::new()
    }

    fn added(&self) -> Vec<Field> {
        Vec::new()
    }

    fn order(&self) -> Option<Vec<(String, SortOptions)>> {
        None
    }

    fn passes_filters(&self) -> bool {
        false
    }

    fn start(&self, _: Streams) -> Result<Box<dyn Process>> {
        Ok(Box::new(PassOn(None)))
    }
}

/// The process of a [`Barrier`].
struct PassOn(Option<RecordBatch>);

impl Process for PassOn {
    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        self.0 = Some(batch);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        Ok(self.0.take())
    }
}
