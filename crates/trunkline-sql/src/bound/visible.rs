//! Which columns a relation shows to what uses it.

use super::column::ColumnId;
use super::relation::Relation;

impl Relation {
    /// The columns that are visible to what uses this relation.
    pub fn visible(&self) -> Vec<ColumnId> {
        match self {
            Self::Unit => Vec::new(),
            Self::Table(table) => table.columns.iter().map(|column| column.id).collect(),
            Self::Values { columns, .. }
            | Self::SetOperation { columns, .. }
            | Self::Recursive { columns, .. } => columns.clone(),
            Self::Functions { functions, ordinality } => {
                let columns =
                    functions.iter().flat_map(|function| function.columns.iter().copied());
                columns.chain(*ordinality).collect()
            }
            Self::ProjectSet { input, functions } => {
                let columns =
                    functions.iter().flat_map(|function| function.columns.iter().copied());
                input.visible().into_iter().chain(columns).collect()
            }
            Self::Project { columns, .. } => columns.iter().map(|(id, _)| *id).collect(),
            Self::Filter { input, .. }
            | Self::Distinct { input, .. }
            | Self::Sort { input, .. }
            | Self::Limit { input, .. }
            | Self::With { input, .. } => input.visible(),
            Self::Join { left, right, .. } => {
                let mut columns = left.visible();
                columns.extend(right.visible());
                columns
            }
            Self::Aggregate { groups, groupings, aggregates, .. } => {
                let groupings = groupings.iter().map(|(id, _)| *id);
                let groups = groups.iter().map(|(id, _)| *id).chain(groupings);
                groups.chain(aggregates.iter().map(|(id, _)| *id)).collect()
            }
            Self::Window { input, functions, .. } => {
                let functions = functions.iter().map(|(id, _)| *id);
                input.visible().into_iter().chain(functions).collect()
            }
            Self::CteScan { columns, .. } => columns.iter().map(|(_, id)| *id).collect(),
        }
    }
}
