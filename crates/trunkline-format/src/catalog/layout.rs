//! A catalog's columns, and where they start in a row.
//!
//! The table of a catalog lists the columns of all versions; a column says from which version to
//! which it is there. A column that moved or changed its size is listed once for each place.

use crate::align::Align;
use crate::catalog::AttributeRow;
use crate::control::PgVersion;
use crate::ids::Oid;
use std::fmt;

/// A column of a catalog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CatalogColumn {
    /// Its name.
    pub name: &'static str,
    /// Its size in bytes; -1 if it varies.
    pub len: i16,
    /// How it is aligned.
    pub align: Align,
    /// Whether it is never null and comes before all columns of varying size, so that it starts at
    /// the same place in every row.
    pub fixed: bool,
    /// The first version that has it so.
    pub since: PgVersion,
    /// The last version that has it so.
    pub until: PgVersion,
}

/// A catalog as all versions have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CatalogTable {
    /// Its name.
    pub name: &'static str,
    /// Its OID, the same in all versions.
    pub oid: Oid,
    /// Whether all databases share it.
    pub shared: bool,
    /// Whether its file stands in a map and not in `pg_class`.
    pub mapped: bool,
    /// The columns of all versions, in order.
    pub columns: &'static [CatalogColumn],
    /// Whether further columns follow that are not listed.
    pub open: bool,
}

/// A catalog as one version has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CatalogLayout {
    table: &'static CatalogTable,
    columns: Vec<CatalogColumn>,
    /// Where each column of the fixed part starts.
    places: Vec<usize>,
}

/// Where a catalog describes itself otherwise than expected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The catalog.
    pub table: &'static str,
    /// The column's number, from 1.
    pub number: usize,
    /// What was found there; `None` if nothing.
    pub found: Option<String>,
    /// What was expected there; `None` if nothing.
    pub expected: Option<String>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "no column".to_owned());
        let Self { table, number, found, expected } = self;
        write!(f, "column {number} of {table} is {}, expected {}", or(found), or(expected))
    }
}

impl std::error::Error for Mismatch {}

impl CatalogTable {
    /// The catalog's columns in `version`.
    pub fn layout(&'static self, version: PgVersion) -> CatalogLayout {
        let there = |column: &&CatalogColumn| column.since <= version && version <= column.until;
        let columns: Vec<CatalogColumn> = self.columns.iter().filter(there).copied().collect();
        let mut end = 0;
        let fixed = columns.iter().take_while(|column| column.fixed).map(|column| {
            let place = column.align.up(end);
            end = place + usize::try_from(column.len).unwrap_or_default();
            place
        });
        let places = fixed.collect();
        CatalogLayout { table: self, columns, places }
    }
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

    /// How many columns are in the fixed part: they come first.
    pub fn fixed(&self) -> usize {
        self.places.len()
    }

    /// Where the column at `at`, counted from 0, starts in the data of a row; `None` beyond the
    /// fixed part.
    pub fn place(&self, at: usize) -> Option<usize> {
        self.places.get(at).copied()
    }

    /// Whether the cluster describes this catalog as we know it. `rows` are the rows of
    /// `pg_attribute` that are of this catalog, in any order; system columns are passed over.
    ///
    /// # Errors
    /// [`Mismatch`]: the first column that differs.
    pub fn agrees(&self, rows: &[AttributeRow<'_>]) -> Result<(), Mismatch> {
        let mut rows: Vec<&AttributeRow<'_>> = rows.iter().filter(|row| row.number > 0).collect();
        rows.sort_by_key(|row| row.number);
        let count = if self.table.open { self.columns.len() } else { rows.len() };
        for at in 0..count.max(self.columns.len()) {
            let (row, column) = (rows.get(at), self.columns.get(at));
            let same = row.zip(column).is_some_and(|(row, column)| {
                usize::try_from(row.number).is_ok_and(|number| number == at + 1)
                    && row.name == column.name.as_bytes()
                    && (row.len, row.align) == (column.len, column.align)
                    && !row.dropped
            });
            if !same {
                let text = |name: String, len, align| format!("{name} ({len}, {align:?})");
                return Err(Mismatch {
                    table: self.table.name,
                    number: at + 1,
                    found: row.map(|row| {
                        text(String::from_utf8_lossy(row.name).into_owned(), row.len, row.align)
                    }),
                    expected: column.map(|c| text(c.name.to_owned(), c.len, c.align)),
                });
            }
        }
        Ok(())
    }
}
