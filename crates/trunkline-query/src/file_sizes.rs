//! The sizes of a database's files, for `pg_relation_size` and its family.
//!
//! The functions themselves are in `trunkline_sql`, which does no I/O.

use std::fmt;
use std::sync::Arc;

use trunkline_engine::catalog::Database;
use trunkline_format::{Fork, Oid};
use trunkline_sql::catalog::ObjectSizes;
use trunkline_sql::{SqlError, SqlState};

/// Asks the file system.
pub struct FileSizes {
    database: Arc<Database>,
}

impl fmt::Debug for FileSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSizes").finish_non_exhaustive()
    }
}

impl FileSizes {
    /// The sizes of this database's files.
    pub fn new(database: &Arc<Database>) -> Self {
        Self { database: Arc::clone(database) }
    }
}

impl ObjectSizes for FileSizes {
    fn fork(&self, relation: Oid, fork: Fork) -> Result<u64, SqlError> {
        let Some(relation) = self.database.relation(relation) else { return Ok(0) };
        let bytes = self.database.fork_bytes(relation, fork);
        bytes.map_err(|error| SqlError::new(SqlState::IO_ERROR, error.to_string()))
    }
}
