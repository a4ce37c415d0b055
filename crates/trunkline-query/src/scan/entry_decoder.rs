//! Decodes index entries into columns, for an index-only scan.
//!
//! An entry is packed like a row, but it has the columns of the index, in the order of the index. Its values
//! may be compressed, but are never in the TOAST table. A column of type `name` that is a key is stored as a
//! C string, to save space (`name_ops`).

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use trunkline_engine::index_scan::IndexOnlyEntry;
use trunkline_engine::storage::Relation;
use trunkline_format::btree::{Fault, KeyLayout};
use trunkline_sql::SqlError;
use trunkline_sql::values::ColumnBuilder;

use super::columns::{ScanColumns, Source};
use super::failure::{entry_error, entry_value_error};
use super::row_decoder::text;
use crate::access_path::CandidateIndex;

/// Decodes the columns of an index-only scan.
pub(super) struct EntryDecoder {
    columns: ScanColumns,
    builders: Vec<ColumnBuilder>,
    layout: KeyLayout,
    index: Relation,
    schema: SchemaRef,
    rows: usize,
    /// The length of the values of variable length that were decoded so far.
    bytes: usize,
    /// For each column of the index up to the last one that is wanted, the decoded column.
    wanted: Vec<Option<usize>>,
    /// Decoded columns that are `tableoid`.
    table_oids: Vec<usize>,
    /// The last decompressed value.
    room: Vec<u8>,
}

impl EntryDecoder {
    /// A decoder of these columns, whose batches have this schema. `rows` is how many rows a batch has.
    ///
    /// # Errors
    /// XX000: the index doesn't store all columns, which would be a bug.
    pub(super) fn new(
        columns: ScanColumns,
        index: &CandidateIndex,
        schema: SchemaRef,
        rows: usize,
    ) -> Result<Self, SqlError> {
        let (mut wanted, mut table_oids) = (Vec::new(), Vec::new());
        for (number, column) in columns.decoded.iter().enumerate() {
            let Source::Stored { place, .. } = column.source else {
                table_oids.push(number);
                continue;
            };
            let at = index.stored().iter().position(|stored| *stored == Some(place));
            let at = at.ok_or_else(|| {
                let (column, index) = (&column.name, &index.name);
                SqlError::internal(format!("column {column} is not stored in index {index}"))
            })?;
            if wanted.len() <= at {
                wanted.resize(at + 1, None);
            }
            if let Some(slot) = wanted.get_mut(at) {
                *slot = Some(number);
            }
        }
        let builders = columns.decoded.iter();
        let builders = builders.map(|column| ColumnBuilder::new(column.carrier, rows)).collect();
        Ok(Self {
            columns,
            builders,
            layout: index.index.layout().clone(),
            index: index.index.relation().clone(),
            schema,
            rows: 0,
            bytes: 0,
            wanted,
            table_oids,
            room: Vec::new(),
        })
    }

    /// The number of rows decoded so far.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The length of the values of variable length that were decoded so far.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Decodes entries of this decoder's index.
    ///
    /// # Errors
    /// XX002 with the place of the entry that is damaged.
    pub(super) fn decode(&mut self, entries: &[IndexOnlyEntry]) -> Result<(), SqlError> {
        if !self.wanted.is_empty() {
            for entry in entries {
                self.entry(entry)?;
            }
        }
        let table = self.columns.table.0.to_le_bytes();
        for &number in &self.table_oids {
            let Some(builder) = self.builders.get_mut(number) else { continue };
            for _ in entries {
                builder.append(&table).map_err(|error| SqlError::internal(error.to_string()))?;
            }
        }
        self.rows += entries.len();
        Ok(())
    }

    fn entry(&mut self, entry: &IndexOnlyEntry) -> Result<(), SqlError> {
        let Self { columns, builders, layout, index, wanted, room, bytes, .. } = self;
        let damaged = |fault: Fault| entry_error(index, entry.leaf, &fault);
        let tuple = entry.tuple().map_err(damaged)?;
        let mut values = tuple.attributes(layout.columns());
        for (at, number) in wanted.iter().enumerate() {
            let value = values.next().unwrap_or(Err(Fault::Item { item: entry.item }));
            let stored = value.map_err(damaged)?;
            let Some(number) = *number else { continue };
            let (Some(column), Some(builder)) =
                (columns.decoded.get(number), builders.get_mut(number))
            else {
                continue;
            };
            let (Some(stored), Some(key)) = (stored, layout.columns().get(at)) else {
                builder.append_null();
                continue;
            };
            let invalid = |problem: &dyn std::fmt::Display| {
                entry_value_error(index, (entry.leaf, entry.item), &column.name, problem)
            };
            let payload = key.payload(stored, room).map_err(|error| invalid(&error))?;
            let payload = text(column, columns, payload)
                .ok_or_else(|| invalid(&"its characters can't be converted to UTF-8"))?;
            *bytes += payload.len();
            builder.append(&payload).map_err(|error| invalid(&error))?;
        }
        Ok(())
    }

    /// Returns the rows decoded so far as a batch, and starts an empty one.
    pub(super) fn finish(&mut self) -> Result<RecordBatch, SqlError> {
        let columns: Vec<ArrayRef> = self.builders.iter_mut().map(ColumnBuilder::finish).collect();
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options);
        batch.map_err(|error| SqlError::internal(error.to_string()))
    }
}
