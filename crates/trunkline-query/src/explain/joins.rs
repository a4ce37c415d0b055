//! The nodes of joins. PostgreSQL hashes the second input, so inputs are shown in its order.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprRef};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use trunkline_sql::SqlError;

use super::describe::{Describer, sort_method_detail};
use super::expressions::Expressions;
use super::node::{Detail, PlanNode, Value};
use super::shown::Shown;
use crate::index_join::IndexJoinExec;
use crate::subplan::{SubplanExec, SubplanKind};

impl Describer<'_> {
    /// The node of a join with its inputs; `None` if the plan is no join.
    pub(super) fn join(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<PlanNode>, SqlError> {
        let input = |plan: &Arc<dyn ExecutionPlan>| self.input(plan);
        let inner = |mut node: PlanNode| {
            node.relationship = Some("Inner");
            node
        };
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            let (left, right) = (join.left(), join.right());
            // PostgreSQL hashes the second input.
            let mut node = join_node("Hash Join", "Hash ", swapped(*join.join_type()));
            let on = self.expressions.conditions(join.on(), (left, right), true)?;
            node.push(Detail::text("Hash Cond", on));
            self.push_filter(&mut node, join.filter(), left, right)?;
            let mut hash = PlanNode::new("Hash");
            self.measure(&mut hash, left)?;
            hash.workers.clear();
            if let Some(metrics) = plan.metrics()
                && self.options.analyze
            {
                let kept = metrics.sum_by_name("build_mem_used").map(|value| value.as_usize());
                match (metrics.spilled_bytes(), kept) {
                    // Both inputs were sorted, because the table was too large.
                    (Some(bytes), _) => hash.push(sort_method_detail(bytes, None, None)),
                    (None, Some(bytes)) => hash.push(one_batch(bytes)),
                    (None, None) => {}
                }
            }
            let hash = inner(hash.over(input(left)?));
            return Ok(Some(node.over(input(right)?).over(hash)));
        }
        if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
            let (left, right) = (join.left(), join.right());
            let mut node = join_node("Merge Join", "Merge ", join.join_type());
            node.push(Detail::text(
                "Merge Cond",
                self.expressions.conditions(join.on(), (left, right), false)?,
            ));
            self.push_filter(&mut node, join.filter().as_ref(), left, right)?;
            return Ok(Some(node.over(input(left)?).over(inner(input(right)?))));
        }
        if let Some(join) = plan.downcast_ref::<IndexJoinExec>() {
            return self.index_join(join).map(Some);
        }
        if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
            let (left, right) = (join.left(), join.right());
            // The left input is kept, and the right one is read once.
            let mut node = join_node("Nested Loop", "Nested Loop ", swapped(*join.join_type()));
            self.push_filter(&mut node, join.filter(), left, right)?;
            return Ok(Some(node.over(input(right)?).over(inner(input(left)?))));
        }
        if let Some(join) = plan.downcast_ref::<CrossJoinExec>() {
            let node = join_node("Nested Loop", "Nested Loop ", JoinType::Inner);
            return Ok(Some(node.over(input(join.right())?).over(inner(input(join.left())?))));
        }
        if let Some(subplan) = plan.downcast_ref::<SubplanExec>()
            && let SubplanKind::Rows { outer } = subplan.kind()
            && let [left] = *plan.children()
        {
            let kind = if outer { JoinType::Left } else { JoinType::Inner };
            let node = join_node("Nested Loop", "Nested Loop ", kind);
            let right = inner(input(subplan.inner_plan())?);
            return Ok(Some(node.over(input(left)?).over(right)));
        }
        Ok(None)
    }

    fn push_filter(
        &self,
        node: &mut PlanNode,
        filter: Option<&JoinFilter>,
        left: &Arc<dyn ExecutionPlan>,
        right: &Arc<dyn ExecutionPlan>,
    ) -> Result<(), SqlError> {
        if let Some(filter) = filter
            && let Some(text) = self.expressions.join_filter(filter, left, right)?
        {
            node.push(Detail::text("Join Filter", text));
        }
        Ok(())
    }
}

impl Expressions<'_> {
    /// The equalities of a join. With `right_first`, the columns of the right input come first.
    pub(super) fn conditions(
        &self,
        on: &[(PhysicalExprRef, PhysicalExprRef)],
        (left, right): (&Arc<dyn ExecutionPlan>, &Arc<dyn ExecutionPlan>),
        right_first: bool,
    ) -> Result<String, SqlError> {
        let side = |expr: &Arc<dyn PhysicalExpr>, plan: &Arc<dyn ExecutionPlan>| {
            let columns = |column: &Column| self.column(plan, column.index());
            self.operand(expr, None, &columns)
        };
        let mut parts = Vec::with_capacity(on.len());
        for (a, b) in on {
            let (a, b) = (side(a, left)?, side(b, right)?);
            parts.push(if right_first { format!("({b} = {a})") } else { format!("({a} = {b})") });
        }
        Ok(match &*parts {
            [only] => only.clone(),
            all => format!("({})", all.join(" AND ")),
        })
    }

    /// The column of a join that says whether a row has matches.
    pub(super) fn mark(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Shown>, SqlError> {
        let is_mark = |kind| matches!(kind, JoinType::LeftMark | JoinType::RightMark);
        let text = if let Some(join) = plan.downcast_ref::<HashJoinExec>()
            && is_mark(*join.join_type())
        {
            Some(self.conditions(join.on(), (join.left(), join.right()), true)?)
        } else if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>()
            && is_mark(*join.join_type())
            && let Some(filter) = join.filter()
        {
            self.join_filter(filter, join.left(), join.right())?
        } else {
            None
        };
        Ok(text.map(|text| Shown::computed(format!("(ANY {text})"))))
    }
}

/// The line of a hash table of this size.
fn one_batch(bytes: usize) -> Detail {
    let kilobytes = bytes.div_ceil(1024) as u64;
    Detail {
        line: Some(format!("Batches: 1  Memory Usage: {kilobytes}kB")),
        members: vec![
            ("Hash Batches", Value::count(1)),
            ("Peak Memory Usage", Value::count(kilobytes)),
        ],
    }
}

/// A join's node. `prefix` comes before the kind: `Hash ` for `Hash Left Join`.
pub(super) fn join_node(node_type: &'static str, prefix: &str, kind: JoinType) -> PlanNode {
    let name = match kind {
        JoinType::Inner => "Inner",
        JoinType::Left => "Left",
        JoinType::Right => "Right",
        JoinType::Full => "Full",
        JoinType::LeftSemi => "Semi",
        JoinType::LeftAnti => "Anti",
        JoinType::RightSemi => "Right Semi",
        JoinType::RightAnti => "Right Anti",
        JoinType::LeftMark | JoinType::RightMark => "Mark",
    };
    let mut node = PlanNode::new(node_type);
    if kind != JoinType::Inner {
        node.title = format!("{prefix}{name} Join");
    }
    node.kind.push(("Join Type", Value::Text(name.to_owned())));
    node
}

/// The kind of a join whose inputs are shown in the other order.
fn swapped(kind: JoinType) -> JoinType {
    kind.swap()
}
