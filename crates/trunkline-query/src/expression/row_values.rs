//! Rows as values: `ROW(a, b)`, `(row).field`, `row IS NULL`.
//!
//! A row is made as it is stored. For example, `ROW(1, NULL)` has one column with a value, and
//! describes both of its columns, because its type is no type of the catalog.

use std::sync::Arc;

use arrow_array::BooleanArray;
use trunkline_format::stored_record::write_row;
use trunkline_format::text_output::{
    RECORD, Record, RecordColumn, RowTypes, Type, ValueError, row_fields,
};
use trunkline_sql::bound::{Expr, SqlType};
use trunkline_sql::functions::{Argument, CallSettings};
use trunkline_sql::values::Carrier;
use trunkline_sql::{SqlError, SqlState};

use super::arrays::{Values, append, build};
use crate::environment::Environment;

/// The type of the rows that an expression makes.
pub(super) struct RowType {
    record: Arc<Record>,
    /// For an anonymous record, its columns.
    columns: Vec<RecordColumn>,
    carriers: Vec<Carrier>,
}

impl RowType {
    /// The type of `ROW(…)` with these fields.
    ///
    /// # Errors
    /// 0A000: we can't hold the values of a field.
    pub(super) fn new(
        environment: &Environment,
        ty: SqlType,
        fields: &[Expr],
        names: &[Box<str>],
    ) -> Result<Self, SqlError> {
        let carriers = fields.iter().map(|field| environment.carrier(field.ty.oid));
        let carriers = carriers.collect::<Result<_, _>>()?;
        if ty.oid != RECORD
            && let Type::Composite(record) = environment.resolve(ty.oid)?
        {
            return Ok(Self { record, columns: Vec::new(), carriers });
        }
        let columns = fields.iter().zip(names).map(|(field, name)| RecordColumn {
            oid: field.ty.oid,
            collation: field.ty.collation,
            name: name.as_bytes().to_vec(),
        });
        let columns: Vec<RecordColumn> = columns.collect();
        let catalog = &*environment.settings.catalog;
        let record = Record::anonymous(&columns, catalog);
        let record = record.map_err(|error| SqlError::unsupported(error.to_string()))?;
        Ok(Self { record: Arc::new(record), columns, carriers })
    }
}

/// `ROW(…)`.
pub(super) fn make(ty: &RowType, fields: &[Argument], rows: usize) -> Result<Argument, SqlError> {
    let readers = fields.iter().zip(&ty.carriers);
    let readers = readers.map(|(argument, &carrier)| Values::new(carrier, argument));
    let mut readers = readers.collect::<Result<Vec<_>, _>>()?;
    let arguments: Vec<&Argument> = fields.iter().collect();
    let mut payload = Vec::new();
    build(Carrier::Bytes, &arguments, rows, |row, column| {
        payload.clear();
        let values = readers.iter_mut().map(|reader| reader.get(row));
        write_row(&ty.record, &ty.columns, values, &mut payload);
        append(column, Some(&payload))
    })
}

/// `(row).field`: the column with this number.
pub(super) fn field(
    row_values: &Argument,
    number: i16,
    carrier: Carrier,
    rows: usize,
    settings: &CallSettings,
) -> Result<Argument, SqlError> {
    let mut values = Values::new(Carrier::Bytes, row_values)?;
    let mut types = RowTypes::default();
    build(carrier, &[row_values], rows, |row, column| {
        let Some(value) = values.get(row) else { return append(column, None) };
        let record = types.of(value, &*settings.catalog).map_err(damaged)?;
        let fields = row_fields(value, &record).map_err(damaged)?;
        let found = fields.into_iter().find(|field| field.number == number);
        append(column, found.and_then(|field| field.value).as_deref())
    })
}

/// `row IS NULL`: whether the row or all of its fields are null. With `negated`, `row IS NOT NULL`:
/// whether neither the row nor any field is. Fields that are rows are not looked into.
pub(super) fn test(
    row_values: &Argument,
    negated: bool,
    rows: usize,
    settings: &CallSettings,
) -> Result<BooleanArray, SqlError> {
    let mut values = Values::new(Carrier::Bytes, row_values)?;
    let mut types = RowTypes::default();
    let mut test = |row: usize| {
        let Some(value) = values.get(row) else { return Ok(!negated) };
        let record = types.of(value, &*settings.catalog).map_err(damaged)?;
        let fields = row_fields(value, &record).map_err(damaged)?;
        Ok(fields.iter().all(|field| field.value.is_none() != negated))
    };
    (0..rows).map(|row| test(row).map(Some)).collect()
}

/// The error for a row that is damaged, or whose type can't be used.
pub(super) fn damaged(error: ValueError) -> SqlError {
    match error {
        ValueError::Unsupported(error) => SqlError::unsupported(error.to_string()),
        error => SqlError::new(SqlState::DATA_CORRUPTED, error.to_string()),
    }
}
