//! What a verification of pages compared with the catalogs.

use super::content_report::Skipped;

/// The results of comparing the files with the catalogs, apart from the findings.
#[derive(Debug, Default)]
pub struct CatalogSummary {
    /// Number of relations whose files were compared.
    pub relations: u64,
    /// Number of relations whose length nothing proves. They could have lost pages at their end
    /// without our noticing.
    pub unproven: u64,
    /// Databases and relations that were not compared, or not completely.
    pub skipped: Vec<Skipped>,
}
