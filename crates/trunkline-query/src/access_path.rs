//! **Access paths**: how a scan gets to the rows of its table.
//!
//! ```text
//!   filters ─▶ clauses ─▶ conditions on each usable index ─┐
//!   pg_statistic ─▶ selectivity of each condition ─────────┼─▶ costs ─▶ the cheapest path
//!   settings: random_page_cost, enable_seqscan, … ─────────┘
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
mod implication;
mod index_condition;
mod index_only;
mod index_search;
mod native_clause;
mod path;
mod selectivity;
mod statistics;
mod stored_predicate;
mod value_conversion;

pub(crate) use candidate_index::{CandidateIndex, KeyOperator, TableIndexes, index_files};
pub(crate) use choice::Choice;
pub(crate) use clause::{Clause, FilterColumn};
pub use cost::PlannerSettings;
pub(crate) use implication::Facts;
pub(crate) use index_only::index_only_files;
pub(crate) use native_clause::Clauses;
pub(crate) use path::{AccessPath, BitmapNode, IndexSearch, PathKind};
pub(crate) use statistics::TableStatistics;
