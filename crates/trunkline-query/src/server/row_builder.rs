//! Builds the arrays of a function's rows.

use arrow_array::ArrayRef;
use trunkline_sql::SqlError;
use trunkline_sql::numeric::Numeric;
use trunkline_sql::values::{Carrier, ColumnBuilder};

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int2(i16),
    Int4(i32),
    Int8(i64),
    /// `oid`.
    Oid(u32),
    Float8(f64),
    Text(String),
    /// A whole number as `numeric`.
    Numeric(i64),
    /// `timestamptz`, in microseconds since 2000.
    Time(i64),
    /// The stored bytes of a value of variable length.
    Bytes(Vec<u8>),
}

impl Value {
    /// A text, or null.
    pub(crate) fn text(text: Option<impl Into<String>>) -> Self {
        text.map_or(Self::Null, |text| Self::Text(text.into()))
    }

    /// A count as `int8`.
    pub(crate) fn count(count: u64) -> Self {
        Self::Int8(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// A count as `int4`.
    pub(crate) fn small_count(count: u64) -> Self {
        Self::Int4(i32::try_from(count).unwrap_or(i32::MAX))
    }

    fn append(&self, column: &mut ColumnBuilder) -> Result<(), SqlError> {
        let appended = match self {
            Self::Null => {
                column.append_null();
                return Ok(());
            }
            Self::Bool(value) => column.append(&[u8::from(*value)]),
            Self::Int2(value) => column.append(&value.to_le_bytes()),
            Self::Int4(value) => column.append(&value.to_le_bytes()),
            Self::Int8(value) | Self::Time(value) => column.append(&value.to_le_bytes()),
            Self::Oid(value) => column.append(&value.to_le_bytes()),
            Self::Float8(value) => column.append(&value.to_le_bytes()),
            Self::Text(value) => column.append(value.as_bytes()),
            Self::Bytes(value) => column.append(value),
            Self::Numeric(value) => column.append(&Numeric::from(*value).to_payload()?),
        };
        appended.map_err(|error| SqlError::internal(error.to_string()))
    }
}

/// Rows under construction.
pub(crate) struct RowBuilder {
    columns: Vec<ColumnBuilder>,
}

impl RowBuilder {
    /// No rows yet, with columns of these carriers.
    pub(crate) fn new(carriers: &[Carrier]) -> Self {
        let columns = carriers.iter().map(|&carrier| ColumnBuilder::new(carrier, 64));
        Self { columns: columns.collect() }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: &[Value]) -> Result<(), SqlError> {
        if row.len() != self.columns.len() {
            let (found, expected) = (row.len(), self.columns.len());
            let message = format!("a row has {found} columns, expected {expected}");
            return Err(SqlError::internal(message));
        }
        self.columns.iter_mut().zip(row).try_for_each(|(column, value)| value.append(column))
    }

    /// An array for each column.
    pub(crate) fn finish(mut self) -> Vec<ArrayRef> {
        self.columns.iter_mut().map(ColumnBuilder::finish).collect()
    }
}
