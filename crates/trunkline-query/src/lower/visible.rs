//! The columns of a relation.

use std::collections::BTreeSet;

use trunkline_sql::bound::{ColumnId, ExprKind, Relation, Subqueries};

/// The columns that a relation produces, in order.
pub(super) fn visible(relation: &Relation) -> Vec<ColumnId> {
    match relation {
        Relation::Unit => Vec::new(),
        Relation::Table(table) => table.columns.iter().map(|column| column.id).collect(),
        Relation::Values { columns, .. } | Relation::SetOperation { columns, .. } => {
            columns.clone()
        }
        Relation::Functions { functions, ordinality } => {
            let columns = functions.iter().flat_map(|function| function.columns.iter().copied());
            columns.chain(*ordinality).collect()
        }
        Relation::ProjectSet { input, functions } => {
            let columns = functions.iter().flat_map(|function| function.columns.iter().copied());
            visible(input).into_iter().chain(columns).collect()
        }
        Relation::Project { columns, .. } => columns.iter().map(|(id, _)| *id).collect(),
        Relation::Filter { input, .. }
        | Relation::Distinct { input, .. }
        | Relation::Sort { input, .. }
        | Relation::Limit { input, .. }
        | Relation::With { input, .. } => visible(input),
        Relation::Join { left, right, .. } => {
            let mut columns = visible(left);
            columns.extend(visible(right));
            columns
        }
        Relation::Aggregate { groups, aggregates, .. } => {
            let groups = groups.iter().map(|(id, _)| *id);
            groups.chain(aggregates.iter().map(|(id, _)| *id)).collect()
        }
        Relation::Window { input, functions, .. } => {
            let functions = functions.iter().map(|(id, _)| *id);
            visible(input).into_iter().chain(functions).collect()
        }
        Relation::CteScan { columns, .. } => columns.iter().map(|(_, id)| *id).collect(),
    }
}

/// All columns that relations of this tree produce.
fn produced(relation: &Relation, found: &mut BTreeSet<ColumnId>) {
    found.extend(visible(relation));
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
