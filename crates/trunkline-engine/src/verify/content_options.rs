//! Options of a content check.
//!
//! [`Checks`] selects what to check in each table, and [`ContentOptions`] selects the tables.

use trunkline_format::Oid;

use super::finding_log::FINDINGS_LISTED;
use super::xid_range::NextIds;
use crate::read_stream::StreamOptions;
use crate::settings::Settings;

/// Default number of index entries that a worker keeps in memory. At 16 bytes each, they take 64
/// MiB.
const ENTRIES_MAX: usize = 4 << 20;

/// What to check in a table, and how to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checks {
    /// Whether to check values against their types, TOAST values, and the visibility map.
    pub rows: bool,
    /// Whether to check B-trees, rows against index entries, and uniqueness.
    pub indexes: bool,
    /// How to read.
    pub stream: StreamOptions,
    /// Maximum number of a table's index entries that a worker keeps in memory at a time. Each
    /// entry takes 16 bytes. If a table has more index entries, we have to read its indexes several
    /// times. For a unique index whose key order we don't know, we also need key hashes, which may
    /// take up as much memory again.
    pub entries_max: usize,
    /// The server's major version. Filled in from the control file.
    pub(super) major: u32,
    /// The ids that the cluster will assign next. Filled in from the control file.
    pub(super) next: Option<NextIds>,
}

/// How to verify contents.
#[derive(Debug, Clone)]
pub struct ContentOptions {
    /// What to check.
    pub checks: Checks,
    /// Tables to check at a time, at least 1.
    pub workers: u32,
    /// Maximum number of findings to list in the report. Any findings beyond that are counted but
    /// not listed. Findings about files of the commit log are always listed.
    pub findings_listed: usize,
    /// The databases and relations to check, or `None` to check everything.
    pub only: Option<Vec<Only>>,
    /// Whether the caller has already compared the files with the catalogs, using
    /// [`verify_with_catalogs`](super::verify_with_catalogs). If so, we don't report damage in the
    /// catalogs again.
    pub catalogs_compared: bool,
}

/// A database or relation to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Only {
    /// The OID of a database.
    pub database: Oid,
    /// The OID of a table, a TOAST table or an index in this database, or `None` to check all
    /// tables. If a table is selected, we also check its TOAST table and its indexes.
    pub relation: Option<Oid>,
}

impl ContentOptions {
    /// Options as configured in the settings.
    pub fn of(settings: &Settings, rows: bool, indexes: bool) -> Self {
        let stream = StreamOptions::maintenance(settings);
        let checks =
            Checks { rows, indexes, stream, entries_max: ENTRIES_MAX, major: 0, next: None };
        let findings_listed = FINDINGS_LISTED;
        Self { checks, workers: 1, findings_listed, only: None, catalogs_compared: false }
    }
}
