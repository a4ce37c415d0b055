//! The columns of outer queries that a relation uses.

use std::collections::BTreeSet;

use trunkline_sql::bound::{ColumnId, ExprKind, Relation, Subqueries};

/// All columns that relations of this tree produce.
fn produced(relation: &Relation, found: &mut BTreeSet<ColumnId>) {
    found.extend(relation.visible());
    if let Relation::With { ctes, .. } = relation {
        ctes.iter().for_each(|cte| found.extend(cte.columns.iter().copied()));
    }
    relation.inputs(|input| produced(input, found));
}

/// The columns of outer queries that a relation uses.
pub(super) fn outer_columns(relation: &Relation, subqueries: &Subqueries) -> BTreeSet<ColumnId> {
    let (mut inner, mut used) = (BTreeSet::new(), BTreeSet::new());
    produced(relation, &mut inner);
    relation.used(subqueries, &mut |id| {
        used.insert(id);
    });
    // Columns that nested subqueries produce themselves are used there, too.
    nested(relation, subqueries, &mut inner);
    used.difference(&inner).copied().collect()
}

/// Adds the columns that subqueries of this tree produce.
fn nested(relation: &Relation, subqueries: &Subqueries, found: &mut BTreeSet<ColumnId>) {
    relation.expressions(|expr| {
        expr.any(&mut |part| {
            if let ExprKind::Subquery(subquery) = &part.kind {
                let inner = &subqueries.get(subquery.query).relation;
                produced(inner, found);
                nested(inner, subqueries, found);
            }
            false
        });
    });
    relation.inputs(|input| nested(input, subqueries, found));
}
