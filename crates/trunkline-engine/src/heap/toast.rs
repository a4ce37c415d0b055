//! Values that were too long for their rows: their chunks, found by index, fetched many at a time.
//!
//! ```text
//!   pointers ──▶ index: where the chunks of each value are     many leaves in flight, each once
//!            ──▶ sorted by block ──▶ read stream                many pages in flight, each once
//!            ──▶ each chunk to its place ──▶ decompress ──▶ ToastBatch::value
//! ```
//! A value of 10,000 bytes has six chunks of 1996 bytes or less, rows of the TOAST table with the
//! value's number, their own number, and the bytes. A batch holds the values of a page of rows, say:
//! the stream then knows all their blocks in advance.
//!
//! A chunk counts if its insertion was not rolled back. Servers ask for no more either: a row that is
//! visible holds only pointers to chunks that are there, and a row that is not, whose chunks were
//! deleted with it, can be had for as long as they are not vacuumed away.
//!
//! Every size is checked: those of the pointer against each other, each chunk's number and length,
//! what the compressed bytes say and what they make. What is wrong is an error of the value concerned;
//! the others of its batch are had all the same.

use std::ops::Range;

use trunkline_aio::sync::Arc;
use trunkline_format::deform::{Attribute, Deformer};
use trunkline_format::heap_tuple::is_all_visible;
use trunkline_format::page::{LinePointerFlags, PageHeader, is_new, line_pointer};
use trunkline_format::transam::{RowState, row_state};
use trunkline_format::varlena::Varlena;
use trunkline_format::{Align, BLOCK_SIZE, BlockNo, HeapTuple, Oid, PageBytes, Tid};

use super::error::HeapError;
use super::toast_batch::{Chunk, ToastBatch};
use super::toast_error::ToastProblem;
use crate::btree::{BtreeError, Index};
use crate::pool::{Backend, ReadError};
use crate::read_stream::{BlockList, ReadStream, StreamOptions, StreamStats};
use crate::storage::Relation;
use crate::transactions::{Lookup, Memo, TransactionError, Transactions};

/// Bytes of a chunk that is not the last: four of them fill a page of 8 KiB. Servers refuse a cluster
/// with any other number in its control file.
pub const CHUNK_BYTES: u32 = 1996;

/// Row versions that the index may lead to, beyond twice the chunks of a value, before it counts as
/// damaged: what rolled-back transactions leave behind under a number that is used again.
const VERSIONS_SPARE: usize = 1000;

/// A TOAST table.
#[derive(Debug, Clone)]
pub struct ToastTable {
    /// Its OID, as pointers name it.
    pub oid: Oid,
    /// Its rows.
    pub heap: Relation,
    /// Its index, by value and chunk ([`Index::of_toast`]).
    pub index: Index,
}

/// Fetches values from one TOAST table.
#[derive(Debug)]
pub struct ToastReader {
    table: ToastTable,
    transactions: Arc<Transactions>,
    memo: Memo,
    stream: ReadStream<BlockList>,
    /// Where the chunks of the batch are: the place, and the value's number.
    wanted: Vec<(Tid, usize)>,
    /// How the index is read.
    options: StreamOptions,
}

/// A value that is looked for in the index.
struct Searched {
    value_id: u32,
    /// Its number within the batch.
    number: usize,
    chunks: u32,
    /// Row versions that the index leads to.
    rows: usize,
}

impl Searched {
    /// More row versions than this are damage.
    fn most(&self) -> usize {
        (self.chunks as usize).saturating_mul(2).saturating_add(VERSIONS_SPARE)
    }
}

impl ToastReader {
    /// For the values of one table, by the means of `backend`, which every call is to be given.
    pub fn new(
        backend: &Backend,
        table: ToastTable,
        transactions: &Arc<Transactions>,
        options: StreamOptions,
    ) -> Self {
        // Pages are matched with what is wanted of them in the order of the list.
        let options = StreamOptions { unordered: false, ..options };
        let stream = ReadStream::new(backend, &table.heap, BlockList::new(Vec::new()), options);
        Self {
            table,
            transactions: Arc::clone(transactions),
            memo: Memo::default(),
            stream,
            wanted: Vec::new(),
            options,
        }
    }

    /// The TOAST table.
    pub fn table(&self) -> &ToastTable {
        &self.table
    }

    /// What its stream has done so far.
    pub fn stats(&self) -> StreamStats {
        self.stream.stats()
    }

    /// Fetches every value of the batch that was not fetched yet. What cannot be had is an error of
    /// that value, see [`ToastBatch::value`].
    ///
    /// # Errors
    /// [`ReadError::Cancelled`] if the session was cancelled; then some values were not fetched.
    /// # Panics
    /// If the backend is not the one that the reader was made with.
    pub fn fetch(
        &mut self,
        backend: &mut Backend,
        batch: &mut ToastBatch,
    ) -> Result<(), ReadError> {
        self.find(backend, batch)?;
        // By block, so that each page is had once, and by line pointer.
        self.wanted.sort_unstable();
        let read = self.read(backend, batch);
        // Nothing of it is to stay pinned.
        self.stream.reset(BlockList::new(Vec::new()));
        read?;
        (0..batch.len()).for_each(|number| batch.finish(number));
        Ok(())
    }

    /// Finds the chunks of all values by the index.
    fn find(&mut self, backend: &mut Backend, batch: &mut ToastBatch) -> Result<(), ReadError> {
        self.wanted.clear();
        let mut searched: Vec<Searched> = Vec::new();
        for number in 0..batch.len() {
            let Some(pointer) = batch.pointer(number).filter(|_| batch.is_open(number)) else {
                continue;
            };
            if pointer.toast_relation != self.table.oid {
                batch.fail(number, ToastProblem::OtherTable { expected: self.table.oid });
                continue;
            }
            let chunks = pointer.stored_size.div_ceil(CHUNK_BYTES);
            searched.push(Searched { value_id: pointer.value_id, number, chunks, rows: 0 });
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
            value.rows <= value.most()
        };
        self.table.index.find_many(backend, self.options, &keys, &mut found)?;
        for value in searched {
            let Searched { number, chunks, rows, .. } = value;
            if rows > value.most() {
                batch.fail(number, ToastProblem::TooMany { found: rows, chunks });
            } else if rows < chunks as usize {
                // Which one is missing only the rows themselves would tell.
                batch.fail(number, ToastProblem::Missing { chunk: rows as u32, chunks });
            } else if batch.is_open(number) {
                batch.make_room(number, chunks);
            }
        }
        self.wanted.retain(|&(_, number)| batch.is_open(number));
        Ok(())
    }

    /// Reads the pages with chunks, and puts these to their places.
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
                Ok(Some(found)) => backend.read_lock(found.pin)?,
                Ok(None) => break,
                Err(ReadError::Cancelled) => return Err(ReadError::Cancelled),
                Err(error) => {
                    let error = Arc::new(HeapError::Read(error));
                    self.fail_all(batch, group, &error);
                    continue;
                }
            };
            let special = PageHeader::parse(&page).special;
            if !is_new(&page) && usize::from(special) != BLOCK_SIZE {
                drop(page);
                let path = self.table.heap.path(trunkline_format::segment::segment_of(block).0);
                let error = Arc::new(HeapError::NotATable { path, block, special });
                self.fail_all(batch, group, &error);
                continue;
            }
            let mut lookup = self.transactions.lookup(backend.session(), &mut self.memo);
            for &(tid, number) in self.wanted.get(group).unwrap_or_default() {
                let put = put(&page, tid, number, &mut lookup, batch);
                match put {
                    Ok(()) => {}
                    Err(ToastProblem::Transaction {
                        error: TransactionError::Cancelled, ..
                    }) => {
                        return Err(ReadError::Cancelled);
                    }
                    Err(problem) => batch.fail(number, problem),
                }
            }
        }
        Ok(())
    }

    fn fail_all(&self, batch: &mut ToastBatch, group: Range<usize>, error: &Arc<HeapError>) {
        for &(_, number) in self.wanted.get(group).unwrap_or_default() {
            batch.fail(number, ToastProblem::Page(Arc::clone(error)));
        }
    }
}

/// Puts the chunk at `tid`, if it is one of the value's, to its place.
fn put(
    page: &PageBytes,
    tid: Tid,
    number: usize,
    lookup: &mut Lookup<'_>,
    batch: &mut ToastBatch,
) -> Result<(), ToastProblem> {
    let Some(pointer) = batch.pointer(number) else { return Ok(()) };
    // What was vacuumed away may still be in the index.
    let line = line_pointer(page, tid.item).filter(|line| line.flags == LinePointerFlags::Normal);
    let within = tid.item <= PageHeader::parse(page).line_pointer_count();
    let Some(line) = line.filter(|_| within && !is_new(page)) else { return Ok(()) };
    let tuple = HeapTuple::parse(tid.item, line.item(page).unwrap_or_default());
    let tuple = tuple.map_err(|_| ToastProblem::Row { tid })?;
    let state = match is_all_visible(page) {
        true => RowState::Live,
        false => {
            let judged = row_state(&tuple, lookup);
            judged.map_err(|error| ToastProblem::Transaction { tid, error })?
        }
    };
    if state == RowState::Aborted {
        return Ok(());
    }
    let (value_id, chunk, bytes) = columns(&tuple, tid)?;
    // The place was used again for another value.
    if value_id != pointer.value_id {
        return Ok(());
    }
    let chunks = batch.chunks(number);
    let sound = u32::try_from(chunk).ok().filter(|&chunk| chunk < chunks);
    let chunk = sound.ok_or(ToastProblem::Number { chunk, tid, chunks })?;
    batch.put(number, chunk, &Chunk { tid, state, bytes })
}

/// The columns of a chunk's row: the value's number, the chunk's, and its bytes.
fn columns<'p>(tuple: &HeapTuple<'p>, tid: Tid) -> Result<(u32, i32, &'p [u8]), ToastProblem> {
    const INT4: Attribute = Attribute { len: 4, align: Align::Int };
    const BYTEA: Attribute = Attribute { len: -1, align: Align::Int };
    let mut walk = Deformer::of(tuple);
    let mut next = |attribute| {
        let column = walk.next(attribute);
        let column = column.map_err(|error| ToastProblem::Column { tid, error: Some(error) })?;
        column.value().ok_or(ToastProblem::Column { tid, error: None })
    };
    let (value_id, chunk, bytes) = (next(INT4)?, next(INT4)?, next(BYTEA)?);
    let word = |bytes: &[u8]| bytes.first_chunk().copied().unwrap_or_default();
    match Varlena::parse(bytes) {
        Ok(Varlena::Plain(bytes)) => {
            Ok((u32::from_le_bytes(word(value_id)), i32::from_le_bytes(word(chunk)), bytes))
        }
        _ => Err(ToastProblem::Stored { tid }),
    }
}
