//! Errors of the catalog reader: an unknown name, a relation without rows, damaged files.
//!
//! If PostgreSQL has a message for an error, we use the same wording. A program should exit with
//! one status if its user made a mistake and with another if the cluster is damaged, so we provide
//! [`CatalogError::is_usage`] to distinguish the two.

use std::path::PathBuf;

use thiserror::Error;
use trunkline_format::catalog::{CatalogTable, Mismatch, RelationKind, RowError};
use trunkline_format::relmap::RelationMapError;
use trunkline_format::sequence::SequenceError;
use trunkline_format::{BlockNo, Oid, Tid};

use super::name::NameProblem;
use crate::Location;
use crate::btree::BtreeError;
use crate::datadir::DataDirError;
use crate::heap::{HeapError, RowError as HeapRowError};
use crate::storage::StorageError;
use crate::transactions::SlruFault;

/// Why a catalog look-up failed.
#[derive(Debug, Error)]
pub enum CatalogError {
    /// The text is not a name.
    #[error("invalid name \"{name}\": {problem}")]
    Name {
        /// The text.
        name: String,
        /// What is wrong with it.
        problem: NameProblem,
    },
    /// There is no such database.
    #[error("database \"{name}\" does not exist")]
    NoDatabase {
        /// Its name.
        name: String,
        /// A similar name that exists.
        near: Option<String>,
    },
    /// `DROP DATABASE` was interrupted: files may be gone.
    #[error("database \"{name}\" is invalid")]
    InvalidDatabase {
        /// Its name.
        name: String,
    },
    /// The name is qualified with a database other than the open one.
    #[error("{name} is not in database \"{database}\"")]
    OtherDatabase {
        /// The name.
        name: String,
        /// The open database.
        database: String,
    },
    /// There is no such schema.
    #[error("schema \"{name}\" does not exist in database \"{database}\"")]
    NoSchema {
        /// Its name.
        name: String,
        /// The database.
        database: String,
        /// A similar name that exists.
        near: Option<String>,
    },
    /// There is no such relation.
    #[error("relation {name} does not exist in database \"{database}\"")]
    NoRelation {
        /// Its name.
        name: String,
        /// The database.
        database: String,
        /// Similar names that exist.
        near: Vec<String>,
    },
    /// The relation has no rows of its own, or its access method is unknown.
    #[error("{name} {reason}")]
    NotReadable {
        /// Its name.
        name: String,
        /// Why not.
        reason: Unreadable,
    },
    /// `pg_attribute` does not have the columns that `pg_class` counts.
    #[error("relation {relation} has {found} columns in pg_attribute, expected {expected}")]
    Columns {
        /// The relation.
        relation: String,
        /// `relnatts`.
        expected: u16,
        /// The columns in `pg_attribute`.
        found: usize,
    },
    /// A relation map is damaged.
    #[error("\"{}\": {source}", path.display())]
    Map {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: RelationMapError,
    },
    /// A relation map is missing.
    #[error("\"{}\" is missing", path.display())]
    MapMissing {
        /// Where it should be.
        path: PathBuf,
    },
    /// A catalog has no files, or no row in `pg_class`.
    #[error("could not find the file of {table} in database \"{database}\"")]
    NoCatalog {
        /// The catalog.
        table: &'static str,
        /// The database.
        database: String,
    },
    /// The cluster's catalogs don't have the columns of its version.
    #[error("the catalogs of database \"{database}\" do not match its version: {source}")]
    Layout {
        /// The database.
        database: String,
        /// The first column that differs.
        source: Mismatch,
    },
    /// The file of a catalog is missing or cannot be used.
    #[error("{}: {source}", table.name)]
    File {
        /// The catalog.
        table: &'static CatalogTable,
        /// What is wrong with the file.
        #[source]
        source: StorageError,
    },
    /// Pages at the end of a catalog are missing.
    #[error(
        "file \"{}\" ({}) has {found} blocks, expected at least {expected}: index {} has an entry \
         for row {row}, unless that entry is damaged",
        path.display(),
        table.name,
        table.index.name
    )]
    Short {
        /// The segment that should contain the first missing block.
        path: PathBuf,
        /// The catalog.
        table: &'static CatalogTable,
        /// The number of blocks of the catalog.
        found: BlockNo,
        /// The least number of blocks that it must have.
        expected: BlockNo,
        /// The last row in its index.
        row: Tid,
    },
    /// A page of a catalog has been overwritten with zeros, so that it looks like a new page.
    #[error(
        "block {} of file \"{}\" ({}) is a new page, expected rows: index {} has an entry for row \
         {row}, unless that entry is damaged",
        row.block,
        path.display(),
        table.name,
        table.index.name
    )]
    NewPage {
        /// The segment with the page.
        path: PathBuf,
        /// The catalog.
        table: &'static CatalogTable,
        /// The first row on such a page in the index.
        row: Tid,
    },
    /// A row of a catalog is damaged.
    #[error("{location}: {source}")]
    Row {
        /// The row.
        location: Location,
        /// What is wrong with it.
        source: RowError,
    },
    /// A value of a catalog's row is incomplete in its TOAST table.
    #[error("a TOAST value of {table} is incomplete")]
    LongValue {
        /// The catalog.
        table: &'static str,
    },
    /// A sequence's page does not contain a sequence.
    #[error("{location}: {source}")]
    Sequence {
        /// The page.
        location: Location,
        /// What is wrong with it.
        source: SequenceError,
    },
    /// A small file could not be read.
    #[error(transparent)]
    Directory(#[from] DataDirError),
    /// A page of a catalog could not be read.
    #[error(transparent)]
    Heap(#[from] HeapError),
    /// A row of a catalog could not be read.
    #[error(transparent)]
    HeapRow(#[from] HeapRowError),
    /// An index of a catalog is damaged or cannot be read.
    #[error(transparent)]
    Index(#[from] BtreeError),
}

/// Why a relation's rows cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// Relations of its kind have none.
    #[error("{}", describe_kind(*.0))]
    Kind(RelationKind),
    /// Its access method is unknown, and so is the layout of its rows.
    #[error("{}", describe_method(*oid, name.as_deref()))]
    AccessMethod {
        /// The method's OID.
        oid: Oid,
        /// The method's name, if it has a row in `pg_am`.
        name: Option<String>,
    },
    /// It is a temporary table whose session has ended.
    #[error("is a temporary table, left behind by a session that has ended")]
    Temporary,
    /// `pg_class` says that it has files, but not which files.
    #[error("has no file number in pg_class")]
    NoFiles,
}

fn describe_kind(kind: RelationKind) -> String {
    match kind {
        RelationKind::ForeignTable => "is a foreign table: its rows are on another server".into(),
        RelationKind::Index => "is an index, not a table".into(),
        RelationKind::PartitionedIndex => "is a partitioned index, not a table".into(),
        RelationKind::Sequence => "is a sequence, not a table".into(),
        kind => format!("is a {kind}: it stores no rows"),
    }
}

fn describe_method(oid: Oid, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("uses access method \"{name}\", which is not supported"),
        None => format!("uses access method {oid}, which does not exist"),
    }
}

impl CatalogError {
    /// Whether the caller asked for something nonexistent, as opposed to the cluster being damaged.
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

    /// Whether a catalog row or page is damaged or missing, in which case the other rows can still
    /// be read.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Row { .. } | Self::LongValue { .. } | Self::HeapRow(_) => true,
            Self::Heap(error) => !error.is_cancelled(),
            Self::Index(error) => !error.is_cancelled(),
            _ => self.lost_pages(),
        }
    }

    /// Whether the session was cancelled. In this case nothing is damaged.
    pub fn is_cancelled(&self) -> bool {
        match self {
            Self::Heap(error) => error.is_cancelled(),
            Self::Index(error) => error.is_cancelled(),
            _ => false,
        }
    }

    /// Whether a catalog has lost whole pages, without any other trace than the entries of its index,
    /// so that any number of objects may be missing.
    pub fn lost_pages(&self) -> bool {
        matches!(self, Self::Short { .. } | Self::NewPage { .. })
    }

    /// Returns the file of the commit log or of multixacts that is missing, short or unreadable, if
    /// that is why we don't know whether a row is visible. Nothing may be wrong with the row.
    pub fn file_fault(&self) -> Option<&SlruFault> {
        match self {
            Self::HeapRow(row) => row.file_fault(),
            _ => None,
        }
    }

    /// What to do about it, without a full stop.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Name { .. } => Some(
                "names are database.schema.table; capitals and dots within a name need double \
                 quotes"
                    .to_owned(),
            ),
            Self::NoDatabase { near: Some(near), .. } | Self::NoSchema { near: Some(near), .. } => {
                Some(format!("perhaps you meant {near}"))
            }
            Self::NoRelation { near, .. } if !near.is_empty() => {
                Some(format!("perhaps you meant {}", near.join(" or ")))
            }
            Self::InvalidDatabase { .. } => Some(
                "DROP DATABASE was interrupted; a server only allows dropping it again".to_owned(),
            ),
            Self::NotReadable { reason: Unreadable::Kind(RelationKind::View), .. } => {
                Some("name the tables that the view reads".to_owned())
            }
            Self::NotReadable { reason: Unreadable::Kind(RelationKind::Sequence), .. } => {
                Some("copy --all writes the values of sequences into load.sql".to_owned())
            }
            Self::Layout { .. } => Some(
                "its files were made by a server that is not quite of the version that \
                 global/pg_control says"
                    .to_owned(),
            ),
            Self::Short { .. } | Self::NewPage { .. } => Some(
                "restore the file, or its index if only that is damaged; copy --keep-going copies \
                 what the rest of it describes"
                    .to_owned(),
            ),
            Self::Directory(error) => error.hint().map(str::to_owned),
            Self::File { source, .. } => source.hint().map(str::to_owned),
            _ => None,
        }
    }
}
