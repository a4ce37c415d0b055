//! What the access paths of a table are made from.

use std::sync::Arc;

use trunkline_engine::catalog::Database;
use trunkline_format::Oid;

use crate::access_path::Clause;
use crate::environment::Environment;

/// The table, and what its columns and conditions mean.
#[derive(Debug, Clone)]
pub(crate) struct PathSource {
    pub(crate) environment: Environment,
    pub(crate) database: Arc<Database>,
    pub(crate) table: Oid,
    /// Whether the rows of the table will be sorted.
    pub(crate) is_sorted: bool,
}

/// What searches for the keys of other rows are made from.
#[derive(Debug)]
pub(crate) struct SearchBasis {
    pub(super) source: PathSource,
    /// What the filters of the scan say about single columns, in their order.
    pub(super) clauses: Vec<Clause>,
}
