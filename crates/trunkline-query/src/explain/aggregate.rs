//! Aggregates: their calls as text, and what their nodes show.

use std::sync::Arc;

use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::{ExecutionPlan, InputOrderMode};
use trunkline_sql::SqlError;

use super::expressions::Expressions;
use super::node::{Detail, PlanNode, Value};
use super::shown::Shown;
use crate::aggregate::AggregateFunction;

impl Expressions<'_> {
    /// A column of an aggregate: one it groups by, or the result of a call.
    pub(super) fn aggregated(
        &self,
        aggregate: &AggregateExec,
        index: usize,
        name: &str,
    ) -> Result<Shown, SqlError> {
        let groups = aggregate.group_expr().expr();
        if let Some((expr, _)) = groups.get(index) {
            return self.shown(expr, aggregate.input());
        }
        let mut place = index - groups.len();
        if aggregate.group_expr().has_grouping_set() {
            // Their number.
            let Some(next) = place.checked_sub(1) else {
                return Ok(Shown::computed("GROUPING()".to_owned()));
            };
            place = next;
        }
        // The states of a call are several columns.
        let is_state = matches!(aggregate.mode(), AggregateMode::Partial);
        let found = match is_state {
            false => aggregate.aggr_expr().get(place).map(|call| (place, call)),
            true => aggregate.aggr_expr().iter().enumerate().find(|(_, call)| {
                let fields = call.state_fields().unwrap_or_default();
                fields.iter().any(|field| field.name() == name)
            }),
        };
        let Some((place, call)) = found else { return Ok(self.field(name, false)) };
        let shown = self.aggregate_call(aggregate, place, call)?;
        Ok(match is_state && !shown.is_column {
            true => Shown::computed(format!("PARTIAL {}", shown.text)),
            false => shown,
        })
    }

    fn aggregate_call(
        &self,
        aggregate: &AggregateExec,
        place: usize,
        call: &Arc<AggregateFunctionExpr>,
    ) -> Result<Shown, SqlError> {
        // The last step has the arguments of the first one.
        let takes_rows =
            [AggregateMode::Partial, AggregateMode::Single, AggregateMode::SinglePartitioned];
        if !takes_rows.contains(aggregate.mode())
            && let Some(first) = first_step(aggregate.input())
            && let Some(first) = first.downcast_ref::<AggregateExec>()
            && let Some(call) = first.aggr_expr().get(place)
        {
            return self.call_text(first, place, call);
        }
        self.call_text(aggregate, place, call)
    }

    fn call_text(
        &self,
        aggregate: &AggregateExec,
        place: usize,
        call: &Arc<AggregateFunctionExpr>,
    ) -> Result<Shown, SqlError> {
        let input = aggregate.input();
        let all = call.expressions();
        let columns = |column: &Column| self.column(input, column.index());
        let text = |expr: &Arc<dyn PhysicalExpr>| self.text(expr, None, &columns);
        let Some(function) = call.fun().inner().downcast_ref::<AggregateFunction>() else {
            return Ok(Shown::computed(call.name().to_owned()));
        };
        let shown = function.shown();
        let Some(function) = shown.function else {
            // The value by which the group is shown.
            return match all.first() {
                Some(value) => self.shown(value, input),
                None => Ok(Shown::computed(call.name().to_owned())),
            };
        };
        let arguments = all.iter().take(shown.arguments).map(text);
        let arguments = arguments.collect::<Result<Vec<_>, _>>()?.join(", ");
        let name = self.printer.function(function)?;
        let distinct = if shown.distinct { "DISTINCT " } else { "" };
        let arguments = if shown.arguments == 0 { "*".to_owned() } else { arguments };
        let mut order = Vec::new();
        for (expr, options) in all.iter().skip(shown.arguments).zip(&shown.order_by) {
            let mut key = text(expr)?;
            if options.descending {
                key.push_str(" DESC");
            }
            if options.nulls_first != options.descending {
                key.push_str(if options.nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
            }
            order.push(key);
        }
        let order = match order.is_empty() {
            true => String::new(),
            false => format!(" ORDER BY {}", order.join(", ")),
        };
        let filter = match aggregate.filter_expr().get(place) {
            Some(Some(filter)) => format!(" FILTER (WHERE {})", text(filter)?),
            _ => String::new(),
        };
        if let Some(direct) = &shown.direct {
            let direct = direct.iter().map(|expr| self.bound(expr, input));
            let direct = direct.collect::<Result<Vec<_>, _>>()?.join(", ");
            let order = order.trim_start();
            let call = format!("{name}({direct}) WITHIN GROUP ({order}){filter}");
            return Ok(Shown::computed(call));
        }
        Ok(Shown::computed(format!("{name}({distinct}{arguments}{order}){filter}")))
    }

    /// The node of an aggregate, without its input.
    pub(super) fn aggregate_node(&self, aggregate: &AggregateExec) -> Result<PlanNode, SqlError> {
        let groups = aggregate.group_expr();
        let sets: Vec<&[bool]> = groups.groups().iter().map(Vec::as_slice).collect();
        let has_sets = groups.has_grouping_set();
        let is_sorted = !matches!(aggregate.input_order_mode(), InputOrderMode::Linear);
        let has_empty = sets.iter().any(|set| set.iter().all(|&is_null| is_null));
        let (strategy, name) = match (groups.expr().is_empty(), is_sorted) {
            (true, _) => ("Plain", "Aggregate"),
            _ if has_sets && has_empty => ("Mixed", "MixedAggregate"),
            (false, true) => ("Sorted", "GroupAggregate"),
            (false, false) => ("Hashed", "HashAggregate"),
        };
        let (step, prefix) = match aggregate.mode() {
            AggregateMode::Partial => ("Partial", "Partial "),
            AggregateMode::Final | AggregateMode::FinalPartitioned => ("Finalize", "Finalize "),
            _ => ("Simple", ""),
        };
        let mut node = PlanNode::new("Aggregate");
        node.title = format!("{prefix}{name}");
        node.kind.push(("Strategy", Value::Text(strategy.to_owned())));
        node.kind.push(("Partial Mode", Value::Text(step.to_owned())));
        let key = |(expr, _): &(Arc<dyn PhysicalExpr>, String)| -> Result<String, SqlError> {
            let input = aggregate.input();
            // The result of a sort is passed on, that of a projection is computed here.
            let is_computed = super::shape::computes(input) || !expr.is::<Column>();
            let shown = self.shown(expr, input)?;
            Ok(if is_computed { shown.text } else { shown.passed_on() })
        };
        let keys = groups.expr().iter().map(key).collect::<Result<Vec<_>, _>>()?;
        if !has_sets {
            if !keys.is_empty() {
                node.push(Detail::list("Group Key", keys));
            }
            return Ok(node);
        }
        for set in sets {
            let of = keys.iter().zip(set).filter(|(_, is_null)| !**is_null);
            let of: Vec<String> = of.map(|(key, _)| key.clone()).collect();
            node.push(match of.is_empty() {
                true => Detail::text("Group Key", "()"),
                false => Detail::list("Hash Key", of),
            });
        }
        Ok(node)
    }
}

/// The aggregate that makes the states below a node.
fn first_step(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let mut plan = plan;
    loop {
        if plan.is::<AggregateExec>() {
            return Some(Arc::clone(plan));
        }
        let children = plan.children();
        plan = children.first()?;
        if children.len() > 1 {
            return None;
        }
    }
}
