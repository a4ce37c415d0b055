//! What a verification of pages compared with the catalogs.

use std::path::PathBuf;

use thiserror::Error;
use trunkline_aio::facade::Arc;
use trunkline_format::BlockNo;

use super::content_report::Skipped;

/// The results of comparing the files with the catalogs, apart from the findings.
#[derive(Debug, Default)]
pub struct CatalogSummary {
    /// Number of relations whose files were compared.
    pub relations: u64,
    /// Whether the lengths of the relations were compared. They aren't after an unclean shutdown.
    pub lengths_compared: bool,
    /// Relations whose length nothing proves, sorted by file. They could have lost pages at their end
    /// without our noticing.
    pub unproven: Vec<Arc<str>>,
    /// Those of them that used to be longer. This is not a finding, because there are other causes.
    pub doubtful: Vec<DoubtfulLength>,
    /// Databases and relations that were not compared, or not completely.
    pub skipped: Vec<Skipped>,
}

/// A relation that has fewer pages than at its last `VACUUM` or `ANALYZE`, although `VACUUM` updates
/// `pg_class.relpages` after it has truncated a table. The pages may have been lost. But if `VACUUM`
/// is interrupted between these two steps, if a table is truncated by the transaction that created
/// it, or if `relpages` was restored from a dump, a valid cluster looks the same. So does one that
/// went through recovery, because new pages at the end of a table are not logged until they are used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "relation has {found} blocks, but had {pages} at its last VACUUM or ANALYZE; pages at its end \
     may be missing"
)]
pub struct DoubtfulLength {
    /// Database, schema and relation, quoted.
    pub relation: Arc<str>,
    /// The segment that would contain the first missing page.
    pub path: PathBuf,
    /// Its length.
    pub found: BlockNo,
    /// `pg_class.relpages`.
    pub pages: BlockNo,
}
