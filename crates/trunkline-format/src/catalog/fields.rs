//! The columns of one row of a catalog, by name.
//!
//! A row's reader asks for columns in the order in which the catalog has them; the search for a name
//! goes on where the last one ended, so that a whole row costs one pass over the names.

use super::columns::NAME_SIZE;
use super::layout::{CatalogLayout, CatalogTable};
use crate::align::Align;
use crate::deform::{Attribute, Column, Deformer};
use crate::heap_tuple::HeapTuple;
use crate::ids::Oid;
use crate::little_endian::{array, i64_at, u32_at};
use crate::varlena::Varlena;
use std::fmt;

/// `oid` in `pg_type`.
const OID_TYPE: u32 = 26;

/// `int2` in `pg_type`.
const INT2_TYPE: u32 = 21;

/// Why a row of a catalog makes no sense.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowError {
    /// It ends before the column, has fewer columns, or the column leads outside of it.
    Short {
        /// The catalog.
        table: &'static str,
        /// The column.
        column: &'static str,
    },
    /// A column is null that never is.
    Null {
        /// The catalog.
        table: &'static str,
        /// The column.
        column: &'static str,
    },
    /// A column holds what no server writes there.
    Value {
        /// The catalog.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// What it holds: a number, or a byte's.
        found: i64,
    },
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { table, column } => {
                write!(f, "a row of {table} ends before its column {column}")
            }
            Self::Null { table, column } => {
                write!(f, "a row of {table} has a null in its column {column}, expected a value")
            }
            Self::Value { table, column, found } => {
                write!(
                    f,
                    "a row of {table} has {found} in its column {column}, which means nothing"
                )
            }
        }
    }
}

impl std::error::Error for RowError {}

/// One row, whose columns are taken out by name.
#[derive(Clone, Debug)]
pub struct Fields<'a, 'l> {
    layout: &'l CatalogLayout,
    tuple: HeapTuple<'a>,
    /// Where the search for the next name begins.
    next: usize,
}

impl CatalogLayout {
    /// The columns of `tuple`, a row of this catalog.
    ///
    /// # Errors
    /// [`RowError`]: a column of the fixed part is null or missing.
    pub fn fields<'a, 'l>(&'l self, tuple: HeapTuple<'a>) -> Result<Fields<'a, 'l>, RowError> {
        let (table, columns) = (self.table().name, self.columns());
        let fixed = self.fixed();
        if usize::from(tuple.natts()) < fixed {
            let column = columns.get(usize::from(tuple.natts())).map_or("", |column| column.name);
            return Err(RowError::Short { table, column });
        }
        if !tuple.nulls().is_empty() {
            let is_null =
                |at: &usize| tuple.nulls().get(at / 8).is_none_or(|byte| byte & 1 << (at % 8) == 0);
            if let Some(at) = (0..fixed).find(is_null) {
                let column = columns.get(at).map_or("", |column| column.name);
                return Err(RowError::Null { table, column });
            }
        }
        Ok(Fields { layout: self, tuple, next: 0 })
    }
}

impl<'a> Fields<'a, '_> {
    /// The row as it is.
    pub fn tuple(&self) -> HeapTuple<'a> {
        self.tuple
    }

    /// An OID, a transaction or another number of four bytes.
    ///
    /// # Errors
    /// [`RowError::Short`] if the row ends before the column does, or if the catalog has no such column
    /// in its fixed part.
    pub fn word(&mut self, column: &'static str) -> Result<u32, RowError> {
        let place = self.place(column)?;
        u32_at(self.tuple.data(), place).ok_or_else(|| self.short(column))
    }

    /// An OID.
    ///
    /// # Errors
    /// As [`Fields::word`].
    pub fn oid(&mut self, column: &'static str) -> Result<Oid, RowError> {
        self.word(column).map(Oid)
    }

    /// A number of two bytes.
    ///
    /// # Errors
    /// As [`Fields::word`].
    pub fn short_number(&mut self, column: &'static str) -> Result<i16, RowError> {
        self.bytes(column).map(i16::from_le_bytes)
    }

    /// A number of eight bytes.
    ///
    /// # Errors
    /// As [`Fields::word`].
    pub fn double(&mut self, column: &'static str) -> Result<i64, RowError> {
        let place = self.place(column)?;
        i64_at(self.tuple.data(), place).ok_or_else(|| self.short(column))
    }

    /// A `float4`.
    ///
    /// # Errors
    /// As [`Fields::word`].
    pub fn float(&mut self, column: &'static str) -> Result<f32, RowError> {
        self.word(column).map(f32::from_bits)
    }

    /// A `"char"`: a letter that stands for something.
    ///
    /// # Errors
    /// As [`Fields::word`].
    pub fn code(&mut self, column: &'static str) -> Result<u8, RowError> {
        self.bytes(column).map(u8::from_le_bytes)
    }

    /// A `bool`.
    ///
    /// # Errors
    /// As [`Fields::word`]; [`RowError::Value`] if it is neither 0 nor 1.
    pub fn flag(&mut self, column: &'static str) -> Result<bool, RowError> {
        match self.code(column)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.value(column, i64::from(other))),
        }
    }

    /// A letter of an alignment.
    ///
    /// # Errors
    /// As [`Fields::word`]; [`RowError::Value`] if it is none.
    pub fn align(&mut self, column: &'static str) -> Result<Align, RowError> {
        let code = self.code(column)?;
        Align::from_code(code).ok_or_else(|| self.value(column, i64::from(code)))
    }

    /// A name, without the zeros behind it.
    ///
    /// # Errors
    /// As [`Fields::word`].
    pub fn name(&mut self, column: &'static str) -> Result<&'a [u8], RowError> {
        let place = self.place(column)?;
        let padded = self.tuple.data().get(place..).and_then(|rest| rest.get(..NAME_SIZE));
        let padded = padded.ok_or_else(|| self.short(column))?;
        let end = padded.iter().position(|&byte| byte == 0).unwrap_or(NAME_SIZE);
        Ok(padded.get(..end).unwrap_or_default())
    }

    /// The datum of any column as it is stored, found by walking the row; `None` if it is null.
    ///
    /// # Errors
    /// As [`Fields::word`].
    pub fn stored(&mut self, column: &'static str) -> Result<Option<&'a [u8]>, RowError> {
        let at = self.position(column).ok_or_else(|| self.short(column))?;
        let mut walk = Deformer::of(&self.tuple);
        for passed in self.layout.columns().iter().take(at) {
            let attribute = Attribute { len: passed.len, align: passed.align };
            walk.next(attribute).map_err(|_| self.short(passed.name))?;
        }
        let wanted = self.layout.columns().get(at);
        let wanted = wanted.map(|wanted| Attribute { len: wanted.len, align: wanted.align });
        let found = wanted.map(|attribute| walk.next(attribute)).transpose();
        Ok(found.map_err(|_| self.short(column))?.and_then(Column::value))
    }

    /// A short `text` that is never null.
    ///
    /// # Errors
    /// As [`Fields::word`]; [`RowError::Value`] if it is compressed or elsewhere.
    pub fn text(&mut self, column: &'static str) -> Result<&'a [u8], RowError> {
        let table = self.layout.table().name;
        let stored = self.stored(column)?.ok_or(RowError::Null { table, column })?;
        match Varlena::parse(stored) {
            Ok(Varlena::Plain(text)) => Ok(text),
            _ => Err(self.value(column, i64::from(stored.first().copied().unwrap_or_default()))),
        }
    }

    /// The numbers of an `oidvector`.
    ///
    /// # Errors
    /// As [`Fields::word`], also if it is null or no such vector.
    pub fn oids(&mut self, column: &'static str) -> Result<Vec<Oid>, RowError> {
        let numbers = self.vector(column, OID_TYPE)?;
        Ok(numbers.map(|four: [u8; 4]| Oid(u32::from_le_bytes(four))).collect())
    }

    /// The numbers of an `int2vector`.
    ///
    /// # Errors
    /// As [`Fields::oids`].
    pub fn short_numbers(&mut self, column: &'static str) -> Result<Vec<i16>, RowError> {
        Ok(self.vector(column, INT2_TYPE)?.map(i16::from_le_bytes).collect())
    }

    /// The elements of a vector: an array of one dimension, counted from 0, without nulls.
    fn vector<const N: usize>(
        &mut self,
        column: &'static str,
        element: u32,
    ) -> Result<impl Iterator<Item = [u8; N]> + use<'a, N>, RowError> {
        let table = self.layout.table().name;
        let stored = self.stored(column)?.ok_or(RowError::Null { table, column })?;
        // Never compressed or elsewhere: the catalogs' storage of such columns is plain.
        let Ok(Varlena::Plain(array)) = Varlena::parse(stored) else {
            return Err(self.value(column, i64::from(stored.first().copied().unwrap_or_default())));
        };
        let found = [0, 4, 8, 12, 16].map(|at| u32_at(array, at));
        let [Some(dimensions), Some(nulls), Some(of), Some(count), Some(_)] = found else {
            return Err(self.short(column));
        };
        for (found, expected) in [(dimensions, 1), (nulls, 0), (of, element)] {
            if found != expected {
                return Err(self.value(column, i64::from(found)));
            }
        }
        let (elements, _) = array.get(20..).unwrap_or_default().as_chunks::<N>();
        match usize::try_from(count) {
            Ok(count) if count <= elements.len() => Ok(elements.iter().copied().take(count)),
            _ => Err(self.short(column)),
        }
    }

    /// The catalog that it is a row of.
    pub fn table(&self) -> &'static CatalogTable {
        self.layout.table()
    }

    /// The error for a column that holds `found`.
    pub(super) fn value(&self, column: &'static str, found: i64) -> RowError {
        RowError::Value { table: self.layout.table().name, column, found }
    }

    pub(super) fn short(&self, column: &'static str) -> RowError {
        RowError::Short { table: self.layout.table().name, column }
    }

    fn bytes<const N: usize>(&mut self, column: &'static str) -> Result<[u8; N], RowError> {
        let place = self.place(column)?;
        array(self.tuple.data(), place).ok_or_else(|| self.short(column))
    }

    /// Where a column of the fixed part starts.
    fn place(&mut self, column: &'static str) -> Result<usize, RowError> {
        let found = self.position(column);
        found.and_then(|at| self.layout.place(at)).ok_or_else(|| self.short(column))
    }

    /// The place of a column among the columns, from 0.
    pub(super) fn position(&mut self, column: &'static str) -> Option<usize> {
        let columns = self.layout.columns();
        let same = |at: &usize| columns.get(*at).is_some_and(|known| known.name == column);
        let at = (self.next..columns.len()).chain(0..self.next).find(same)?;
        self.next = at + 1;
        Some(at)
    }
}
