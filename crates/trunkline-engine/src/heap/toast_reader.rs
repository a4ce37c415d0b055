//! Detoasting: fetches values from a TOAST table, many at a time.
//!
//! ```text
//!   pointers ──▶ index: rows of the chunks of each value      many leaves in flight
//!            ──▶ sorted by block ──▶ read stream               many pages in flight
//!            ──▶ copy each chunk to its place ──▶ decompress ──▶ ToastBatch::value
//! ```
//!
//! For example, a value of 10,000 bytes has six chunks of up to 1996 bytes. Each chunk is one row
//! of the TOAST table, with the value's id (`chunk_id`), the chunk's number (`chunk_seq`) and the
//! chunk's bytes (`chunk_data`). PostgreSQL's `heap_fetch_toast_slice` fetches one value at a time:
//! it does an index scan and waits for each page in turn. We fetch a whole batch of values instead,
//! such as those of all rows on a page. This means that we know all index keys in advance, and once
//! the index has been searched, we know all blocks as well, so the reads can overlap.
//!
//! **Visibility.** We use every chunk unless the transaction that inserted it was rolled back,
//! which is the same rule that servers use (`SnapshotToast`). The chunks of a visible row always
//! exist. When a row is deleted, its chunks are deleted with it, but we can still read them until
//! they are vacuumed.
//!
//! **Checks.** We compare all sizes with each other: the sizes in the TOAST pointer, the number and
//! length of the chunks, and the sizes before and after decompression. If we find an error, only
//! that value is affected, and we still fetch the other values of the batch.

use std::ops::Range;

use trunkline_aio::facade::Arc;
use trunkline_format::heap_tuple::is_all_visible;
use trunkline_format::page::{LinePointerFlags, PageHeader, is_new, line_pointer};
use trunkline_format::transam::{RowState, row_state};
use trunkline_format::{BLOCK_SIZE, BlockNo, HeapTuple, PageBytes, Tid};

use super::error::HeapError;
use super::toast_batch::{Chunk, ToastBatch};
use super::toast_error::ToastProblem;
use super::toast_table::{CHUNK_BYTES, ToastTable, chunk_columns};
use crate::btree::BtreeError;
use crate::pool::{Backend, ReadError, Tally};
use crate::read_stream::{BlockList, ReadStream, StreamOptions, StreamStats};
use crate::transactions::{Lookup, StatusPages, Transactions};

/// We consider the index damaged if a value has more than this many index entries in addition to
/// twice the number of its chunks. Some extra entries are normal, because a value id may be reused
/// after the transaction that first used it was rolled back.
const VERSIONS_SPARE: usize = 1000;

/// Fetches values from one TOAST table.
#[derive(Debug)]
pub struct ToastReader {
    table: ToastTable,
    transactions: Arc<Transactions>,
    statuses: StatusPages,
    stream: ReadStream<BlockList>,
    /// The TIDs of the batch's chunks, each with the number of the value that the chunk belongs to.
    wanted: Vec<(Tid, usize)>,
    /// How to read the index.
    options: StreamOptions,
}

/// A value to search for in the index.
struct SearchedValue {
    value_id: u32,
    /// The number of the value within the batch.
    number: usize,
    chunks: u32,
    /// Rows found so far.
    rows: usize,
}

impl SearchedValue {
    /// The most rows that the index may have for this value.
    fn rows_max(&self) -> usize {
        (self.chunks as usize).saturating_mul(2).saturating_add(VERSIONS_SPARE)
    }
}

impl ToastReader {
    /// Creates a reader for the values of one table. You must pass the same `backend` to every
    /// call.
    pub fn new(
        backend: &Backend,
        table: ToastTable,
        transactions: &Arc<Transactions>,
        options: StreamOptions,
    ) -> Self {
        // The stream must return pages in order, because that's how we match them with the chunks.
        let options = StreamOptions { unordered: false, ..options };
        let stream = ReadStream::new(backend, &table.heap, BlockList::new(Vec::new()), options);
        Self {
            table,
            transactions: Arc::clone(transactions),
            statuses: StatusPages::default(),
            stream,
            wanted: Vec::new(),
            options,
        }
    }

    /// The TOAST table.
    pub fn table(&self) -> &ToastTable {
        &self.table
    }

    /// Statistics of the stream so far.
    pub fn stats(&self) -> StreamStats {
        self.stream.stats()
    }

    /// Hits, reads and times of the stream so far, without those of the index.
    pub fn buffer_usage(&self) -> Tally {
        self.stream.buffer_usage()
    }

    /// Fetches all values of the batch that haven't been fetched yet. If a value isn't available,
    /// the error is stored in the batch, and [`ToastBatch::value`] returns it.
    ///
    /// # Errors
    /// [`ReadError::Cancelled`] if the session was cancelled. In that case, some of the values have
    /// not been fetched.
    /// # Panics
    /// If this is not the backend that the reader was created with.
    pub fn fetch(
        &mut self,
        backend: &mut Backend,
        batch: &mut ToastBatch,
    ) -> Result<(), ReadError> {
        self.find(backend, batch)?;
        // Sort by block and line pointer, so that we read each page only once.
        self.wanted.sort_unstable();
        let read = self.read(backend, batch);
        // Release all pins even if there was an error, because it may be a long time until the next
        // fetch.
        self.stream.reset(BlockList::new(Vec::new()));
        read?;
        (0..batch.len()).for_each(|number| batch.finish(number));
        Ok(())
    }

    /// Looks up the chunks of all values in the index. We search by the value id alone, so that a
    /// single search finds all chunks of a value.
    fn find(&mut self, backend: &mut Backend, batch: &mut ToastBatch) -> Result<(), ReadError> {
        self.wanted.clear();
        let mut searched: Vec<SearchedValue> = Vec::new();
        for number in 0..batch.len() {
            let Some(pointer) = batch.pointer(number).filter(|_| batch.is_open(number)) else {
                continue;
            };
            if pointer.toast_relation != self.table.oid {
                batch.fail(number, ToastProblem::OtherTable { expected: self.table.oid });
                continue;
            }
            // The pointer may be damaged, so we must not trust its size until the index confirms
            // it.
            let chunks = pointer.stored_size.div_ceil(CHUNK_BYTES);
            searched.push(SearchedValue { value_id: pointer.value_id, number, chunks, rows: 0 });
        }
        searched.sort_unstable_by_key(|value| value.value_id);
        let keys: Vec<[u8; 4]> =
            searched.iter().map(|value| value.value_id.to_le_bytes()).collect();
        let keys: Vec<&[u8]> = keys.iter().map(<[u8; 4]>::as_slice).collect();
        let mut found = |key: usize, row: Result<Tid, &Arc<BtreeError>>| {
            let Some(value) = searched.get_mut(key) else { return false };
            match row {
                Ok(tid) => {
                    value.rows += 1;
                    self.wanted.push((tid, value.number));
                }
                Err(error) => batch.fail(value.number, ToastProblem::Index(Arc::clone(error))),
            }
            value.rows <= value.rows_max()
        };
        self.table.index.find_many(backend, self.options, &keys, &mut found)?;
        for value in searched {
            let SearchedValue { number, chunks, rows, .. } = value;
            if rows > value.rows_max() {
                batch.fail(number, ToastProblem::TooMany { found: rows, chunks });
            } else if rows < chunks as usize {
                // We don't know which chunk is missing. To find out, we would have to read the
                // rows, which isn't worth it because the value has failed anyway. So just assume
                // that it's the chunks at the end that are missing, and report the first of those.
                batch.fail(number, ToastProblem::Missing { chunk: rows as u32, chunks });
            } else if batch.is_open(number) {
                batch.allocate(number, chunks);
            }
        }
        // Don't read pages for values that have already failed.
        self.wanted.retain(|&(_, number)| batch.is_open(number));
        Ok(())
    }

    /// Reads the pages that contain the chunks, and copies the bytes of each chunk into the batch's
    /// buffer. The stream returns the pages in the order of `wanted`, so each page belongs to the
    /// next group of rows in `wanted` that have the same block number.
    fn read(&mut self, backend: &mut Backend, batch: &mut ToastBatch) -> Result<(), ReadError> {
        let blocks = self.wanted.chunk_by(|(one, _), (other, _)| one.block == other.block);
        let blocks: Vec<BlockNo> =
            blocks.filter_map(|group| group.first()).map(|(tid, _)| tid.block).collect();
        self.stream.reset(BlockList::new(blocks));
        let mut at = 0;
        while let Some((tid, _)) = self.wanted.get(at) {
            let block = tid.block;
            let rest = self.wanted.get(at..).unwrap_or_default();
            let group = at..at + rest.partition_point(|(tid, _)| tid.block == block);
            at = group.end;
            let page = match self.stream.next(backend) {
                Ok(Some(found)) => {
                    let transactions = &self.transactions;
                    transactions.lock_and_load(backend, found.pin, &mut self.statuses)?
                }
                Ok(None) => break,
                Err(ReadError::Cancelled) => return Err(ReadError::Cancelled),
                Err(error) => {
                    let error = Arc::new(HeapError::Read(error));
                    self.fail_all(batch, group, &error);
                    continue;
                }
            };
            // If the index is damaged, it may point to blocks that aren't heap pages at all.
            let special = PageHeader::parse(&page).special;
            if !is_new(&page) && usize::from(special) != BLOCK_SIZE {
                drop(page);
                let location = self.table.heap.location(block);
                let error = Arc::new(HeapError::NotATable { location, special });
                self.fail_all(batch, group, &error);
                continue;
            }
            let mut lookup = self.transactions.lookup(&mut self.statuses);
            for &(tid, number) in self.wanted.get(group).unwrap_or_default() {
                if let Err(problem) = put(&page, tid, number, &mut lookup, batch) {
                    batch.fail(number, problem);
                }
            }
        }
        Ok(())
    }

    /// Marks all values that have a chunk on an unreadable page as not available.
    fn fail_all(&self, batch: &mut ToastBatch, group: Range<usize>, error: &Arc<HeapError>) {
        for &(_, number) in self.wanted.get(group).unwrap_or_default() {
            batch.fail(number, ToastProblem::Page(Arc::clone(error)));
        }
    }
}

/// If the row at `tid` is a chunk of this value, copies its bytes into the batch's buffer. Any
/// other row is silently skipped, because an index entry may still exist after the row it points to
/// has been removed.
fn put(
    page: &PageBytes,
    tid: Tid,
    number: usize,
    lookup: &mut Lookup<'_>,
    batch: &mut ToastBatch,
) -> Result<(), ToastProblem> {
    let Some(pointer) = batch.pointer(number) else { return Ok(()) };
    // The index may still have entries for rows that were removed.
    let line = line_pointer(page, tid.item).filter(|line| line.flags == LinePointerFlags::Normal);
    let within = tid.item <= PageHeader::parse(page).line_pointer_count();
    let Some(line) = line.filter(|_| within && !is_new(page)) else { return Ok(()) };
    let tuple = HeapTuple::parse(tid.item, line.item(page).unwrap_or_default());
    let tuple = tuple.map_err(|_| ToastProblem::Row { tid })?;
    // As in PostgreSQL's `HeapTupleSatisfiesToast`, a chunk of a visible row is visible, whatever
    // the commit log says. A server doesn't even set hint bits on chunks. We only need the commit
    // log to choose between two versions of a chunk. As in a heap scan, trust the page's
    // all-visible flag.
    let (state, unknown) = match is_all_visible(page) {
        true => (RowState::Live, None),
        false => match row_state(&tuple, lookup) {
            Ok(state) => (state, None),
            Err(error) if error.file_fault().is_some() => (RowState::InDoubt, Some(error)),
            Err(error) => return Err(ToastProblem::Transaction { tid, error }),
        },
    };
    if state == RowState::Aborted {
        return Ok(());
    }
    let (value_id, chunk, bytes) = chunk_columns(&tuple, tid)?;
    // The chunk was removed, and its line pointer was reused for a chunk of another value.
    if value_id != pointer.value_id {
        return Ok(());
    }
    let chunks = batch.chunks(number);
    let sound = u32::try_from(chunk).ok().filter(|&chunk| chunk < chunks);
    let chunk = sound.ok_or(ToastProblem::Number { chunk, tid, chunks })?;
    let done = batch.put(number, chunk, &Chunk { tid, state, bytes });
    done.map_err(|problem| match (problem, unknown) {
        // There are two versions, and only the lost file says which one is right.
        (ToastProblem::Twice { .. }, Some(error)) => ToastProblem::Transaction { tid, error },
        (problem, _) => problem,
    })
}
