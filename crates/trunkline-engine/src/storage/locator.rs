//! Relation locator: the numbers that identify a relation's files.

use std::fmt;

use trunkline_format::Oid;
use trunkline_format::wal::RelFileLocator;

/// Physical identity of a relation (`RelFileLocator`).
#[derive(Copy, Clone, Eq, PartialEq, Ord, PartialOrd, Hash, Debug)]
pub struct RelationLocator {
    /// The tablespace, never 0: 1663 is `base`, 1664 is `global`.
    pub tablespace: Oid,
    /// The database; 0 for the shared relations in `global`.
    pub database: Oid,
    /// The file number, from 1. It differs from the relation's OID after a rewrite such as
    /// `VACUUM FULL`.
    pub relfilenode: u32,
}

/// As WAL records name it.
impl From<RelationLocator> for RelFileLocator {
    fn from(locator: RelationLocator) -> Self {
        let RelationLocator { tablespace, database, relfilenode: number } = locator;
        Self { tablespace, database, number }
    }
}

/// As a WAL record names it.
impl From<RelFileLocator> for RelationLocator {
    fn from(locator: RelFileLocator) -> Self {
        let RelFileLocator { tablespace, database, number: relfilenode } = locator;
        Self { tablespace, database, relfilenode }
    }
}

/// As in PostgreSQL's messages: `1663/5/16384`.
impl fmt::Display for RelationLocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.tablespace, self.database, self.relfilenode)
    }
}
