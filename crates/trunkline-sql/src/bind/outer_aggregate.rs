//! Aggregates in subqueries that belong to a query around them, because they use only its columns.
//!
//! ```text
//!   SELECT (SELECT count(*) FROM t WHERE t.a < max(s.b)) FROM s
//!                                              └── of the query of s, in the subquery a value
//! ```

use super::binder::{Binder, Context, Place};
use super::scope::Scope;
use crate::bound::{ColumnId, Expr};
use crate::error::{SqlError, SqlState};

impl Binder<'_> {
    /// Whether expressions use columns or aggregates of levels around this one, and none of this level.
    pub(super) fn uses_only_outer(&self, expressions: &[Expr], scope: &Scope<'_>) -> bool {
        let mut used: Vec<ColumnId> = Vec::new();
        for expression in expressions {
            expression.columns(&self.subqueries, &mut |id| used.push(id));
        }
        self.innermost(&used, scope) > 0
    }

    /// The innermost level that any of these columns belongs to, counted outwards. Without columns, it
    /// is this one.
    pub(super) fn innermost(&self, columns: &[ColumnId], scope: &Scope<'_>) -> usize {
        let levels = columns.iter().filter_map(|id| self.level_of(*id, scope));
        levels.min().unwrap_or_default()
    }

    /// How many levels out a column belongs. An aggregate that hasn't been adopted yet belongs to the
    /// innermost level that it uses itself. `None`: the column is inside a subquery of this level.
    pub(super) fn level_of(&self, id: ColumnId, scope: &Scope<'_>) -> Option<usize> {
        if let Some(found) = self.outer_aggregates.iter().find(|found| found.id == id) {
            let mut used: Vec<ColumnId> = Vec::new();
            let aggregate = &found.aggregate;
            aggregate.expressions(|expr| expr.columns(&self.subqueries, &mut |id| used.push(id)));
            return Some(self.innermost(&used, scope));
        }
        let mut levels = std::iter::successors(Some(scope), |scope| scope.outer);
        levels.position(|scope| self.is_of_level(id, scope))
    }

    /// Whether a column belongs to this level.
    pub(super) fn is_of_level(&self, id: ColumnId, scope: &Scope<'_>) -> bool {
        let columns = scope.tables.iter().flat_map(|table| table.columns.iter());
        let mut found = false;
        for column in columns {
            column.value.columns(&self.subqueries, &mut |own| found |= own == id);
        }
        found
    }

    /// Takes the aggregates of a subquery that belong to this query: of those that have been found, the
    /// ones from number `first`.
    pub(super) fn adopt_aggregates(
        &mut self,
        first: usize,
        context: &mut Context<'_>,
    ) -> Result<(), SqlError> {
        for found in self.outer_aggregates.split_off(first) {
            let mut used: Vec<ColumnId> = Vec::new();
            let aggregate = &found.aggregate;
            aggregate.expressions(|expr| expr.columns(&self.subqueries, &mut |id| used.push(id)));
            if !used.iter().any(|id| self.is_of_level(*id, context.scope)) {
                self.outer_aggregates.push(found);
                continue;
            }
            if !context.place.allows_aggregates() {
                return Err(not_allowed(context.place, found.at));
            }
            context.level.aggregates.push((found.id, found.aggregate));
        }
        Ok(())
    }
}

/// The error for an aggregate in a clause that can't have any.
pub(super) fn not_allowed(place: Place, at: u32) -> SqlError {
    let message = format!("aggregate functions are not allowed in {}", place.clause());
    SqlError::new(SqlState::GROUPING_ERROR, message).at(at)
}

/// The error for an aggregate of an outer query where we don't support it.
pub(super) fn outer_aggregate(at: u32) -> SqlError {
    let message = "an aggregate of an outer query is not supported by trunkline here";
    SqlError::unsupported(message).at(at)
}
