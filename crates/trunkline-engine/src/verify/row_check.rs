//! Checks visible rows: their values against their types, their TOAST values, and their keys
//! against the entries of every index.
//!
//! ```text
//!   page ──▶ row ─▶ cells: stored, null, missing, in TOAST ─┐ of some rows, then fetched together
//!                                                           └▶ payloads ─▶ types, keys of indexes
//! ```
//!
//! To check a value, we call the output function of its type and discard the text. The output
//! functions detect every value that isn't valid for its type.

use std::path::Path;

use trunkline_format::deform::{Column as Stored, Deformer};
use trunkline_format::heap_tuple::HeapTuple;
use trunkline_format::text_output::{TextOptions, ValueError, write_text};
use trunkline_format::varlena::Varlena;
use trunkline_format::{BlockNo, Tid};

use super::checked_table::{CheckedIndex, CheckedTable, Column};
use super::content_options::Checks;
use super::content_problem::ContentProblem;
use super::entry_table::{EntryMatch, EntryTable};
use super::hot_chains::HotRoots;
use super::key_hash::KeyHash;
use super::sink::Sink;
use super::status_files::Needed;
use crate::heap::{ToastBatch, ToastError, ToastProblem, ToastReader};
use crate::pool::{Backend, ReadError};
use crate::transactions::TransactionError;

/// A column of a visible row, after deforming but before detoasting.
#[derive(Clone, Copy)]
enum Cell<'p> {
    /// As stored in the page.
    Stored(&'p [u8]),
    Null,
    /// The row is older than the column.
    Missing,
    /// A value in TOAST, identified by its number in the batch.
    Toast(usize),
    /// Invalid. The problem was already reported.
    Invalid,
}

/// A visible row for which we haven't fetched the TOAST values yet.
pub(super) struct PendingRow<'p> {
    item: u16,
    cells: Vec<Cell<'p>>,
}

/// Checks the visible rows of one table. A row is added first and checked later, because we fetch
/// the TOAST values of several rows at the same time.
pub(super) struct RowCheck<'t> {
    table: &'t CheckedTable,
    checks: Checks,
    sink: &'t Sink<'t>,
    toast: Option<ToastReader>,
    batch: ToastBatch,
    /// The HOT chain roots of the current page.
    pub(super) roots: HotRoots,
    /// The entries of each index, in the order of the table's indexes.
    pub(super) entries: Vec<EntryTable>,
    /// Buffer for the text of a value, which we reuse for every value.
    text: Vec<u8>,
}

impl<'t> RowCheck<'t> {
    pub(super) fn new(
        table: &'t CheckedTable,
        checks: Checks,
        toast: Option<ToastReader>,
        sink: &'t Sink<'t>,
    ) -> Self {
        Self {
            table,
            checks,
            sink,
            toast,
            batch: ToastBatch::new(),
            roots: HotRoots::default(),
            entries: Vec::new(),
            text: Vec::new(),
        }
    }

    /// The total size in bytes of the TOAST values that the added rows are waiting for.
    pub(super) fn bytes_pending(&self) -> u64 {
        self.batch.bytes()
    }

    /// Adds a finding about a row.
    fn problem(&self, block: BlockNo, item: u16, problem: ContentProblem) {
        self.sink.table(self.table, Some(block), Some(item), problem);
    }

    /// Deforms a visible row and adds it to `pending`. Problems with the tuple itself are reported
    /// immediately.
    pub(super) fn add<'p>(
        &mut self,
        block: BlockNo,
        tuple: &HeapTuple<'p>,
        pending: &mut Vec<PendingRow<'p>>,
    ) {
        let item = tuple.item();
        self.sink.count_row();
        // Index entries point to root line pointers. If the row has no root, no index scan can find
        // it.
        if self.roots.of(item).is_none() {
            self.problem(block, item, ContentProblem::NoChain);
        }
        // A row may have fewer columns than the table, if columns have been added since it was
        // inserted. But it must never have more.
        let expected = self.table.columns.len() as u16;
        if tuple.natts() > expected {
            let found = tuple.natts();
            self.problem(block, item, ContentProblem::Columns { found, expected });
        }
        let mut walk = Deformer::of(tuple);
        let mut cells = Vec::with_capacity(self.table.columns.len());
        for column in &self.table.columns {
            let cell = match walk.next(column.attribute) {
                // We must deform dropped columns too, because they still take up space in old rows.
                // But we don't check their values.
                Ok(Stored::Value(stored)) => self
                    .cell(column.attribute.len, stored)
                    .map(|cell| if column.dropped { Cell::Null } else { cell }),
                Ok(Stored::Null) => Ok(Cell::Null),
                Ok(Stored::Missing) => Ok(Cell::Missing),
                Err(error) => Err(error.to_string()),
            };
            match cell {
                Ok(cell) => cells.push(cell),
                Err(error) => {
                    let column = String::from_utf8_lossy(&column.name).into_owned();
                    self.problem(block, item, ContentProblem::Value { column, error });
                    // If a column is invalid, we don't know where the next column starts.
                    cells.resize(self.table.columns.len(), Cell::Invalid);
                    break;
                }
            }
        }
        pending.push(PendingRow { item, cells });
    }

    /// Classifies a stored value. Adds it to the batch if it is in TOAST.
    fn cell<'p>(&mut self, len: i16, stored: &'p [u8]) -> Result<Cell<'p>, String> {
        if len != -1 {
            return Ok(Cell::Stored(stored));
        }
        match Varlena::parse(stored).map_err(|error| error.to_string())? {
            Varlena::External(pointer) => Ok(Cell::Toast(self.batch.push(pointer))),
            Varlena::Plain(_) | Varlena::Compressed(_) => Ok(Cell::Stored(stored)),
        }
    }

    /// Fetches the TOAST values of the pending rows and checks these rows.
    pub(super) fn check_pending(
        &mut self,
        backend: &mut Backend,
        block: BlockNo,
        pending: &mut Vec<PendingRow<'_>>,
    ) -> Result<(), ReadError> {
        if !self.batch.is_empty()
            && let Some(toast) = &mut self.toast
        {
            // Errors with individual values stay in the batch, so the only error that can end the
            // check is cancellation.
            toast.fetch(backend, &mut self.batch)?;
        }
        for row in pending.drain(..) {
            self.check_row(block, &row);
        }
        self.batch.clear();
        Ok(())
    }

    /// Checks the values of a row and its index entries.
    fn check_row(&mut self, block: BlockNo, row: &PendingRow<'_>) {
        let table = self.table;
        let sink = self.sink;
        let at = |problem| sink.table(table, Some(block), Some(row.item), problem);
        let catalog = &*table.database;
        let options = TextOptions::new(self.checks.major, catalog);
        let (mut room, mut text) = (Vec::new(), std::mem::take(&mut self.text));
        for (cell, column) in row.cells.iter().zip(&table.columns) {
            let name = || String::from_utf8_lossy(&column.name).into_owned();
            // We have already reported the TOAST table.
            if matches!(cell, Cell::Toast(_)) && table.lost_toast.is_some() {
                continue;
            }
            let payload = match self.payload(*cell, column, &mut room) {
                Ok(Some(payload)) => payload,
                Ok(None) => continue,
                Err(error) => {
                    if let Some(error) = self.unknown_chunk(*cell) {
                        let row = Tid { block, item: row.item };
                        sink.unknown(table, row, Needed::Value, error);
                        continue;
                    }
                    at(match cell {
                        Cell::Toast(_) => {
                            let file = self.toast_error(*cell).and_then(ToastError::file);
                            let file = file.map(Path::to_owned);
                            ContentProblem::Toast { column: name(), error, file }
                        }
                        _ => ContentProblem::Value { column: name(), error },
                    });
                    continue;
                }
            };
            // We may not be able to print the value. Even so, getting its payload was worthwhile,
            // because doing so has checked the varlena header, the compressed data and the TOAST
            // chunks.
            let Some(ty) = column.ty.as_ref().filter(|_| self.checks.rows) else { continue };
            text.clear();
            match write_text(ty, payload, &options, &mut text) {
                // The value may still be valid even if we can't print it.
                Ok(()) | Err(ValueError::Unsupported(_)) => {}
                // The label may be one of those that the catalogs have lost.
                Err(ValueError::Label { .. }) if !catalog.has_all_labels() => {}
                Err(error) => {
                    at(ContentProblem::Value { column: name(), error: error.to_string() });
                }
            }
        }
        self.text = text;
        if self.checks.indexes {
            self.check_entries(block, row);
        }
    }

    /// If a chunk of a value has unknown visibility because a file is missing or too short, returns
    /// the error about that file. In that case, nothing is wrong with the value or its row.
    fn unknown_chunk(&self, cell: Cell<'_>) -> Option<&TransactionError> {
        match &self.toast_error(cell)?.problem {
            ToastProblem::Transaction { error, .. } if error.file_fault().is_some() => Some(error),
            _ => None,
        }
    }

    /// Why a value could not be fetched from TOAST.
    fn toast_error(&self, cell: Cell<'_>) -> Option<&ToastError> {
        let Cell::Toast(number) = cell else { return None };
        self.batch.value(number)?.err()
    }

    /// Returns the payload of a column after detoasting. Returns `None` if the column is null, or
    /// if we have already reported it as invalid.
    fn payload<'r>(
        &'r self,
        cell: Cell<'r>,
        column: &'r Column,
        room: &'r mut Vec<u8>,
    ) -> Result<Option<&'r [u8]>, String> {
        match cell {
            Cell::Null | Cell::Invalid => Ok(None),
            Cell::Missing => Ok(column.missing.as_deref()),
            Cell::Stored(stored) if column.attribute.len == -1 => {
                let value = Varlena::parse(stored).and_then(|value| value.payload(room));
                value.map(Some).map_err(|error| error.to_string())
            }
            Cell::Stored(stored) => Ok(Some(stored)),
            Cell::Toast(number) => match self.batch.value(number) {
                Some(Ok(value)) => Ok(Some(value)),
                Some(Err(error)) => Err(error.to_string()),
                None => Err(ToastProblem::NoToastTable.to_string()),
            },
        }
    }

    /// Checks that every index has an entry for the row, and that the entry has the row's key. In a
    /// partial index, it's OK if the entry is missing, because we can't evaluate the index's
    /// predicate and so don't know whether there should be one.
    fn check_entries(&self, block: BlockNo, row: &PendingRow<'_>) {
        let Some(root) = self.roots.of(row.item) else { return };
        let at = |problem| self.problem(block, row.item, problem);
        for (index, entries) in self.table.indexes.iter().zip(&self.entries) {
            let name = || index.name.clone();
            match entries.find(Tid { block, item: root }) {
                // We can't report a missing entry if the index is partial, because we can't
                // evaluate its predicate. The same applies if we don't have all of the index's
                // entries.
                EntryMatch::Nothing if index.partial || entries.is_incomplete() => {}
                EntryMatch::Nothing => {
                    at(ContentProblem::NoEntry { index: name(), dead: false, root });
                }
                // Servers ignore entries that are marked dead, so queries don't find the row.
                EntryMatch::Entry { dead: true, .. } => {
                    at(ContentProblem::NoEntry { index: name(), dead: true, root });
                }
                // The entry may have been added for an earlier version of the row, because a HOT
                // update doesn't add one. But since a HOT update doesn't change any indexed column,
                // the keys must still be equal.
                EntryMatch::Entry { hash, .. } => {
                    if self.key(row, index).is_some_and(|expected| expected != hash) {
                        at(ContentProblem::OtherKey { index: name(), root });
                    }
                }
            }
        }
    }

    /// Returns the hash of the row's key in an index, leaving out expression columns. Returns
    /// `None` if one of the columns is invalid.
    fn key(&self, row: &PendingRow<'_>, index: &CheckedIndex) -> Option<u64> {
        let mut hash = KeyHash::new();
        let mut room = Vec::new();
        let columns = index.sources.iter().zip(index.index.layout().columns()).enumerate();
        for (at, (source, stored_as)) in columns {
            let Some(source) = *source else { continue };
            let (cell, column) = (*row.cells.get(source)?, self.table.columns.get(source)?);
            if matches!(cell, Cell::Invalid) {
                return None;
            }
            let mut payload = self.payload(cell, column, &mut room).ok()?;
            // If a `name` column is indexed, the index stores it as a `cstring`, without padding.
            if stored_as.attribute.len == -2 {
                payload = payload.and_then(|name| name.split(|byte| *byte == 0).next());
            }
            hash = hash.column(payload.map(|payload| index.significant(at, payload)));
        }
        Some(hash.finish())
    }
}
