//! Values to be fetched together, and then their bytes.
//!
//! ```text
//!   stored   │ value 0: chunk 0, 1, 2 │ value 1: chunk 0 │ …    each chunk goes to its place,
//!   chunks   │ have  none  have       │ have             │      in whatever order they come
//!   raw      │ value 1, decompressed  │ …
//! ```
//! Memory is taken for a value only once the index has led to as many rows as it has chunks, so a
//! damaged pointer costs none.

use std::ops::Range;

use trunkline_format::Tid;
use trunkline_format::transam::RowState;
use trunkline_format::varlena::{Compressed, ToastPointer};

use super::toast::CHUNK_BYTES;
use super::toast_error::{ToastError, ToastProblem};

/// A chunk of a value, of which no version was found yet.
const NONE: u8 = 0;

/// See the module. Serves one batch after the other without giving its memory back.
#[derive(Debug, Default)]
pub struct ToastBatch {
    values: Vec<Value>,
    bytes: u64,
    stored: Vec<u8>,
    /// Of each chunk, how good the best version is that was found.
    chunks: Vec<u8>,
    raw: Vec<u8>,
}

#[derive(Debug)]
struct Value {
    pointer: ToastPointer,
    /// Its place in `stored`.
    stored: Range<usize>,
    /// Where its chunks begin in `chunks`.
    first_chunk: usize,
    chunks: u32,
    end: End,
}

#[derive(Debug)]
enum End {
    /// Not fetched, or on its way.
    Open,
    /// The value is in `stored`.
    Stored,
    /// The value is in `raw`, there.
    Raw(Range<usize>),
    Failed(Box<ToastError>),
}

impl ToastBatch {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value to be fetched; its number within the batch.
    pub fn push(&mut self, pointer: ToastPointer) -> usize {
        self.bytes += u64::from(pointer.stored_size);
        if pointer.method.is_some() {
            self.bytes += u64::from(pointer.raw_size);
        }
        let (stored, end) = (0..0, End::Open);
        self.values.push(Value { pointer, stored, first_chunk: 0, chunks: 0, end });
        self.values.len() - 1
    }

    /// Values in it.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether no value is in it.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Bytes of memory that its values take, if their pointers tell the truth. Whoever fills a batch
    /// fetches it when this is a few megabytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes all values out.
    pub fn clear(&mut self) {
        self.values.clear();
        self.stored.clear();
        self.chunks.clear();
        self.raw.clear();
        self.bytes = 0;
    }

    /// The bytes of a value that was fetched, without header, decompressed; `None` if there is no such
    /// number, or nothing was fetched since it was pushed.
    ///
    /// # Errors
    /// The value could not be had.
    pub fn value(&self, number: usize) -> Option<Result<&[u8], &ToastError>> {
        let value = self.values.get(number)?;
        match &value.end {
            End::Open => None,
            End::Stored => self.stored.get(value.stored.clone()).map(Ok),
            End::Raw(range) => self.raw.get(range.clone()).map(Ok),
            End::Failed(error) => Some(Err(error)),
        }
    }

    /// The pointer of a value.
    pub(super) fn pointer(&self, number: usize) -> Option<ToastPointer> {
        self.values.get(number).map(|value| value.pointer)
    }

    /// Whether the value is still to be had.
    pub(super) fn is_open(&self, number: usize) -> bool {
        self.values.get(number).is_some_and(|value| matches!(value.end, End::Open))
    }

    /// Makes room for a value of so many chunks, which the index has led to.
    pub(super) fn make_room(&mut self, number: usize, chunks: u32) {
        let Some(value) = self.values.get_mut(number) else { return };
        let start = self.stored.len();
        let end = start + value.pointer.stored_size as usize;
        self.stored.resize(end, 0);
        value.stored = start..end;
        value.first_chunk = self.chunks.len();
        value.chunks = chunks;
        self.chunks.resize(value.first_chunk + chunks as usize, NONE);
    }

    /// Chunks of the value, after [`Self::make_room`].
    pub(super) fn chunks(&self, number: usize) -> u32 {
        self.values.get(number).map_or(0, |value| value.chunks)
    }

    /// Puts a chunk, whose number is sound, to its place.
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
        // A number may have been used before: the version that is the most alive counts.
        let rank = match found.state {
            RowState::Live => 3,
            RowState::Dead => 2,
            RowState::InDoubt => 1,
            RowState::Aborted => return Ok(()),
        };
        let Some(best) = self.chunks.get_mut(value.first_chunk + chunk as usize) else {
            return Ok(());
        };
        if *best == rank {
            return Err(ToastProblem::Twice { chunk, tid });
        }
        if *best < rank {
            *best = rank;
            place.copy_from_slice(bytes);
        }
        Ok(())
    }

    /// The value cannot be had. What was found first stays.
    pub(super) fn fail(&mut self, number: usize, problem: ToastProblem) {
        if let Some(value) = self.values.get_mut(number)
            && !matches!(value.end, End::Failed(_))
        {
            let ToastPointer { toast_relation: relation, value_id, .. } = value.pointer;
            value.end = End::Failed(Box::new(ToastError { relation, value_id, problem }));
        }
    }

    /// All chunks that were to be had are there.
    pub(super) fn finish(&mut self, number: usize) {
        let Some(value) = self.values.get(number) else { return };
        if !matches!(value.end, End::Open) {
            return;
        }
        let (first, chunks) = (value.first_chunk, value.chunks);
        let found = self.chunks.get(first..first + chunks as usize).unwrap_or_default();
        let end = match found.iter().position(|&rank| rank == NONE) {
            Some(chunk) => Err(ToastProblem::Missing { chunk: chunk as u32, chunks }),
            None => self.decompress(value.pointer, value.stored.clone()),
        };
        match (end, self.values.get_mut(number)) {
            (Ok(end), Some(value)) => value.end = end,
            (Err(problem), _) => self.fail(number, problem),
            (Ok(_), None) => {}
        }
    }

    fn decompress(
        &mut self,
        pointer: ToastPointer,
        stored: Range<usize>,
    ) -> Result<End, ToastProblem> {
        if pointer.method.is_none() {
            return Ok(End::Stored);
        }
        let stored = self.stored.get(stored).unwrap_or_default();
        let value = Compressed::parse(stored).map_err(ToastProblem::Value)?;
        if value.raw_size != pointer.raw_size {
            let (found, expected) = (value.raw_size, pointer.raw_size);
            return Err(ToastProblem::Mismatch { found, expected });
        }
        let start = self.raw.len();
        value.decompress(&mut self.raw).map_err(|error| ToastProblem::Value(error.into()))?;
        Ok(End::Raw(start..self.raw.len()))
    }
}

/// A chunk that was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk<'p> {
    pub(super) tid: Tid,
    pub(super) state: RowState,
    pub(super) bytes: &'p [u8],
}
