//! Rows as the bodies of `DataRow` messages.
//!
//! A body has, for each column, the length in four bytes and the value; the length of null is -1. What
//! precedes it, the number of columns, is the caller's.

use std::sync::Arc;

use arrow_array::RecordBatch;
use trunkline_format::text_output::TextOptions;
use trunkline_sql::SqlError;
use trunkline_sql::functions::CallSettings;
use trunkline_sql::values::PayloadReader;

use super::client_encoding::ClientEncoding;
use super::values::{ValueEncoder, ValueFormat};
use crate::environment::Environment;
use crate::statement::ResultColumn;

/// Encodes the rows of one result.
#[derive(Debug)]
pub struct RowEncoder {
    columns: ColumnEncoders,
    settings: Arc<CallSettings>,
}

/// Encoders of all columns, which don't depend on settings other than the client's encoding.
#[derive(Debug, Clone)]
pub(crate) struct ColumnEncoders {
    columns: Arc<[ValueEncoder]>,
    encoding: ClientEncoding,
}

impl RowEncoder {
    /// Resolves the types of all columns. As in the protocol, `formats` has a format for each column,
    /// or one for all of them, or none, which means text.
    ///
    /// # Errors
    /// 08P01: another number of formats. 0A000: a type that we can't print.
    pub fn new(
        columns: &[ResultColumn],
        formats: &[ValueFormat],
        environment: &Environment,
        encoding: ClientEncoding,
    ) -> Result<Self, SqlError> {
        let format = |at: usize| match formats {
            [] => Some(ValueFormat::Text),
            [format] => Some(*format),
            formats => formats.get(at).copied(),
        };
        if formats.len() > 1 && formats.len() != columns.len() {
            let message = format!(
                "bind message has {} result formats but query has {} columns",
                formats.len(),
                columns.len()
            );
            return Err(SqlError::new(trunkline_sql::SqlState::PROTOCOL_VIOLATION, message));
        }
        let columns = columns.iter().enumerate().map(|(at, column)| {
            let format = format(at).unwrap_or_default();
            ValueEncoder::new(column, format, environment, &encoding)
        });
        let columns = columns.collect::<Result<_, SqlError>>()?;
        let columns = ColumnEncoders { columns, encoding };
        Ok(Self { columns, settings: Arc::clone(&environment.settings) })
    }

    /// An encoder of columns that were resolved before.
    pub(crate) fn of(columns: &ColumnEncoders, settings: &Arc<CallSettings>) -> Self {
        Self { columns: columns.clone(), settings: Arc::clone(settings) }
    }

    /// The encoders of its columns.
    pub(crate) fn columns(&self) -> &ColumnEncoders {
        &self.columns
    }

    /// The rows of a batch of this result.
    ///
    /// # Errors
    /// XX000: the batch belongs to another result.
    pub fn batch<'a>(&'a self, batch: &'a RecordBatch) -> Result<BatchRows<'a>, SqlError> {
        let ColumnEncoders { columns, encoding } = &self.columns;
        if batch.num_columns() != columns.len() {
            return Err(SqlError::internal("a batch with another number of columns"));
        }
        let columns = columns.iter().zip(batch.columns());
        let columns = columns
            .map(|(column, array)| Ok((column, PayloadReader::new(column.carrier(), array)?)));
        Ok(BatchRows {
            columns: columns.collect::<Result<_, SqlError>>()?,
            options: self.settings.text_options(),
            encoding,
        })
    }
}

impl ColumnEncoders {
    /// Whether they encode for this client.
    pub(crate) fn are_for(&self, encoding: &ClientEncoding) -> bool {
        self.encoding.is_same(encoding)
    }
}

/// The rows of one batch.
pub struct BatchRows<'a> {
    columns: Vec<(&'a ValueEncoder, PayloadReader<'a>)>,
    options: TextOptions<'a>,
    encoding: &'a ClientEncoding,
}

impl std::fmt::Debug for BatchRows<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchRows").field("columns", &self.columns.len()).finish_non_exhaustive()
    }
}

impl BatchRows<'_> {
    /// Appends row `row` as the body of a `DataRow` message.
    ///
    /// # Errors
    /// XX001: a value is damaged. 42883: a type has no binary format. 22P05: the client's encoding
    /// lacks a character. 54000: a value is too long. Part of the row may have been appended.
    ///
    /// # Panics
    /// If the batch has no such row.
    #[inline]
    pub fn write_row(&mut self, row: usize, out: &mut Vec<u8>) -> Result<(), SqlError> {
        for (column, values) in &mut self.columns {
            let Some(value) = values.get(row) else {
                out.extend_from_slice(&(-1_i32).to_be_bytes());
                continue;
            };
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            column.write(value, &self.options, self.encoding, out)?;
            let length = i32::try_from(out.len() - start - 4).map_err(|_| too_long())?;
            if let Some(place) = out.get_mut(start..start + 4) {
                place.copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(())
    }

    /// Appends one value, without its length. Returns false, and appends nothing, if it is null.
    ///
    /// # Errors
    /// As for [`BatchRows::write_row`].
    ///
    /// # Panics
    /// If the batch has no such row.
    #[inline]
    pub fn write_value(
        &mut self,
        column: usize,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool, SqlError> {
        let Some((column, values)) = self.columns.get_mut(column) else { return Ok(false) };
        let Some(value) = values.get(row) else { return Ok(false) };
        column.write(value, &self.options, self.encoding, out)?;
        Ok(true)
    }
}

#[cold]
fn too_long() -> SqlError {
    SqlError::new(trunkline_sql::SqlState::PROGRAM_LIMIT_EXCEEDED, "a value is longer than 2 GiB")
}
