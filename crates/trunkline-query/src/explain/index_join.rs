//! Nested loops whose inner side is searched through an index.
//!
//! ```text
//!   Nested Loop
//!     ->  Seq Scan on o
//!     ->  Index Scan using t_pkey on t
//!           Index Cond: (k = o.x)
//! ```
//! The inner side is a part of the join's node. It is shown as the node that PostgreSQL has, with a loop
//! for each outer row that was looked up. The rest of the condition is evaluated by the join, so it is
//! shown there; PostgreSQL may evaluate it in the inner scan.

use std::sync::Arc;

use datafusion::common::{JoinSide, JoinType};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use trunkline_sql::SqlError;

use super::describe::Describer;
use super::index_conditions::all_of;
use super::instrument::Measured;
use super::joins::join_node;
use super::node::{Detail, PlanNode};
use crate::index_join::{Definition, IndexJoinExec, JoinKind};

impl Describer<'_> {
    /// The node of an index join with both sides.
    pub(super) fn index_join(&self, join: &IndexJoinExec) -> Result<PlanNode, SqlError> {
        let kind = match join.definition().kind {
            JoinKind::Inner => JoinType::Inner,
            JoinKind::Left => JoinType::Left,
            JoinKind::Semi => JoinType::LeftSemi,
            JoinKind::Anti => JoinType::LeftAnti,
        };
        let mut node = join_node("Nested Loop", "Nested Loop ", kind);
        let rest = self.rest_of_condition(join)?;
        if !rest.is_empty() {
            node.push(Detail::text("Join Filter", all_of(&rest)));
        }
        let mut inner = self.searched_side(join)?;
        inner.relationship = Some("Inner");
        Ok(node.over(self.input(join.outer())?).over(inner))
    }

    /// The conditions that the index is not searched for.
    fn rest_of_condition(&self, join: &IndexJoinExec) -> Result<Vec<String>, SqlError> {
        let Definition { on, equalities, filter, inner, outer_side, .. } = join.definition();
        let sides = (join.outer(), &inner.plan);
        let searched = inner.search.key_columns().filter_map(|(_, key)| equalities.get(key));
        let searched: Vec<&usize> = searched.collect();
        let others = on.iter().enumerate().filter(|(number, _)| !searched.contains(&number));
        let rest = others.map(|(_, equality)| {
            self.expressions.conditions(std::slice::from_ref(equality), sides, false)
        });
        let mut rest = rest.collect::<Result<Vec<_>, SqlError>>()?;
        if let Some(filter) = filter {
            let (outer, inner) = sides;
            let (left, right) = match outer_side {
                JoinSide::Left => (outer, inner),
                _ => (inner, outer),
            };
            rest.extend(self.expressions.join_filter(filter, left, right)?);
        }
        Ok(rest)
    }

    /// The inner side.
    fn searched_side(&self, join: &IndexJoinExec) -> Result<PlanNode, SqlError> {
        let Definition { on, equalities, inner, .. } = join.definition();
        let columns = |column: &Column| self.expressions.column(join.outer(), column.index());
        let keys = inner.search.key_columns().filter_map(|(at, key)| {
            let (value, _) = on.get(*equalities.get(key)?)?;
            Some(self.expressions.operand(value, None, &columns).map(|text| (at, text)))
        });
        let keys = keys.collect::<Result<Vec<_>, SqlError>>()?;
        let partitions = inner.scan.counters().partitions();
        let mut measured = Measured::default();
        for counts in partitions.iter().flat_map(|counts| counts.indexes.first()) {
            measured.loops += counts.loops;
            measured.rows += counts.entries;
            measured.first += counts.time;
            measured.total += counts.time;
        }
        let scan: Arc<dyn ExecutionPlan> = Arc::new(inner.scan.clone());
        let mut node = self.scan(&scan, &inner.scan, measured.loops, &keys)?;
        self.measure(&mut node, &scan)?;
        node.measured = self.options.analyze.then_some(measured);
        Ok(node)
    }
}
