//! **Catalog look-ups of the binder**: types, functions, operators, casts and relations by name and by
//! OID.
//!
//! ```text
//!   SqlCatalog: what the catalogs of a database contain, indexed. One for each database, shared.
//!       │  + SearchPath: in which schemas a session looks for names
//!       ▼
//!   Namespace: names → OIDs, and OIDs → names for messages
//! ```
//!
//! Names in SQL are UTF-8; names in catalogs are in the encoding of the database ([`NameEncoding`]).
//! Nothing here does I/O: the engine has loaded the catalogs before, and a snapshot never changes.
//!
//! ```no_run
//! use trunkline_engine::catalog::{CatalogError, Database};
//! use trunkline_engine::pool::Backend;
//! use trunkline_aio::facade::Arc;
//! use trunkline_sql::catalog::{Namespace, ObjectName, SearchPath, SqlCatalog};
//!
//! fn show(database: Arc<Database>, backend: &mut Backend) -> Result<(), CatalogError> {
//!     let expressions = database.expression_catalogs(backend)?;
//!     let catalog = SqlCatalog::new(database, expressions);
//!     let path = SearchPath::new(&catalog, &["$user", "public"], Some("alice"));
//!     let names = Namespace::new(&catalog, &path);
//!     let varchar = names.type_named(ObjectName::unqualified("varchar"));
//!     println!("{}", varchar.map_or(String::new(), |row| names.format_type(row.oid, Some(24))));
//!     Ok(())
//! }
//! ```

mod candidates;
mod definitions;
mod encoding;
mod encoding_names;
mod kernel_name;
mod named;
mod namespace;
pub mod oids;
mod overlay;
mod overlay_definitions;
mod search_path;
mod session_catalog;
mod sql_catalog;
mod type_modifier;
mod type_operators;
mod type_properties;
mod visibility;

pub use candidates::{CallShape, Candidate};
pub use definitions::Definitions;
pub use encoding::NameEncoding;
pub use encoding_names::{ENCODINGS, encoding_by_name};
pub use namespace::{Namespace, ObjectName};
pub use overlay::VirtualRelation;
pub use overlay_definitions::BUILT_IN_EXTENSIONS;
pub(crate) use overlay_definitions::DOMAIN_VIOLATION;
pub use search_path::SearchPath;
pub use session_catalog::{Addresses, ObjectSizes, SessionCatalog};
pub use sql_catalog::{SYSTEM_COLUMNS, SqlCatalog, SystemColumn, ViewQueries};
pub use type_operators::TypeOperators;
pub use type_properties::Category;
