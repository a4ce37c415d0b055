//! **Catalog reader.** Reads the system catalogs of a data directory: databases, schemas,
//! relations, columns, types, indexes.
//!
//! ```text
//!   global/pg_filenode.map ──▶ pg_database, pg_tablespace ──▶ Catalog
//!                                                               │ database("bench")
//!   base/5/pg_filenode.map ──▶ pg_class, pg_attribute           ▼
//!                                └──▶ pg_type, pg_index … ──▶ Database: an immutable snapshot
//!                                                               │ resolve("public.accounts")
//!                                                               ▼
//!                                           RelationInfo, its columns, files, indexes, partitions
//! ```
//!
//! The relation map (`pg_filenode.map`) contains the file numbers of `pg_class` and `pg_attribute`,
//! and `pg_class` contains the file numbers of all other catalogs. We read each catalog with a
//! sequential scan through the pool. Index scans might read fewer pages, but the catalogs are
//! small, and their indexes might be damaged.
//!
//! Rows are copied into plain values, so a snapshot doesn't keep any pages pinned. A [`Database`]
//! is loaded just once, shared by all threads, and never changes. PostgreSQL's relcache and
//! syscache instead load individual rows through catalog indexes, and have to process invalidation
//! messages. We don't need any of this, because the server is stopped and the snapshot can't become
//! stale. Large catalogs that few callers need, such as `pg_proc`, are loaded on demand
//! ([`Database::load_names`], [`Database::expression_catalogs`]).
//!
//! **Trust.** Before we use the snapshot, we check that the catalogs' columns in `pg_attribute`
//! match the layout of a server of this version
//! ([`trunkline_format::catalog::CatalogLayout::agrees`]). If a PostgreSQL fork has added catalog
//! columns, this lets us report an error instead of decoding its catalogs incorrectly.
//!
//! **Damage.** By default, a damaged row is an error, because otherwise the object it describes
//! would be silently missing. With [`OnDamage::Collect`], we skip the damaged rows, load the rest,
//! and list the damage in [`Database::faults`]. If a catalog has lost pages, at its end or
//! because they were overwritten with zeros, there are no damaged rows that would tell, so we
//! compare it with its index, as far as that can be read. Since any number of rows may be missing,
//! this is an error unless the caller asks for [`OnDamage::Rescue`].
//!
//! ```no_run
//! # use trunkline_engine::catalog::Catalog;
//! # use trunkline_engine::datadir::DataDir;
//! # use trunkline_engine::pool::{BackendType, Pool};
//! # use trunkline_engine::storage::Storage;
//! fn print_columns(
//!     dir: &DataDir,
//!     storage: &Storage,
//!     pool: &Pool,
//! ) -> Result<(), Box<dyn std::error::Error>> {
//!     let mut backend = pool.backend(BackendType::Client)?;
//!     let catalog = Catalog::open(dir, storage, &mut backend)?;
//!     let database = catalog.database(&mut backend, b"bench")?;
//!     let accounts = database.resolve(b"public.pgbench_accounts")?;
//!     for column in database.columns(accounts)? {
//!         println!("{}", String::from_utf8_lossy(&column.name));
//!     }
//!     Ok(())
//! }
//! ```

mod catalog_length;
mod cluster;
mod database;
mod databases;
mod definition_catalogs;
mod definition_loader;
mod error;
mod expression_catalogs;
mod expression_loader;
mod lookups;
mod name;
mod objects;
mod procedure;
mod reader;
mod relation;
mod relation_path;
mod resolve;
mod rules;
mod sequences;
mod settings;
mod snapshot;
mod statistics;

pub use self::cluster::OnDamage;
pub use self::database::{Database, TableFiles};
pub use self::databases::Catalog;
pub use self::definition_catalogs::DefinitionCatalogs;
pub use self::error::{CatalogError, Unreadable};
pub use self::expression_catalogs::ExpressionCatalogs;
pub use self::name::{NameProblem, QualifiedName, is_system_schema, quoted};
pub use self::procedure::{Parameter, ParameterMode, Procedure};
pub use self::relation::{BTREE_METHOD, ColumnInfo, HEAP_METHOD, RelationInfo};
pub use self::relation_path::{RelationPath, first_file};
pub use trunkline_format::catalog::{DatabaseRow, NamespaceRow, TablespaceRow};
