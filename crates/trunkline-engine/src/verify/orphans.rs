//! Chunks of long values that no row names: room in a TOAST table that no vacuum gives back.
//!
//! ```text
//!   table, every row version ──▶ numbers of its values ──┐
//!   TOAST index, leaf by leaf ──▶ numbers ───────────────┴─▶ not named? ──▶ rows judged ──▶ live?
//! ```
//! A chunk is deleted with the row that names it, so one that is live belongs to a row, of which
//! every version counts, and every column, dropped ones too. What is left over is not damage: `VACUUM
//! FULL` and `CLUSTER` leave it behind when they copy rows that were deleted a moment before, and
//! whoever lost pages of a table has the long values of their rows still there. So it is told, and
//! is no finding.
//!
//! Nothing is said where a version's values could not be had, nor of a cluster that was not shut
//! down: pages of the two tables may be of different times there.

use trunkline_aio::sync::Arc;
use trunkline_format::Tid;
use trunkline_format::btree::BtreePage;
use trunkline_format::deform::{Column as Stored, Deformer};
use trunkline_format::heap_tuple::HeapTuple;
use trunkline_format::varlena::Varlena;

use super::judge::Judge;
use super::sink::Sink;
use super::target::Target;
use super::value_ids::ValueIds;
use crate::btree::{BtreeError, LevelWalk};
use crate::heap::{ToastTable, has_external};
use crate::pool::{Backend, ReadError};
use crate::read_stream::StreamOptions;
use crate::transactions::Transactions;

/// Chunks that are judged at a time.
const JUDGED_MAX: usize = 1 << 16;

/// Long values of a table that none of its rows names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphans {
    /// Database, schema and table.
    pub relation: Arc<str>,
    /// How many.
    pub values: u64,
    /// Rows of the TOAST table that they are in.
    pub chunks: u64,
    /// Bytes of these rows.
    pub bytes: u64,
    /// The lowest number (`chunk_id`) of them.
    pub first: u32,
}

/// The long values that rows of a table name.
#[derive(Debug, Default)]
pub(super) struct Named {
    ids: ValueIds,
    /// Some may be missing.
    incomplete: bool,
}

impl Named {
    /// Takes the values of a row version, whatever became of it.
    pub(super) fn take(&mut self, tuple: &HeapTuple<'_>, target: &Target, toast: &ToastTable) {
        if !has_external(tuple) {
            return;
        }
        self.incomplete |= usize::from(tuple.natts()) > target.columns.len();
        let mut walk = Deformer::of(tuple);
        for column in &target.columns {
            let stored = match walk.next(column.attribute) {
                Ok(Stored::Value(stored)) if column.attribute.len == -1 => stored,
                Ok(_) => continue,
                Err(_) => return self.set_incomplete(),
            };
            match Varlena::parse(stored) {
                Ok(Varlena::External(pointer)) if pointer.toast_relation == toast.oid => {
                    self.ids.insert(pointer.value_id);
                }
                Ok(Varlena::Plain(_) | Varlena::Compressed(_)) => {}
                Ok(Varlena::External(_)) | Err(_) => self.set_incomplete(),
            }
        }
    }

    /// A row version, or a page of them, could not be had.
    pub(super) fn set_incomplete(&mut self) {
        self.incomplete = true;
    }

    /// Tells of the values in `toast` that are not among these.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn tell_of_others(
        &self,
        target: &Target,
        toast: &ToastTable,
        backend: &mut Backend,
        transactions: &Arc<Transactions>,
        options: StreamOptions,
        sink: &Sink<'_>,
    ) -> Result<(), ReadError> {
        if self.incomplete {
            sink.not_looked_into(target, "long values that no row names: rows are damaged".into());
            return Ok(());
        }
        let found = self.others(target, toast, backend, transactions, options, sink);
        match found {
            Ok(None) => {}
            Ok(Some(orphans)) => sink.orphans(orphans),
            Err(BtreeError::Read(ReadError::Cancelled)) => return Err(ReadError::Cancelled),
            Err(error) => {
                let text = format!("long values that no row names: {error}");
                sink.not_looked_into(target, text);
            }
        }
        Ok(())
    }

    fn others(
        &self,
        target: &Target,
        toast: &ToastTable,
        backend: &mut Backend,
        transactions: &Arc<Transactions>,
        options: StreamOptions,
        sink: &Sink<'_>,
    ) -> Result<Option<Orphans>, BtreeError> {
        let blocks = toast.heap.blocks().map_err(ReadError::from)?;
        let mut judge = Judge::new(&toast.heap, blocks, transactions, options);
        let mut orphans = Orphans {
            relation: Arc::clone(&target.name),
            values: 0,
            chunks: 0,
            bytes: 0,
            first: 0,
        };
        let (mut last, mut rows) = (None, Vec::new());
        let mut walk = LevelWalk::of_leaves(&toast.index, backend, options)?;
        let layout = toast.index.layout();
        while let Some(found) = walk.next(backend)? {
            // Of a page that cannot be taken apart the check of the index tells.
            if let Ok(page) = BtreePage::parse(found.page)
                && !page.is_ignored()
            {
                for entry in page.entries().flatten().filter(|entry| !entry.is_dead()) {
                    let id = layout.attributes(&entry).next().and_then(Result::ok).flatten();
                    let id = id.and_then(|id| id.first_chunk().copied()).map(u32::from_le_bytes);
                    if let Some(id) = id.filter(|id| !self.ids.contains(*id)) {
                        rows.extend(entry.rows().map(|row| (row, id)));
                    }
                }
            }
            if rows.len() >= JUDGED_MAX {
                orphans.count(&mut judge, backend, &mut rows, &mut last)?;
            }
            if sink.is_stopping() {
                return Ok(None);
            }
        }
        orphans.count(&mut judge, backend, &mut rows, &mut last)?;
        Ok((orphans.chunks > 0).then_some(orphans))
    }
}

impl Orphans {
    /// Counts those chunks that are live. `last` is the highest number so far.
    fn count(
        &mut self,
        judge: &mut Judge<'_>,
        backend: &mut Backend,
        rows: &mut Vec<(Tid, u32)>,
        last: &mut Option<u32>,
    ) -> Result<(), ReadError> {
        let mut ids = Vec::new();
        judge.live(backend, rows, |&id, _, tuple| {
            ids.push(id);
            self.chunks += 1;
            self.bytes += tuple.data().len() as u64;
        })?;
        // The index has them in this order too, so that only the first can have come before.
        ids.sort_unstable();
        ids.dedup();
        self.values += ids.iter().filter(|id| Some(**id) != *last).count() as u64;
        if let (None, Some(first)) = (*last, ids.first()) {
            self.first = *first;
        }
        *last = ids.last().copied().or(*last);
        Ok(())
    }
}
