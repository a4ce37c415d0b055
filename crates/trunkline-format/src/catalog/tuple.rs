//! One catalog row, with its columns looked up by name and decoded into Rust types.
//!
//! A row type asks for its columns in catalog order. Each lookup by name starts at the column after
//! the one that was found last, so we go through the list of names only once to decode a whole row.

use super::description::{CatalogColumn, CatalogLayout, CatalogTable, ColumnType, NAME_SIZE};
use crate::deform::{Column, Deformer, is_present};
use crate::heap_tuple::HeapTuple;
use crate::ids::Oid;
use crate::little_endian::{Number, read_at, words};
use crate::varlena::Varlena;
use thiserror::Error;

/// Damage in a catalog row.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum RowError {
    /// The row does not have this many columns, or it ends before the end of this column.
    #[error("a row of {table} ends before its column {column}")]
    Short {
        /// The catalog.
        table: &'static str,
        /// The column.
        column: &'static str,
    },
    /// A column that must not be null is null.
    #[error("a row of {table} has a null in its column {column}, expected a value")]
    Null {
        /// The catalog.
        table: &'static str,
        /// The column.
        column: &'static str,
    },
    /// A column holds a value that no server would write.
    #[error("a row of {table} has the unknown value {found} in column {column}")]
    Value {
        /// The catalog.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The value: a number or a character code.
        found: i64,
    },
}

/// A row type declared in [`super`], which owns its decoded columns.
pub trait CatalogRow: Sized {
    /// The catalog that contains these rows.
    const CATALOG: &'static CatalogTable;

    /// Decodes a row.
    ///
    /// # Errors
    /// [`RowError`]: a column is missing, null or has an impossible value.
    fn decode(tuple: &mut CatalogTuple<'_, '_>) -> Result<Self, RowError>;
}

/// A Rust type that a catalog column decodes to.
pub trait ColumnValue: Sized {
    /// Decodes a column.
    ///
    /// # Errors
    /// [`RowError`]: the column is missing, null or has an impossible value.
    fn decode(tuple: &mut CatalogTuple<'_, '_>, column: &'static str) -> Result<Self, RowError>;
}

/// A catalog row. Its columns are looked up by name.
#[derive(Clone, Debug)]
pub struct CatalogTuple<'a, 'l> {
    layout: &'l CatalogLayout,
    tuple: HeapTuple<'a>,
    /// Index where the search for the next name starts.
    next: usize,
}

impl CatalogLayout {
    /// Interprets `tuple` as a row of this catalog.
    ///
    /// # Errors
    /// [`RowError`] if a column in the fixed part is null or missing. We must check this first,
    /// because the fixed offsets are only valid if none of these columns is null.
    pub fn tuple<'a, 'l>(&'l self, tuple: HeapTuple<'a>) -> Result<CatalogTuple<'a, 'l>, RowError> {
        let (table, natts, fixed) = (self.table().name, usize::from(tuple.natts()), self.fixed());
        let name = |at: usize| self.columns().get(at).map_or("", |column| column.name);
        if natts < fixed {
            return Err(RowError::Short { table, column: name(natts) });
        }
        if let Some(at) = (0..fixed).find(|&at| !is_present(tuple.nulls(), at)) {
            return Err(RowError::Null { table, column: name(at) });
        }
        Ok(CatalogTuple { layout: self, tuple, next: 0 })
    }
}

impl<'a> CatalogTuple<'a, '_> {
    /// The catalog.
    pub fn table(&self) -> &'static CatalogTable {
        self.layout.table()
    }

    /// The catalog's columns in this version.
    pub fn columns(&self) -> &[CatalogColumn] {
        self.layout.columns()
    }

    /// Decodes a column.
    ///
    /// # Errors
    /// [`RowError`]: the column is missing, null or has an impossible value.
    pub fn get<T: ColumnValue>(&mut self, column: &'static str) -> Result<T, RowError> {
        T::decode(self, column)
    }

    /// Deforms the row and returns the column's stored datum, or `None` if it is null.
    ///
    /// # Errors
    /// [`RowError::Short`]
    pub fn stored(&mut self, column: &'static str) -> Result<Option<&'a [u8]>, RowError> {
        let at = self.position(column).ok_or_else(|| self.short(column))?;
        let mut deformer = Deformer::of(&self.tuple);
        let mut found = None;
        for (&attribute, passed) in self.layout.attributes().iter().zip(self.columns()).take(at + 1)
        {
            found =
                deformer.next(attribute).map(Column::value).map_err(|_| self.short(passed.name))?;
        }
        Ok(found)
    }

    /// A short `text` that can be null.
    pub(super) fn text_or_null(
        &mut self,
        column: &'static str,
    ) -> Result<Option<Box<[u8]>>, RowError> {
        match self.stored(column)? {
            Some(_) => self.plain(column).map(|text| Some(text.into())),
            None => Ok(None),
        }
    }

    /// The error for a column with the invalid value `found`.
    pub(super) fn value(&self, column: &'static str, found: impl Into<i64>) -> RowError {
        RowError::Value { table: self.table().name, column, found: found.into() }
    }

    pub(super) fn short(&self, column: &'static str) -> RowError {
        RowError::Short { table: self.table().name, column }
    }

    /// The number in a column of the fixed part.
    fn fixed<T: Number>(&mut self, column: &'static str) -> Result<T, RowError> {
        let offset = self.position(column).and_then(|at| self.layout.offset(at));
        let number = offset.and_then(|offset| read_at(self.tuple.data(), offset));
        number.ok_or_else(|| self.short(column))
    }

    /// Returns a variable-length column that is never null, never compressed and never stored out
    /// of line. That is the case if the column's `attstorage` is plain, or if its values are always
    /// too short to be toasted.
    fn plain(&mut self, column: &'static str) -> Result<&'a [u8], RowError> {
        let stored = self.stored(column)?;
        let stored = stored.ok_or(RowError::Null { table: self.table().name, column })?;
        match Varlena::parse(stored) {
            Ok(Varlena::Plain(payload)) => Ok(payload),
            _ => Err(self.value(column, stored.first().copied().unwrap_or_default())),
        }
    }

    /// The elements of an `int2vector` or `oidvector`, which is a one-dimensional array without
    /// nulls.
    fn vector<const N: usize>(
        &mut self,
        column: &'static str,
        element: ColumnType,
    ) -> Result<impl Iterator<Item = [u8; N]> + use<'a, N>, RowError> {
        let array = self.plain(column)?;
        let header = words(array, 0).ok_or_else(|| self.short(column))?;
        let [dimensions, nulls, of, count, _] = header;
        for (found, expected) in [(dimensions, 1), (nulls, 0), (of, element.oid().0)] {
            if found != expected {
                return Err(self.value(column, found));
            }
        }
        let (elements, _) = array.get(20..).unwrap_or_default().as_chunks::<N>();
        match usize::try_from(count) {
            Ok(count) if count <= elements.len() => Ok(elements.iter().copied().take(count)),
            _ => Err(self.short(column)),
        }
    }

    /// The column's index, from 0.
    fn position(&mut self, column: &'static str) -> Option<usize> {
        let columns = self.layout.columns();
        let same = |at: &usize| columns.get(*at).is_some_and(|known| known.name == column);
        let at = (self.next..columns.len()).chain(0..self.next).find(same)?;
        self.next = at + 1;
        Some(at)
    }
}

/// Numbers of the fixed part.
macro_rules! numbers {
    ($($type:ty),*) => {
        $(impl ColumnValue for $type {
            fn decode(tuple: &mut CatalogTuple<'_, '_>, column: &'static str) -> Result<Self, RowError> {
                tuple.fixed(column)
            }
        })*
    };
}

numbers!(u8, i16, i32, u32, i64, f32);

impl ColumnValue for Oid {
    fn decode(tuple: &mut CatalogTuple<'_, '_>, column: &'static str) -> Result<Self, RowError> {
        tuple.get(column).map(Self)
    }
}

/// An `int2` that is never negative.
impl ColumnValue for u16 {
    fn decode(tuple: &mut CatalogTuple<'_, '_>, column: &'static str) -> Result<Self, RowError> {
        let found: i16 = tuple.get(column)?;
        Self::try_from(found).map_err(|_| tuple.value(column, found))
    }
}

impl ColumnValue for bool {
    fn decode(tuple: &mut CatalogTuple<'_, '_>, column: &'static str) -> Result<Self, RowError> {
        match tuple.get(column)? {
            0_u8 => Ok(false),
            1 => Ok(true),
            other => Err(tuple.value(column, other)),
        }
    }
}

/// A `name` without its padding, or a short `text` that is never null.
impl ColumnValue for Box<[u8]> {
    fn decode(tuple: &mut CatalogTuple<'_, '_>, column: &'static str) -> Result<Self, RowError> {
        let at = tuple.position(column);
        let offset = at.and_then(|at| tuple.layout.offset(at));
        let Some(offset) = offset else { return tuple.plain(column).map(Self::from) };
        let padded = tuple.tuple.data().get(offset..).and_then(|rest| rest.get(..NAME_SIZE));
        let padded = padded.ok_or_else(|| tuple.short(column))?;
        Ok(padded.split(|&byte| byte == 0).next().unwrap_or_default().into())
    }
}

/// The stored datum of a nullable column, with its varlena header.
impl ColumnValue for Option<Box<[u8]>> {
    fn decode(tuple: &mut CatalogTuple<'_, '_>, column: &'static str) -> Result<Self, RowError> {
        Ok(tuple.stored(column)?.map(Box::from))
    }
}

/// An `oidvector`.
impl ColumnValue for Vec<Oid> {
    fn decode(tuple: &mut CatalogTuple<'_, '_>, column: &'static str) -> Result<Self, RowError> {
        let elements = tuple.vector(column, ColumnType::Oid)?;
        Ok(elements.map(|bytes| Oid(u32::from_le_bytes(bytes))).collect())
    }
}

/// An `int2vector`.
impl ColumnValue for Vec<i16> {
    fn decode(tuple: &mut CatalogTuple<'_, '_>, column: &'static str) -> Result<Self, RowError> {
        Ok(tuple.vector(column, ColumnType::Int2)?.map(i16::from_le_bytes).collect())
    }
}
