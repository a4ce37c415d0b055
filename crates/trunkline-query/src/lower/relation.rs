//! The relations that become a node of their own, and what leads to the others.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use datafusion::common::{DFSchema, ScalarValue, ToDFSchema};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    EmptyRelation, Expr as PlanExpr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, SortExpr,
    Values, WindowFunctionDefinition, lit,
};
use trunkline_format::Oid;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{CallForm, ColumnId, Expr, ExprKind, Relation, SortKey, SqlType};

use super::planner::{Lowering, field, planned, renamed, with_columns};
use super::subquery::BOOL;
use crate::expression::{KeyUse, column_name};

/// `int4`, and the function of its `=`.
const INT4: SqlType = SqlType::new(Oid(23));
const INT4_EQUAL: Oid = Oid(65);

impl Lowering<'_> {
    pub(super) fn lower(&mut self, relation: &Relation) -> Result<LogicalPlan, SqlError> {
        match relation {
            Relation::Unit => planned(LogicalPlanBuilder::empty(true).build()),
            Relation::Table(scan) => self.table(scan),
            Relation::Values { columns, rows } => self.values(columns, rows),
            Relation::Functions { functions, ordinality } => self.functions(functions, *ordinality),
            Relation::ProjectSet { input, functions } => {
                let plan = self.relation(input)?;
                self.project_set(plan, functions, None, false)
            }
            Relation::Project { input, columns } => self.project(input, columns),
            Relation::Filter { input, condition } => self.filter(input, condition),
            Relation::Join { kind, left, right, condition, lateral } => {
                self.join(*kind, left, right, condition.as_ref(), *lateral)
            }
            Relation::Aggregate { .. } => self.aggregate(relation),
            Relation::Window { input, window, functions } => self.window(input, window, functions),
            Relation::Distinct { input, on: None } => {
                let plan = self.relation(input)?;
                self.distinct(plan, &input.visible())
            }
            Relation::Distinct { input, on: Some(on) } => self.distinct_on(input, on),
            Relation::Sort { input, keys } => {
                self.sorted.add(input);
                let plan = self.relation(input)?;
                self.sort(plan, keys)
            }
            Relation::Limit { input, limit, offset, ties } => {
                self.limit(input, limit.as_ref(), offset.as_ref(), ties.as_deref())
            }
            Relation::SetOperation { operator, all, left, right, columns } => {
                self.set_operation(*operator, *all, left, right, columns)
            }
            Relation::Recursive { .. } => self.recursive(relation),
            Relation::With { ctes, input } => self.with(ctes, input),
            Relation::CteScan { cte, columns } => {
                let (plan, _) = self
                    .ctes
                    .get(cte)
                    .cloned()
                    .ok_or_else(|| SqlError::internal("a WITH query that is not in scope"))?;
                renamed(plan, columns.iter().copied())
            }
        }
    }

    pub(super) fn values(
        &mut self,
        columns: &[ColumnId],
        rows: &[Vec<Expr>],
    ) -> Result<LogicalPlan, SqlError> {
        let fields = columns.iter().map(|&id| {
            let carrier = self.environment.carrier(self.columns.get(id).ty.oid)?;
            Ok(Field::new(column_name(id), carrier.data_type(), true))
        });
        let fields = fields.collect::<Result<Vec<_>, SqlError>>()?;
        let schema: Arc<DFSchema> = planned(Schema::new(fields).to_dfschema_ref())?;
        if rows.is_empty() {
            let produce_one_row = false;
            return Ok(LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row, schema }));
        }
        let values = rows.iter().map(|row| row.iter().map(|expr| self.expressions().value(expr)));
        let values = values.map(Iterator::collect).collect::<Result<Vec<Vec<_>>, _>>()?;
        let is_outer = |expr: &Expr| {
            expr.any(&mut |part| match part.kind {
                ExprKind::Column(id) => self.outer.contains_key(&id),
                _ => false,
            })
        };
        if rows.iter().flatten().any(is_outer) {
            return self.rows_of_outer_values(columns, rows);
        }
        if columns.is_empty() {
            return Err(SqlError::internal("VALUES without columns"));
        }
        Ok(LogicalPlan::Values(Values { schema, values }))
    }

    /// `VALUES` with columns of an outer query, which are known when the plan is executed. Rows are
    /// numbered, and each column is a `CASE` of the number, so that they keep their order.
    fn rows_of_outer_values(
        &mut self,
        columns: &[ColumnId],
        rows: &[Vec<Expr>],
    ) -> Result<LogicalPlan, SqlError> {
        let number = self.new_column(INT4);
        let numbers = 0..i32::try_from(rows.len()).unwrap_or(i32::MAX);
        let values = numbers.clone().map(|at| vec![lit(ScalarValue::Int32(Some(at)))]).collect();
        let fields = vec![Field::new(column_name(number), DataType::Int32, true)];
        let schema: Arc<DFSchema> = planned(Schema::new(fields).to_dfschema_ref())?;
        let is_row = |at: i32| {
            let at = Expr::new(ExprKind::Constant(Some(at.to_le_bytes().into())), INT4);
            let call = ExprKind::Call {
                function: INT4_EQUAL,
                arguments: vec![self.column_expr(number), at],
                collation: Oid(0),
                form: CallForm::Function,
            };
            Expr::new(call, BOOL)
        };
        let conditions: Vec<Expr> = numbers.map(is_row).collect();
        let named = columns.iter().enumerate().map(|(place, &id)| {
            let ty = self.columns.get(id).ty;
            let arms = conditions.iter().zip(rows);
            let arms = arms.filter_map(|(condition, row)| {
                row.get(place).map(|value| (condition.clone(), value.clone()))
            });
            let otherwise = Box::new(Expr::null(ty));
            let value = ExprKind::Case { operand: None, arms: arms.collect(), otherwise };
            let value = self.expressions().value(&Expr::new(value, ty))?;
            Ok(value.alias(column_name(id)))
        });
        let named = named.collect::<Result<Vec<_>, SqlError>>()?;
        let builder = LogicalPlanBuilder::from(LogicalPlan::Values(Values { schema, values }));
        planned(builder.project(named).and_then(LogicalPlanBuilder::build))
    }

    fn project(
        &mut self,
        input: &Relation,
        columns: &[(ColumnId, Expr)],
    ) -> Result<LogicalPlan, SqlError> {
        let mut plan = self.relation(input)?;
        let mut exprs = Vec::with_capacity(columns.len());
        for (id, expr) in columns {
            let (next, expr) = self.without_subqueries(plan, expr)?;
            plan = next;
            exprs.push(self.expressions().value(&expr)?.alias(column_name(*id)));
        }
        planned(LogicalPlanBuilder::from(plan).project(exprs).and_then(LogicalPlanBuilder::build))
    }

    pub(super) fn filtered(
        &mut self,
        plan: LogicalPlan,
        condition: &Expr,
    ) -> Result<LogicalPlan, SqlError> {
        let Some(condition) = self.expressions().condition(condition)? else { return Ok(plan) };
        let parts = split_conjunction_owned(condition).into_iter();
        let (volatile, plain): (Vec<_>, Vec<_>) = parts.partition(PlanExpr::is_volatile);
        let plan = match conjunction(plain) {
            None => plan,
            Some(plain) => {
                let builder = LogicalPlanBuilder::from(plan).filter(plain);
                planned(builder.and_then(LogicalPlanBuilder::build))?
            }
        };
        let Some(volatile) = conjunction(volatile) else { return Ok(plan) };
        // The planner would move a condition without columns below the functions of a set, where it
        // is evaluated less often. It doesn't move that of a column that is volatile.
        let columns = plan.schema().columns().into_iter().map(PlanExpr::Column);
        let columns: Vec<PlanExpr> = columns.collect();
        let name = self.new_name("f");
        let plan = with_columns(plan, vec![(name.clone(), volatile)])?;
        let filtered = LogicalPlanBuilder::from(plan).filter(field(&name));
        planned(filtered.and_then(|plan| plan.project(columns)?.build()))
    }

    /// The keys of a sort, with their order.
    pub(super) fn sort_keys(&self, keys: &[SortKey]) -> Result<Vec<SortExpr>, SqlError> {
        let sorted = keys.iter().map(|key| {
            let expr = self.expressions().key(&key.expr, KeyUse::Order)?;
            Ok(SortExpr::new(expr, !key.descending, key.nulls_first))
        });
        sorted.collect()
    }

    pub(super) fn sort(
        &mut self,
        mut plan: LogicalPlan,
        keys: &[SortKey],
    ) -> Result<LogicalPlan, SqlError> {
        let columns = plan.schema().columns();
        let mut simple = Vec::with_capacity(keys.len());
        for key in keys {
            let (next, expr) = self.without_subqueries(plan, &key.expr)?;
            plan = next;
            simple.push(SortKey { expr, ..key.clone() });
        }
        let keys = self.sort_keys(&simple)?;
        let builder = LogicalPlanBuilder::from(plan).sort(keys);
        // Columns that subqueries have added go no further.
        let columns = columns.into_iter().map(PlanExpr::Column);
        planned(builder.and_then(|builder| match builder.schema().fields().len() {
            count if count == columns.len() => builder.build(),
            _ => builder.project(columns.collect::<Vec<_>>())?.build(),
        }))
    }

    /// Adds a column that numbers the rows of each group from 1, in the order of `keys`.
    pub(super) fn row_numbers(
        &mut self,
        plan: LogicalPlan,
        groups: Vec<PlanExpr>,
        keys: Vec<SortExpr>,
    ) -> Result<(LogicalPlan, String), SqlError> {
        let name = self.new_name("n");
        let function = WindowFunctionDefinition::WindowUDF(row_number_udwf());
        let call = PlanExpr::from(WindowFunction::new(function, Vec::new()));
        let call = planned(call.partition_by(groups).order_by(keys).build())?.alias(&name);
        let builder = LogicalPlanBuilder::from(plan).window(vec![call]);
        Ok((planned(builder.and_then(LogicalPlanBuilder::build))?, name))
    }

    /// The first row of each group in the order of the input.
    fn distinct_on(&mut self, input: &Relation, on: &[Expr]) -> Result<LogicalPlan, SqlError> {
        let (unsorted, keys) = match input {
            Relation::Sort { input, keys } => (&**input, keys.as_slice()),
            other => (other, &[][..]),
        };
        let plan = self.relation(unsorted)?;
        let columns: Vec<_> = plan.schema().columns().into_iter().map(PlanExpr::Column).collect();
        let groups = on.iter().map(|expr| self.expressions().key(expr, KeyUse::Equality));
        let groups = groups.collect::<Result<Vec<_>, _>>()?;
        let order = self.sort_keys(keys)?;
        let (plan, number) = self.row_numbers(plan, groups, order)?;
        let first = field(&number).eq(lit(ScalarValue::UInt64(Some(1))));
        let builder = LogicalPlanBuilder::from(plan).filter(first);
        let plan = planned(builder.and_then(|plan| plan.project(columns)?.build()))?;
        if keys.is_empty() { Ok(plan) } else { self.sort(plan, keys) }
    }
}
