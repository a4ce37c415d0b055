//! `GROUP BY` and aggregates.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, SortOptions};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::AggregateFunction as PlanAggregate;
use datafusion::logical_expr::{
    Aggregate as PlanAggregation, AggregateUDF, Expr as PlanExpr, GroupingSet, LogicalPlan,
    LogicalPlanBuilder, bitwise_and, bitwise_or, bitwise_shift_left, bitwise_shift_right, cast,
    lit, when,
};
use trunkline_sql::SqlError;
use trunkline_sql::bound::{Aggregate, ColumnId, Expr, ExprKind, Relation, SortKey};
use trunkline_sql::functions::{AggregateCall, AggregateDefinition, aggregate};

use super::planner::{Lowering, field, planned, with_columns};
use crate::aggregate::{AggregateFunction, CallKeys, ShownCall};
use crate::expression::{KeyUse, Program, column_name, expression_text};

/// Aggregates whose result depends on the order of their rows.
const ORDERED: [&str; 11] = [
    "array_agg",
    "string_agg",
    "json_agg",
    "jsonb_agg",
    "json_object_agg",
    "jsonb_object_agg",
    "json_agg_strict",
    "jsonb_agg_strict",
    "json_arrayagg",
    "xmlagg",
    "array_agg_array",
];

impl Lowering<'_> {
    pub(super) fn aggregate(&mut self, relation: &Relation) -> Result<LogicalPlan, SqlError> {
        let Relation::Aggregate { input, groups, sets, groupings, aggregates } = relation else {
            return Err(SqlError::internal("a relation without aggregation"));
        };
        let (input, sets) = (&**input, sets.as_deref());
        let mut is_ordered = false;
        for (_, call) in aggregates {
            is_ordered |= self.takes_order(call)?;
        }
        // A plan gives an order only to what asks for it, so the aggregates do.
        let sorted = if is_ordered { self.with_sort_columns(input) } else { None };
        let (input, order) = match &sorted {
            Some((input, order)) => (input, order.as_slice()),
            None => (input, &[][..]),
        };
        let mut plan = self.relation(input)?;
        // One row, whatever the input is.
        if groups.is_empty() && aggregates.is_empty() && sets.is_none() {
            return planned(LogicalPlanBuilder::empty(true).build());
        }
        let mut values = Vec::with_capacity(groups.len());
        for (id, expr) in groups {
            let (next, expr) = self.without_subqueries(plan, expr)?;
            plan = next;
            values.push((column_name(*id), self.expressions().value(&expr)?));
        }
        let mut calls = Vec::with_capacity(aggregates.len());
        for (id, call) in aggregates {
            let mut call = call.clone();
            plan = self.call_operands(plan, &mut call)?;
            if self.takes_order(&call)? {
                call.order_by = order.to_vec();
            }
            calls.push(self.aggregate_call(&call)?.alias(column_name(*id)));
        }
        plan = with_columns(plan, values)?;
        let ids: Vec<ColumnId> = groups.iter().map(|(id, _)| *id).collect();
        let (plan, mut grouping) = self.grouping(plan, &ids)?;
        let keys = grouping.keys.clone();
        if let Some(sets) = sets {
            let column = |place: &usize| grouping.keys.get(*place).cloned();
            let set = |set: &Vec<usize>| set.iter().filter_map(column).collect::<Vec<_>>();
            let sets = sets.iter().map(set).collect();
            grouping.keys = vec![PlanExpr::GroupingSet(GroupingSet::GroupingSets(sets))];
        }
        calls.extend(grouping.values);
        let columns = ids.into_iter().chain(aggregates.iter().map(|(id, _)| *id));
        let columns = columns.enumerate().map(|(place, id)| {
            let (name, value) = (column_name(id), field(&column_name(id)));
            match keys.get(place) {
                // The key of a column that a set doesn't group by is null, but not its first value.
                Some(key) if sets.is_some() && *key != value => {
                    let kept = when(key.clone().is_not_null(), value).end();
                    planned(kept).map(|kept| kept.alias(name))
                }
                _ => Ok(value),
            }
        });
        let columns = columns.collect::<Result<Vec<PlanExpr>, SqlError>>()?.into_iter();
        let groupings = groupings.iter().map(|(id, places)| {
            let value = sets.map_or_else(|| lit(0_i32), |sets| grouping_bits(places, sets));
            value.alias(column_name(*id))
        });
        let columns: Vec<PlanExpr> = columns.chain(groupings).collect();
        let builder = LogicalPlanBuilder::from(plan).aggregate(grouping.keys, calls);
        planned(builder.and_then(|plan| plan.project(columns)?.build()))
    }

    /// Whether a call gets its rows in the order of its input, which its result shows.
    fn takes_order(&self, call: &Aggregate) -> Result<bool, SqlError> {
        let has_own = !call.order_by.is_empty() || call.distinct;
        let info = self.environment.aggregate(call.function)?;
        Ok(!has_own && ORDERED.contains(&info.name.as_str()))
    }

    /// Replaces the subqueries of a call. With `FILTER`, what it is called with is only computed in
    /// rows that count.
    pub(super) fn call_operands(
        &mut self,
        mut plan: LogicalPlan,
        call: &mut Aggregate,
    ) -> Result<LogicalPlan, SqlError> {
        if let Some(filter) = &mut call.filter {
            (plan, *filter) = self.without_subqueries(plan, filter)?;
            // Its value is needed more than once, and must be the same each time.
            if self.calls_volatile(filter) {
                let id = self.new_column(filter.ty);
                let value = self.expressions().value(filter)?;
                plan = with_columns(plan, vec![(column_name(id), value)])?;
                *filter = self.column_expr(id);
            }
        }
        let keys = call.order_by.iter_mut().map(|key| &mut key.expr);
        for operand in call.arguments.iter_mut().chain(keys) {
            let guarded = guarded(operand, call.filter.as_ref());
            (plan, *operand) = self.without_subqueries(plan, &guarded)?;
        }
        Ok(plan)
    }

    /// If a relation's rows are sorted: the relation with columns for its sort keys, and the keys.
    fn with_sort_columns(&mut self, relation: &Relation) -> Option<(Relation, Vec<SortKey>)> {
        match relation {
            Relation::Sort { input, keys } => {
                let kept = input.visible().into_iter().map(|id| (id, self.column_expr(id)));
                let mut columns: Vec<(ColumnId, Expr)> = kept.collect();
                let mut order = Vec::with_capacity(keys.len());
                for key in keys {
                    let id = self.new_column(key.expr.ty);
                    columns.push((id, key.expr.clone()));
                    order.push(SortKey { expr: self.column_expr(id), ..key.clone() });
                }
                let input = Box::new(Relation::Project { input: input.clone(), columns });
                Some((Relation::Sort { input, keys: order.clone() }, order))
            }
            Relation::Project { input, columns } => {
                let (input, order) = self.with_sort_columns(input)?;
                let mut columns = columns.clone();
                columns.extend(order.iter().filter_map(|key| match key.expr.kind {
                    ExprKind::Column(id) => Some((id, key.expr.clone())),
                    _ => None,
                }));
                Some((Relation::Project { input: Box::new(input), columns }, order))
            }
            Relation::Filter { input, condition } => {
                let (input, order) = self.with_sort_columns(input)?;
                let (input, condition) = (Box::new(input), condition.clone());
                Some((Relation::Filter { input, condition }, order))
            }
            Relation::Limit { input, limit, offset, ties: None } => {
                let (input, order) = self.with_sort_columns(input)?;
                let (input, ties) = (Box::new(input), None);
                let (limit, offset) = (limit.clone(), offset.clone());
                Some((Relation::Limit { input, limit, offset, ties }, order))
            }
            _ => None,
        }
    }

    /// A call of an aggregate.
    fn aggregate_call(&mut self, call: &Aggregate) -> Result<PlanExpr, SqlError> {
        let (definition, described, name) = self.described(call)?;
        let filter = call.filter.as_ref();
        let arguments = call.arguments.iter().map(|argument| self.expressions().value(argument));
        let mut arguments: Vec<PlanExpr> = arguments.collect::<Result<_, _>>()?;
        let constants = call.arguments.iter().map(|argument| self.known(argument));
        let constants = constants.collect::<Result<Vec<_>, _>>()?;
        let keys = self.call_keys(call, &name, &mut arguments)?;
        if arguments.is_empty() {
            arguments.push(lit(ScalarValue::Boolean(Some(true))));
        }
        let filter = filter.map(|filter| self.expressions().value(filter)).transpose()?;
        let text = self.call_text(call, &name);
        let order_by = call
            .order_by
            .iter()
            .map(|key| SortOptions { descending: key.descending, nulls_first: key.nulls_first });
        let shown = ShownCall {
            function: Some(call.function),
            arguments: call.arguments.len(),
            direct: self.environment.is_ordered_set(call.function).then(|| call.direct.clone()),
            distinct: call.distinct,
            order_by: order_by.collect(),
        };
        let function = AggregateFunction::new(text, shown, definition, described, constants, keys);
        let function = Arc::new(AggregateUDF::from(function));
        let filter = filter.map(Box::new);
        let call = PlanAggregate::new_udf(function, arguments, false, filter, Vec::new(), None);
        Ok(PlanExpr::AggregateFunction(call))
    }

    /// How an aggregate is computed, its types, and its name.
    pub(super) fn described(
        &self,
        call: &Aggregate,
    ) -> Result<(&'static AggregateDefinition, AggregateCall, String), SqlError> {
        let info = self.environment.aggregate(call.function)?;
        let definition = aggregate(&info.transition, &info.last).ok_or_else(|| {
            SqlError::unsupported(format!("aggregate {} is not supported by trunkline", info.name))
        })?;
        let carrier = |expr: &Expr| self.environment.carrier(expr.ty.oid);
        let settings = (*self.environment.settings).clone();
        let described = AggregateCall {
            argument_types: call.arguments.iter().map(|argument| argument.ty.oid).collect(),
            argument_carriers: call.arguments.iter().map(carrier).collect::<Result<_, _>>()?,
            result_type: call.ty.oid,
            result_carrier: self.environment.carrier(call.ty.oid)?,
            direct: call.direct.iter().map(|expr| self.constant(expr)).collect::<Result<_, _>>()?,
            collation: call.collation,
            settings,
        };
        Ok((definition, described, info.name))
    }

    /// Adds the keys of `ORDER BY` and `DISTINCT` to the arguments.
    fn call_keys(
        &self,
        call: &Aggregate,
        name: &str,
        arguments: &mut Vec<PlanExpr>,
    ) -> Result<CallKeys, SqlError> {
        let mut keys = CallKeys { keys: Vec::new(), distinct: call.distinct };
        let mut push = |expr: &Expr, usage: KeyUse, options: SortOptions| {
            let key = self.expressions().key(expr, usage)?;
            keys.keys.push((self.expressions().key_type(expr, usage)?, options));
            arguments.push(key);
            Ok::<(), SqlError>(())
        };
        for key in &call.order_by {
            let (descending, nulls_first) = (key.descending, key.nulls_first);
            push(&key.expr, KeyUse::Order, SortOptions { descending, nulls_first })?;
        }
        if call.distinct {
            // Duplicates are found by sorting. Whether the order itself matters depends on the
            // aggregate.
            let ordered = ORDERED.contains(&name);
            let usage = if ordered { KeyUse::Order } else { KeyUse::Equality };
            let options = SortOptions { descending: false, nulls_first: false };
            for argument in &call.arguments {
                if !call.order_by.iter().any(|key| key.expr == *argument) {
                    push(argument, usage, options)?;
                }
            }
        }
        Ok(keys)
    }

    /// The text by which equal calls are recognized.
    fn call_text(&self, call: &Aggregate, name: &str) -> String {
        let texts = call.arguments.iter().map(|expr| expression_text(self.environment, expr));
        let texts: Vec<String> = texts.collect();
        let mut text = format!("{name}({})#{}:{}", texts.join(", "), call.function, call.ty.oid);
        if call.distinct {
            text.push_str(" DISTINCT");
        }
        for key in &call.order_by {
            let expr = expression_text(self.environment, &key.expr);
            let order = (key.descending, key.nulls_first);
            text.push_str(&format!(" ORDER BY {expr} {order:?}"));
        }
        for direct in &call.direct {
            text.push_str(&format!(" direct {}", expression_text(self.environment, direct)));
        }
        text
    }

    /// The value of an expression without columns.
    fn constant(&self, expr: &Expr) -> Result<ArrayRef, SqlError> {
        let program = Program::compile(self.environment, expr)?;
        if !program.columns().is_empty() {
            let message = "a direct argument that is not a constant is not supported by trunkline";
            return Err(SqlError::unsupported(message));
        }
        let settings = &self.environment.settings;
        program.evaluate(&crate::expression::Frame::new(Vec::new(), 1, settings))
    }

    /// The value of an argument that is a constant.
    pub(super) fn known(&self, argument: &Expr) -> Result<Option<ArrayRef>, SqlError> {
        match argument.kind {
            ExprKind::Constant(_) | ExprKind::Parameter(_) => self.constant(argument).map(Some),
            _ => Ok(None),
        }
    }
}

/// The value of `GROUPING` for groups at these places. The planner's number of a grouping set has a bit
/// for each column, in the order in which the sets first mention them, and the last column has the
/// lowest bit.
fn grouping_bits(places: &[usize], sets: &[Vec<usize>]) -> PlanExpr {
    let mut mentioned: Vec<usize> = Vec::new();
    for place in sets.iter().flatten() {
        if !mentioned.contains(place) {
            mentioned.push(*place);
        }
    }
    let number = cast(field(PlanAggregation::INTERNAL_GROUPING_ID), DataType::Int64);
    let bits = places.iter().rev().zip(0_i64..).filter_map(|(place, bit)| {
        let found = mentioned.iter().rev().position(|known| known == place)?;
        let found = bitwise_shift_right(number.clone(), lit(found as i64));
        Some(bitwise_shift_left(bitwise_and(found, lit(1_i64)), lit(bit)))
    });
    cast(bits.reduce(bitwise_or).unwrap_or_else(|| lit(0_i64)), DataType::Int32)
}

/// An argument. With `FILTER`, it is only computed in rows that count.
fn guarded(argument: &Expr, filter: Option<&Expr>) -> Expr {
    let simple = matches!(
        argument.kind,
        ExprKind::Column(_) | ExprKind::Constant(_) | ExprKind::Parameter(_)
    );
    match filter {
        Some(filter) if !simple => {
            let arms = vec![(filter.clone(), argument.clone())];
            let otherwise = Box::new(Expr::null(argument.ty));
            Expr::new(ExprKind::Case { operand: None, arms, otherwise }, argument.ty)
        }
        _ => argument.clone(),
    }
}
