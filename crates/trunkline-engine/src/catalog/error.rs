//! Why the catalog does not answer: a name that is none, a relation without rows, files that are not
//! as they should be.
//!
//! Texts about names are PostgreSQL's where it has some. What a caller can do is in the hint.

use std::fmt;
use std::path::PathBuf;

use trunkline_format::catalog::{Mismatch, RelationKind, RowError};
use trunkline_format::relmap::RelationMapError;
use trunkline_format::{BlockNo, Oid};

use super::name::NameProblem;
use crate::datadir::DataDirError;
use crate::heap::{HeapError, RowError as HeapRowError};
use crate::storage::StorageError;

/// See the module.
#[derive(Debug)]
pub enum CatalogError {
    /// What was written is no name.
    Name {
        /// As it was written.
        name: String,
        /// Why not.
        problem: NameProblem,
    },
    /// There is no such database.
    NoDatabase {
        /// Its name.
        name: String,
        /// A name that is nearly the same.
        near: Option<String>,
    },
    /// The removal of the database began and did not end: parts of it may be gone.
    InvalidDatabase {
        /// Its name.
        name: String,
    },
    /// The name is of another database than the one that is looked at.
    OtherDatabase {
        /// As it was written.
        name: String,
        /// The database that is looked at.
        database: String,
    },
    /// There is no such schema.
    NoSchema {
        /// Its name.
        name: String,
        /// The database.
        database: String,
        /// A name that is nearly the same.
        near: Option<String>,
    },
    /// There is no such relation.
    NoRelation {
        /// Its name.
        name: String,
        /// The database.
        database: String,
        /// Names that may have been meant.
        near: Vec<String>,
    },
    /// A relation that is no table of ours to read: it has no rows of its own, or they are laid out
    /// by an access method that we do not know.
    NotReadable {
        /// Its name.
        name: String,
        /// Why not.
        reason: Unreadable,
    },
    /// The columns of a relation are not those that it should have.
    Columns {
        /// The relation.
        relation: String,
        /// Columns that there should be.
        expected: u16,
        /// Columns that were found.
        found: usize,
    },
    /// The map that says where the first catalogs are is not sound.
    Map {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: RelationMapError,
    },
    /// The map is not there.
    MapMissing {
        /// Where it should be.
        path: PathBuf,
    },
    /// A catalog has no files, or its row is gone.
    NoCatalog {
        /// The catalog.
        table: &'static str,
        /// The database.
        database: String,
    },
    /// The cluster describes its catalogs otherwise than servers of its version do.
    Layout {
        /// The database.
        database: String,
        /// Where it differs.
        source: Mismatch,
    },
    /// A row of a catalog makes no sense.
    Row {
        /// The file.
        path: PathBuf,
        /// The block within the relation.
        block: BlockNo,
        /// The line pointer, from 1.
        item: u16,
        /// What is wrong with it.
        source: RowError,
    },
    /// A value of a row of a catalog is in TOAST, and not whole there.
    LongValue {
        /// The catalog.
        table: &'static str,
    },
    /// A small file could not be read.
    Directory(DataDirError),
    /// How long a file is could not be found out.
    Storage(StorageError),
    /// A page could not be had.
    Heap(HeapError),
    /// A row could not be had.
    HeapRow(HeapRowError),
}

/// Why a relation has no rows that we could read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unreadable {
    /// Its kind has none.
    Kind(RelationKind),
    /// An access method that we do not know laid it out.
    AccessMethod {
        /// The method's OID.
        oid: Oid,
        /// The method's name, if it has one.
        name: Option<String>,
    },
    /// It is a session's own, which has ended.
    Temporary,
    /// Its row says that it has files, and not which.
    NoFiles,
}

impl CatalogError {
    /// Whether the question was wrong, and not the cluster.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Name { .. }
                | Self::NoDatabase { .. }
                | Self::InvalidDatabase { .. }
                | Self::OtherDatabase { .. }
                | Self::NoSchema { .. }
                | Self::NoRelation { .. }
                | Self::NotReadable { .. }
        )
    }

    /// Whether a row or page of a catalog is damaged, and the others can be had without it.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Row { .. } | Self::LongValue { .. } | Self::HeapRow(_) => true,
            Self::Heap(error) => !error.is_cancelled(),
            _ => false,
        }
    }

    /// What to do about it, without full stop.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Name { .. } => Some(
                "names are database.schema.table; capitals and dots within a name need double \
                 quotes"
                    .to_owned(),
            ),
            Self::NoDatabase { near: Some(near), .. } | Self::NoSchema { near: Some(near), .. } => {
                Some(format!("perhaps {near} is meant"))
            }
            Self::NoRelation { near, .. } if !near.is_empty() => {
                Some(format!("perhaps {} is meant", near.join(" or ")))
            }
            Self::InvalidDatabase { .. } => Some(
                "its removal was interrupted; a server would only let it be dropped".to_owned(),
            ),
            Self::NotReadable { reason: Unreadable::Kind(RelationKind::View), .. } => {
                Some("read the tables that it is a query of".to_owned())
            }
            Self::Layout { .. } => Some(
                "its files were made by a server that is not quite of the version that \
                 global/pg_control says"
                    .to_owned(),
            ),
            Self::Directory(error) => error.hint().map(str::to_owned),
            Self::Storage(error) => error.hint().map(str::to_owned),
            _ => None,
        }
    }
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name, problem } => write!(f, "invalid name \"{name}\": {problem}"),
            Self::NoDatabase { name, .. } => write!(f, "database \"{name}\" does not exist"),
            Self::InvalidDatabase { name } => write!(f, "database \"{name}\" is invalid"),
            Self::OtherDatabase { name, database } => {
                write!(f, "{name} is of another database than \"{database}\"")
            }
            Self::NoSchema { name, database, .. } => {
                write!(f, "schema \"{name}\" does not exist in database \"{database}\"")
            }
            Self::NoRelation { name, database, .. } => {
                write!(f, "relation {name} does not exist in database \"{database}\"")
            }
            Self::NotReadable { name, reason } => write!(f, "{name} {reason}"),
            Self::Columns { relation, expected, found } => write!(
                f,
                "relation {relation} has {found} columns in pg_attribute, expected {expected}"
            ),
            Self::Map { path, source } => write!(f, "\"{}\": {source}", path.display()),
            Self::MapMissing { path } => write!(f, "\"{}\" is missing", path.display()),
            Self::NoCatalog { table, database } => {
                write!(f, "database \"{database}\" does not say where {table} is")
            }
            Self::Layout { database, source } => {
                write!(f, "database \"{database}\" is not laid out as its version says: {source}")
            }
            Self::Row { path, block, item, source } => {
                write!(f, "\"{}\": block {block}, line pointer {item}: {source}", path.display())
            }
            Self::LongValue { table } => {
                write!(f, "a value of {table} is not whole in its TOAST table")
            }
            Self::Directory(error) => error.fmt(f),
            Self::Storage(error) => error.fmt(f),
            Self::Heap(error) => error.fmt(f),
            Self::HeapRow(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(RelationKind::ForeignTable) => {
                f.write_str("is a foreign table: its rows are on another server")
            }
            Self::Kind(kind @ (RelationKind::Index | RelationKind::PartitionedIndex)) => {
                write!(f, "is an {kind}").and_then(|()| f.write_str(": it has entries, not rows"))
            }
            Self::Kind(kind) => write!(f, "is a {kind}: it has no rows"),
            Self::AccessMethod { name: Some(name), .. } => {
                write!(f, "is of access method \"{name}\", which is not known here")
            }
            Self::AccessMethod { oid, name: None } => {
                write!(f, "is of access method {oid}, which does not exist")
            }
            Self::Temporary => {
                f.write_str("is a temporary table, left behind by a session that has ended")
            }
            Self::NoFiles => f.write_str("should have files, and pg_class does not say which"),
        }
    }
}

impl std::error::Error for CatalogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Map { source, .. } => Some(source),
            Self::Layout { source, .. } => Some(source),
            Self::Row { source, .. } => Some(source),
            Self::Directory(error) => Some(error),
            Self::Storage(error) => Some(error),
            Self::Heap(error) => Some(error),
            Self::HeapRow(error) => Some(error),
            _ => None,
        }
    }
}

impl From<DataDirError> for CatalogError {
    fn from(error: DataDirError) -> Self {
        Self::Directory(error)
    }
}

impl From<StorageError> for CatalogError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<HeapError> for CatalogError {
    fn from(error: HeapError) -> Self {
        Self::Heap(error)
    }
}

impl From<HeapRowError> for CatalogError {
    fn from(error: HeapRowError) -> Self {
        Self::HeapRow(error)
    }
}
