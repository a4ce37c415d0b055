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
    /// The maximum number of a table's index entries that a worker keeps in memory at a time, at 16
    /// bytes each. If a table has more, we read its indexes several times. The key hashes of a
    /// unique index of unknown order take the same amount of memory again.
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
    /// The most findings to list in the report. All findings are counted.
    pub findings_listed: usize,
    /// The databases and relations to check; `None` for everything.
    pub only: Option<Vec<Only>>,
}

/// A database or relation to check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Only {
    /// The OID of a database.
    pub database: Oid,
    /// The OID of a table, a TOAST table or an index in this database. `None` selects all tables.
    /// If a table is selected, its TOAST table and its indexes are checked as well.
    pub relation: Option<Oid>,
}

impl ContentOptions {
    /// Options as configured in the settings.
    pub fn of(settings: &Settings, rows: bool, indexes: bool) -> Self {
        let stream = StreamOptions::maintenance(settings);
        let checks =
            Checks { rows, indexes, stream, entries_max: ENTRIES_MAX, major: 0, next: None };
        Self { checks, workers: 1, findings_listed: FINDINGS_LISTED, only: None }
    }
}
