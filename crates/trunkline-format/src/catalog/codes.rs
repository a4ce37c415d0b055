//! `"char"` columns that hold a code: `relkind`, `relpersistence`, `attgenerated`.
//!
//! We report an unknown letter as an error, because a wrong guess would misread the relation.

use super::tuple::{CatalogTuple, ColumnValue, RowError};
use std::fmt;

/// `relkind`: what a row of `pg_class` describes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RelationKind {
    /// `r`: an ordinary table.
    Table,
    /// `i`: an index.
    Index,
    /// `S`: a sequence, stored as one row on one page.
    Sequence,
    /// `t`: a TOAST table.
    Toast,
    /// `v`: a view.
    View,
    /// `m`: a materialized view.
    MaterializedView,
    /// `c`: a composite type. It has columns but no rows.
    CompositeType,
    /// `f`: a foreign table, which stores its rows on another server.
    ForeignTable,
    /// `p`: a partitioned table. Its partitions hold the rows.
    PartitionedTable,
    /// `I`: a partitioned index. The partitions' indexes hold the entries.
    PartitionedIndex,
}

impl RelationKind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::Table,
        Self::Index,
        Self::Sequence,
        Self::Toast,
        Self::View,
        Self::MaterializedView,
        Self::CompositeType,
        Self::ForeignTable,
        Self::PartitionedTable,
        Self::PartitionedIndex,
    ];

    /// The letter in `relkind`, and the name shown by psql's `\d`.
    fn code_and_name(self) -> (u8, &'static str) {
        match self {
            Self::Table => (b'r', "table"),
            Self::Index => (b'i', "index"),
            Self::Sequence => (b'S', "sequence"),
            Self::Toast => (b't', "TOAST table"),
            Self::View => (b'v', "view"),
            Self::MaterializedView => (b'm', "materialized view"),
            Self::CompositeType => (b'c', "composite type"),
            Self::ForeignTable => (b'f', "foreign table"),
            Self::PartitionedTable => (b'p', "partitioned table"),
            Self::PartitionedIndex => (b'I', "partitioned index"),
        }
    }

    /// The kind for a `relkind` letter.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// The `relkind` letter.
    pub fn code(self) -> u8 {
        self.code_and_name().0
    }

    /// Whether relations of this kind have files (`RELKIND_HAS_STORAGE`).
    pub fn has_storage(self) -> bool {
        self.is_table_like() || matches!(self, Self::Index | Self::Sequence)
    }

    /// Whether a table access method manages their files (`RELKIND_HAS_TABLE_AM`).
    pub fn is_table_like(self) -> bool {
        matches!(self, Self::Table | Self::Toast | Self::MaterializedView)
    }
}

/// Prints the name shown by psql's `\d`.
impl fmt::Display for RelationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code_and_name().1)
    }
}

/// `relpersistence`: whether a relation survives a crash or the end of its session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Persistence {
    /// `p`: changes are WAL-logged.
    Permanent,
    /// `u`: reset to the init fork after a crash.
    Unlogged,
    /// `t`: dropped with its session.
    Temporary,
}

impl Persistence {
    /// The persistence for a `relpersistence` letter.
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            b'p' => Some(Self::Permanent),
            b'u' => Some(Self::Unlogged),
            b't' => Some(Self::Temporary),
            _ => None,
        }
    }
}

/// Prints the name shown by psql's `\d+`.
impl fmt::Display for Persistence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Permanent => "permanent",
            Self::Unlogged => "unlogged",
            Self::Temporary => "temporary",
        })
    }
}

/// `attgenerated`: whether a column is generated, and whether its values are stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Generated {
    /// `'\0'`: an ordinary column.
    No,
    /// `s`: computed when the row is written, and stored.
    Stored,
    /// `v`: computed when the row is read (PostgreSQL 18). The row stores a null.
    Virtual,
}

impl Generated {
    /// Decodes an `attgenerated` letter.
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::No),
            b's' => Some(Self::Stored),
            b'v' => Some(Self::Virtual),
            _ => None,
        }
    }
}

macro_rules! codes {
    ($($type:ty),*) => {
        $(impl ColumnValue for $type {
            fn decode(
                tuple: &mut CatalogTuple<'_, '_>,
                column: &'static str,
            ) -> Result<Self, RowError> {
                let code: u8 = tuple.get(column)?;
                Self::from_code(code).ok_or_else(|| tuple.value(column, code))
            }
        })*
    };
}

codes!(RelationKind, Persistence, Generated, crate::align::Align);
