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
//! The relation map (`pg_filenode.map`) has the file numbers of `pg_class` and `pg_attribute`, and
//! `pg_class` has those of all other catalogs. Each catalog is read by one sequential scan through
//! the pool. An index scan would read fewer pages, but the indexes may be damaged, and catalogs are
//! small.
//!
//! Rows are copied into plain values, so nothing here pins a page. A [`Database`] is loaded once,
//! shared by all threads, and never changes. Large catalogs that few callers need, such as
//! `pg_proc`, are loaded on demand ([`Database::load_names`]). PostgreSQL's relcache and syscache
//! load rows one by one through catalog indexes and process invalidation messages. Here the server
//! is stopped, so a snapshot cannot become stale.
//!
//! **Trust.** Before the snapshot is used, the catalogs' own description in `pg_attribute` is
//! compared with the layout that servers of this version have
//! ([`trunkline_format::catalog::CatalogLayout::agrees`]). The data directory of a derivative of
//! PostgreSQL with other catalog columns is therefore refused with an error instead of being
//! decoded wrongly.
//!
//! **Damage.** By default a damaged row is an error, because otherwise the object that it describes
//! would be missing without notice. With [`OnDamage::Collect`] the rest is loaded, and
//! [`Database::faults`] lists the rows that were left out.
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

mod cluster;
mod database;
mod databases;
mod error;
mod lookups;
mod name;
mod objects;
mod reader;
mod relation;
mod relation_path;
mod resolve;
mod settings;
mod snapshot;

pub use self::cluster::OnDamage;
pub use self::database::{Database, TableFiles};
pub use self::databases::Catalog;
pub use self::error::{CatalogError, Unreadable};
pub use self::name::{NameProblem, QualifiedName, quoted};
pub use self::relation::{BTREE_METHOD, ColumnInfo, HEAP_METHOD, RelationInfo};
pub use self::relation_path::{RelationPath, first_file};
pub use trunkline_format::catalog::{DatabaseRow, NamespaceRow, TablespaceRow};
