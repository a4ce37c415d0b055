//! The physical identity of a relation, by which the log names the pages that it changes.

use std::fmt;

use crate::control::PgVersion;
use crate::ids::Oid;
use crate::little_endian::words;

/// `RelFileLocator`: tablespace, database and file number. The log knows no names and no OIDs of
/// relations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RelFileLocator {
    /// The tablespace: 1663 is `base`, 1664 is `global`.
    pub tablespace: Oid,
    /// The database; 0 for the shared relations in `global`.
    pub database: Oid,
    /// The file number.
    pub number: u32,
}

impl RelFileLocator {
    /// Size in bytes.
    pub const SIZE: usize = 12;

    /// `pg_default`.
    const DEFAULT_TABLESPACE: Oid = Oid(1663);

    /// `pg_global`.
    const GLOBAL_TABLESPACE: Oid = Oid(1664);

    /// Decodes the locator at `at`.
    pub(super) fn read(bytes: &[u8], at: usize) -> Option<Self> {
        let [tablespace, database, number] = words(bytes, at)?;
        Some(Self { tablespace: Oid(tablespace), database: Oid(database), number })
    }

    /// The path of the relation's main fork below the data directory. In a tablespace, the folder
    /// of each version has its own name.
    pub fn path(self, version: PgVersion) -> String {
        let Self { tablespace, database, number } = self;
        match tablespace {
            Self::GLOBAL_TABLESPACE => format!("global/{number}"),
            Self::DEFAULT_TABLESPACE => format!("base/{database}/{number}"),
            _ => {
                let folder = format!("PG_{}_{}", version.major(), version.catalog_version());
                format!("pg_tblspc/{tablespace}/{folder}/{database}/{number}")
            }
        }
    }
}

/// Prints `1663/5/16384`, like PostgreSQL.
impl fmt::Display for RelFileLocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.tablespace, self.database, self.number)
    }
}
