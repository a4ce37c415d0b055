//! Rows as `COPY … TO STDOUT` sends them.
//!
//! ```text
//!   text     1 ⇥ two\nlines ⇥ \N     escapes with backslash
//!   csv      1,"two, and ""more""",  quotes
//!   binary   PGCOPY…, then for each row the number of values, their lengths and their bytes
//! ```
//!
//! Values are converted to the client's encoding first, and then searched for bytes that need an
//! escape. That is possible because in all encodings that we offer, a byte below 128 is always an
//! ASCII character.

use arrow_array::RecordBatch;
use trunkline_engine::copy::{CsvQuotes, escape_text};
use trunkline_sql::{SqlError, SqlState};

use super::client_encoding::ClientEncoding;
use super::copy_options::{CopyFormat, CopyOptions, ForceQuote};
use super::rows::{BatchRows, RowEncoder};
use super::values::ValueFormat;
use crate::environment::Environment;
use crate::statement::ResultColumn;

/// The signature, no flags, and no header extension.
const BINARY_HEADER: &[u8] = b"PGCOPY\n\xFF\r\n\0\0\0\0\0\0\0\0\0";

/// A tuple of -1 columns.
const BINARY_TRAILER: &[u8] = &[0xFF, 0xFF];

/// Encodes the rows of a result for `COPY`.
#[derive(Debug)]
pub struct CopyEncoder {
    rows: RowEncoder,
    names: Vec<Box<str>>,
    options: CopyOptions,
    encoding: ClientEncoding,
    /// The representation of null in the client's encoding.
    null: Vec<u8>,
    /// Whether the values of a column are always quoted.
    forced: Vec<bool>,
}

impl CopyEncoder {
    /// Prepares the columns of a result. `encoding` is that of the client, or the one in the options.
    ///
    /// # Errors
    /// 42703: `FORCE_QUOTE` names a column that isn't there. Otherwise, as for [`RowEncoder::new`].
    pub fn new(
        columns: &[ResultColumn],
        options: CopyOptions,
        environment: &Environment,
        encoding: ClientEncoding,
    ) -> Result<Self, SqlError> {
        let format = match options.format {
            CopyFormat::Binary => ValueFormat::Binary,
            CopyFormat::Text | CopyFormat::Csv => ValueFormat::Text,
        };
        let rows = RowEncoder::new(columns, &[format], environment, encoding)?;
        let names: Vec<Box<str>> = columns.iter().map(|column| column.name.clone()).collect();
        let forced = match &options.force_quote {
            ForceQuote::None => vec![false; names.len()],
            ForceQuote::All => vec![true; names.len()],
            ForceQuote::Columns(listed) => {
                let is_missing = |name: &&String| !names.iter().any(|found| **found == ***name);
                if let Some(name) = listed.iter().find(is_missing) {
                    let message = format!("column \"{name}\" does not exist");
                    return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
                }
                names.iter().map(|name| listed.iter().any(|wanted| **wanted == **name)).collect()
            }
        };
        let mut null = options.null.clone().into_bytes();
        encoding.convert_utf8(0, &mut null)?;
        Ok(Self { rows, names, options, encoding, null, forced })
    }

    /// Appends what precedes the rows.
    ///
    /// # Errors
    /// 22P05: the client's encoding lacks a character of a name.
    pub fn write_header(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        if self.options.format == CopyFormat::Binary {
            out.extend_from_slice(BINARY_HEADER);
        } else if self.options.header {
            for (at, name) in self.names.iter().enumerate() {
                if at > 0 {
                    out.push(self.options.delimiter);
                }
                let start = out.len();
                out.extend_from_slice(name.as_bytes());
                self.encoding.convert_utf8(start, out)?;
                self.escape(start, false, out);
            }
            out.push(b'\n');
        }
        Ok(())
    }

    /// Appends what follows the rows.
    pub fn write_trailer(&self, out: &mut Vec<u8>) {
        if self.options.format == CopyFormat::Binary {
            out.extend_from_slice(BINARY_TRAILER);
        }
    }

    /// The rows of a batch.
    ///
    /// # Errors
    /// As for [`RowEncoder::batch`].
    pub fn batch<'a>(&'a self, batch: &'a RecordBatch) -> Result<BatchRows<'a>, SqlError> {
        self.rows.batch(batch)
    }

    /// Appends one row: a line, or a tuple in binary.
    ///
    /// # Errors
    /// As for [`BatchRows::write_row`].
    ///
    /// # Panics
    /// If the batch has no such row.
    pub fn write_row(
        &self,
        rows: &mut BatchRows<'_>,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        if self.options.format == CopyFormat::Binary {
            let columns = i16::try_from(self.names.len()).unwrap_or(i16::MAX);
            out.extend_from_slice(&columns.to_be_bytes());
            return rows.write_row(row, out);
        }
        for (at, forced) in self.forced.iter().enumerate() {
            if at > 0 {
                out.push(self.options.delimiter);
            }
            let start = out.len();
            match rows.write_value(at, row, out)? {
                true => self.escape(start, *forced, out),
                false => out.extend_from_slice(&self.null),
            }
        }
        out.push(b'\n');
        Ok(())
    }

    /// Escapes or quotes the value at the end of `out`.
    fn escape(&self, start: usize, forced: bool, out: &mut Vec<u8>) {
        match self.options.format {
            CopyFormat::Text => escape_text(start, self.options.delimiter, out),
            CopyFormat::Csv => self.quote(start, forced, out),
            CopyFormat::Binary => {}
        }
    }

    fn quote(&self, start: usize, forced: bool, out: &mut Vec<u8>) {
        let CopyOptions { delimiter, quote, escape, .. } = self.options;
        let value = out.get(start..).unwrap_or_default();
        // Without quotes, the first would be read as null, and the second as the end of the data.
        let is_misread = *value == *self.null || (self.names.len() == 1 && value == b"\\.");
        CsvQuotes { delimiter, quote, escape }.quote(start, forced || is_misread, out);
    }
}
