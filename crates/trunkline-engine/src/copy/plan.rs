//! What of a table is copied, and how each of its columns is printed.
//!
//! The columns are those of the table that was named, in its order. A partition or child may have
//! them in another order, with dropped ones between: each leaf is planned by itself, its columns
//! found by name.

use std::path::PathBuf;

use trunkline_format::catalog::{Generated, RelationKind};
use trunkline_format::deform::Attribute;
use trunkline_format::text_output::{Base, Type};

use super::error::PlanError;
use crate::catalog::{ColumnInfo, Database, RelationInfo, TableFiles};
use crate::pool::Backend;
use crate::storage::Relation;

/// How one table is copied.
#[derive(Debug)]
pub struct Plan {
    /// The table's name with its schema.
    pub name: String,
    pub(super) files: TableFiles,
    /// Its columns as they lie in a row, up to the last that is wanted.
    pub(super) stored: Vec<Stored>,
    /// The columns that are printed, in the order in which they are.
    pub(super) shown: Vec<Shown>,
    /// Whether they lie in a row in the order in which they are printed.
    pub(super) in_order: bool,
}

/// A column as it lies in a row.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) attribute: Attribute,
    /// Its alignment less one.
    pub(super) mask: usize,
    /// Its place among those that are printed.
    pub(super) shown: Option<usize>,
}

/// A column as it is printed.
#[derive(Debug)]
pub(super) struct Shown {
    /// As the database has it: in its encoding.
    pub(super) name: Box<[u8]>,
    pub(super) ty: Type,
    pub(super) text: TextKind,
    /// Of variable length, with a header.
    pub(super) has_header: bool,
    /// Its place in a row.
    pub(super) stored: usize,
    /// What rows have that are older than it, as rows hold it.
    pub(super) missing: Option<Box<[u8]>>,
}

/// What is to be done to a value's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    /// Nothing: its type knows no character that stands for something else.
    Plain,
    /// The bytes are the text, and may hold anything.
    Bytes,
    /// The text may hold anything.
    Other,
}

impl TextKind {
    fn of(ty: &Type) -> Self {
        let Type::Base(base) = ty else { return Self::Other };
        match base {
            Base::Text => Self::Bytes,
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

/// Columns of a table by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnNames {
    /// Those to copy, in this order.
    pub shown: Vec<Vec<u8>>,
    /// Those of them that nobody named, and that are computed from others: `COPY` of a table leaves
    /// them out, a query has them.
    pub computed: Vec<Vec<u8>>,
    /// Those that nobody named, and that are not stored.
    pub left_out: Vec<Vec<u8>>,
}

/// The columns to copy of `table`: those in `wanted`, or else all that are stored. A column that is
/// computed and stored counts as stored.
///
/// # Errors
/// [`PlanError`]: there is no such column, or it is not stored.
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
    /// The columns that `COPY` of the table prints, which can be loaded again: none that is computed.
    #[must_use]
    pub fn of_table(mut self) -> Self {
        self.shown.retain(|name| !self.computed.contains(name));
        self.computed.clear();
        self.left_out.clear();
        self
    }
}

impl Plan {
    /// For the rows that are in `table` itself, and of its columns those with `names`, in that order.
    /// Reads the names that their values may consist of.
    ///
    /// # Errors
    /// [`PlanError`]: it has no rows that can be read, or not these columns, or values that cannot be
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
                    return Err(PlanError::Type { table: name, column: display, source });
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
        Ok(Self { name, files, stored, shown, in_order })
    }

    /// Whether `test` holds for any of the types that are printed, or that those are made of.
    pub fn has_type(&self, test: &dyn Fn(Base) -> bool) -> bool {
        self.shown.iter().any(|column| column.ty.contains(test))
    }

    /// The files of its rows and of their long values that do not end with a block, and their lengths in
    /// bytes: rows may be missing. A server reads such files without a word.
    pub fn partial_files(&self) -> Vec<(PathBuf, u64)> {
        let toast = self.files.toast.iter().map(|toast| &toast.heap);
        std::iter::once(&self.files.rows)
            .chain(toast)
            .flat_map(Relation::partial_segments)
            .collect()
    }

    /// The names of the columns that are printed, in the database's encoding.
    pub fn columns(&self) -> impl Iterator<Item = &[u8]> {
        self.shown.iter().map(|column| &*column.name)
    }
}
