//! A catalog as data: its columns in every version, and where they are in a row of one version.
//!
//! [`CatalogTable`] is what [`super`]'s declarations make. [`CatalogLayout`] is the part of it that
//! one version has, with offsets, as `FormData_pg_*` has them in C.

use super::tuple::NAME_SIZE;
use crate::align::Align;
use crate::control::PgVersion::{self, V15, V19};
use crate::deform::Attribute;
use crate::ids::Oid;

/// The type of a catalog's column. It decides the size and alignment of the column's values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names are those of the types in pg_type")]
pub enum ColumnType {
    Bool,
    Char,
    Name,
    Int2,
    Int4,
    Int8,
    Float4,
    Oid,
    Xid,
    Regproc,
    Timestamptz,
    Text,
    PgNodeTree,
    Int2Vector,
    OidVector,
    TextArray,
    AclItemArray,
    AnyArray,
}

impl ColumnType {
    /// The type's OID in `pg_type`, the same in all versions.
    pub fn oid(self) -> Oid {
        Oid(match self {
            Self::Bool => 16,
            Self::Char => 18,
            Self::Name => 19,
            Self::Int8 => 20,
            Self::Int2 => 21,
            Self::Int2Vector => 22,
            Self::Int4 => 23,
            Self::Regproc => 24,
            Self::Text => 25,
            Self::Oid => 26,
            Self::Xid => 28,
            Self::OidVector => 30,
            Self::PgNodeTree => 194,
            Self::Float4 => 700,
            Self::TextArray => 1009,
            Self::AclItemArray => 1034,
            Self::Timestamptz => 1184,
            Self::AnyArray => 2277,
        })
    }

    /// `typlen` and `typalign` in `version`.
    pub fn attribute(self, version: PgVersion) -> Attribute {
        let (len, align) = match self {
            Self::Bool | Self::Char => (1, Align::Char),
            Self::Name => (NAME_SIZE as i16, Align::Char),
            Self::Int2 => (2, Align::Short),
            Self::Int4 | Self::Float4 | Self::Oid | Self::Xid | Self::Regproc => (4, Align::Int),
            Self::Int8 | Self::Timestamptz => (8, Align::Double),
            // PostgreSQL 16 widened aclitem's privilege bits from 32 to 64, and its alignment.
            Self::AclItemArray if version > V15 => (-1, Align::Double),
            Self::AnyArray => (-1, Align::Double),
            Self::Text
            | Self::PgNodeTree
            | Self::Int2Vector
            | Self::OidVector
            | Self::TextArray
            | Self::AclItemArray => (-1, Align::Int),
        };
        Attribute { len, align }
    }
}

/// A column of a catalog, in the versions that have it with this type at this place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CatalogColumn {
    /// `attname`.
    pub name: &'static str,
    /// Its type.
    pub column_type: ColumnType,
    /// Whether a column of fixed size can be null. Columns of varying size always can.
    pub nullable: bool,
    /// The first version that has it.
    pub since: PgVersion,
    /// The last version that has it.
    pub until: PgVersion,
}

impl CatalogColumn {
    pub(super) const fn new(name: &'static str, column_type: ColumnType) -> Self {
        Self { name, column_type, nullable: false, since: V15, until: V19 }
    }

    pub(super) const fn nullable(self) -> Self {
        Self { nullable: true, ..self }
    }

    pub(super) const fn since(self, since: PgVersion) -> Self {
        Self { since, ..self }
    }

    pub(super) const fn until(self, until: PgVersion) -> Self {
        Self { until, ..self }
    }
}

/// A catalog, with the columns of all versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CatalogTable {
    /// `relname`.
    pub name: &'static str,
    /// Its OID, the same in all versions.
    pub oid: Oid,
    /// Whether all databases share it: its file is in `global`.
    pub shared: bool,
    /// Whether its file number is in `pg_filenode.map`; `pg_class` says 0 then.
    pub mapped: bool,
    /// The columns of all versions, in order.
    pub columns: &'static [CatalogColumn],
    /// Whether more columns follow that are not described.
    pub open: bool,
}

impl CatalogTable {
    pub(super) const fn new(
        name: &'static str,
        oid: u32,
        columns: &'static [CatalogColumn],
    ) -> Self {
        Self { name, oid: Oid(oid), shared: false, mapped: false, columns, open: false }
    }

    /// The columns that `version` has, and where they are.
    pub fn layout(&'static self, version: PgVersion) -> CatalogLayout {
        let present = |column: &&CatalogColumn| column.since <= version && version <= column.until;
        let columns: Vec<CatalogColumn> = self.columns.iter().filter(present).copied().collect();
        let attributes: Vec<Attribute> =
            columns.iter().map(|column| column.column_type.attribute(version)).collect();
        let mut end = 0;
        // What follows a null or a value of varying size has no fixed offset.
        let fixed = columns.iter().zip(&attributes).map_while(|(column, attribute)| {
            let len = usize::try_from(attribute.len).ok().filter(|_| !column.nullable)?;
            let offset = attribute.align.up(end);
            end = offset + len;
            Some(offset)
        });
        let offsets = fixed.collect();
        CatalogLayout { table: self, columns, attributes, offsets }
    }
}

/// A catalog as one version has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CatalogLayout {
    table: &'static CatalogTable,
    columns: Vec<CatalogColumn>,
    attributes: Vec<Attribute>,
    /// Of each column in the fixed part, where it starts in a row's data.
    offsets: Vec<usize>,
}

/// What a cluster says of a catalog's column, in `pg_attribute`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Described<'a> {
    /// `attname`.
    pub name: &'a [u8],
    /// `attnum`: from 1; negative for system columns.
    pub number: i16,
    /// `attlen` and `attalign`.
    pub attribute: Attribute,
    /// `attisdropped`.
    pub dropped: bool,
}

/// A column that the cluster describes differently.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "column {number} of {table} is {}, expected {}",
    or_no_column(found),
    or_no_column(expected)
)]
pub struct Mismatch {
    /// The catalog.
    pub table: &'static str,
    /// The column's number, from 1.
    pub number: usize,
    /// What the cluster has there; `None`: nothing.
    pub found: Option<String>,
    /// What servers of its version have there; `None`: nothing.
    pub expected: Option<String>,
}

fn or_no_column(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or("no column")
}

impl CatalogLayout {
    /// The catalog.
    pub fn table(&self) -> &'static CatalogTable {
        self.table
    }

    /// Its columns, in order.
    pub fn columns(&self) -> &[CatalogColumn] {
        &self.columns
    }

    /// The size and alignment of each column, as [`crate::deform::columns`] takes them.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// How many columns are in the fixed part, which comes first.
    pub fn fixed(&self) -> usize {
        self.offsets.len()
    }

    /// Where column `at`, from 0, starts in a row's data; `None` beyond the fixed part.
    pub fn offset(&self, at: usize) -> Option<usize> {
        self.offsets.get(at).copied()
    }

    /// Compares the description with `rows`, the columns of this catalog according to the cluster,
    /// in any order. System columns are ignored.
    ///
    /// # Errors
    /// [`Mismatch`]: the first column that differs.
    pub fn agrees<'a>(
        &self,
        rows: impl IntoIterator<Item = Described<'a>>,
    ) -> Result<(), Mismatch> {
        let mut rows: Vec<Described<'a>> = rows.into_iter().filter(|row| row.number > 0).collect();
        rows.sort_by_key(|row| row.number);
        let count = if self.table.open { self.columns.len() } else { rows.len() };
        for at in 0..count.max(self.columns.len()) {
            let found = rows.get(at);
            let expected = self.columns.get(at).zip(self.attributes.get(at));
            let same = found.zip(expected).is_some_and(|(row, (column, attribute))| {
                usize::try_from(row.number).is_ok_and(|number| number == at + 1)
                    && row.name == column.name.as_bytes()
                    && row.attribute == *attribute
                    && !row.dropped
            });
            if !same {
                let text = |name: &str, Attribute { len, align }: Attribute| {
                    format!("{name} ({len}, {align:?})")
                };
                return Err(Mismatch {
                    table: self.table.name,
                    number: at + 1,
                    found: found.map(|row| text(&String::from_utf8_lossy(row.name), row.attribute)),
                    expected: expected.map(|(column, &attribute)| text(column.name, attribute)),
                });
            }
        }
        Ok(())
    }
}
