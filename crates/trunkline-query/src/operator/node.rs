//! An operator in a logical plan.
//!
//! The node has no expressions that the planner could see: an operator refers to columns by their
//! names, and computes what it needs itself. So no rule repeats, moves or merges calls of functions
//! in it.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::common::{DFSchema, DFSchemaRef, Result, exec_err};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

use super::definition::Operator;

/// A logical plan of an operator over its input.
#[derive(Debug)]
pub(crate) struct OperatorNode {
    /// Identifies the operator within the statement.
    number: u32,
    input: LogicalPlan,
    operator: Arc<dyn Operator>,
    schema: DFSchemaRef,
}

impl OperatorNode {
    /// The plan of an operator. `number` identifies it within the statement.
    pub(crate) fn plan(
        number: u32,
        input: LogicalPlan,
        operator: Arc<dyn Operator>,
    ) -> Result<LogicalPlan> {
        let node = Arc::new(Self::new(number, input, operator)?);
        Ok(LogicalPlan::Extension(Extension { node }))
    }

    fn new(number: u32, input: LogicalPlan, operator: Arc<dyn Operator>) -> Result<Self> {
        let known = input.schema().iter();
        let known = known.map(|(relation, field)| (relation.cloned(), Arc::clone(field)));
        let added = operator.added().into_iter().map(|field| (None, Arc::new(field)));
        let metadata = input.schema().metadata().clone();
        let schema = DFSchema::new_with_metadata(known.chain(added).collect(), metadata)?;
        Ok(Self { number, input, operator, schema: Arc::new(schema) })
    }

    pub(super) fn operator(&self) -> &Arc<dyn Operator> {
        &self.operator
    }
}

impl PartialEq for OperatorNode {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number && self.input == other.input
    }
}

impl Eq for OperatorNode {}

impl Hash for OperatorNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
        self.input.hash(state);
    }
}

impl PartialOrd for OperatorNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.number.cmp(&other.number) {
            Ordering::Equal => self.input.partial_cmp(&other.input),
            decided => Some(decided),
        }
    }
}

impl UserDefinedLogicalNodeCore for OperatorNode {
    fn name(&self) -> &str {
        self.operator.name()
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.operator)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        match (inputs.pop(), inputs.is_empty()) {
            (Some(input), true) => Self::new(self.number, input, Arc::clone(&self.operator)),
            _ => exec_err!("an operator has one input"),
        }
    }

    #[expect(clippy::disallowed_types, reason = "the trait wants a set with random seeds")]
    fn prevent_predicate_push_down_columns(&self) -> std::collections::HashSet<String> {
        let own = self.operator.added();
        let all = self.schema.fields().iter().map(|field| field.name().clone());
        match self.operator.passes_filters() {
            true => own.iter().map(|field| field.name().clone()).collect(),
            false => all.collect(),
        }
    }

    /// Columns that neither the operator nor its parents need are not computed.
    fn necessary_children_exprs(&self, output: &[usize]) -> Option<Vec<Vec<usize>>> {
        let width = self.input.schema().fields().len();
        let needs = self.operator.needs();
        let fields = self.input.schema().fields().iter().enumerate();
        let read = fields.filter(|(_, field)| needs.contains(field.name())).map(|(at, _)| at);
        let mut wanted: Vec<usize> = output.iter().copied().filter(|at| *at < width).collect();
        wanted.extend(read);
        wanted.sort_unstable();
        wanted.dedup();
        Some(vec![wanted])
    }
}
