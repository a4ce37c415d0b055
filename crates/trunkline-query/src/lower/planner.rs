//! What lowering a statement needs, and steps that many relations share.

use std::sync::Arc;

use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlan, LogicalPlanBuilder};
use trunkline_aio::facade::hash::Map;
use trunkline_engine::catalog::Database;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{
    Column as BoundColumn, ColumnId, Columns, Expr, ExprKind, Relation, SqlType, Subqueries,
    with_stack,
};

use super::sorted_tables::SortedTables;
use crate::environment::Environment;
use crate::error::from_datafusion;
use crate::expression::{ExpressionPlanner, Frame, OuterColumns, Program, column_name};
use crate::operator::{Operator, OperatorNode};
use crate::scan::StatementReads;
use crate::server::ServerView;

/// Where the tables of a statement come from.
#[derive(Debug, Clone)]
pub(crate) struct TableSource {
    pub(crate) database: Arc<Database>,
    pub(crate) reads: StatementReads,
    /// What functions see of the server.
    pub(crate) server: Arc<ServerView>,
}

/// Lowers one statement.
pub(crate) struct Lowering<'a> {
    pub(super) environment: &'a Environment,
    pub(super) tables: &'a TableSource,
    pub(super) subqueries: &'a Subqueries,
    /// The statement's columns, to which lowering adds its own.
    pub(super) columns: Columns,
    /// Common table expressions that are in scope: their plans and columns.
    pub(super) ctes: Map<u32, (LogicalPlan, Vec<ColumnId>)>,
    /// The recursive queries whose recursive term is being lowered, and queries of `WITH` in it that
    /// refer to them.
    pub(super) recursive: Vec<u32>,
    /// The columns of outer queries, while a subplan is lowered.
    pub(super) outer: Arc<OuterColumns>,
    /// The number of subplans around what is being lowered.
    pub(super) depth: u32,
    /// The tables whose rows are sorted.
    pub(super) sorted: SortedTables,
    /// The number of names made so far.
    names: u32,
}

/// Converts an error of plan building, which is a bug of ours.
pub(super) fn planned<T>(result: datafusion::common::Result<T>) -> Result<T, SqlError> {
    result.map_err(|error| from_datafusion(&error))
}

impl<'a> Lowering<'a> {
    pub(crate) fn new(
        environment: &'a Environment,
        tables: &'a TableSource,
        columns: &Columns,
        subqueries: &'a Subqueries,
    ) -> Self {
        let (columns, ctes, outer) = (columns.clone(), Map::default(), Arc::default());
        let (recursive, depth, names) = (Vec::new(), 0, 0);
        let sorted = SortedTables::default();
        Self {
            environment,
            tables,
            subqueries,
            columns,
            ctes,
            recursive,
            outer,
            depth,
            sorted,
            names,
        }
    }

    /// The plan of a relation.
    ///
    /// # Errors
    /// 0A000: something in it is not implemented. Otherwise, those of tables that can't be read.
    pub(crate) fn relation(&mut self, relation: &Relation) -> Result<LogicalPlan, SqlError> {
        with_stack(|| self.lower(relation))
    }

    pub(super) fn expressions(&self) -> ExpressionPlanner<'a> {
        ExpressionPlanner::new(self.environment, &self.outer)
    }

    /// A column that the statement doesn't have.
    pub(super) fn new_column(&mut self, ty: SqlType) -> ColumnId {
        self.columns.add(BoundColumn { name: "?column?".into(), relation: None, ty, origin: None })
    }

    /// A name that is not that of a column.
    pub(super) fn new_name(&mut self, prefix: &str) -> String {
        format!("{prefix}{}", self.new_number())
    }

    /// A number that was not returned before.
    pub(super) fn new_number(&mut self) -> u32 {
        self.names += 1;
        self.names
    }

    /// The plan of one of our operators.
    pub(super) fn operator(
        &mut self,
        input: LogicalPlan,
        operator: Arc<dyn Operator>,
    ) -> Result<LogicalPlan, SqlError> {
        let number = self.new_number();
        if self.outer.is_empty() {
            return planned(OperatorNode::plan(number, input, operator));
        }
        // An operator finds columns by name, also those of outer queries.
        let outer = self.outer.iter().map(|(id, value)| (column_name(*id), value.clone()));
        let outer: Vec<(String, PlanExpr)> = outer.collect();
        let input = with_columns(input, outer.clone())?;
        let plan = planned(OperatorNode::plan(number, input, operator))?;
        let columns = plan.schema().columns().into_iter();
        let own = columns.filter(|column| outer.iter().all(|(name, _)| *name != column.name));
        let own: Vec<PlanExpr> = own.map(PlanExpr::Column).collect();
        planned(LogicalPlanBuilder::from(plan).project(own).and_then(LogicalPlanBuilder::build))
    }

    /// A reference to a column with its type.
    pub(super) fn column_expr(&self, id: ColumnId) -> Expr {
        Expr::new(ExprKind::Column(id), self.columns.get(id).ty)
    }

    /// The value of an expression without columns, or `None` if it is null.
    pub(super) fn constant_int8(&self, expr: &Expr) -> Result<Option<i64>, SqlError> {
        let program = Program::compile(self.environment, expr)?;
        if !program.columns().is_empty() {
            let message = "LIMIT of an outer column is not supported by trunkline";
            return Err(SqlError::unsupported(message));
        }
        let settings = &self.environment.settings;
        let value = program.evaluate(&Frame::new(Vec::new(), 1, settings))?;
        let value = planned(ScalarValue::try_from_array(&value, 0))?;
        match value {
            ScalarValue::Int64(value) => Ok(value),
            other => Err(SqlError::internal(format!("{} is not an int8", other.data_type()))),
        }
    }
}

/// A reference to a field by its name.
pub(crate) fn field(name: &str) -> PlanExpr {
    PlanExpr::Column(Column::new_unqualified(name))
}

/// Adds columns to those of a plan.
pub(super) fn with_columns(
    plan: LogicalPlan,
    columns: Vec<(String, PlanExpr)>,
) -> Result<LogicalPlan, SqlError> {
    if columns.is_empty() {
        return Ok(plan);
    }
    let kept = plan.schema().columns().into_iter().map(PlanExpr::Column);
    let added = columns.into_iter().map(|(name, expr)| expr.alias(name));
    let all: Vec<PlanExpr> = kept.chain(added).collect();
    planned(LogicalPlanBuilder::from(plan).project(all).and_then(LogicalPlanBuilder::build))
}

/// Only these columns of a plan, perhaps with other names.
pub(super) fn renamed(
    plan: LogicalPlan,
    columns: impl IntoIterator<Item = (ColumnId, ColumnId)>,
) -> Result<LogicalPlan, SqlError> {
    let columns = columns.into_iter();
    let columns = columns.map(|(from, to)| field(&column_name(from)).alias(column_name(to)));
    let columns: Vec<PlanExpr> = columns.collect();
    planned(LogicalPlanBuilder::from(plan).project(columns).and_then(LogicalPlanBuilder::build))
}
