//! TOAST values to fetch together, and their bytes.
//!
//! ```text
//!   stored   │ value 0: chunk 0, 1, 2   │ value 1: chunk 0 │ …   chunks are copied to
//!   chunks   │ found, missing, found    │ found            │     their places in any order
//!   raw      │ value 1, decompressed │ …
//! ```
//!
//! Chunks arrive in the order of their blocks in the TOAST table, not in the order of the values.
//! All chunks of a value have the same length except the last one, so we can compute a chunk's
//! position in `stored` from its chunk number.
//!
//! We don't allocate memory for a value until the index has returned at least as many rows as the
//! value has chunks. Otherwise, a damaged TOAST pointer that claims a huge size could make us
//! allocate that much.

use std::ops::Range;

use trunkline_format::Tid;
use trunkline_format::transam::RowState;
use trunkline_format::varlena::{Compressed, ToastPointer};

use super::toast_error::{ToastError, ToastProblem};
use super::toast_table::CHUNK_BYTES;

/// The rank of a chunk if we haven't found any version of it yet.
const NONE: u8 = 0;

/// A batch of values to fetch together. When a batch is cleared, its memory is kept for the next
/// values.
#[derive(Debug, Default)]
pub struct ToastBatch {
    values: Vec<Value>,
    bytes: u64,
    /// The values as they are stored, that is, each value's chunks joined together. The values
    /// follow one another.
    stored: Vec<u8>,
    /// For each chunk, the rank of the best version we've found so far; see [`rank`].
    chunks: Vec<u8>,
    /// The decompressed values, one after the other.
    raw: Vec<u8>,
}

/// One value of the batch.
#[derive(Debug)]
struct Value {
    pointer: ToastPointer,
    /// The range of its bytes in `stored`.
    stored: Range<usize>,
    /// The index of the first chunk in `chunks`.
    first_chunk: usize,
    chunks: u32,
    state: FetchState,
}

/// The state of a value.
#[derive(Debug)]
enum FetchState {
    /// Not fetched yet.
    Open,
    /// The value is in `stored`.
    Stored,
    /// The value is in this range of `raw`.
    Raw(Range<usize>),
    Failed(Box<ToastError>),
}

impl ToastBatch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value to fetch, and returns its number within the batch.
    pub fn push(&mut self, pointer: ToastPointer) -> usize {
        self.bytes += u64::from(pointer.stored_size);
        if pointer.method.is_some() {
            self.bytes += u64::from(pointer.raw_size);
        }
        let (stored, state) = (0..0, FetchState::Open);
        self.values.push(Value { pointer, stored, first_chunk: 0, chunks: 0, state });
        self.values.len() - 1
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether the batch has no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// How much memory the values need, in bytes, according to their TOAST pointers. Callers should
    /// fetch the batch once this reaches a few megabytes. Note that this is only an estimate,
    /// because a pointer may be damaged.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.values.clear();
        self.stored.clear();
        self.chunks.clear();
        self.raw.clear();
        self.bytes = 0;
    }

    /// Returns the bytes of a fetched value, decompressed and without the header. Returns `None` if
    /// the batch has no value with this number, or if the value hasn't been fetched yet.
    ///
    /// # Errors
    /// The value is not available.
    pub fn value(&self, number: usize) -> Option<Result<&[u8], &ToastError>> {
        let value = self.values.get(number)?;
        match &value.state {
            FetchState::Open => None,
            FetchState::Stored => self.stored.get(value.stored.clone()).map(Ok),
            FetchState::Raw(range) => self.raw.get(range.clone()).map(Ok),
            FetchState::Failed(error) => Some(Err(error)),
        }
    }

    /// The pointer of a value.
    pub(super) fn pointer(&self, number: usize) -> Option<ToastPointer> {
        self.values.get(number).map(|value| value.pointer)
    }

    /// Whether the value has not been fetched yet and has not failed.
    pub(super) fn is_open(&self, number: usize) -> bool {
        self.values.get(number).is_some_and(|value| matches!(value.state, FetchState::Open))
    }

    /// Allocates memory for a value. We do this only after the index has returned at least `chunks`
    /// rows for it.
    pub(super) fn allocate(&mut self, number: usize, chunks: u32) {
        let Some(value) = self.values.get_mut(number) else { return };
        let start = self.stored.len();
        let end = start + value.pointer.stored_size as usize;
        self.stored.resize(end, 0);
        value.stored = start..end;
        value.first_chunk = self.chunks.len();
        value.chunks = chunks;
        self.chunks.resize(value.first_chunk + chunks as usize, NONE);
    }

    /// The number of chunks of the value, after [`Self::allocate`].
    pub(super) fn chunks(&self, number: usize) -> u32 {
        self.values.get(number).map_or(0, |value| value.chunks)
    }

    /// Copies the bytes of a chunk into the buffer. The caller must have checked the chunk number.
    /// If there are several versions of a chunk, we use the one with the highest rank. If two of
    /// them have the same rank, the table is damaged.
    pub(super) fn put(
        &mut self,
        number: usize,
        chunk: u32,
        found: &Chunk<'_>,
    ) -> Result<(), ToastProblem> {
        let Some(value) = self.values.get_mut(number) else { return Ok(()) };
        let start = value.stored.start + chunk as usize * CHUNK_BYTES as usize;
        let end = (start + CHUNK_BYTES as usize).min(value.stored.end);
        let (tid, bytes) = (found.tid, found.bytes);
        let place = self.stored.get_mut(start..end).unwrap_or_default();
        if place.len() != bytes.len() {
            let (found, expected) = (bytes.len(), place.len());
            return Err(ToastProblem::Size { chunk, tid, found, expected });
        }
        let Some(rank) = rank(found.state) else { return Ok(()) };
        let Some(best) = self.chunks.get_mut(value.first_chunk + chunk as usize) else {
            return Ok(());
        };
        // If two versions have the same rank, only one of them can be right, and we have no way to
        // tell which.
        if *best == rank {
            return Err(ToastProblem::Twice { chunk, tid });
        }
        // Keep the version with the higher rank, regardless of the order in which they arrive.
        if *best < rank {
            *best = rank;
            place.copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Marks a value as not available. If there are several problems, we keep the first one.
    pub(super) fn fail(&mut self, number: usize, problem: ToastProblem) {
        if let Some(value) = self.values.get_mut(number)
            && !matches!(value.state, FetchState::Failed(_))
        {
            let ToastPointer { toast_relation: relation, value_id, .. } = value.pointer;
            value.state = FetchState::Failed(Box::new(ToastError { relation, value_id, problem }));
        }
    }

    /// Finishes a value: checks that we've found all of its chunks, and decompresses the value if
    /// necessary.
    pub(super) fn finish(&mut self, number: usize) {
        let Some(value) = self.values.get(number) else { return };
        if !matches!(value.state, FetchState::Open) {
            return;
        }
        let (first, chunks) = (value.first_chunk, value.chunks);
        let found = self.chunks.get(first..first + chunks as usize).unwrap_or_default();
        let end = match found.iter().position(|&rank| rank == NONE) {
            Some(chunk) => Err(ToastProblem::Missing { chunk: chunk as u32, chunks }),
            None => self.decompress(value.pointer, value.stored.clone()),
        };
        match (end, self.values.get_mut(number)) {
            // The value was still open when we entered this function, and nothing else can have
            // changed it since then.
            (Ok(end), Some(value)) => value.state = end,
            (Err(problem), _) => self.fail(number, problem),
            (Ok(_), None) => {}
        }
    }

    /// Decompresses a value if its TOAST pointer says that it is compressed. It's an error if the
    /// size in the pointer doesn't match the size in the compressed data.
    fn decompress(
        &mut self,
        pointer: ToastPointer,
        stored: Range<usize>,
    ) -> Result<FetchState, ToastProblem> {
        if pointer.method.is_none() {
            return Ok(FetchState::Stored);
        }
        let stored = self.stored.get(stored).unwrap_or_default();
        let value = Compressed::parse(stored).map_err(ToastProblem::Value)?;
        if value.raw_size != pointer.raw_size {
            let (found, expected) = (value.raw_size, pointer.raw_size);
            return Err(ToastProblem::Mismatch { found, expected });
        }
        let start = self.raw.len();
        value.decompress(&mut self.raw).map_err(|error| ToastProblem::Value(error.into()))?;
        Ok(FetchState::Raw(start..self.raw.len()))
    }
}

/// Determines which version of a chunk to prefer. A value id can be reused, so we may find chunks
/// that belong to an earlier value with the same id. Live versions therefore take precedence over
/// dead ones, and dead versions over those that are in doubt. Returns `None` for versions that must
/// be ignored.
fn rank(state: RowState) -> Option<u8> {
    match state {
        RowState::Live => Some(3),
        RowState::Dead => Some(2),
        RowState::InDoubt => Some(1),
        RowState::Aborted => None,
    }
}

/// A row of the TOAST table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk<'p> {
    pub(super) tid: Tid,
    pub(super) state: RowState,
    pub(super) bytes: &'p [u8],
}
