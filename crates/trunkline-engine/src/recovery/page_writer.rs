//! Builds and writes the pages of pieces. Each thread of a recovery has a page writer.

use std::sync::Arc;

use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use trunkline_aio::{Aio, File};
use trunkline_format::segment::segment_of;
use trunkline_format::{BLOCK_SIZE, BlockNo};

use super::error::RecoveryError;
use super::plan::{Piece, Plan, SegmentWork, location_of};
use crate::log_writer::{Lane, LogWriterError};
use crate::page_reader::PageReader;
use crate::replay::{PageRedoError, Replay};
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
        let changed = |at| work.replay.next_changed(&segment.key, at);
        let mut at = piece.blocks.start;
        while let Some(first) = changed(at).filter(|first| *first < piece.blocks.end) {
            let most = piece.blocks.end.min(first.saturating_add(PAGES as u32));
            let is_changed = |block: &BlockNo| changed(*block) == Some(*block);
            let end = (first..most).find(|block| !is_changed(block)).unwrap_or(most);
            self.write_run(work, segment, &file, first..end)?;
            at = end;
        }
        drop(file);
        if let Some(file) = segment.end_piece() {
            let synced = self.lane.sync(&file, true);
            synced.map_err(|source| RecoveryError::file("fsync", &segment.path, source))?;
        }
        Ok(())
    }

    /// Builds and writes neighbouring pages.
    fn write_run(
        &mut self,
        work: &Work,
        segment: &SegmentWork,
        file: &File,
        blocks: std::ops::Range<BlockNo>,
    ) -> Result<(), RecoveryError> {
        let Work { replay, .. } = work;
        let key = &segment.key;
        let requires_base = |block: &BlockNo| replay.requires_base(key, *block);
        let bases: Vec<u64> =
            blocks.clone().filter(requires_base).map(|block| segment_of(block).1).collect();
        let read = self.bases.read(file, &bases);
        read.map_err(|source| RecoveryError::file("read", &segment.path, source))?;
        self.run.clear();
        let (mut base, mut is_advised) = (0, false);
        for block in blocks.clone() {
            is_advised = is_advised || replay.advise_if_slow(key, block..blocks.end);
            let page = replay.build::<PageRedoError>(key, block, || {
                let page = self.bases.page(base);
                base += 1;
                Ok(page)
            });
            let page = page.map_err(|source| RecoveryError::Page {
                location: location_of(segment, block),
                source: Box::new(source),
            })?;
            self.run.extend_from_slice(&page[..]);
        }
        let written = self.lane.write_bytes(file, segment_of(blocks.start).1, &self.run);
        written.map_err(|source| RecoveryError::file("write to", &segment.path, source))?;
        work.pages.fetch_add(blocks.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}
