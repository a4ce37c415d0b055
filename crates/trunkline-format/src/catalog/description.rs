//! A catalog's description: its columns in all versions, and their layout in one version.
//!
//! Each declaration in [`super`] defines a [`CatalogTable`]. A [`CatalogLayout`] contains the
//! columns that a catalog has in one particular version and their offsets, like `FormData_pg_*` in
//! C.

use crate::align::Align;
use crate::control::PgVersion::{self, V15, V19};
use crate::deform::Attribute;
use crate::ids::Oid;

/// `NAMEDATALEN`: the size of a zero-padded `name`.
pub const NAME_SIZE: usize = 64;

/// A catalog column's type. It determines the size and alignment of the column's values.
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
    Float4Array,
    Oid,
    Xid,
    Regproc,
    Timestamptz,
    Text,
    PgNodeTree,
    Int2Vector,
    Int2Array,
    OidVector,
    CharArray,
    OidArray,
    TextArray,
    AclItemArray,
    AnyArray,
}

impl ColumnType {
    /// The type's `oid`, `typlen` and `typalign` in `pg_type`. These are the same in all versions
    /// of PostgreSQL, except that the alignment of `aclitem[]` has changed.
    fn row(self) -> (u32, i16, Align) {
        match self {
            Self::Bool => (16, 1, Align::Char),
            Self::Char => (18, 1, Align::Char),
            Self::Name => (19, NAME_SIZE as i16, Align::Char),
            Self::Int8 => (20, 8, Align::Double),
            Self::Int2 => (21, 2, Align::Short),
            Self::Int2Vector => (22, -1, Align::Int),
            Self::Int4 => (23, 4, Align::Int),
            Self::Regproc => (24, 4, Align::Int),
            Self::Text => (25, -1, Align::Int),
            Self::Oid => (26, 4, Align::Int),
            Self::Xid => (28, 4, Align::Int),
            Self::OidVector => (30, -1, Align::Int),
            Self::PgNodeTree => (194, -1, Align::Int),
            Self::Float4 => (700, 4, Align::Int),
            Self::CharArray => (1002, -1, Align::Int),
            Self::Int2Array => (1005, -1, Align::Int),
            Self::Float4Array => (1021, -1, Align::Int),
            Self::TextArray => (1009, -1, Align::Int),
            Self::OidArray => (1028, -1, Align::Int),
            Self::AclItemArray => (1034, -1, Align::Double),
            Self::Timestamptz => (1184, 8, Align::Double),
            Self::AnyArray => (2277, -1, Align::Double),
        }
    }

    /// The type's OID in `pg_type`, the same in all versions.
    pub fn oid(self) -> Oid {
        Oid(self.row().0)
    }

    /// `typlen` and `typalign` in `version`.
    pub fn attribute(self, version: PgVersion) -> Attribute {
        let (_, len, align) = self.row();
        // In PostgreSQL 16, the privilege bits of an aclitem were widened from 32 to 64 bits, which
        // also changed its alignment.
        let narrow = self == Self::AclItemArray && version == V15;
        Attribute { len, align: if narrow { Align::Int } else { align } }
    }
}

/// A catalog column, and the versions in which it has this type and position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CatalogColumn {
    /// `attname`.
    pub name: &'static str,
    /// Its type.
    pub column_type: ColumnType,
    /// Whether this column can be null, if it has a fixed size. We assume that any variable-length
    /// column can be null.
    pub nullable: bool,
    /// The first version with this column.
    pub since: PgVersion,
    /// The last version with this column.
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

/// An index of a catalog. It is shared and mapped if the catalog is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CatalogIndex {
    /// `relname`.
    pub name: &'static str,
    /// Its OID, the same in all versions.
    pub oid: Oid,
}

/// A catalog, with the columns of all versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CatalogTable {
    /// `relname`.
    pub name: &'static str,
    /// Its OID, the same in all versions.
    pub oid: Oid,
    /// A unique B-tree that has an entry for each of its rows.
    pub index: CatalogIndex,
    /// Whether all databases share it, in which case its files are in `global`.
    pub shared: bool,
    /// Whether its file number is stored in `pg_filenode.map`. If so, its `relfilenode` in
    /// `pg_class` is 0.
    pub mapped: bool,
    /// The columns of all versions, in catalog order.
    pub columns: &'static [CatalogColumn],
    /// Whether the catalog has further columns that aren't described.
    pub open: bool,
}

impl CatalogTable {
    pub(super) const fn new(
        name: &'static str,
        oid: u32,
        (index, index_oid): (&'static str, u32),
        columns: &'static [CatalogColumn],
    ) -> Self {
        let index = CatalogIndex { name: index, oid: Oid(index_oid) };
        Self { name, oid: Oid(oid), index, shared: false, mapped: false, columns, open: false }
    }

    /// The columns in `version` and their layout.
    pub fn layout(&'static self, version: PgVersion) -> CatalogLayout {
        let present = |column: &&CatalogColumn| column.since <= version && version <= column.until;
        let columns: Vec<CatalogColumn> = self.columns.iter().filter(present).copied().collect();
        let attributes: Vec<Attribute> =
            columns.iter().map(|column| column.column_type.attribute(version)).collect();
        let mut end = 0;
        // A column that follows a null or a variable-length value has no fixed offset.
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

/// A catalog's layout in one version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CatalogLayout {
    table: &'static CatalogTable,
    columns: Vec<CatalogColumn>,
    attributes: Vec<Attribute>,
    /// The offset of each fixed-part column in a row's data.
    offsets: Vec<usize>,
}

/// A catalog column as described in the cluster's own `pg_attribute`.
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

/// A column that the cluster defines differently than our declaration.
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
    /// The cluster's column; `None` if it has no such column.
    pub found: Option<String>,
    /// The declared column; `None` if we declare no such column.
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

    /// Its columns, in catalog order.
    pub fn columns(&self) -> &[CatalogColumn] {
        &self.columns
    }

    /// Each column's size and alignment, as [`crate::deform::columns`] expects them.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// The number of columns in the fixed part, which comes first.
    pub fn fixed(&self) -> usize {
        self.offsets.len()
    }

    /// Returns the offset of column `at` (counted from 0) within a row's data, or `None` if the
    /// column isn't in the fixed part.
    pub fn offset(&self, at: usize) -> Option<usize> {
        self.offsets.get(at).copied()
    }

    /// Compares this layout with `rows`, which are the cluster's own `pg_attribute` rows for this
    /// catalog. The rows may be in any order. System columns are ignored.
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
