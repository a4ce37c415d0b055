//! What recovery has to write: segments of relations, in pieces that threads can take.
//!
//! Files of dropped relations, and segments past the end of truncated ones, are removed immediately. That is
//! safe before anything else is written: the log is durable, and says the same again if recovery is interrupted.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::sync::Arc;

use trunkline_aio::File;
use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::atomic::{AtomicU32, Ordering};
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, SEGMENT_BLOCKS};

use super::error::RecoveryError;
use super::options::RecoveryOptions;
use crate::location::Location;
use crate::replay::{ForkKey, Replay};
use crate::storage::{Relation, RelationLocator, Storage, StorageError, WritableFiles};

/// How many blocks a piece may have: 32 to 128 MB. All of its pages are built together, in memory. The WAL is read for
/// each piece, from its first record to its last, so fewer pieces read less.
const PIECE: RangeInclusive<u64> = 4096..=16_384;

/// A segment file with pages to write.
pub(super) struct SegmentWork {
    pub(super) key: ForkKey,
    pub(super) path: PathBuf,
    /// Its length at the end, in bytes.
    length: u64,
    /// Open from the first piece to the last, so that its fsync reports every failed write.
    file: Mutex<Option<File>>,
    pieces_left: AtomicU32,
}

/// Blocks of one segment, some of which must be written. Empty if only the file's length changes.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// The index of the segment in the plan.
    pub(super) segment: usize,
    /// The blocks, counted from the start of the relation.
    pub(super) blocks: Range<BlockNo>,
}

/// What recovery has to write.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) segments: Vec<SegmentWork>,
    pub(super) pieces: Vec<Piece>,
    /// Files in the directories that have to be synced: one in each.
    pub(super) directories: BTreeSet<PathBuf>,
    /// The number of files that were removed.
    pub(super) removed: u64,
    /// The most blocks of a piece.
    piece: u32,
}

impl SegmentWork {
    /// The file. The first caller creates it if necessary, and gives it the length that it has at the end.
    pub(super) fn open(&self, files: &dyn WritableFiles) -> Result<File, RecoveryError> {
        let mut open = self.file.lock();
        if let Some(file) = &*open {
            return Ok(file.clone());
        }
        let failed = |operation| move |source| RecoveryError::file(operation, &self.path, source);
        let opened = files.open_for_writing(&self.path, false, true);
        let file = opened.map_err(failed("open or create"))?;
        let length = files.length(&file).map_err(failed("read the length of"))?;
        if length != self.length {
            files.truncate(&file, self.length).map_err(failed("truncate or extend"))?;
        }
        Ok(open.insert(file).clone())
    }

    /// A piece is written. Returns the file if it was the last one, so that the caller syncs it.
    pub(super) fn end_piece(&self) -> Option<File> {
        match self.pieces_left.fetch_sub(1, Ordering::SeqCst) {
            1 => self.file.lock().take(),
            _ => None,
        }
    }
}

impl Plan {
    /// Plans all changes of relations, and removes what the log has removed.
    ///
    /// # Errors
    /// [`RecoveryError`].
    pub(super) fn new(
        replay: &Replay,
        storage: &Storage,
        files: &Arc<dyn WritableFiles>,
        options: &RecoveryOptions,
    ) -> Result<Self, RecoveryError> {
        // The pages of all threads take half as much memory as the list of changes may, unless that is little.
        let piece = options.memory / 2 / u64::from(options.threads.max(1)) / BLOCK_SIZE as u64;
        let piece = piece.clamp(*PIECE.start(), *PIECE.end()) as u32;
        let mut plan = Self { piece, ..Self::default() };
        let mut forks: Vec<ForkKey> = replay.changed_forks().copied().collect();
        let removed = replay.removed_relations();
        forks.extend(
            removed.flat_map(|it| [Fork::Main, Fork::Fsm, Fork::Vm].map(|fork| (*it, fork))),
        );
        forks.sort_unstable_by_key(|(relation, fork)| (*relation, *fork as u8));
        forks.dedup();
        for key in forks {
            let (locator, fork) = key;
            if fork == Fork::Init {
                return Err(RecoveryError::Unsupported { what: "unlogged tables in its log" });
            }
            if RelationLocator::from(locator).slru().is_some() {
                // A record must not change the commit log as if it were a table.
                return Err(RecoveryError::Unsupported {
                    what: "a table without a tablespace in its log",
                });
            }
            plan.add(replay, &storage.relation(locator.into(), fork), key, &**files)?;
        }
        Ok(plan)
    }

    fn add(
        &mut self,
        replay: &Replay,
        relation: &Relation,
        key: ForkKey,
        files: &dyn WritableFiles,
    ) -> Result<(), RecoveryError> {
        let in_file = match relation.blocks() {
            Ok(blocks) => Some(blocks),
            Err(StorageError::SegmentMissing { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        if let Some((block, source)) = replay.impossible(&key, in_file) {
            let location = relation.location(block);
            return Err(RecoveryError::Page { location, source: Box::new(source) });
        }
        let length = replay.length(&key, in_file);
        let kept = length.map_or(0, |blocks| blocks.div_ceil(SEGMENT_BLOCKS).max(1));
        self.remove_segments(relation, kept, files)?;
        for segment in 0..kept {
            let first = segment * SEGMENT_BLOCKS;
            let end = length.unwrap_or_default().min(first.saturating_add(SEGMENT_BLOCKS));
            self.add_segment(replay, relation, key, (segment, first..end));
        }
        Ok(())
    }

    /// Removes a fork's segments from number `kept` on, the last one first.
    fn remove_segments(
        &mut self,
        relation: &Relation,
        kept: u32,
        files: &dyn WritableFiles,
    ) -> Result<(), RecoveryError> {
        let mut end = kept;
        loop {
            let path = relation.path(end);
            let length = files.file_length(&path);
            let failed = |source| RecoveryError::file("read the length of", &path, source);
            if length.map_err(failed)?.is_none() {
                break;
            }
            end += 1;
        }
        for segment in (kept..end).rev() {
            let path = relation.path(segment);
            let removed = files.remove(&path);
            removed.map_err(|source| RecoveryError::file("remove", &path, source))?;
            self.removed += 1;
            self.note_directory(path);
        }
        Ok(())
    }

    fn add_segment(
        &mut self,
        replay: &Replay,
        relation: &Relation,
        key: ForkKey,
        (segment, blocks): (u32, Range<BlockNo>),
    ) {
        let path = relation.path(segment);
        let number = self.segments.len();
        let before = self.pieces.len();
        let mut at = blocks.start;
        while let Some(changed) = replay.next_changed(&key, at).filter(|next| *next < blocks.end) {
            at = blocks.end.min(changed.saturating_add(self.piece));
            self.pieces.push(Piece { segment: number, blocks: changed..at });
        }
        if self.pieces.len() == before {
            self.pieces.push(Piece { segment: number, blocks: blocks.end..blocks.end });
        }
        self.note_directory(path.clone());
        self.segments.push(SegmentWork {
            key,
            path,
            length: u64::from(blocks.end - blocks.start) * BLOCK_SIZE as u64,
            file: Mutex::new(None),
            pieces_left: AtomicU32::new((self.pieces.len() - before) as u32),
        });
    }

    /// The directory of a file has to be synced.
    fn note_directory(&mut self, path: PathBuf) {
        let is_known = |known: &PathBuf| known.parent() == path.parent();
        if !self.directories.iter().any(is_known) {
            self.directories.insert(path);
        }
    }
}

/// A block, for a message.
pub(super) fn location_of(segment: &SegmentWork, block: BlockNo) -> Location {
    Location::new(segment.path.clone()).at_block(block)
}
