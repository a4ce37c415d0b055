//! Searches for one row: by all columns of a unique index.

use std::sync::Arc;

use trunkline_format::btree::{Comparison, Condition, Direction, KeyRanges};

use super::candidate_index::{CandidateIndex, TableIndexes};
use super::clause::Clause;
use super::index_condition::Conditions;
use super::path::IndexSearch;
use crate::environment::Environment;

/// The unique indexes of a table that can be searched for all of their columns.
pub(crate) fn key_indexes(indexes: &TableIndexes) -> Vec<Arc<CandidateIndex>> {
    let keys = indexes
        .usable
        .iter()
        .filter(|index| index.unique && index.columns.len() == index.key_count);
    keys.cloned().collect()
}

/// The search of a unique index for the only row for which `clause` can be true. `None` unless the
/// clause says that each column of the index has one value, and nothing else. `encoding` is that of
/// the database (`pg_database.encoding`).
pub(crate) fn key_search(
    environment: &Environment,
    encoding: i32,
    index: &Arc<CandidateIndex>,
    clause: &Clause,
) -> Option<IndexSearch> {
    let clauses = [clause.clone()];
    let found = Conditions::new(environment, encoding).on(index, &clauses);
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
    Some(IndexSearch {
        index: Arc::clone(index),
        conditions: found.conditions,
        ranges,
        entries: 1.0,
    })
}
