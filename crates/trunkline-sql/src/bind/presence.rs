//! Whole rows of tables on the nullable side of an outer join.
//!
//! ```text
//!   select b from a left join b on …     null where no row of b matches, not (,)
//! ```
//!
//! A table has a column that is null only then: `tableoid`. Anything else gets a column of its own
//! below the join, which is removed again if no whole row is used.

use crate::bound::{ColumnId, Columns, Expr, ExprKind, Query, Relation, Subqueries, with_stack};

/// The columns that show whether there is a row.
#[derive(Debug, Default)]
pub(super) struct Markers {
    all: Vec<ColumnId>,
    used: Vec<ColumnId>,
}

impl Markers {
    /// Adds one.
    pub(super) fn add(&mut self, marker: ColumnId) {
        self.all.push(marker);
    }

    /// The column is needed.
    pub(super) fn need(&mut self, marker: ColumnId) {
        self.used.push(marker);
    }

    /// Gives the relations with markers their columns, or removes the markers.
    pub(super) fn settle(
        &self,
        columns: &Columns,
        mut subqueries: Subqueries,
        mut query: Query,
    ) -> (Subqueries, Query) {
        if !self.all.is_empty() {
            self.settle_relation(&mut query.relation, columns);
            for id in subqueries.ids() {
                let mut inner = subqueries.take(id);
                self.settle_relation(&mut inner.relation, columns);
                subqueries.put(id, inner);
            }
        }
        (subqueries, query)
    }

    fn settle_relation(&self, relation: &mut Relation, types: &Columns) {
        with_stack(|| {
            if let Relation::Project { input, columns } = relation
                && let [(marker, _)] = &**columns
                && self.all.contains(marker)
            {
                let marker = *marker;
                let own = columns.pop();
                if self.used.contains(&marker) {
                    let column = |id| (id, Expr::new(ExprKind::Column(id), types.get(id).ty));
                    columns.extend(input.visible().into_iter().map(column));
                    columns.extend(own);
                } else {
                    let input = std::mem::replace(&mut **input, Relation::Unit);
                    *relation = input;
                    self.settle_relation(relation, types);
                    return;
                }
            }
            relation.inputs_mut(|input| self.settle_relation(input, types));
        });
    }
}
