//! **Access paths**: how a scan gets to the rows of its table.
//!
//! ```text
//!   filters ─▶ clauses ─▶ conditions on each usable index ─┐
//!   pg_statistic ─▶ selectivity of each condition ─────────┼─▶ costs ─▶ the cheapest path
//!   settings: random_page_cost, enable_seqscan, … ─────────┤
//!   where pages are, how long reads take ──────────────────┘
//! ```
//! A path only decides which rows are looked at. All filters are evaluated for each of them, so a wrong
//! estimate costs time, and a wrong entry of an index can't bring a wrong row. What must not happen is
//! that a condition says more than the filters, because then rows would be missing.

mod bitmap_choice;
mod bound_clause;
mod candidate_index;
mod choice;
mod clause;
mod column_order;
mod column_selectivity;
mod cost;
mod heap_pages;
mod implication;
mod index_condition;
mod index_only;
mod index_search;
mod key_search;
mod keyed_path;
mod native_clause;
mod ordered_choice;
mod page_costs;
mod path;
mod selectivity;
mod sort_cost;
mod statistics;
mod stored_predicate;
mod unique_search;
mod unused_index;
mod value_conversion;

pub(crate) use bound_clause::BoundClauses;
pub(crate) use candidate_index::{CandidateIndex, KeyOperator, TableIndexes, index_files};
pub(crate) use choice::Choice;
pub(crate) use clause::{Clause, FilterColumn};
pub(crate) use column_order::SortedBy;
pub(crate) use cost::Cost;
pub use cost::PlannerSettings;
pub(crate) use implication::Facts;
pub(crate) use index_condition::first_column;
pub(crate) use index_only::index_only_files;
pub(crate) use key_search::{KeyColumn, KeySearch, KeyType, KeyValues};
pub(crate) use keyed_path::KeyedPath;
pub(crate) use native_clause::Clauses;
pub(crate) use ordered_choice::{OrderedChoice, Sort, SortColumn};
pub(crate) use page_costs::{FoundPages, RelationPages};
pub(crate) use path::{AccessPath, BitmapNode, IndexSearch, PathKind, STATISTICS};
pub(crate) use sort_cost::row_width;
pub(crate) use statistics::TableStatistics;
pub(crate) use unique_search::{unique_indexes, unique_search};
