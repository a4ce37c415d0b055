//! The logical node of a subplan: an input, to which it adds columns.
//!
//! ```text
//!   Subplan: keys=[c1], guard=c2 > 0 → c9
//! ```

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_schema::{DataType, Field};
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result, internal_datafusion_err};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};

use super::value::SubplanKind;

/// The subquery of a subplan.
#[derive(Debug, Clone)]
pub(crate) struct Inner {
    /// The number of the subplan in the statement.
    pub(crate) number: u32,
    /// What becomes of the rows.
    pub(crate) kind: SubplanKind,
    /// The plan, in which outer columns are placeholders.
    pub(crate) plan: LogicalPlan,
    /// The placeholders of the node's keys, in order.
    pub(crate) placeholders: Vec<(String, DataType)>,
    /// The columns that the node adds.
    pub(crate) columns: Vec<Field>,
    /// The plan may give other rows for the same outer values.
    pub(crate) is_volatile: bool,
}

/// The placeholder of an outer column.
pub(crate) fn placeholder(id: &str, data_type: &DataType) -> Expr {
    let field = Arc::new(Field::new(id, data_type.clone(), true));
    Expr::Placeholder(Placeholder::new_with_field(id.to_owned(), Some(field)))
}

/// An input with the results of a subquery.
#[derive(Debug, Clone)]
pub(crate) struct SubplanNode {
    input: LogicalPlan,
    inner: Arc<Inner>,
    /// The outer columns.
    keys: Vec<Expr>,
    /// The subquery is executed only where this is true.
    guard: Option<Expr>,
    schema: DFSchemaRef,
}

impl SubplanNode {
    pub(crate) fn new(
        input: LogicalPlan,
        inner: Arc<Inner>,
        keys: Vec<Expr>,
        guard: Option<Expr>,
    ) -> Result<Self> {
        let added =
            DFSchema::from_unqualified_fields(inner.columns.clone().into(), Default::default())?;
        let schema = Arc::new(input.schema().join(&added)?);
        Ok(Self { input, inner, keys, guard, schema })
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.inner
    }

    pub(super) fn keys(&self) -> &[Expr] {
        &self.keys
    }

    pub(super) fn guard(&self) -> Option<&Expr> {
        self.guard.as_ref()
    }

    /// The same node with another inner plan of the same columns.
    pub(super) fn with_inner(&self, inner: Inner) -> Self {
        Self { inner: Arc::new(inner), ..self.clone() }
    }

    /// Whether none of these columns is one that the node adds. PostgreSQL keeps volatile ones.
    pub(super) fn is_unused(&self, columns: &[Column]) -> bool {
        let is_added =
            |column: &Column| self.inner.columns.iter().any(|field| *field.name() == column.name);
        !self.inner.is_volatile && !columns.iter().any(is_added)
    }

    /// Whether the result has the rows of the input.
    pub(super) fn is_row_preserving(&self) -> bool {
        !matches!(self.inner.kind, SubplanKind::Rows { .. })
    }
}

impl PartialEq for SubplanNode {
    fn eq(&self, other: &Self) -> bool {
        (self.inner.number, &self.keys, &self.guard, &self.input)
            == (other.inner.number, &other.keys, &other.guard, &other.input)
    }
}

impl Eq for SubplanNode {}

impl PartialOrd for SubplanNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl Hash for SubplanNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.inner.number, &self.keys, &self.guard, &self.input).hash(state);
    }
}

impl UserDefinedLogicalNodeCore for SubplanNode {
    fn name(&self) -> &'static str {
        "Subplan"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        self.keys.iter().chain(&self.guard).cloned().collect()
    }

    /// Filters on the input's columns may be evaluated before.
    #[expect(
        clippy::disallowed_types,
        reason = "the trait returns it, and nothing iterates over it"
    )]
    fn prevent_predicate_push_down_columns(&self) -> std::collections::HashSet<String> {
        self.inner.columns.iter().map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subplan: keys={:?}", self.keys)?;
        self.guard.iter().try_for_each(|guard| write!(f, ", guard={guard}"))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut inputs = inputs;
        let input = inputs.pop().ok_or_else(|| internal_datafusion_err!("a subplan's input"))?;
        let mut keys = exprs;
        let guard = if self.guard.is_some() { keys.pop() } else { None };
        Self::new(input, Arc::clone(&self.inner), keys, guard)
    }

    /// Of the input's columns, those that the node or its parents use.
    fn necessary_children_exprs(&self, output: &[usize]) -> Option<Vec<Vec<usize>>> {
        let schema = self.input.schema();
        let width = schema.fields().len();
        let expressions = self.keys.iter().chain(&self.guard);
        let read = expressions.flat_map(|expr| expr.column_refs());
        let read = read.map(|column| schema.maybe_index_of_column(column));
        // An expression of another column would be a bug, which all columns don't hide.
        let mut wanted: Vec<usize> = read.collect::<Option<_>>()?;
        wanted.extend(output.iter().copied().filter(|at| *at < width));
        wanted.sort_unstable();
        wanted.dedup();
        Some(vec![wanted])
    }

    /// PostgreSQL doesn't compute values of rows beyond a limit, which could fail.
    fn supports_limit_pushdown(&self) -> bool {
        self.is_row_preserving()
    }
}
