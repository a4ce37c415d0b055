//! Copy plans: which columns of a table to copy, and how to print them.
//!
//! The user names one table, and the columns of that table determine the output. Its partitions may
//! have the same columns in a different order, and may have dropped columns in between. We therefore
//! make a separate plan for each table, and match the columns by name, like PostgreSQL's attribute
//! maps (`attmap.c`).

use std::path::PathBuf;

use trunkline_aio::facade::Arc;
use trunkline_format::Oid;
use trunkline_format::catalog::{Generated, RelationKind};
use trunkline_format::deform::Attribute;
use trunkline_format::text_output::{Base, Type};

use super::error::PlanError;
use crate::catalog::{ColumnInfo, Database, RelationInfo, TableFiles};
use crate::pool::Backend;
use crate::storage::Relation;

/// How to copy one table.
#[derive(Debug)]
pub struct Plan {
    /// The name of the table with its schema.
    pub name: String,
    pub(super) files: TableFiles,
    /// The TOAST table, if the table has one that the catalogs don't describe.
    pub(super) lost_toast: Option<Oid>,
    /// The columns as they are stored in a row, up to and including the last one we print. Since a
    /// row can only be deformed from left to right, this includes columns that we don't print if
    /// they come before a column that we do print.
    pub(super) stored: Vec<Stored>,
    /// The columns to print, in the order of the output.
    pub(super) shown: Vec<Shown>,
    /// Whether the columns of the output are in the same order as those of the row. If so, we can
    /// print rows while deforming them.
    pub(super) in_order: bool,
}

/// A column as stored in a row.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) attribute: Attribute,
    /// Its alignment minus one.
    pub(super) mask: usize,
    /// Its index in `shown`, if it is printed.
    pub(super) shown: Option<usize>,
}

/// A column to print.
#[derive(Debug)]
pub(super) struct Shown {
    /// The name, in the encoding of the database.
    pub(super) name: Box<[u8]>,
    pub(super) ty: Type,
    pub(super) text: TextKind,
    /// Whether values have a varlena header.
    pub(super) has_header: bool,
    /// Its index in `stored`.
    pub(super) stored: usize,
    /// The stored form of the value to use for rows that are older than the column
    /// (`attmissingval`).
    pub(super) missing: Option<Box<[u8]>>,
}

/// Whether the text of a value may need escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    /// Never: the text of the type has no special characters.
    Plain,
    /// The value's bytes are already its text, which may need escapes.
    Bytes,
    /// The text may need escapes.
    Other,
}

impl TextKind {
    /// A type may be `Plain` only if its text can never contain a special character, whatever the
    /// value and the settings.
    fn of(ty: &Type) -> Self {
        let Type::Base(base) = ty else { return Self::Other };
        match base {
            Base::Text(_) => Self::Bytes,
            Base::Bool
            | Base::Int2
            | Base::Int4
            | Base::Int8
            | Base::Float4
            | Base::Float8
            | Base::Numeric
            | Base::Date
            | Base::Time
            | Base::Timetz
            | Base::Timestamp
            | Base::Timestamptz
            | Base::Uuid
            | Base::U32(_)
            | Base::U64(_)
            | Base::Lsn
            | Base::Inet
            | Base::Cidr
            | Base::Macaddr
            | Base::Macaddr8 => Self::Plain,
            _ => Self::Other,
        }
    }
}

/// The columns of a copy, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnNames {
    /// The columns to copy, in this order.
    pub shown: Vec<Vec<u8>>,
    /// Stored generated columns that are in `shown` although they weren't requested by name. `COPY`
    /// of a table skips such columns, but `COPY` of a query includes them.
    pub computed: Vec<Vec<u8>>,
    /// Virtual generated columns that weren't requested by name. We leave them out, because they
    /// aren't stored.
    pub left_out: Vec<Vec<u8>>,
}

/// The columns of `table` to copy: the columns listed in `wanted`, or if that's empty, all stored
/// columns, including stored generated columns.
///
/// # Errors
/// [`PlanError`]: a column does not exist or is not stored.
pub fn column_names(
    database: &Database,
    table: &RelationInfo,
    wanted: &[Vec<u8>],
) -> Result<ColumnNames, PlanError> {
    let columns = database.columns(table)?;
    let live = || columns.iter().filter(|column| !column.dropped);
    let is_virtual = |column: &&ColumnInfo| column.generated == Generated::Virtual;
    if wanted.is_empty() {
        let name = |column: &ColumnInfo| column.name.to_vec();
        let left_out = live().filter(is_virtual).map(name).collect();
        let shown = live().filter(|column| !is_virtual(column)).map(name).collect();
        let is_stored = |column: &&ColumnInfo| column.generated == Generated::Stored;
        let computed = live().filter(is_stored).map(name).collect();
        return Ok(ColumnNames { shown, computed, left_out });
    }
    for (at, name) in wanted.iter().enumerate() {
        let shown = || String::from_utf8_lossy(name).into_owned();
        if wanted.iter().take(at).any(|before| before == name) {
            return Err(PlanError::ColumnTwice { column: shown() });
        }
        match live().find(|column| *column.name == **name) {
            None => {
                let table = database.qualified_name(table);
                return Err(PlanError::NoColumn { table, column: shown() });
            }
            Some(column) if is_virtual(&column) => {
                let table = database.qualified_name(table);
                return Err(PlanError::Virtual { table, column: shown() });
            }
            Some(_) => {}
        }
    }
    Ok(ColumnNames { shown: wanted.to_vec(), computed: Vec::new(), left_out: Vec::new() })
}

impl ColumnNames {
    /// The columns that `COPY` of the table would print. Generated columns are left out, because
    /// otherwise the rows couldn't be loaded again.
    #[must_use]
    pub fn of_table(mut self) -> Self {
        self.shown.retain(|name| !self.computed.contains(name));
        self.computed.clear();
        self.left_out.clear();
        self
    }
}

impl Plan {
    /// Builds a plan for printing the columns listed in `names`, in that order. The plan covers
    /// only the rows of the table itself, not those of its partitions. This also loads the catalogs
    /// we need for values that are printed as names, such as `regclass` values and enum labels.
    ///
    /// # Errors
    /// [`PlanError`]: the table has no readable rows or no such column, or a type cannot be
    /// printed.
    pub fn new(
        database: &Database,
        backend: &mut Backend,
        table: &RelationInfo,
        names: &[Vec<u8>],
    ) -> Result<Self, PlanError> {
        let name = database.qualified_name(table);
        if table.kind == RelationKind::MaterializedView && !table.populated {
            return Err(PlanError::NotPopulated { view: name });
        }
        let files = database.table_files(table)?;
        let lost_toast = database.lost_toast(table);
        let columns = database.columns(table)?;
        let mut shown = Vec::with_capacity(names.len());
        let mut types = Vec::new();
        for wanted in names {
            let display = String::from_utf8_lossy(wanted).into_owned();
            let found = columns.iter().position(|it| !it.dropped && *it.name == **wanted);
            let Some((place, column)) = found.and_then(|at| Some((at, columns.get(at)?))) else {
                return Err(PlanError::NoColumn { table: name, column: display });
            };
            let ty = match Type::resolve(column.type_oid, database) {
                Ok(ty) => ty,
                Err(source) => {
                    let (table, column) = (name, display);
                    return Err(match database.output_fault(&source) {
                        Some(fault) => {
                            PlanError::Output { table, column, fault: Arc::clone(fault) }
                        }
                        None => PlanError::Type { table, column, source },
                    });
                }
            };
            types.push(column.type_oid);
            shown.push(Shown {
                name: wanted.as_slice().into(),
                text: TextKind::of(&ty),
                ty,
                has_header: column.attribute.len == -1,
                stored: place,
                missing: column.missing.clone(),
            });
        }
        database.load_names(backend, types)?;
        let last = shown.iter().map(|column| column.stored + 1).max().unwrap_or(0);
        let place = |stored| shown.iter().position(|column: &Shown| column.stored == stored);
        let stored = columns.iter().take(last).enumerate();
        let stored = stored
            .map(|(at, column)| Stored {
                attribute: column.attribute,
                mask: column.attribute.align.bytes() - 1,
                shown: place(at),
            })
            .collect();
        let in_order = shown.is_sorted_by_key(|column| column.stored);
        Ok(Self { name, files, lost_toast, stored, shown, in_order })
    }

    /// Whether `test` returns true for the type of any printed column, or for any component of such
    /// a type.
    pub fn has_type(&self, test: &dyn Fn(Base) -> bool) -> bool {
        self.shown.iter().any(|column| column.ty.contains(test))
    }

    /// Files of the table and its TOAST table that end mid-block, with their lengths in bytes. Such
    /// a file may have lost rows, but a server silently ignores the partial block.
    pub fn partial_files(&self) -> Vec<(PathBuf, u64)> {
        let toast = self.files.toast.iter().map(|toast| &toast.heap);
        std::iter::once(&self.files.rows)
            .chain(toast)
            .flat_map(Relation::partial_segments)
            .collect()
    }

    /// The names of the printed columns, in the encoding of the database.
    pub fn columns(&self) -> impl Iterator<Item = &[u8]> {
        self.shown.iter().map(|column| &*column.name)
    }
}
