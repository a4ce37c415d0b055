//! The sizes of a database's files, for `pg_relation_size` and its family, and where its tablespaces
//! are.
//!
//! The functions themselves are in `trunkline_sql`, which does no I/O.

use std::fmt;
use std::sync::Arc;

use trunkline_engine::Cluster;
use trunkline_engine::catalog::Database;
use trunkline_engine::datadir::DataDirError;
use trunkline_format::{Fork, Oid};
use trunkline_sql::catalog::ObjectSizes;
use trunkline_sql::{SqlError, SqlState};

/// Asks the file system.
pub struct FileSizes {
    database: Arc<Database>,
    cluster: Cluster,
}

impl fmt::Debug for FileSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSizes").finish_non_exhaustive()
    }
}

impl FileSizes {
    /// The sizes of this database's files, and of all databases of its cluster.
    pub fn new(database: &Arc<Database>, cluster: &Cluster) -> Self {
        Self { database: Arc::clone(database), cluster: cluster.clone() }
    }
}

impl ObjectSizes for FileSizes {
    fn fork(&self, relation: Oid, fork: Fork) -> Result<u64, SqlError> {
        let Some(relation) = self.database.relation(relation) else { return Ok(0) };
        let bytes = self.database.fork_bytes(relation, fork);
        bytes.map_err(|error| SqlError::new(SqlState::IO_ERROR, error.to_string()))
    }

    fn database(&self, database: Oid) -> Result<u64, SqlError> {
        self.cluster.dir().database_bytes(database).map_err(unreadable)
    }

    fn tablespace(&self, tablespace: Oid) -> Result<Option<u64>, SqlError> {
        self.cluster.dir().tablespace_bytes(tablespace).map_err(unreadable)
    }

    fn tablespace_location(&self, tablespace: Oid) -> Result<Option<String>, SqlError> {
        let found = self.cluster.dir().tablespace_location(tablespace).map_err(unreadable)?;
        Ok(found.map(|path| path.to_string_lossy().into_owned()))
    }
}

fn unreadable(error: DataDirError) -> SqlError {
    SqlError::new(SqlState::IO_ERROR, error.to_string())
}
