//! Decodes the rows of pages into columns.
//!
//! Most tables begin with columns of a fixed length. In a row without nulls, these are at the same
//! offset in all rows, so we decode them column by column for a whole page, without deforming the
//! rows (`attcacheoff` in PostgreSQL serves the same purpose). Columns behind them, and rows with
//! nulls or fewer columns, are deformed one by one.

use std::borrow::Cow;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use trunkline_engine::heap::{HeapPage, HeapRow, PageUse, ToastBatch, has_external};
use trunkline_engine::storage::Relation;
use trunkline_format::Tid;
use trunkline_format::deform::{Attribute, Column, Deformer};
use trunkline_format::heap_tuple::TUPLE_HEADER_SIZE;
use trunkline_format::varlena::{ToastPointer, Varlena, VarlenaError};
use trunkline_sql::SqlError;
use trunkline_sql::values::ColumnBuilder;

use super::columns::{Decoded, ScanColumns, Source, SystemColumn};
use super::failure::{row_error, toast_error, value_error};

/// How many rows a page has at most (`MaxHeapTuplesPerPage`).
pub(super) const ROWS_PER_PAGE: usize = 291;

/// Values that were fetched from the TOAST table, in the order in which they will be used.
#[derive(Debug)]
pub(super) struct Fetched<'b> {
    pub(super) batch: &'b ToastBatch,
    pub(super) next: usize,
}

/// Decodes the columns of a scan.
pub(super) struct RowDecoder {
    columns: ScanColumns,
    builders: Vec<ColumnBuilder>,
    relation: Relation,
    schema: SchemaRef,
    rows: usize,
    /// The length of the values of variable length that were decoded so far.
    bytes: usize,
    /// For each stored column up to the last one that is wanted, the decoded column.
    wanted: Vec<Option<usize>>,
    /// Decoded columns at a constant offset in rows without nulls.
    constant: Vec<(usize, usize)>,
    /// The number of leading stored columns at constant offsets.
    fixed: usize,
    /// System columns.
    system: Vec<(usize, SystemColumn)>,
    /// Whether rows without nulls must be deformed for further columns.
    deforms: bool,
    page_use: PageUse,
    /// The last decompressed value.
    room: Vec<u8>,
}

impl RowDecoder {
    /// A decoder of these columns, whose batches have this schema. `rows` is how many rows a batch
    /// has.
    pub(super) fn new(
        columns: ScanColumns,
        relation: &Relation,
        schema: SchemaRef,
        rows: usize,
    ) -> Self {
        let (mut wanted, mut system) = (Vec::new(), Vec::new());
        for (number, column) in columns.decoded.iter().enumerate() {
            match column.source {
                Source::System(kind) => system.push((number, kind)),
                Source::Stored { place, .. } => {
                    if wanted.len() <= place {
                        wanted.resize(place + 1, None);
                    }
                    if let Some(slot) = wanted.get_mut(place) {
                        *slot = Some(number);
                    }
                }
            }
        }
        let mut offsets = constant_offsets(&columns.stored);
        // Names that must be converted are deformed.
        let converted = wanted.iter().position(|number| {
            let column = number.and_then(|number: usize| columns.decoded.get(number));
            column.is_some_and(|column| column.is_text && columns.encoding.converts())
        });
        offsets.truncate(converted.unwrap_or(usize::MAX));
        let places = wanted.iter().enumerate();
        let constant =
            places.clone().filter_map(|(place, number)| Some(((*number)?, *offsets.get(place)?)));
        let constant: Vec<(usize, usize)> = constant.collect();
        let deforms = places.skip(offsets.len()).any(|(_, number)| number.is_some());
        let page_use = match deforms || !system.is_empty() {
            true => PageUse::Rows,
            false => page_use(&columns.stored, &wanted, &offsets),
        };
        let builders = columns.decoded.iter();
        let builders = builders.map(|column| ColumnBuilder::new(column.carrier, rows)).collect();
        let (relation, room) = (relation.clone(), Vec::new());
        Self {
            columns,
            builders,
            relation,
            schema,
            rows: 0,
            bytes: 0,
            wanted,
            constant,
            fixed: offsets.len(),
            system,
            deforms,
            page_use,
            room,
        }
    }

    /// What is decoded of a page.
    pub(super) fn page_use(&self) -> PageUse {
        self.page_use
    }

    /// The number of rows decoded so far.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The length of the values of variable length that were decoded so far.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Collects the TOAST pointers of a row in the order in which [`RowDecoder::decode`] will use
    /// their values.
    pub(super) fn pointers(&self, row: &HeapRow<'_>, batch: &mut ToastBatch) {
        if !has_external(&row.tuple) {
            return;
        }
        let mut walk = Deformer::of(&row.tuple);
        for (attribute, number) in self.columns.stored.iter().zip(&self.wanted) {
            // A column that can't be deformed is reported when the row is decoded.
            let Ok(value) = walk.next(*attribute) else { return };
            if attribute.len == -1
                && number.is_some()
                && let Some(pointer) = value.value().and_then(external)
            {
                batch.push(pointer);
            }
        }
    }

    /// Decodes the rows of a page if that needs nothing but their columns at constant offsets. This
    /// is faster, because only the place of each row's data has to be remembered. Returns false, and
    /// has decoded nothing, if it needs more.
    pub(super) fn decode_plain(&mut self, page: &HeapPage<'_>) -> Result<bool, SqlError> {
        match self.page_use {
            PageUse::Rows => return Ok(false),
            PageUse::Count => {
                self.rows += page.count_rows().map_err(|error| row_error(&error))?;
                return Ok(true);
            }
            PageUse::RowStarts(_) => {}
        }
        let columns = u16::try_from(self.wanted.len()).unwrap_or(u16::MAX);
        let mut data = Vec::new();
        if !page.plain_data(columns, &mut data).map_err(|error| row_error(&error))? {
            return Ok(false);
        }
        let tids = || page.rows().flatten().map(|row| row.tid);
        self.append_constant(&data, |row| tids().nth(row))?;
        self.rows += data.len();
        Ok(true)
    }

    /// Appends the columns at constant offsets.
    fn append_constant(
        &mut self,
        data: &[&[u8]],
        tid: impl FnOnce(usize) -> Option<Tid>,
    ) -> Result<(), SqlError> {
        for &(number, offset) in &self.constant {
            let Some(builder) = self.builders.get_mut(number) else { continue };
            if let Err(row) = builder.append_at(data, offset) {
                let tid = tid(row).unwrap_or_default();
                return Err(self.invalid(number, tid, &"it can't be decoded"));
            }
        }
        Ok(())
    }

    /// Decodes rows, which must all be of this decoder's table.
    pub(super) fn decode(
        &mut self,
        rows: &[HeapRow<'_>],
        fetched: &mut Fetched<'_>,
    ) -> Result<(), SqlError> {
        let last = self.wanted.len();
        if rows.iter().all(|row| is_plain(row, last)) {
            let data: Vec<&[u8]> = rows.iter().map(|row| row.tuple.data()).collect();
            self.append_constant(&data, |row| rows.get(row).map(|row| row.tid))?;
            if self.deforms {
                for row in rows {
                    self.deform(row, fetched, true)?;
                }
            }
        } else {
            for row in rows {
                self.deform(row, fetched, false)?;
            }
        }
        for &(number, column) in &self.system {
            let Some(builder) = self.builders.get_mut(number) else { continue };
            for row in rows {
                let appended = match column {
                    SystemColumn::Ctid => builder.append(&tid_bytes(row.tid)),
                    SystemColumn::Xmin => builder.append(&row.tuple.xmin().to_le_bytes()),
                    SystemColumn::Xmax => builder.append(&row.tuple.xmax().to_le_bytes()),
                    SystemColumn::Command => builder.append(&row.tuple.xvac().to_le_bytes()),
                    SystemColumn::TableOid => builder.append(&self.columns.table.0.to_le_bytes()),
                    SystemColumn::KeyNumber => builder.append(&row.entry.to_le_bytes()),
                };
                appended.map_err(|error| SqlError::internal(error.to_string()))?;
            }
        }
        self.rows += rows.len();
        Ok(())
    }

    /// Deforms a row and appends its values. Columns at constant offsets are left out if they have
    /// been decoded already.
    fn deform(
        &mut self,
        row: &HeapRow<'_>,
        fetched: &mut Fetched<'_>,
        skip_constant: bool,
    ) -> Result<(), SqlError> {
        let constant = if skip_constant { self.fixed } else { 0 };
        let mut walk = Deformer::of(&row.tuple);
        for place in 0..self.wanted.len() {
            let Some(&attribute) = self.columns.stored.get(place) else { break };
            let number = self.wanted.get(place).copied().flatten();
            let value = walk.next(attribute).map_err(|error| {
                let column = number.and_then(|number| self.columns.decoded.get(number));
                let name = column.map_or("?", |column| column.name.as_str());
                value_error(&self.relation, row.tid, name, &error)
            })?;
            if let Some(number) = number
                && place >= constant
            {
                self.append(number, row.tid, value, fetched)?;
            }
        }
        Ok(())
    }

    /// Appends a value to a column.
    fn append(
        &mut self,
        number: usize,
        tid: Tid,
        value: Column<'_>,
        fetched: &mut Fetched<'_>,
    ) -> Result<(), SqlError> {
        let Self { columns, builders, relation, room, .. } = self;
        let (Some(column), Some(builder)) = (columns.decoded.get(number), builders.get_mut(number))
        else {
            return Ok(());
        };
        let datum = match value {
            Column::Value(datum) => datum,
            Column::Null => {
                builder.append_null();
                return Ok(());
            }
            Column::Missing => {
                return append_missing(column, builder, columns);
            }
        };
        let invalid =
            |problem: &dyn std::fmt::Display| value_error(relation, tid, &column.name, problem);
        let payload = match column.has_header {
            false => datum,
            true => match Varlena::parse(datum).map_err(|error| invalid(&error))? {
                Varlena::Plain(payload) => payload,
                Varlena::External(_) => {
                    let at = fetched.next;
                    fetched.next += 1;
                    match fetched.batch.value(at) {
                        Some(Ok(payload)) => payload,
                        Some(Err(error)) => {
                            return Err(toast_error(relation, tid, &column.name, error));
                        }
                        None => return Err(invalid(&VarlenaError::External)),
                    }
                }
                compressed => compressed.payload(room).map_err(|error| invalid(&error))?,
            },
        };
        let payload = text(column, columns, payload)
            .ok_or_else(|| invalid(&"its characters can't be converted to UTF-8"))?;
        self.bytes += payload.len();
        builder.append(&payload).map_err(|error| invalid(&error))
    }

    fn invalid(&self, number: usize, tid: Tid, problem: &dyn std::fmt::Display) -> SqlError {
        let column = self.columns.decoded.get(number);
        let name = column.map_or("?", |column| column.name.as_str());
        value_error(&self.relation, tid, name, problem)
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

/// Appends the value of a column that is younger than the row.
fn append_missing(
    column: &Decoded,
    builder: &mut ColumnBuilder,
    columns: &ScanColumns,
) -> Result<(), SqlError> {
    let Source::Stored { missing: Some(payload), .. } = &column.source else {
        builder.append_null();
        return Ok(());
    };
    let damaged =
        || SqlError::internal(format!("the default of column {} is invalid", column.name));
    let payload = text(column, columns, payload).ok_or_else(damaged)?;
    builder.append(&payload).map_err(|_| damaged())
}

/// The payload as the carrier needs it: text in UTF-8.
#[inline]
pub(super) fn text<'p>(
    column: &Decoded,
    columns: &ScanColumns,
    payload: &'p [u8],
) -> Option<Cow<'p, [u8]>> {
    match column.is_text {
        true => columns.encoding.decode(payload),
        false => Some(Cow::Borrowed(payload)),
    }
}

/// A TOAST pointer, if that is what a datum is.
fn external(datum: &[u8]) -> Option<ToastPointer> {
    match Varlena::parse(datum) {
        Ok(Varlena::External(pointer)) => Some(pointer),
        _ => None,
    }
}

/// Whether a row has its first columns, and no nulls, so that columns of fixed length are where they are
/// in all such rows.
#[inline]
fn is_plain(row: &HeapRow<'_>, columns: usize) -> bool {
    row.tuple.nulls().is_empty() && usize::from(row.tuple.natts()) >= columns
}

/// The offsets of the leading columns that have a fixed length, in rows without nulls.
fn constant_offsets(stored: &[Attribute]) -> Vec<usize> {
    let (mut offsets, mut end) = (Vec::new(), 0);
    for attribute in stored {
        let Ok(length) = usize::try_from(attribute.len) else { break };
        let start = attribute.align.up(end);
        offsets.push(start);
        end = start + length;
    }
    offsets
}

/// What is read of a page of which only these columns at constant offsets are decoded.
fn page_use(stored: &[Attribute], wanted: &[Option<usize>], offsets: &[usize]) -> PageUse {
    let columns = stored.iter().zip(wanted).zip(offsets);
    let ends = columns.filter(|((_, number), _)| number.is_some());
    // Lengths of columns at constant offsets aren't negative.
    let ends = ends.map(|((attribute, _), offset)| offset + attribute.len.max(0) as usize);
    let Some(end) = ends.max() else { return PageUse::Count };
    // Without nulls, the data begins at the next multiple of 8.
    let bytes = usize::from(TUPLE_HEADER_SIZE).next_multiple_of(8) + end;
    u16::try_from(bytes).map_or(PageUse::Rows, PageUse::RowStarts)
}

/// A TID as it is stored: the upper and the lower half of the block, then the line pointer.
fn tid_bytes(tid: Tid) -> [u8; 6] {
    let [a, b, c, d] = tid.block.to_le_bytes();
    let [e, f] = tid.item.to_le_bytes();
    [c, d, a, b, e, f]
}

#[cfg(test)]
mod tests {
    use trunkline_format::align::Align;

    use super::*;

    #[test]
    fn a_scan_loads_what_it_decodes() {
        let stored = [
            Attribute { len: 2, align: Align::Short },
            Attribute { len: 4, align: Align::Int },
            Attribute { len: 8, align: Align::Double },
            Attribute { len: -1, align: Align::Int },
        ];
        let offsets = constant_offsets(&stored);
        assert_eq!(offsets, [0, 4, 8]);
        let check = |wanted: &[Option<usize>], expected| {
            assert_eq!(page_use(&stored, wanted, &offsets), expected, "{wanted:?}");
        };
        check(&[], PageUse::Count);
        check(&[Some(0)], PageUse::RowStarts(26));
        check(&[None, Some(0)], PageUse::RowStarts(32));
        check(&[Some(1), None, Some(0)], PageUse::RowStarts(40));
    }
}
