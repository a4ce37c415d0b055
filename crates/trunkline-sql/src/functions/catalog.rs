//! Functions over the catalogs: names, visibility, comments, privileges, sizes, partitions.
//!
//! They are what psql's `\d` family and drivers call. For example, `pg_table_is_visible(oid)` is in
//! [`visibility`], and `format_type` in [`naming`]. Their data are the catalogs of the session,
//! [`crate::catalog::SessionCatalog`].

mod access_lists;
mod comments;
mod constant_text;
mod definitions;
mod deparse;
mod describe_object;
mod extensions;
mod index_definition;
mod information;
mod naming;
mod node_fields;
mod object_names;
mod options;
mod partition_constraint;
mod partitions;
mod privileges;
mod query_calls;
mod query_expression;
mod query_from;
mod query_names;
mod query_order;
mod query_text;
mod routine_definition;
mod routines;
mod size_texts;
mod sizes;
mod sql_syntax;
mod table_naming;
mod text_search;
mod updatable;
mod visibility;

pub(super) use access_lists::{ACCESS_LISTS, ACCESS_SETS};
pub(super) use comments::COMMENTS;
pub use constant_text::literal;
pub(super) use definitions::DEFINITIONS;
pub(crate) use deparse::Deparser;
pub(super) use describe_object::DESCRIPTIONS;
pub(super) use extensions::EXTENSIONS;
pub(super) use information::INFORMATION;
pub(super) use naming::NAMING;
pub(super) use options::OPTIONS;
pub(super) use partitions::{PARTITIONS, SETS};
pub(super) use privileges::PRIVILEGES;
pub(super) use routine_definition::ROUTINE_DEFINITIONS;
pub(super) use routines::ROUTINES;
pub(super) use size_texts::SIZE_TEXTS;
pub(super) use sizes::SIZES;
pub(super) use text_search::TEXT_SEARCH;
pub(super) use updatable::UPDATABLE;
pub(super) use visibility::VISIBILITY;
