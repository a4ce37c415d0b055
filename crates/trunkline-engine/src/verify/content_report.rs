//! The result of a content check.
//!
//! The counters include invalid objects. Orphaned TOAST values and skipped objects don't count as
//! findings.

use std::time::Duration;

use thiserror::Error;
use trunkline_aio::facade::Arc;
use trunkline_format::BLOCK_SIZE;

use super::finding::Finding;
use crate::catalog::CatalogError;
use crate::job::{End, IoSummary, JobError};

/// An object that was not checked, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Database, schema and relation.
    pub relation: Arc<str>,
    /// The part that was not checked, and the reason.
    pub reason: String,
}

/// TOAST values of a table that no row refers to. They waste space but cause no wrong results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphans {
    /// Database, schema and table.
    pub relation: Arc<str>,
    /// The number of values.
    pub values: u64,
    /// The number of their chunks, which are rows of the TOAST table.
    pub chunks: u64,
    /// The bytes of these rows.
    pub bytes: u64,
    /// The lowest value id (`chunk_id`).
    pub first: u32,
}

/// The result of a content check.
#[derive(Debug, Default)]
pub struct ContentReport {
    /// Whether the check reached its end. Otherwise everything here covers only a part of the data.
    pub end: End,
    /// Tables checked, including TOAST tables and materialized views.
    pub tables: u64,
    /// B-trees checked.
    pub indexes: u64,
    /// Visible rows.
    pub rows: u64,
    /// Index entries.
    pub entries: u64,
    /// Pages of tables and indexes.
    pub pages: u64,
    /// The listed findings. Those about files of the commit log and of multixacts come first, then
    /// all others by file, block and line pointer.
    pub findings: Vec<Finding>,
    /// The number of findings, including those that aren't listed.
    pub findings_total: u64,
    /// Objects that were not checked.
    pub skipped: Vec<Skipped>,
    /// Orphaned TOAST values: no damage, but wasted space.
    pub orphans: Vec<Orphans>,
    /// How long it took.
    pub elapsed: Duration,
    /// The I/O.
    pub io: IoSummary,
}

impl ContentReport {
    /// Bytes of the pages checked.
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
