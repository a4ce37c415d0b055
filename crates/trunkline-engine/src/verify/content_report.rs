//! What a verification of contents has to say, and why there may be nothing to say.
//!
//! Counts are of what was looked at, whether or not it was sound.

use std::time::Duration;

use thiserror::Error;
use trunkline_aio::sync::Arc;
use trunkline_format::BLOCK_SIZE;

use super::findings::Finding;
use super::orphans::Orphans;
use crate::catalog::CatalogError;
use crate::job::{End, IoSummary, JobError};

/// Something that was not looked into, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Database, schema and relation.
    pub relation: Arc<str>,
    /// What and why.
    pub reason: String,
}

/// What was found.
#[derive(Debug)]
pub struct ContentReport {
    /// Whether it came to its end; otherwise everything here is of a part.
    pub end: End,
    /// Tables checked, TOAST tables and materialized views among them.
    pub tables: u64,
    /// B-trees checked.
    pub indexes: u64,
    /// Visible rows.
    pub rows: u64,
    /// Index entries.
    pub entries: u64,
    /// Pages of tables and indexes.
    pub pages: u64,
    /// What is wrong, by file, block and line pointer.
    pub findings: Vec<Finding>,
    /// How much is wrong, listed or not.
    pub findings_total: u64,
    /// What was not looked into.
    pub skipped: Vec<Skipped>,
    /// Long values that no row names: no damage, but room that is lost.
    pub orphans: Vec<Orphans>,
    /// All of it.
    pub elapsed: Duration,
    /// The I/O.
    pub io: IoSummary,
}

impl ContentReport {
    /// Bytes of all pages.
    pub fn bytes(&self) -> u64 {
        self.pages * BLOCK_SIZE as u64
    }
}

/// Why the contents could not be verified.
#[derive(Debug, Error)]
pub enum ContentError {
    /// The catalog of the cluster cannot be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// No threads or sessions could be started, or a server has started on the directory.
    #[error(transparent)]
    Job(#[from] JobError),
}
