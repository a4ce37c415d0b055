//! Searches for one row: by all columns of a unique index.

use std::cmp::Ordering;
use std::sync::Arc;

use trunkline_format::btree::{Comparison, Condition, Direction, KeyRanges};

use super::candidate_index::{CandidateIndex, TableIndexes};
use super::clause::Clause;
use super::index_condition::Conditions;
use super::path::IndexSearch;
use crate::environment::Environment;

/// The unique indexes of a table that can be searched for all of their columns.
pub(crate) fn unique_indexes(indexes: &TableIndexes) -> Vec<Arc<CandidateIndex>> {
    let keys = indexes
        .usable
        .iter()
        .filter(|index| index.unique && index.columns.len() == index.key_count);
    keys.cloned().collect()
}

/// The search of a unique index for the only row for which `clause` can be true. `None` unless the
/// clause says that each column of the index has one value, and nothing else. `encoding` is that of
/// the database (`pg_database.encoding`).
pub(crate) fn unique_search(
    environment: &Environment,
    encoding: i32,
    index: &Arc<CandidateIndex>,
    clause: &Clause,
) -> Option<Arc<IndexSearch>> {
    let conditions = Conditions::new(environment, encoding);
    let found = conditions.on(index, std::slice::from_ref(clause));
    if found.covered.is_empty() || found.conditions.len() != index.key_count {
        return None;
    }
    let mut columns = found.conditions.iter().enumerate();
    let is_key = columns.all(|(at, condition)| match condition {
        Condition::Compare { column, comparison: Comparison::Equal, .. } => *column == at,
        // The column can't have the value.
        Condition::AnyOf { column, values } => *column == at && values.is_empty(),
        _ => false,
    });
    if !is_key {
        return None;
    }
    let layout = index.index.layout();
    let ranges = KeyRanges::new(layout, &found.conditions, Direction::Forward).ok()?;
    let (index, conditions) = (Arc::clone(index), found.conditions);
    Some(Arc::new(IndexSearch { index, conditions, ranges, entries: 1.0, order: None }))
}

impl IndexSearch {
    /// Whether a row is the one that a key search was for. `value` returns the row's value of a column by
    /// its place among the stored columns: a payload, or `None` for null.
    pub(crate) fn is_of_key<'v>(&self, value: impl Fn(usize) -> Option<&'v [u8]>) -> bool {
        let keys = self.index().layout().keys();
        self.conditions.iter().all(|condition| {
            let Condition::Compare { column, comparison: Comparison::Equal, value: Some(wanted) } =
                condition
            else {
                return false;
            };
            let found = self.index.place_of(*column).and_then(&value);
            let order = keys.get(*column).map(|key| key.order);
            let compared = order.zip(found).and_then(|(order, found)| order.compare(found, wanted));
            compared == Some(Ordering::Equal)
        })
    }
}
