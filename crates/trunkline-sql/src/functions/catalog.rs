//! Functions over the catalogs: names, visibility, comments, privileges, sizes, partitions.
//!
//! They are what psql's `\d` family and drivers call. For example, `pg_table_is_visible(oid)` is in
//! [`visibility`], and `format_type` in [`naming`]. Their data are the catalogs of the session,
//! [`crate::catalog::SessionCatalog`].

mod comments;
mod constant_text;
mod definitions;
mod deparse;
mod index_definition;
mod naming;
mod object_names;
mod partitions;
mod privileges;
mod routines;
mod sizes;
mod visibility;

pub(super) use comments::COMMENTS;
pub use constant_text::literal;
pub(super) use definitions::DEFINITIONS;
pub(super) use naming::NAMING;
pub(super) use partitions::{PARTITIONS, SETS};
pub(super) use privileges::PRIVILEGES;
pub(super) use routines::ROUTINES;
pub(super) use sizes::SIZES;
pub(super) use visibility::VISIBILITY;
