//! Rows about relations and their columns.
//!
//! Names are bytes in the encoding of the database.

use super::fields::{Fields, RowError};
use crate::align::Align;
use crate::ids::Oid;
use std::fmt;

/// What a row of `pg_class` is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RelationKind {
    /// `r`: rows in files.
    Table,
    /// `i`: an index in files.
    Index,
    /// `S`: a sequence, one row in one page.
    Sequence,
    /// `t`: where the long values of a table are.
    Toast,
    /// `v`: a query.
    View,
    /// `m`: a query's rows, in files.
    MaterializedView,
    /// `c`: the columns of a composite type.
    CompositeType,
    /// `f`: rows of another server.
    ForeignTable,
    /// `p`: a table whose rows are in its partitions.
    PartitionedTable,
    /// `I`: an index whose entries are in those of the partitions.
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

    /// The kind that a letter in `relkind` stands for.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Its letter in `relkind`.
    pub fn code(self) -> u8 {
        match self {
            Self::Table => b'r',
            Self::Index => b'i',
            Self::Sequence => b'S',
            Self::Toast => b't',
            Self::View => b'v',
            Self::MaterializedView => b'm',
            Self::CompositeType => b'c',
            Self::ForeignTable => b'f',
            Self::PartitionedTable => b'p',
            Self::PartitionedIndex => b'I',
        }
    }

    /// Whether it has files.
    pub fn has_storage(self) -> bool {
        matches!(
            self,
            Self::Table | Self::Index | Self::Sequence | Self::Toast | Self::MaterializedView
        )
    }

    /// Whether its files are laid out by a table access method.
    pub fn is_table_like(self) -> bool {
        matches!(self, Self::Table | Self::Toast | Self::MaterializedView)
    }
}

/// As psql's `\d` calls it.
impl fmt::Display for RelationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Table => "table",
            Self::Index => "index",
            Self::Sequence => "sequence",
            Self::Toast => "TOAST table",
            Self::View => "view",
            Self::MaterializedView => "materialized view",
            Self::CompositeType => "composite type",
            Self::ForeignTable => "foreign table",
            Self::PartitionedTable => "partitioned table",
            Self::PartitionedIndex => "partitioned index",
        })
    }
}

/// What becomes of a relation after a crash, or after its session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Persistence {
    /// `p`: it is in the log.
    Permanent,
    /// `u`: it is emptied after a crash.
    Unlogged,
    /// `t`: it goes with its session.
    Temporary,
}

impl Persistence {
    /// What a letter in `relpersistence` stands for.
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            b'p' => Some(Self::Permanent),
            b'u' => Some(Self::Unlogged),
            b't' => Some(Self::Temporary),
            _ => None,
        }
    }
}

/// As psql's `\d+` calls it.
impl fmt::Display for Persistence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Permanent => "permanent",
            Self::Unlogged => "unlogged",
            Self::Temporary => "temporary",
        })
    }
}

/// A row of `pg_class`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClassRow<'a> {
    /// Its OID.
    pub oid: Oid,
    /// Its name.
    pub name: &'a [u8],
    /// The schema it is in.
    pub schema: Oid,
    /// The composite type of its rows; 0 if none.
    pub row_type: Oid,
    /// The access method that laid out its files; 0 if none.
    pub access_method: Oid,
    /// The number of its files; 0 if it has none, or if a map says it.
    pub file: u32,
    /// The tablespace; 0 is the database's own.
    pub tablespace: Oid,
    /// Blocks when somebody last counted.
    pub pages: i32,
    /// Rows when somebody last counted; -1 if nobody did.
    pub rows: f32,
    /// Where its long values are; 0 if it has none.
    pub toast: Oid,
    /// Whether all databases share it.
    pub shared: bool,
    /// What becomes of it after a crash.
    pub persistence: Persistence,
    /// What it is.
    pub kind: RelationKind,
    /// Columns, those that were dropped included.
    pub columns: u16,
    /// Whether it has what its query says, if it is a materialized view.
    pub populated: bool,
    /// Whether it is a partition.
    pub is_partition: bool,
    /// The OID of the relation that it is to replace, while that is rewritten; else 0.
    pub rewrites: Oid,
    /// The oldest transaction that its rows may name as an ordinary one; 0 without rows.
    pub frozen_xid: u32,
    /// The oldest multixact that its rows may name; 0 without rows.
    pub min_multi: u32,
}

impl<'a> ClassRow<'a> {
    /// Takes it out of a row.
    ///
    /// # Errors
    /// [`RowError`]: a column is missing or senseless.
    pub fn read(fields: &mut Fields<'a, '_>) -> Result<Self, RowError> {
        Ok(Self {
            oid: fields.oid("oid")?,
            name: fields.name("relname")?,
            schema: fields.oid("relnamespace")?,
            row_type: fields.oid("reltype")?,
            access_method: fields.oid("relam")?,
            file: fields.word("relfilenode")?,
            tablespace: fields.oid("reltablespace")?,
            pages: fields.word("relpages")?.cast_signed(),
            rows: fields.float("reltuples")?,
            toast: fields.oid("reltoastrelid")?,
            shared: fields.flag("relisshared")?,
            persistence: {
                let code = fields.code("relpersistence")?;
                Persistence::from_code(code)
                    .ok_or_else(|| fields.value("relpersistence", i64::from(code)))?
            },
            kind: {
                let code = fields.code("relkind")?;
                RelationKind::from_code(code)
                    .ok_or_else(|| fields.value("relkind", i64::from(code)))?
            },
            columns: {
                let found = fields.short_number("relnatts")?;
                u16::try_from(found).map_err(|_| fields.value("relnatts", i64::from(found)))?
            },
            populated: fields.flag("relispopulated")?,
            is_partition: fields.flag("relispartition")?,
            rewrites: fields.oid("relrewrite")?,
            frozen_xid: fields.word("relfrozenxid")?,
            min_multi: fields.word("relminmxid")?,
        })
    }
}

/// Whether a column's values are computed, and where they are then.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Generated {
    /// They are given.
    No,
    /// They are computed and stored.
    Stored,
    /// They are computed whenever somebody asks: rows hold nulls.
    Virtual,
}

/// A row of `pg_attribute`: a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttributeRow<'a> {
    /// The relation it is of.
    pub relation: Oid,
    /// Its name.
    pub name: &'a [u8],
    /// Its type; 0 if it was dropped.
    pub type_oid: Oid,
    /// Its size in bytes; -1 with a length before it, -2 with a zero behind it.
    pub len: i16,
    /// Its number from 1; system columns have negative ones.
    pub number: i16,
    /// What its type was given, such as a length; -1 if nothing.
    pub modifier: i32,
    /// How it is aligned.
    pub align: Align,
    /// Where long values go: `p` nowhere, `e` elsewhere, `m` compressed, `x` both.
    pub storage: u8,
    /// Whether it is never null.
    pub not_null: bool,
    /// Whether rows that are older than it have a value all the same.
    pub has_missing: bool,
    /// Whether it is computed.
    pub generated: Generated,
    /// Whether it was dropped: rows may still hold values.
    pub dropped: bool,
    /// The collation of its type; 0 if none.
    pub collation: Oid,
    /// An array of one element, as it is stored: what rows have that are older than it.
    pub missing: Option<&'a [u8]>,
}

impl<'a> AttributeRow<'a> {
    /// Takes it out of a row.
    ///
    /// # Errors
    /// [`RowError`]: a column is missing or senseless.
    pub fn read(fields: &mut Fields<'a, '_>) -> Result<Self, RowError> {
        let mut row = Self {
            relation: fields.oid("attrelid")?,
            name: fields.name("attname")?,
            type_oid: fields.oid("atttypid")?,
            len: fields.short_number("attlen")?,
            number: fields.short_number("attnum")?,
            modifier: fields.word("atttypmod")?.cast_signed(),
            align: fields.align("attalign")?,
            storage: fields.code("attstorage")?,
            not_null: fields.flag("attnotnull")?,
            has_missing: fields.flag("atthasmissing")?,
            generated: {
                let code = fields.code("attgenerated")?;
                match code {
                    0 => Generated::No,
                    b's' => Generated::Stored,
                    b'v' => Generated::Virtual,
                    _ => return Err(fields.value("attgenerated", i64::from(code))),
                }
            },
            dropped: fields.flag("attisdropped")?,
            collation: fields.oid("attcollation")?,
            missing: None,
        };
        if row.has_missing {
            row.missing = fields.stored("attmissingval")?;
        }
        Ok(row)
    }
}
