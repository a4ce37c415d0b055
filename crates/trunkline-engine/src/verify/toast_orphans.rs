//! Finds orphaned TOAST chunks, which are live chunks that no row refers to. They waste space that
//! VACUUM can't reclaim.
//!
//! ```text
//!   table, every row version ──▶ value ids ──┐
//!   TOAST index, leaf by leaf ──▶ value ids ─┴─▶ not referenced? ──▶ chunks checked ──▶ live?
//! ```
//!
//! When a row is deleted, its chunks are deleted with it, so every live chunk should belong to some
//! row. We must look for references in all versions of a row and in all columns, including dropped
//! columns.
//!
//! Orphans don't indicate damage, so we don't report them as findings. They are left behind when
//! `VACUUM FULL` or `CLUSTER` copies recently deleted rows. Also, if some pages of a table have
//! been lost, the TOAST values of the lost rows become orphans.
//!
//! We don't report any orphans if we couldn't read some tuple's references, or if the cluster
//! wasn't shut down. In the latter case, the table and its TOAST table may not be consistent with
//! each other.

use trunkline_aio::facade::Arc;
use trunkline_format::Tid;
use trunkline_format::btree::BtreePage;
use trunkline_format::deform::{Column as Stored, Deformer};
use trunkline_format::heap_tuple::HeapTuple;
use trunkline_format::varlena::Varlena;

use super::checked_table::CheckedTable;
use super::content_report::Orphans;
use super::live_rows::LiveRowFinder;
use super::sink::Sink;
use super::value_id_set::ValueIdSet;
use crate::btree::{BtreeError, LevelWalk};
use crate::heap::{ToastTable, has_external};
use crate::pool::{Backend, ReadError};
use crate::read_stream::StreamOptions;
use crate::transactions::Transactions;

/// We check the visibility of the collected chunks as soon as there are at least this many.
const JUDGED_MAX: usize = 1 << 16;

/// The TOAST values that a table's rows refer to.
#[derive(Debug)]
pub(super) struct ReferencedValues<'t> {
    table: &'t CheckedTable,
    toast: &'t ToastTable,
    ids: ValueIdSet,
    /// Whether references may be missing.
    incomplete: bool,
}

impl<'t> ReferencedValues<'t> {
    /// Creates an empty set of references. Returns `None` if the table has no TOAST table.
    pub(super) fn of(table: &'t CheckedTable) -> Option<Self> {
        let toast = table.toast.as_ref()?;
        Some(Self { table, toast, ids: ValueIdSet::default(), incomplete: false })
    }

    /// Adds a tuple's references, whether or not the tuple is visible.
    pub(super) fn add(&mut self, tuple: &HeapTuple<'_>) {
        if !has_external(tuple) {
            return;
        }
        // Columns that the catalog does not describe may contain references too.
        self.incomplete |= usize::from(tuple.natts()) > self.table.columns.len();
        let mut walk = Deformer::of(tuple);
        for column in &self.table.columns {
            let stored = match walk.next(column.attribute) {
                Ok(Stored::Value(stored)) if column.attribute.len == -1 => stored,
                Ok(_) => continue,
                Err(_) => return self.set_incomplete(),
            };
            match Varlena::parse(stored) {
                Ok(Varlena::External(pointer)) if pointer.toast_relation == self.toast.oid => {
                    // This is a set because several versions of a row usually refer to the same
                    // value.
                    self.ids.insert(pointer.value_id);
                }
                Ok(Varlena::Plain(_) | Varlena::Compressed(_)) => {}
                Ok(Varlena::External(_)) | Err(_) => self.set_incomplete(),
            }
        }
    }

    /// Records that a tuple or a page could not be read.
    pub(super) fn set_incomplete(&mut self) {
        self.incomplete = true;
    }

    /// Reports all values in the TOAST table that no row refers to.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn report_orphans(
        &self,
        backend: &mut Backend,
        transactions: &Arc<Transactions>,
        options: StreamOptions,
        sink: &Sink<'_>,
    ) -> Result<(), ReadError> {
        if self.incomplete {
            let reason = "not checked for orphaned TOAST values, as some rows could not be read";
            sink.skipped(self.table, reason.into());
            return Ok(());
        }
        match self.find_orphans(backend, transactions, options, sink) {
            Ok(None) => {}
            Ok(Some(orphans)) => sink.orphans(orphans),
            Err(error) if error.is_cancelled() => return Err(ReadError::Cancelled),
            Err(error) => {
                sink.skipped(self.table, format!("not checked for orphaned TOAST values: {error}"))
            }
        }
        Ok(())
    }

    /// Walks the TOAST index, and counts the live chunks of values that no row refers to. Returns
    /// `None` if there are no such chunks, or if the job was stopped.
    fn find_orphans(
        &self,
        backend: &mut Backend,
        transactions: &Arc<Transactions>,
        options: StreamOptions,
        sink: &Sink<'_>,
    ) -> Result<Option<Orphans>, BtreeError> {
        let (table, toast) = (self.table, self.toast);
        let blocks = toast.heap.blocks().map_err(ReadError::from)?;
        let mut finder = LiveRowFinder::new(&toast.heap, blocks, transactions, options);
        let mut orphans =
            Orphans { relation: Arc::clone(&table.name), values: 0, chunks: 0, bytes: 0, first: 0 };
        let (mut last, mut rows) = (None, Vec::new());
        let mut walk = LevelWalk::of_leaves(&toast.index, backend, options)?;
        let layout = toast.index.layout();
        while let Some(found) = walk.next(backend)? {
            // Checking the index itself reports invalid pages.
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
            // We check visibility in batches, and sort each batch by block, so that we read each
            // TOAST page only once per batch.
            if rows.len() >= JUDGED_MAX {
                orphans.count(&mut finder, backend, &mut rows, &mut last)?;
            }
            if sink.is_stopping() {
                return Ok(None);
            }
        }
        orphans.count(&mut finder, backend, &mut rows, &mut last)?;
        Ok((orphans.chunks > 0).then_some(orphans))
    }
}

impl Orphans {
    /// Counts the live chunks among `rows`. `last` is the highest value id that we've counted so
    /// far.
    fn count(
        &mut self,
        finder: &mut LiveRowFinder<'_>,
        backend: &mut Backend,
        rows: &mut Vec<(Tid, u32)>,
        last: &mut Option<u32>,
    ) -> Result<(), ReadError> {
        let mut ids = Vec::new();
        finder.find_live(backend, rows, |&id, _, tuple| {
            ids.push(id);
            self.chunks += 1;
            self.bytes += tuple.data().len() as u64;
        })?;
        // The index returns value ids in ascending order, so the only id that may already have been
        // counted is the first one.
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
