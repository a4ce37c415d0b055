//! The catalogs as the functions of a session see them.
//!
//! `pg_table_is_visible` depends on the search path, and `pg_relation_size` on the files of the
//! directory. Nothing here does I/O, so the sizes come through a trait.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use trunkline_format::{Fork, Oid};

use super::namespace::Namespace;
use super::search_path::SearchPath;
use super::sql_catalog::SqlCatalog;
use crate::error::SqlError;

/// The sizes of files.
pub trait ObjectSizes: Send + Sync {
    /// The bytes of a fork of a relation; 0 if it has no such fork.
    ///
    /// # Errors
    /// The directory can't be read.
    fn fork(&self, relation: Oid, fork: Fork) -> Result<u64, SqlError>;

    /// The bytes of all files of a database; 0 if there is no such database.
    ///
    /// # Errors
    /// As for [`ObjectSizes::fork`], here and below.
    fn database(&self, database: Oid) -> Result<u64, SqlError>;

    /// The bytes of all files in a tablespace; `None` if it has no directory.
    fn tablespace(&self, tablespace: Oid) -> Result<Option<u64>, SqlError>;

    /// The directory of a tablespace, which is empty if it is part of the data directory. `None` if
    /// there is no such tablespace.
    fn tablespace_location(&self, tablespace: Oid) -> Result<Option<String>, SqlError>;
}

/// A catalog, the session's search path, the sizes of files, the user and the connection.
#[derive(Clone)]
pub struct SessionCatalog {
    /// The catalogs of the database.
    pub catalog: SqlCatalog,
    /// Where names are looked up.
    pub path: SearchPath,
    /// The sizes of the database's files.
    pub sizes: Arc<dyn ObjectSizes>,
    /// The user.
    pub user: String,
    /// Both ends of the connection; `None` if it isn't one over TCP.
    pub addresses: Option<Addresses>,
}

/// The two ends of a connection over TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// The client's.
    pub client: SocketAddr,
    /// That at which it was accepted.
    pub server: SocketAddr,
}

impl fmt::Debug for SessionCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionCatalog").field("catalog", &self.catalog).finish_non_exhaustive()
    }
}

impl SessionCatalog {
    /// The catalog as seen through the search path.
    pub fn names(&self) -> Namespace<'_> {
        Namespace::new(&self.catalog, &self.path)
    }
}
