//! One visible row: its values against their types, its long values, its key in every index.
//!
//! ```text
//!   page ──▶ row ─▶ cells: stored, null, missing, in TOAST ─┐ of some rows, then fetched together
//!                                                           └▶ payloads ─▶ types, keys of indexes
//! ```

use trunkline_format::deform::{Column as Stored, Deformer};
use trunkline_format::heap_tuple::HeapTuple;
use trunkline_format::text_output::{TextOptions, ValueError, write_text};
use trunkline_format::varlena::Varlena;
use trunkline_format::{BlockNo, Tid};

use super::entries::{Found, KeyHash};
use super::problem::ContentProblem;
use super::table::TableCheck;
use super::target::{Column, IndexTarget};
use crate::pool::{Backend, ReadError};

/// A visible row's column.
#[derive(Clone, Copy)]
pub(super) enum Cell<'p> {
    /// As it is stored in the page.
    Stored(&'p [u8]),
    Null,
    Missing,
    /// In TOAST: its number in the batch.
    Toast(usize),
    /// It could not be had, which was told.
    Broken,
}

/// A visible row that waits for its long values.
pub(super) struct Waiting<'p> {
    item: u16,
    cells: Vec<Cell<'p>>,
}

impl TableCheck<'_> {
    /// Takes a visible row apart, as far as its own page has it.
    pub(super) fn row<'p>(
        &mut self,
        block: BlockNo,
        tuple: &HeapTuple<'p>,
        waiting: &mut Vec<Waiting<'p>>,
    ) {
        let item = tuple.item();
        self.sink.count_row();
        if self.roots.of(item).is_none() {
            self.problem(Some(block), Some(item), ContentProblem::NoChain);
        }
        let expected = self.target.columns.len() as u16;
        if tuple.natts() > expected {
            let found = tuple.natts();
            self.problem(Some(block), Some(item), ContentProblem::Columns { found, expected });
        }
        let mut walk = Deformer::of(tuple);
        let mut cells = Vec::with_capacity(self.target.columns.len());
        for column in &self.target.columns {
            let error = match walk.next(column.attribute) {
                Ok(Stored::Value(stored)) => match self.cell(column.attribute.len, stored) {
                    Ok(cell) => {
                        cells.push(if column.dropped { Cell::Null } else { cell });
                        continue;
                    }
                    Err(error) => error,
                },
                Ok(Stored::Null) => {
                    cells.push(Cell::Null);
                    continue;
                }
                Ok(Stored::Missing) => {
                    cells.push(Cell::Missing);
                    continue;
                }
                Err(error) => error.to_string(),
            };
            let column = String::from_utf8_lossy(&column.name).into_owned();
            self.problem(Some(block), Some(item), ContentProblem::Value { column, error });
            // Where the next column begins is not known either.
            cells.resize(self.target.columns.len(), Cell::Broken);
            break;
        }
        waiting.push(Waiting { item, cells });
    }

    fn cell<'p>(&mut self, len: i16, stored: &'p [u8]) -> Result<Cell<'p>, String> {
        if len != -1 {
            return Ok(Cell::Stored(stored));
        }
        match Varlena::parse(stored).map_err(|error| error.to_string())? {
            Varlena::External(pointer) => Ok(Cell::Toast(self.batch.push(pointer))),
            Varlena::Plain(_) | Varlena::Compressed(_) => Ok(Cell::Stored(stored)),
        }
    }

    /// Fetches the long values of the rows that wait, and checks these rows.
    pub(super) fn settle(
        &mut self,
        backend: &mut Backend,
        block: BlockNo,
        waiting: &mut Vec<Waiting<'_>>,
    ) -> Result<(), ReadError> {
        if !self.batch.is_empty()
            && let Some(toast) = &mut self.toast
        {
            toast.fetch(backend, &mut self.batch)?;
        }
        for row in waiting.drain(..) {
            self.check_row(block, &row);
        }
        self.batch.clear();
        Ok(())
    }

    fn check_row(&mut self, block: BlockNo, row: &Waiting<'_>) {
        let target = self.target;
        let at = |problem| self.sink.table(target, Some(block), Some(row.item), problem);
        let catalog = &*target.database;
        let options = TextOptions::new(self.checks.major, catalog);
        let (mut room, mut text) = (Vec::new(), std::mem::take(&mut self.text));
        for (cell, column) in row.cells.iter().zip(&target.columns) {
            let name = || String::from_utf8_lossy(&column.name).into_owned();
            let payload = match self.payload(*cell, column, &mut room) {
                Ok(Some(payload)) => payload,
                Ok(None) => continue,
                Err(error) => {
                    at(match cell {
                        Cell::Toast(_) => ContentProblem::Toast { column: name(), error },
                        _ => ContentProblem::Value { column: name(), error },
                    });
                    continue;
                }
            };
            let Some(ty) = column.ty.as_ref().filter(|_| self.checks.rows) else { continue };
            text.clear();
            match write_text(ty, payload, &options, &mut text) {
                Ok(()) | Err(ValueError::Unsupported(_)) => {}
                Err(error) => {
                    at(ContentProblem::Value { column: name(), error: error.to_string() });
                }
            }
        }
        self.text = text;
        if self.checks.indexes {
            self.row_has_entries(block, row);
        }
    }

    /// A column's payload; `None` if it is null or could not be had.
    fn payload<'r>(
        &'r self,
        cell: Cell<'r>,
        column: &'r Column,
        room: &'r mut Vec<u8>,
    ) -> Result<Option<&'r [u8]>, String> {
        match cell {
            Cell::Null | Cell::Broken => Ok(None),
            Cell::Missing => Ok(column.missing.as_deref()),
            Cell::Stored(stored) if column.attribute.len == -1 => {
                let value = Varlena::parse(stored).and_then(|value| value.payload(room));
                value.map(Some).map_err(|error| error.to_string())
            }
            Cell::Stored(stored) => Ok(Some(stored)),
            Cell::Toast(number) => match self.batch.value(number) {
                Some(Ok(value)) => Ok(Some(value)),
                Some(Err(error)) => Err(error.to_string()),
                None => Err("the table has no TOAST table".into()),
            },
        }
    }

    /// Every index has an entry for the row, with the row's key.
    fn row_has_entries(&self, block: BlockNo, row: &Waiting<'_>) {
        let Some(root) = self.roots.of(row.item) else { return };
        let at = |problem| self.problem(Some(block), Some(row.item), problem);
        for (index, entries) in self.target.indexes.iter().zip(&self.entries) {
            let name = || index.name.clone();
            match entries.find(Tid { block, item: root }) {
                Found::Nothing if index.partial || entries.is_incomplete() => {}
                Found::Nothing => {
                    at(ContentProblem::NoEntry { index: name(), dead: false, root });
                }
                Found::Entry { dead: true, .. } => {
                    at(ContentProblem::NoEntry { index: name(), dead: true, root });
                }
                Found::Entry { hash, .. } => {
                    if self.key(row, index).is_some_and(|expected| expected != hash) {
                        at(ContentProblem::OtherKey { index: name(), root });
                    }
                }
            }
        }
    }

    /// The hash of the row's key in an index, columns left out that are computed; `None` if a
    /// column could not be had.
    fn key(&self, row: &Waiting<'_>, index: &IndexTarget) -> Option<u64> {
        let mut hash = KeyHash::new();
        let mut room = Vec::new();
        for (source, stored_as) in index.sources.iter().zip(index.index.layout().columns()) {
            let Some(source) = *source else { continue };
            let (cell, column) = (*row.cells.get(source)?, self.target.columns.get(source)?);
            if matches!(cell, Cell::Broken) {
                return None;
            }
            let mut payload = self.payload(cell, column, &mut room).ok()?;
            // Names are stored without their padding.
            if stored_as.attribute.len == -2 {
                payload = payload.and_then(|name| name.split(|byte| *byte == 0).next());
            }
            hash = hash.column(payload);
        }
        Some(hash.finish())
    }
}
