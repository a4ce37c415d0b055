//! Prints the rows of one result in the format that was asked for.

use trunkline_query::encode::{CopyEncoder, CopyFormat, CopyOptions, JsonEncoder};
use trunkline_query::{RecordBatch, ResultColumn, Session};
use trunkline_sql::SqlError;

use super::arguments::{Format, QueryArgs};
use super::rows::TextPrinter;

/// The printer of one result.
pub(super) enum Printer {
    /// psql's tables.
    Text(Box<TextPrinter>),
    /// Lines of COPY.
    Copy(CopyEncoder),
    /// Objects. `is_array` says that they are the elements of an array.
    Json { encoder: JsonEncoder, is_array: bool, is_first: bool },
}

impl Printer {
    /// A printer for the rows of a query. Appends what precedes them.
    ///
    /// # Errors
    /// A type can't be printed.
    pub(super) fn of_query(
        session: &Session,
        columns: &[ResultColumn],
        format: Format,
        args: &QueryArgs,
        out: &mut Vec<u8>,
    ) -> Result<Self, SqlError> {
        match format {
            Format::Aligned | Format::Unaligned => {
                let printer = TextPrinter::new(session, columns, format, args)?;
                Ok(Self::Text(Box::new(printer)))
            }
            Format::Csv => {
                let options = CopyOptions {
                    header: !args.tuples_only,
                    null: args.null.clone(),
                    ..CopyFormat::Csv.into()
                };
                Self::of_copy(session, columns, options, out)
            }
            Format::Json | Format::Ndjson => {
                let (encoder, is_array) = (session.json_encoder(columns)?, format == Format::Json);
                if is_array {
                    out.push(b'[');
                }
                Ok(Self::Json { encoder, is_array, is_first: true })
            }
        }
    }

    /// A printer for the rows of COPY. Appends what precedes them.
    ///
    /// # Errors
    /// A type can't be printed.
    pub(super) fn of_copy(
        session: &Session,
        columns: &[ResultColumn],
        options: CopyOptions,
        out: &mut Vec<u8>,
    ) -> Result<Self, SqlError> {
        let encoder = session.copy_encoder(columns, options)?;
        encoder.write_header(out)?;
        Ok(Self::Copy(encoder))
    }

    /// Appends the rows of a batch.
    ///
    /// # Errors
    /// A value can't be printed.
    pub(super) fn batch(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), SqlError> {
        match self {
            Self::Text(printer) => printer.batch(batch, out),
            Self::Copy(encoder) => {
                let mut rows = encoder.batch(batch)?;
                (0..batch.num_rows()).try_for_each(|row| encoder.write_row(&mut rows, row, out))
            }
            Self::Json { encoder, is_array, is_first } => {
                let mut rows = encoder.batch(batch)?;
                for row in 0..batch.num_rows() {
                    if *is_array {
                        out.extend_from_slice(if *is_first { b"\n" } else { b",\n" });
                    }
                    *is_first = false;
                    rows.write_row(row, out)?;
                    if !*is_array {
                        out.push(b'\n');
                    }
                }
                Ok(())
            }
        }
    }

    /// Appends what follows the rows.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Text(printer) => printer.end(out),
            Self::Copy(encoder) => encoder.write_trailer(out),
            Self::Json { is_array: true, is_first, .. } => {
                out.extend_from_slice(if *is_first { b"]\n" } else { b"\n]\n" });
            }
            Self::Json { .. } => {}
        }
    }
}
