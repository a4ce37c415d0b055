//! TOAST values to fetch together, and their bytes.
//!
//! ```text
//!   stored   │ value 0: chunk 0, 1, 2   │ value 1: chunk 0 │ …   chunks are copied to
//!   chunks   │ found, missing, found    │ found            │     their places in any order
//!   raw      │ value 1, decompressed │ …
//! ```
//!
//! Chunks arrive in the block order of the TOAST table rather than in the order of the values.
//! Every chunk except a value's last one has the same fixed length, so its position in `stored`
//! follows from its number.
//!
//! We allocate a value's memory only once the index has returned at least as many rows as the value
//! has chunks. A damaged TOAST pointer that claims a huge size therefore can't make us allocate
//! that much.

use std::ops::Range;

use trunkline_format::Tid;
use trunkline_format::transam::RowState;
use trunkline_format::varlena::{Compressed, ToastPointer};

use super::toast_error::{ToastError, ToastProblem};
use super::toast_table::CHUNK_BYTES;

/// The rank of a chunk that we haven't found any version of yet.
const NONE: u8 = 0;

/// A batch of values to fetch together. It keeps its memory when it is cleared.
#[derive(Debug, Default)]
pub struct ToastBatch {
    values: Vec<Value>,
    bytes: u64,
    /// The stored form of all values, one after the other: the joined chunks.
    stored: Vec<u8>,
    /// For each chunk the rank of the best version found, see [`rank`].
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

    /// Bytes of memory that the values need according to their TOAST pointers. Callers should fetch
    /// a batch when this reaches a few megabytes. The pointers may be damaged, so this is only an
    /// estimate.
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

    /// The bytes of a fetched value, decompressed and without its header. Returns `None` if the
    /// batch has no value with this number, or if the value hasn't been fetched yet.
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

    /// Allocates the memory of a value, after the index has returned at least `chunks` rows for it.
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

    /// Copies a chunk's bytes into the buffer. The chunk number must be valid. If there are several
    /// versions of a chunk, the version with the highest rank wins; two versions with the same rank
    /// are damage.
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
        // Two versions of the same rank can't both be right, and we can't know which one is.
        if *best == rank {
            return Err(ToastProblem::Twice { chunk, tid });
        }
        // A better version replaces a worse one, no matter in which order they arrive.
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

    /// Completes a value: checks that every chunk was found, and decompresses the value if
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
            // The value was still open at the start of this function, and no other code changes it
            // meanwhile.
            (Ok(end), Some(value)) => value.state = end,
            (Err(problem), _) => self.fail(number, problem),
            (Ok(_), None) => {}
        }
    }

    /// Decompresses a value if its TOAST pointer says that it is compressed. The size in the
    /// compressed value and the size in the pointer must agree.
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

/// The precedence of a chunk's versions. Value ids can be reused, so a value can have chunks of
/// several generations: live versions take precedence over dead versions, and dead versions over
/// those in doubt. Returns `None` for a version that doesn't count.
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
