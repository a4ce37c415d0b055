//! The logical node: its input's rows, which are shared by all nodes of one number.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::{DFSchemaRef, Result, internal_datafusion_err};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use tokio::sync::OnceCell;

/// The rows of a query, and the memory that they take. The cell is empty until a node is executed.
pub(super) type SharedRows = Arc<OnceCell<(Vec<RecordBatch>, MemoryReservation)>>;

/// A query that is evaluated once.
#[derive(Debug, Clone)]
pub(crate) struct MaterializedNode {
    /// The number of the query in the statement.
    number: u32,
    input: LogicalPlan,
    rows: SharedRows,
}

impl MaterializedNode {
    pub(crate) fn new(number: u32, input: LogicalPlan) -> Self {
        Self { number, input, rows: SharedRows::default() }
    }

    pub(super) fn rows(&self) -> &SharedRows {
        &self.rows
    }
}

impl PartialEq for MaterializedNode {
    fn eq(&self, other: &Self) -> bool {
        (self.number, &self.input) == (other.number, &other.input)
    }
}

impl Eq for MaterializedNode {}

impl PartialOrd for MaterializedNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl Hash for MaterializedNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.number, &self.input).hash(state);
    }
}

impl UserDefinedLogicalNodeCore for MaterializedNode {
    fn name(&self) -> &'static str {
        "Materialized"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Materialized: number={}", self.number)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let input = inputs.pop();
        let input = input.ok_or_else(|| internal_datafusion_err!("a node has one input"))?;
        Ok(Self { input, ..self.clone() })
    }
}
