//! Errors from starting an engine, and from opening clusters, databases and relations in it.
//!
//! Reads and writes have separate error types, such as [`crate::pool::ReadError`].

use std::io;

use trunkline_aio::TooManySessions;

use crate::catalog::CatalogError;
use crate::datadir::DataDirError;
use crate::pool::PoolError;
use crate::storage::StorageError;

/// Why an engine couldn't be started, or why something couldn't be opened in it.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The I/O instance couldn't be started, usually because its page memory couldn't be mapped.
    #[error("could not start I/O: {0}")]
    Start(#[source] io::Error),
    /// A pool of that size can't be created.
    #[error("could not make the buffer pool: {0}")]
    Pool(#[from] PoolError),
    /// The data directory is not safe to read.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The database or relation doesn't exist, or the catalog can't be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A relation's file can't be examined.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The engine has no free session.
    #[error(transparent)]
    TooManySessions(#[from] TooManySessions),
}
