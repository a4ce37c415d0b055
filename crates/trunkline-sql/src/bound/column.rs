//! Columns of a statement, and their types.

use trunkline_format::Oid;

/// A type with everything that belongs to it in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlType {
    /// `pg_type.oid`.
    pub oid: Oid,
    /// The type modifier, such as a length; -1 if there is none.
    pub modifier: i32,
    /// The collation; 0 if the type has none.
    pub collation: Oid,
}

impl SqlType {
    /// A type without a modifier or a collation.
    pub const fn new(oid: Oid) -> Self {
        Self { oid, modifier: -1, collation: Oid(0) }
    }
}

/// A column of a relation in the statement. Ids are assigned in sequence, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnId(u32);

impl ColumnId {
    /// The number: the column's place in [`Columns`].
    pub fn number(self) -> u32 {
        self.0
    }
}

/// What is known about a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name, as `SELECT *` would show it.
    pub name: Box<str>,
    /// The alias of the relation it belongs to, for `EXPLAIN` and for deparsing.
    pub relation: Option<Box<str>>,
    /// Its type.
    pub ty: SqlType,
    /// The table column that it shows unchanged.
    pub origin: Option<Origin>,
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The table's `pg_class.oid`.
    pub table: Oid,
    /// `attnum`; negative for system columns.
    pub number: i16,
}

/// All columns of a statement.
#[derive(Debug, Clone, Default)]
pub struct Columns(Vec<Column>);

impl Columns {
    /// Adds a column.
    ///
    /// # Panics
    /// If there are more than 2³² columns.
    pub fn add(&mut self, column: Column) -> ColumnId {
        let number = u32::try_from(self.0.len());
        self.0.push(column);
        assert!(number.is_ok(), "a statement has fewer than 2^32 columns");
        ColumnId(number.unwrap_or_default())
    }

    /// Adds a column with the same properties as another one.
    ///
    /// # Panics
    /// As [`Columns::add`] and [`Columns::get`].
    pub fn copy(&mut self, id: ColumnId) -> ColumnId {
        let column = self.get(id).clone();
        self.add(column)
    }

    /// The column with this id.
    ///
    /// # Panics
    /// If the id belongs to another statement.
    #[expect(clippy::indexing_slicing, reason = "ids are made by add(), which never removes")]
    pub fn get(&self, id: ColumnId) -> &Column {
        &self.0[id.0 as usize]
    }

    /// The column with this number.
    pub fn find(&self, number: u32) -> Option<ColumnId> {
        (self.0.len() as u64 > u64::from(number)).then_some(ColumnId(number))
    }

    /// The number of columns.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
