//! Prints rows as lines: deforms each row, detoasts its values, and writes and escapes their text.
//!
//! We write values directly from the page to the output, without an intermediate copy, unless they
//! are compressed or need escaping. Most rows take the fast path, `write_plain_row`, which deforms
//! and prints the row in a single loop. All other rows take the general path. That path also
//! produces the error messages.

use std::fmt;
use std::io::Write as _;

use trunkline_format::Tid;
use trunkline_format::deform::{Column, ColumnError, Deformer};
use trunkline_format::heap_tuple::HeapTuple;
use trunkline_format::text_output::{TEXT_MAX, TextOptions, write_text};
use trunkline_format::transam::RowState;
use trunkline_format::varlena::{ToastPointer, Varlena, VarlenaError};

use super::error::ValueProblem;
use super::escape::LineFormat;
use super::plan::{Plan, Shown, TextKind};
use crate::heap::{HeapRow, ToastBatch, has_external};

/// System columns to print before the columns of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extras {
    /// `ctid`.
    pub ctid: bool,
    /// `xmin`, `xmax` and the visibility of the row version.
    pub state: bool,
}

/// A column that could not be printed.
pub(super) struct InvalidColumn {
    /// Its index among the printed columns, if it is printed.
    pub(super) column: Option<usize>,
    pub(super) problem: ValueProblem,
}

/// Prints the rows of one table.
pub(super) struct LineWriter<'a> {
    plan: &'a Plan,
    format: &'a LineFormat,
    extras: Extras,
    options: TextOptions<'a>,
    /// Whether each line consists of a single value. If so, CSV output must quote a value that
    /// would otherwise be read as the end of the data.
    alone: bool,
    /// Buffer for decompressed values, reused from value to value.
    room: Vec<u8>,
    /// Values no longer available, in rows that no transaction can see.
    pub(super) gone: u64,
}

impl<'a> LineWriter<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        format: &'a LineFormat,
        extras: Extras,
        options: TextOptions<'a>,
    ) -> Self {
        // `state` adds three columns: xmin, xmax and state.
        let values = plan.shown.len() + usize::from(extras.ctid) + usize::from(extras.state) * 3;
        Self { plan, format, extras, options, alone: values == 1, room: Vec::new(), gone: 0 }
    }

    /// Prints the line of column names (`HEADER`).
    pub(super) fn header(&self, out: &mut Vec<u8>) {
        let extras = [
            (self.extras.ctid, "ctid"),
            (self.extras.state, "xmin"),
            (self.extras.state, "xmax"),
            (self.extras.state, "state"),
        ];
        let extras = extras.into_iter().filter(|(shown, _)| *shown).map(|(_, name)| name);
        let mut first = true;
        for name in extras.map(str::as_bytes).chain(self.plan.columns()) {
            if !std::mem::take(&mut first) {
                out.push(self.format.delimiter());
            }
            self.format.append(name, self.alone, out);
        }
        out.push(b'\n');
    }

    /// Collects the TOAST pointers of the printed columns, in the same order in which
    /// [`LineWriter::write`] will use the values. Stops at the first invalid column, because
    /// `write` will stop there too.
    pub(super) fn pointers(&self, tuple: &HeapTuple<'_>, batch: &mut ToastBatch) {
        // Most rows have no TOAST values. Testing one bit in the tuple header saves us from
        // deforming those rows twice.
        if !has_external(tuple) {
            return;
        }
        let mut push = |column: &Shown, value: Column<'_>| {
            if column.has_header
                && let Some(datum) = value.value()
                && let Some(pointer) = external(datum)
            {
                batch.push(pointer);
            }
        };
        // If the output's columns are in the same order as the row's, we can push the values while
        // deforming the row.
        if self.plan.in_order {
            let mut walk = Deformer::of(tuple);
            for stored in &self.plan.stored {
                let Ok(value) = walk.next(stored.attribute) else { return };
                if let Some(column) = stored.shown.and_then(|at| self.plan.shown.get(at)) {
                    push(column, value);
                }
            }
        } else if let Ok(values) = self.gather(tuple) {
            for (column, value) in self.plan.shown.iter().zip(values) {
                push(column, value);
            }
        }
    }

    /// Deforms the row and returns the values of the printed columns, in output order. We need this
    /// only if the columns of the output are in a different order than those of the row.
    fn gather<'p>(
        &self,
        tuple: &HeapTuple<'p>,
    ) -> Result<Vec<Column<'p>>, (Option<usize>, ColumnError)> {
        let mut values = vec![Column::Missing; self.plan.shown.len()];
        let mut walk = Deformer::of(tuple);
        for stored in &self.plan.stored {
            let value = walk.next(stored.attribute);
            let value = value.map_err(|error| (stored.shown, error))?;
            if let Some(place) = stored.shown.and_then(|at| values.get_mut(at)) {
                *place = value;
            }
        }
        Ok(values)
    }

    /// Prints a row. The row's TOAST values are in `batch`, starting at index `fetched`. If a value
    /// can't be printed, we remove whatever was already written for the row, so that `out` never
    /// contains a partial line.
    pub(super) fn write(
        &mut self,
        row: &HeapRow<'_>,
        batch: &ToastBatch,
        mut fetched: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), InvalidColumn> {
        let start = out.len();
        // The fast path may have written part of the line before giving up. We remove that part
        // below.
        if self.plan.in_order && self.write_plain_row(row, out).is_some() {
            return Ok(());
        }
        // Discard what the fast path has written.
        out.truncate(start);
        let written = self.columns(row, batch, &mut fetched, out);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    /// The fast path, for rows without compressed or TOAST values. If the row does have such a
    /// value, or if it is invalid, this returns `None`, and the caller must discard what was
    /// already written. Note that this deforms rows by the same rules as [`Deformer`], and the two
    /// must be kept in sync.
    #[inline]
    fn write_plain_row(&self, row: &HeapRow<'_>, out: &mut Vec<u8>) -> Option<()> {
        // Values are aligned relative to the start of the tuple's data. Since that start is itself
        // MAXALIGNed, `offset` is the only state we need to keep.
        let (data, nulls) = (row.tuple.data(), row.tuple.nulls());
        let natts = usize::from(row.tuple.natts());
        let mut first = self.write_extras(row, out);
        let mut offset = 0;
        let (format, alone) = (self.format, self.alone);
        for (number, stored) in self.plan.stored.iter().enumerate() {
            let column = stored.shown.and_then(|at| self.plan.shown.get(at));
            if column.is_some() && !std::mem::take(&mut first) {
                out.push(format.delimiter());
            }
            // If there is no null bitmap, no column is null. If there is one, a set bit means that
            // the column is not null.
            let there = nulls.get(number / 8).is_none_or(|byte| byte >> (number % 8) & 1 == 1);
            if number >= natts || !there {
                match column {
                    // The row is older than the column, and the catalog has a value for it
                    // (`attmissingval`). Leave that to the general path.
                    Some(column) if number >= natts && column.missing.is_some() => return None,
                    Some(_) => out.extend_from_slice(format.null()),
                    None => {}
                }
                continue;
            }
            let payload = match stored.attribute.len {
                -1 => plain_varlena(data, &mut offset, stored.mask)?,
                len => {
                    let start = (offset + stored.mask) & !stored.mask;
                    offset = start + usize::try_from(len).ok()?;
                    data.get(start..offset)?
                }
            };
            if let Some(column) = column {
                print(column, payload, format, alone, &self.options, out).ok()?;
            }
        }
        out.push(b'\n');
        Some(())
    }

    /// The general path: deforms the row, and detoasts and prints its values.
    fn columns(
        &mut self,
        row: &HeapRow<'_>,
        batch: &ToastBatch,
        fetched: &mut usize,
        out: &mut Vec<u8>,
    ) -> Result<(), InvalidColumn> {
        let (plan, start) = (self.plan, out.len());
        let mut first = self.write_extras(row, out);
        let mut between = |out: &mut Vec<u8>, delimiter| {
            if !std::mem::take(&mut first) {
                out.push(delimiter);
            }
        };
        let delimiter = self.format.delimiter();
        if plan.in_order {
            let mut walk = Deformer::of(&row.tuple);
            for stored in &plan.stored {
                let value = walk.next(stored.attribute);
                let invalid = |problem| InvalidColumn { column: stored.shown, problem };
                let value = value.map_err(|error| invalid(error.into()))?;
                let Some(column) = stored.shown.and_then(|at| plan.shown.get(at)) else {
                    continue;
                };
                between(out, delimiter);
                self.value_or_gone(row, column, value, batch, fetched, out).map_err(invalid)?;
                // We check the length after every value, not just at the end, because otherwise a
                // damaged row could make us build a line of many gigabytes.
                bounded(start, out).map_err(invalid)?;
            }
        } else {
            let values = self.gather(&row.tuple);
            let values = values
                .map_err(|(column, error)| InvalidColumn { column, problem: error.into() })?;
            for (at, (column, value)) in plan.shown.iter().zip(values).enumerate() {
                between(out, delimiter);
                let invalid = |problem| InvalidColumn { column: Some(at), problem };
                self.value_or_gone(row, column, value, batch, fetched, out).map_err(invalid)?;
                bounded(start, out).map_err(invalid)?;
            }
        }
        out.push(b'\n');
        Ok(())
    }

    /// Prints the system columns, if any. Returns true if there are none, which means that the next
    /// value will be the first one on the line.
    fn write_extras(&self, row: &HeapRow<'_>, out: &mut Vec<u8>) -> bool {
        let Extras { ctid, state } = self.extras;
        let start = out.len();
        let mut field = |text: fmt::Arguments<'_>| {
            if out.len() > start {
                out.push(self.format.delimiter());
            }
            let value = out.len();
            // Writing to a vector can't fail.
            let _ = out.write_fmt(text);
            self.format.escape(value, self.alone, out);
        };
        if ctid {
            let Tid { block, item } = row.tid;
            field(format_args!("({block},{item})"));
        }
        if state {
            field(format_args!("{}", row.tuple.xmin()));
            field(format_args!("{}", row.tuple.xmax()));
            field(format_args!("{}", row.state));
        }
        out.len() == start
    }

    /// Prints one value. If the value is no longer available and the row isn't live, prints null
    /// instead. We don't treat this as damage. TOAST tables are vacuumed separately, so a dead
    /// row's chunks may be removed before the row itself. Similarly, an enum label may be missing
    /// because it was rolled back together with the row.
    #[inline]
    fn value_or_gone(
        &mut self,
        row: &HeapRow<'_>,
        column: &Shown,
        value: Column<'_>,
        batch: &ToastBatch,
        fetched: &mut usize,
        out: &mut Vec<u8>,
    ) -> Result<(), ValueProblem> {
        let start = out.len();
        match self.value(column, value, batch, fetched, out) {
            // Damage to the tuple itself is still reported, even if the row is dead.
            Err(ref problem @ (ValueProblem::Toast(_) | ValueProblem::Value(_)))
                if row.state != RowState::Live && problem.file_fault().is_none() =>
            {
                out.truncate(start);
                out.extend_from_slice(self.format.null());
                self.gone += 1;
                Ok(())
            }
            written => written,
        }
    }

    /// Prints one value: detoasts it if necessary, and substitutes the catalog's value for a
    /// missing one.
    #[inline]
    fn value(
        &mut self,
        column: &Shown,
        value: Column<'_>,
        batch: &ToastBatch,
        fetched: &mut usize,
        out: &mut Vec<u8>,
    ) -> Result<(), ValueProblem> {
        let datum = match value {
            Column::Value(datum) => Some(datum),
            Column::Null => None,
            Column::Missing => column.missing.as_deref(),
        };
        let Some(datum) = datum else {
            out.extend_from_slice(self.format.null());
            return Ok(());
        };
        if !column.has_header {
            return print(column, datum, self.format, self.alone, &self.options, out);
        }
        let payload = match Varlena::parse(datum)? {
            Varlena::Plain(payload) => payload,
            Varlena::External(_) => {
                // The values were pushed to the batch in the same order in which we're printing
                // them now.
                let number = *fetched;
                *fetched += 1;
                match batch.value(number) {
                    Some(Ok(payload)) => payload,
                    Some(Err(error)) => return Err(ValueProblem::Toast(error.clone())),
                    None => {
                        let lost = self.plan.lost_toast.map(ValueProblem::LostToast);
                        return Err(lost.unwrap_or(VarlenaError::External.into()));
                    }
                }
            }
            compressed => compressed.payload(&mut self.room)?,
        };
        print(column, payload, self.format, self.alone, &self.options, out)
    }
}

/// Returns the payload of the plain varlena at `offset`, and moves `offset` past the value. Returns
/// `None` if the value is compressed or external.
///
/// If the byte at `offset` is zero, it must be alignment padding, because a short header always has
/// its lowest bit set. There is no padding before a short header. The four-byte header of an
/// uncompressed value has its two lowest bits clear.
#[inline]
fn plain_varlena<'p>(data: &'p [u8], offset: &mut usize, mask: usize) -> Option<&'p [u8]> {
    let mut start = *offset;
    let mut head = *data.get(start)?;
    if head == 0 {
        start = (start + mask) & !mask;
        head = *data.get(start)?;
    }
    let (header, length) = match head {
        0x01 => return None,
        _ if head & 1 == 1 => (1, usize::from(head >> 1)),
        _ if head & 2 == 0 => {
            let word = data.get(start..)?.first_chunk().copied()?;
            (4, (u32::from_le_bytes(word) >> 2) as usize)
        }
        _ => return None,
    };
    *offset = start + length;
    data.get(start + header..*offset)
}

/// Fails if the line is longer than a server permits.
#[inline]
fn bounded(start: usize, out: &[u8]) -> Result<(), ValueProblem> {
    if out.len() - start <= TEXT_MAX { Ok(()) } else { Err(ValueProblem::Line) }
}

/// Returns the TOAST pointer if the datum is one.
fn external(datum: &[u8]) -> Option<ToastPointer> {
    match Varlena::parse(datum) {
        Ok(Varlena::External(pointer)) => Some(pointer),
        _ => None,
    }
}

/// Prints a value as text, escaping it if values of its type may contain special characters.
#[inline]
fn print(
    column: &Shown,
    payload: &[u8],
    format: &LineFormat,
    alone: bool,
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueProblem> {
    match column.text {
        TextKind::Plain if !format.is_custom() => write_text(&column.ty, payload, options, out)?,
        TextKind::Bytes => format.append(payload, alone, out),
        TextKind::Plain | TextKind::Other => {
            let start = out.len();
            write_text(&column.ty, payload, options, out)?;
            format.escape(start, alone, out);
        }
    }
    Ok(())
}
