//! Rows as JSON objects, in UTF-8.
//!
//! `{"id":1,"name":"a","tags":["x","y"]}`: a row is one object without line feeds of its own, and its
//! values are what `to_json` returns. Numbers, booleans, arrays and JSON keep their kind, and all
//! other values are strings. As in PostgreSQL, two columns of the same name make two members.

use std::sync::Arc;

use arrow_array::RecordBatch;
use trunkline_format::text_output::{Base, StringType, Type, write_json_string};
use trunkline_sql::SqlError;
use trunkline_sql::functions::{CallSettings, append_json};
use trunkline_sql::values::{Carrier, PayloadReader};

use super::client_encoding::ClientEncoding;
use super::values::column_type;
use crate::environment::Environment;
use crate::statement::ResultColumn;

/// The number of UTF8 in `pg_enc`.
const UTF8: i32 = 6;

/// Encodes the rows of one result.
#[derive(Debug)]
pub struct JsonEncoder {
    columns: Vec<Column>,
    settings: Arc<CallSettings>,
    encoding: ClientEncoding,
}

#[derive(Debug)]
struct Column {
    /// The name as JSON, and the colon.
    key: Vec<u8>,
    ty: Type,
    carrier: Carrier,
}

impl JsonEncoder {
    /// Resolves the types of all columns. `database` is the number of the database's encoding.
    ///
    /// # Errors
    /// 0A000: a type that we can't print, or an encoding that we can't convert.
    pub fn new(
        columns: &[ResultColumn],
        environment: &Environment,
        database: i32,
    ) -> Result<Self, SqlError> {
        let column = |column: &ResultColumn| {
            let mut key = Vec::new();
            write_json_string(column.name.as_bytes(), &mut key);
            key.push(b':');
            let carrier = column.carrier;
            Ok(Column { key, ty: column_type(column.ty.oid, environment)?, carrier })
        };
        Ok(Self {
            columns: columns.iter().map(column).collect::<Result<_, SqlError>>()?,
            settings: Arc::clone(&environment.settings),
            encoding: ClientEncoding::new(database, UTF8)?,
        })
    }

    /// The rows of a batch of this result.
    ///
    /// # Errors
    /// XX000: the batch belongs to another result.
    pub fn batch<'a>(&'a self, batch: &'a RecordBatch) -> Result<JsonRows<'a>, SqlError> {
        if batch.num_columns() != self.columns.len() {
            return Err(SqlError::internal("a batch with another number of columns"));
        }
        let columns = self.columns.iter().zip(batch.columns());
        let columns =
            columns.map(|(column, array)| Ok((column, PayloadReader::new(column.carrier, array)?)));
        Ok(JsonRows { encoder: self, columns: columns.collect::<Result<_, SqlError>>()? })
    }
}

/// The rows of one batch.
pub struct JsonRows<'a> {
    encoder: &'a JsonEncoder,
    columns: Vec<(&'a Column, PayloadReader<'a>)>,
}

impl std::fmt::Debug for JsonRows<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JsonRows").field("columns", &self.columns.len()).finish_non_exhaustive()
    }
}

impl JsonRows<'_> {
    /// Appends row `row` as an object.
    ///
    /// # Errors
    /// XX001: a value is damaged. 0A000: a value that can't be JSON. 22021: text that isn't valid.
    ///
    /// # Panics
    /// If the batch has no such row.
    pub fn write_row(&mut self, row: usize, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let JsonEncoder { settings, encoding, .. } = self.encoder;
        out.push(b'{');
        for (at, (column, values)) in self.columns.iter_mut().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&column.key);
            let Some(value) = values.get(row) else {
                out.extend_from_slice(b"null");
                continue;
            };
            let start = out.len();
            append_json(&column.ty, value, settings, false, out)?;
            if matches!(column.ty, Type::Base(Base::Text(StringType::Json))) {
                replace_line_feeds(start, out);
            }
            match column.carrier {
                Carrier::Text | Carrier::Name => encoding.convert_utf8(start, out)?,
                _ => encoding.convert_stored(start, out)?,
            }
        }
        out.push(b'}');
        Ok(())
    }
}

/// A value of type `json` is kept as it was written, but an object must stay on one line. Inside of
/// strings, JSON has no line feeds, so those that are there only separate tokens.
fn replace_line_feeds(start: usize, out: &mut [u8]) {
    for byte in out.iter_mut().skip(start).filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
}
