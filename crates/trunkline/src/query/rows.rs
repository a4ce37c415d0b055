//! Rows in the text formats, collected into blocks.

use trunkline_format::Oid;
use trunkline_query::encode::{ClientEncoding, RowEncoder, ValueFormat};
use trunkline_query::{RecordBatch, ResultColumn, Session};
use trunkline_sql::SqlError;

use super::arguments::{Format, QueryArgs};
use super::cells::{Cells, Part, Table};
use super::{aligned, expanded, unaligned};

/// A block ends after this many rows, or this many bytes of text. An aligned block has the widths of
/// its own values.
const ROWS_MAX: usize = 10_000;
const BYTES_MAX: usize = 8 << 20;

/// Types that are aligned to the right: integers, floats, numeric, money, and the numbers of objects,
/// transactions and commands.
const RIGHT: [Oid; 11] = [
    Oid(20),
    Oid(21),
    Oid(23),
    Oid(26),
    Oid(28),
    Oid(29),
    Oid(700),
    Oid(701),
    Oid(790),
    Oid(1700),
    Oid(5069),
];

/// Prints one result as text.
pub(super) struct TextPrinter {
    encoder: RowEncoder,
    /// The text of null in the client's encoding.
    null: Vec<u8>,
    layout: Layout,
}

/// The rows of the next block, and how it is printed.
struct Layout {
    format: Format,
    is_expanded: bool,
    table: Table,
    block: Cells,
    is_first: bool,
}

impl TextPrinter {
    /// Prepares the columns of a result.
    ///
    /// # Errors
    /// Those of the encoder.
    pub(super) fn new(
        session: &Session,
        columns: &[ResultColumn],
        format: Format,
        args: &QueryArgs,
    ) -> Result<Self, SqlError> {
        let encoding = session.client_encoding()?;
        let converted = |text: &str| converted(&encoding, text);
        Ok(Self {
            encoder: session.row_encoder(columns, &[ValueFormat::Text])?,
            null: converted(&args.null)?,
            layout: Layout {
                format,
                is_expanded: args.expanded,
                table: Table {
                    names: columns
                        .iter()
                        .map(|one| converted(&one.name))
                        .collect::<Result<_, _>>()?,
                    right: columns.iter().map(|one| RIGHT.contains(&one.ty.oid)).collect(),
                    tuples_only: args.tuples_only,
                    printed: 0,
                },
                block: Cells::default(),
                is_first: true,
            },
        })
    }

    /// Adds the rows of a batch, and prints the blocks that are full.
    ///
    /// # Errors
    /// A value can't be printed.
    pub(super) fn batch(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let Self { encoder, null, layout } = self;
        let mut rows = encoder.batch(batch)?;
        for row in 0..batch.num_rows() {
            // A block is printed before the next row, so the last one is never empty without need.
            if layout.block.rows() >= ROWS_MAX || layout.block.size() >= BYTES_MAX {
                layout.print(false, out);
            }
            for column in 0..batch.num_columns() {
                layout.block.push(|bytes| {
                    if !rows.write_value(column, row, bytes)? {
                        bytes.extend_from_slice(null);
                    }
                    Ok::<_, SqlError>(())
                })?;
            }
            layout.block.end_row();
        }
        Ok(())
    }

    /// Prints the last block.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        self.layout.print(true, out);
    }
}

impl Layout {
    fn print(&mut self, last: bool, out: &mut Vec<u8>) {
        let part = Part { first: self.is_first, last };
        let write = match (self.format, self.is_expanded) {
            (Format::Unaligned, true) => unaligned::write_expanded,
            (Format::Unaligned, false) => unaligned::write,
            (_, true) => expanded::write,
            (_, false) => aligned::write,
        };
        write(&self.table, &self.block, part, out);
        self.table.printed += self.block.rows();
        self.block.clear();
        self.is_first = false;
    }
}

fn converted(encoding: &ClientEncoding, text: &str) -> Result<Vec<u8>, SqlError> {
    let mut bytes = text.as_bytes().to_vec();
    encoding.convert_utf8(0, &mut bytes)?;
    Ok(bytes)
}
