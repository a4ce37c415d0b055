//! Builds and writes the pages of pieces. Each thread of a recovery has a page writer.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use trunkline_aio::{Aio, File};
use trunkline_format::segment::segment_of;
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes};

use super::error::RecoveryError;
use super::plan::{Piece, Plan, SegmentWork, location_of};
use crate::log_writer::{Lane, LogWriterError};
use crate::page_reader::PageReader;
use crate::replay::{PageRedoError, RECORDS_MAX, Replay};
use crate::storage::WritableFiles;

/// The most pages of one write: those that a lane writes at once.
const PAGES: usize = 32;

/// What the threads of a recovery share.
pub(super) struct Work {
    pub(super) replay: Replay,
    pub(super) plan: Plan,
    pub(super) files: Arc<dyn WritableFiles>,
    /// The number of pieces that threads have taken.
    taken: AtomicUsize,
    /// The number of pieces that are written.
    pub(super) done: AtomicUsize,
    pub(super) pages: AtomicU64,
    has_failed: AtomicBool,
    /// The first error.
    failure: Mutex<Option<RecoveryError>>,
}

impl Work {
    pub(super) fn new(replay: Replay, plan: Plan, files: Arc<dyn WritableFiles>) -> Self {
        Self {
            replay,
            plan,
            files,
            taken: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            pages: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            failure: Mutex::default(),
        }
    }

    /// The first error of a thread.
    pub(super) fn take_failure(&self) -> Option<RecoveryError> {
        self.failure.lock().take()
    }

    /// Stops all threads.
    pub(super) fn fail(&self, error: RecoveryError) {
        self.failure.lock().get_or_insert(error);
        self.has_failed.store(true, Ordering::SeqCst);
    }

    /// The next piece that no thread has. `None` if there is none, or a thread has failed.
    fn take(&self) -> Option<&Piece> {
        if self.has_failed.load(Ordering::SeqCst) {
            return None;
        }
        self.plan.pieces.get(self.taken.fetch_add(1, Ordering::SeqCst))
    }
}

/// What one thread needs.
pub(super) struct PageWriter {
    lane: Lane,
    bases: PageReader,
    /// The pages of one write.
    run: Vec<u8>,
}

impl PageWriter {
    /// A new writer.
    ///
    /// # Errors
    /// [`LogWriterError::Resources`].
    pub(super) fn new(aio: &Aio) -> Result<Self, LogWriterError> {
        let run = Vec::with_capacity(PAGES * BLOCK_SIZE);
        Ok(Self { lane: Lane::new(aio)?, bases: PageReader::new(aio, PAGES)?, run })
    }

    /// Writes pieces until there are none. `after_each` is called after each piece.
    pub(super) fn write_all(&mut self, work: &Work, mut after_each: impl FnMut()) {
        while let Some(piece) = work.take() {
            match self.write_piece(work, piece) {
                Ok(()) => work.done.fetch_add(1, Ordering::SeqCst),
                Err(error) => return work.fail(error),
            };
            after_each();
        }
    }

    fn write_piece(&mut self, work: &Work, piece: &Piece) -> Result<(), RecoveryError> {
        let Some(segment) = work.plan.segments.get(piece.segment) else { return Ok(()) };
        let file = segment.open(&*work.files)?;
        let changed = |at| {
            work.replay.next_changed(&segment.key, at).filter(|block| *block < piece.blocks.end)
        };
        let (mut blocks, mut records) = (Vec::new(), 0_u32);
        let mut at = piece.blocks.start;
        while let Some(block) = changed(at) {
            blocks.push(block);
            records = records.saturating_add(work.replay.record_count(&segment.key, block));
            if records >= RECORDS_MAX {
                self.write_together(work, segment, &file, &blocks)?;
                (blocks, records) = (Vec::new(), 0);
            }
            at = block.saturating_add(1);
        }
        self.write_together(work, segment, &file, &blocks)?;
        drop(file);
        if let Some(file) = segment.end_piece() {
            let synced = self.lane.sync(&file, true);
            synced.map_err(|source| RecoveryError::file("fsync", &segment.path, source))?;
        }
        Ok(())
    }

    /// Builds and writes pages of a piece.
    fn write_together(
        &mut self,
        work: &Work,
        segment: &SegmentWork,
        file: &File,
        blocks: &[BlockNo],
    ) -> Result<(), RecoveryError> {
        let pages = self.build(work, segment, file, blocks)?;
        for (blocks, pages) in runs(blocks, &pages) {
            self.run.clear();
            pages.iter().for_each(|page| self.run.extend_from_slice(&page[..]));
            let first = blocks.first().copied().unwrap_or_default();
            let written = self.lane.write_bytes(file, segment_of(first).1, &self.run);
            written.map_err(|source| RecoveryError::file("write to", &segment.path, source))?;
        }
        work.pages.fetch_add(blocks.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Builds pages, whose bases are read many at a time.
    fn build(
        &mut self,
        work: &Work,
        segment: &SegmentWork,
        file: &File,
        blocks: &[BlockNo],
    ) -> Result<Vec<Box<PageBytes>>, RecoveryError> {
        let Work { replay, .. } = work;
        let key = &segment.key;
        let requires_base = |block: &BlockNo| replay.requires_base(key, *block);
        let mut to_read = blocks.iter().copied().filter(requires_base);
        let mut bases: VecDeque<(BlockNo, Option<Box<PageBytes>>)> = VecDeque::new();
        let built = replay.build_all::<BuildError>(key, blocks.iter().copied(), |block| {
            if bases.is_empty() {
                let blocks: Vec<BlockNo> = to_read.by_ref().take(PAGES).collect();
                let offsets: Vec<u64> = blocks.iter().map(|block| segment_of(*block).1).collect();
                self.bases.read(file, &offsets).map_err(BuildError::Read)?;
                bases.extend((0..).zip(blocks).map(|(at, block)| (block, self.bases.page(at))));
            }
            // If a page before it has failed, its base was not taken.
            while let Some((of, base)) = bases.pop_front() {
                if of == block {
                    return Ok(base);
                }
            }
            Err(BuildError::Read(io::Error::other("pages before it could not be read")))
        });
        let located = blocks.iter().zip(built).map(|(block, page)| {
            page.map_err(|error| match error {
                BuildError::Read(source) => RecoveryError::file("read", &segment.path, source),
                BuildError::Redo(error) => {
                    let source = Box::new(error);
                    RecoveryError::Page { location: location_of(segment, *block), source }
                }
            })
        });
        located.collect()
    }
}

/// Why a page was not built.
enum BuildError {
    Read(io::Error),
    Redo(PageRedoError),
}

impl From<PageRedoError> for BuildError {
    fn from(error: PageRedoError) -> Self {
        Self::Redo(error)
    }
}

/// Neighbouring pages that can be written at once.
fn runs<'b, P>(
    blocks: &'b [BlockNo],
    pages: &'b [P],
) -> impl Iterator<Item = (&'b [BlockNo], &'b [P])> {
    let mut at = 0;
    blocks
        .chunk_by(|block, next| block.checked_add(1) == Some(*next))
        .flat_map(|run| run.chunks(PAGES))
        .map(move |run| {
            let first = at;
            at += run.len();
            (run, pages.get(first..at).unwrap_or_default())
        })
}
