//! The list of databases, with the notes of `\l` in psql: templates, invalid databases.

use serde::Serialize;
use trunkline_engine::catalog::{Catalog, DatabaseRow};

use super::listing::{Listing, SortKey, is_false, share, size, sort};
use super::sizes::Sizes;
use crate::encoding::{SHARED_CATALOG_ENCODING, encoding_name, shown_name};
use crate::output::Column;

/// A database in the list.
#[derive(Serialize)]
pub(super) struct DatabaseLine {
    name: String,
    oid: u32,
    encoding: &'static str,
    tablespace: String,
    /// `None` if the directory of the database is missing.
    pub(super) bytes: Option<u64>,
    /// Whether files are missing or could not be read, so that `bytes` is too small.
    #[serde(skip_serializing_if = "is_false")]
    incomplete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_cached: Option<u64>,
    template: bool,
    allows_connections: bool,
    invalid: bool,
}

impl DatabaseLine {
    /// Whether something is missing that a server would need. `DROP DATABASE` has already removed
    /// files of an invalid database.
    pub(super) fn is_damaged(&self) -> bool {
        self.incomplete && !self.invalid
    }
}

/// A line for each database, in the order of the options.
pub(super) fn databases(catalog: &Catalog, sizes: &Sizes, listing: Listing) -> Vec<DatabaseLine> {
    let line = |info: &DatabaseRow| {
        let sum = sizes.of_database(info);
        let size = sum.found();
        let tablespace = catalog.tablespaces().iter().find(|space| space.oid == info.tablespace);
        DatabaseLine {
            name: shown_name(&info.name, SHARED_CATALOG_ENCODING),
            oid: info.oid.0,
            encoding: encoding_name(info.encoding),
            tablespace: tablespace.map_or_else(
                || info.tablespace.to_string(),
                |space| shown_name(&space.name, SHARED_CATALOG_ENCODING),
            ),
            bytes: size.map(|size| size.bytes),
            incomplete: !sum.is_complete(),
            bytes_cached: size.filter(|_| listing.cached).map(|size| size.cached),
            template: info.is_template,
            allows_connections: info.allows_connections,
            invalid: info.is_invalid(),
        }
    };
    let mut lines: Vec<DatabaseLine> = catalog.databases().iter().map(line).collect();
    lines.sort_by(|one, other| one.name.cmp(&other.name));
    sort(&mut lines, |line| match listing.sort {
        SortKey::Size => line.bytes,
        SortKey::Cached => line.bytes_cached,
        SortKey::Name | SortKey::Rows => None,
    });
    lines
}

/// The columns in the list of databases. Unusual properties are all shown in the last column,
/// because most databases have none.
pub(super) const DATABASE_COLUMNS: [Column<DatabaseLine>; 7] = [
    ("name", |line| line.name.clone()),
    (">oid", |line| line.oid.to_string()),
    ("encoding", |line| line.encoding.to_owned()),
    ("tablespace", |line| line.tablespace.clone()),
    (">size", |line| size(line.bytes, line.incomplete)),
    (">cached", |line| match (line.bytes_cached, line.bytes) {
        (Some(cached), Some(bytes)) => share(cached, bytes),
        _ => String::new(),
    }),
    ("note", |line| {
        let notes = [
            (line.invalid, "invalid: DROP DATABASE was interrupted"),
            (line.template, "template"),
            (!line.allows_connections, "no connections"),
        ];
        let notes: Vec<&str> = notes.iter().filter(|(is, _)| *is).map(|(_, note)| *note).collect();
        notes.join(", ")
    }),
];
