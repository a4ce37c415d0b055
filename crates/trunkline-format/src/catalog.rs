//! The system catalogs' rows: which columns they have in which version, and the rows as values.
//!
//! The catalogs describe every table, themselves included, so that a reader must know some of them by
//! heart before it can read any. Those are written down in [`CatalogTable`]s, column by column for
//! every version:
//!
//! ```text
//!   CatalogTable ── layout(version) ──▶ CatalogLayout ── fields(tuple) ──▶ Fields ──▶ ClassRow, …
//!   names, sizes, alignments            where each column starts          one row
//! ```
//!
//! Most of what a reader wants stands in the fixed part of a row: columns of fixed size that are
//! never null, which come first, so that their places are the same in every row. What follows is
//! found by walking the row as any other ([`crate::deform`]).
//!
//! [`CatalogLayout::agrees`] compares such knowledge with what the cluster says of itself: a reader
//! that asks will not take one layout for another.

mod access;
mod columns;
mod database;
mod fields;
mod layout;
mod listed_tables;
mod mapped_tables;
mod relation;
mod settings;
#[cfg(test)]
mod tests;
mod typed;

pub use access::{
    AccessMethodRow, CollationRow, IndexRow, InheritsRow, OperatorClassRow, SequenceRow,
};
pub use columns::NAME_SIZE;
pub use database::{DatabaseRow, NamespaceRow, RoleRow, TablespaceRow};
pub use fields::{Fields, RowError};
pub use layout::{CatalogColumn, CatalogLayout, CatalogTable, Mismatch};
pub use listed_tables::*;
pub use mapped_tables::*;
pub use relation::{AttributeRow, ClassRow, Generated, Persistence, RelationKind};
pub use settings::{RoleSettingRow, settings_of};
pub use typed::{EnumRow, NamedRow, RangeRow, TypeRow};
