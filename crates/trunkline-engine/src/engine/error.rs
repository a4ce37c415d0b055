//! Errors of starting an engine and of opening clusters, databases and relations in it.
//!
//! Reads and writes have separate error types, such as [`crate::pool::ReadError`].

use std::io;

use trunkline_aio::TooManySessions;

use crate::catalog::CatalogError;
use crate::datadir::DataDirError;
use crate::pool::PoolError;
use crate::storage::StorageError;

/// Why an engine could not be started, or something could not be opened in it.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The I/O instance could not be started, usually because its page memory could not be mapped.
    #[error("could not start I/O: {0}")]
    Start(#[source] io::Error),
    /// There is no pool of that size.
    #[error("could not make the buffer pool: {0}")]
    Pool(#[from] PoolError),
    /// The data directory is not safe to read.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The database or relation does not exist, or the catalog cannot be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A relation's file cannot be examined.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The engine has no session left.
    #[error(transparent)]
    TooManySessions(#[from] TooManySessions),
}
