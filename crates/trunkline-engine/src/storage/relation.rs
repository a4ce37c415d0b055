//! One fork of a relation (PostgreSQL's `md.c`): its length, block locations, extension and
//! truncation.
//!
//! The first segment that isn't full is the last segment of a fork. Truncation may leave further
//! segments behind, and we must ignore their contents. PostgreSQL uses the same rule.
//!
//! Extending a fork takes two steps. First, [`Relation::reserve`] assigns block numbers to a
//! session under a lock. Then [`Relation::allocate`] allocates the space for them without holding a
//! lock, because that may block. In PostgreSQL, a backend holds the relation extension lock during
//! both steps, so other backends must wait for its `fallocate`. Here, blocks reserved by different
//! sessions may reach the disk in any order, and we must handle two consequences of that:
//!
//! - A segment may be created before the previous segment is full, in which case the fork would
//!   appear to end in the previous segment. The session that creates a segment must therefore first
//!   extend the previous segment to its full size, leaving a hole.
//! - A session may fail to allocate its blocks after other sessions have already allocated later
//!   blocks. The blocks of the failed session then remain in the fork as zeroed pages, because we
//!   can only release blocks at the end of the fork.
//!
//! The files of an SLRU are used through a [`Relation`] too ([`RelationLocator::slru`]). They have one fork, and they are
//! neither extended in the way above nor truncated.
//!
//! Truncation and removal each have two parts. The first part (`prepare_truncate`,
//! `prepare_remove`) changes nothing, so it can safely fail. The second part runs after the pool
//! has invalidated the pages. If the second part fails, we return [`StorageError::Damaged`],
//! because the changes in the invalidated pages can't be recovered.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use trunkline_aio::File;
use trunkline_format::segment::LAST_SEGMENT;
use trunkline_format::transam::Slru;
use trunkline_format::transam::multixact::MultixactLayout;
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, PgVersion, RelationFile};

use super::cluster::Storage;
use super::error::StorageError;
use super::file_table::Key;
use super::locator::RelationLocator;
use crate::Location;

/// A block in an open segment file.
#[derive(Debug, Clone)]
pub struct Located {
    /// The open segment. Its descriptor stays open even if the open-file table evicts it.
    pub file: File,
    /// The block's offset in the segment, in bytes.
    pub offset: u64,
    /// Number of blocks from this block to the end of a full segment, at least 1.
    /// A single I/O must not be longer than that. Note that the file may currently be shorter.
    pub blocks_left: u32,
}

impl Located {
    /// The same location for at most `blocks` blocks.
    pub(super) fn at_most(self, blocks: u32) -> Self {
        Self { blocks_left: self.blocks_left.min(blocks), ..self }
    }
}

/// One fork of a relation. Cloning it is cheap. Unlike PostgreSQL's `SMgrRelation`, it doesn't
/// cache open files or the fork's length, so it can't become stale.
#[derive(Clone)]
pub struct Relation {
    storage: Storage,
    locator: RelationLocator,
    fork: Fork,
}

impl Storage {
    /// One fork of a relation. Doesn't open any files, so the fork needn't exist.
    pub fn relation(&self, locator: RelationLocator, fork: Fork) -> Relation {
        Relation::new(self.clone(), locator, fork)
    }

    /// The pages of an SLRU of a cluster that we write, which has the layout of version 18.
    pub(crate) fn slru(&self, slru: Slru) -> Relation {
        self.relation(RelationLocator::of_slru(slru), Fork::Main)
    }
}

impl Relation {
    fn new(storage: Storage, locator: RelationLocator, fork: Fork) -> Self {
        Self { storage, locator, fork }
    }

    /// The cluster that contains it.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The identifiers that make up the fork's file names.
    pub fn locator(&self) -> RelationLocator {
        self.locator
    }

    /// Which fork of the relation.
    pub fn fork(&self) -> Fork {
        self.fork
    }

    /// A segment file's path, starting with the data directory's path.
    pub fn path(&self, segment: u32) -> PathBuf {
        if let Some(slru) = self.locator.slru() {
            let layout = MultixactLayout::of(PgVersion::V18);
            return self.storage.root().join(slru.path(layout, segment.into()));
        }
        let relfilenode = self.locator.relfilenode;
        let file = RelationFile { relfilenode, fork: self.fork, segment };
        self.storage.directory(&self.locator).join(file.to_string())
    }

    /// The length of the fork's files in blocks, up to the end of the first segment that isn't full
    /// ([`Relation::blocks`]).
    pub(super) fn file_blocks(&self) -> Result<BlockNo, StorageError> {
        let mut blocks = 0;
        for segment in 0..=LAST_SEGMENT {
            let Some(bytes) = self.segment_length(segment)? else {
                if segment == 0 {
                    return Err(StorageError::SegmentMissing { location: self.location(0) });
                }
                break;
            };
            let most = u64::from(self.locator.blocks_left(blocks)) * BLOCK_SIZE as u64;
            if bytes > most {
                return Err(StorageError::TooLong { path: self.path(segment), bytes, most });
            }
            let in_segment = (bytes / BLOCK_SIZE as u64) as u32;
            blocks += in_segment;
            if in_segment < self.locator.segment_blocks() {
                break;
            }
        }
        Ok(blocks)
    }

    /// The segments that end mid-block, with their lengths in bytes. Segments whose length is
    /// unknown are skipped.
    pub fn partial_segments(&self) -> Vec<(PathBuf, u64)> {
        let lengths = (0..=LAST_SEGMENT).map_while(|segment| {
            let bytes = self.segment_length(segment).ok()??;
            Some((self.path(segment), bytes))
        });
        lengths.filter(|(_, bytes)| bytes % BLOCK_SIZE as u64 != 0).collect()
    }

    /// [`Relation::locate`] in the fork's own file, whatever the log says.
    pub(crate) fn locate_file(&self, block: BlockNo) -> Result<Located, StorageError> {
        self.locate_in(block, || self.segment_file(self.segment_of(block).0, block, false))
    }

    /// The segment that contains `block`, and the block's byte offset in the segment's file.
    pub(crate) fn segment_of(&self, block: BlockNo) -> (u32, u64) {
        self.locator.segment_of(block)
    }

    /// [`Relation::locate`] in the file that `open` returns.
    pub(super) fn locate_in(
        &self,
        block: BlockNo,
        open: impl FnOnce() -> Result<File, StorageError>,
    ) -> Result<Located, StorageError> {
        let blocks_left = self.locator.blocks_left(block);
        if blocks_left == 0 {
            let location = self.location(block);
            return Err(StorageError::BeyondEnd { location, blocks: BlockNo::MAX });
        }
        Ok(Located { file: open()?, offset: self.segment_of(block).1, blocks_left })
    }

    /// Whether the file of the segment containing `block` is open.
    pub(super) fn is_file_open(&self, block: BlockNo) -> bool {
        self.storage.table().peek(&self.key(self.segment_of(block).0)).is_some()
    }

    /// Whether `file` is still the file of the segment containing `block`, according to the
    /// open-file table. It isn't if the relation has since been removed, and another relation
    /// created with the same relfilenode.
    pub(crate) fn is_current(&self, (file, block): (&File, BlockNo)) -> bool {
        if self.storage.built().is_some() {
            // Nothing is removed from a cluster that is only read.
            return true;
        }
        let found = self.storage.table().peek(&self.key(self.segment_of(block).0));
        found.is_none_or(|found| found.id() == file.id())
    }

    /// Creates the fork's first segment file, which is initially empty.
    ///
    /// After a relation has been removed, its relfilenode must not be reused until a checkpoint
    /// that began after the removal has completed. This is because a session looks up the file by
    /// relfilenode before it flushes a page, so it may still be about to write to the old file.
    /// PostgreSQL enforces the same rule by keeping an empty file until the next checkpoint.
    ///
    /// # Errors
    /// [`StorageError`]: the cluster is read-only, the file already exists, or we can't create it.
    /// If we couldn't fsync the directory, every later checkpoint fails too.
    pub fn create(&self) -> Result<(), StorageError> {
        let direct = self.storage.is_direct();
        let path = self.path(0);
        // The check and the open aren't atomic, but no other session may create the same
        // relfilenode.
        if self.segment_length(0)?.is_some() {
            let source = Errno::EXIST.into();
            return Err(StorageError::Io { operation: "create file", path, source });
        }
        let opened = self.storage.writer()?.open_for_writing(&path, direct, true);
        opened.map_err(|e| StorageError::opening(self.location(0), direct, e))?;
        self.storage.pending_fsyncs().note((self.locator, self.fork, 0));
        self.sync_directory(&path).inspect_err(|_| {
            // Remove the file, so that the caller can try again. If we can't remove it either, the
            // next attempt will fail because the file already exists.
            self.storage.pending_fsyncs().forget(self.locator, Some(self.fork), 0);
            let _ = self.storage.writer().map(|writer| writer.remove(&path));
        })
    }

    /// Makes a new file's directory entry durable. As with a segment, a failed fsync can't be
    /// retried: the kernel reports a write error only once, so a second fsync would prove nothing
    /// even if it succeeded.
    fn sync_directory(&self, path: &Path) -> Result<(), StorageError> {
        let synced = self.storage.writer()?.sync_directory_of(path);
        synced.map_err(|source| {
            if is_loss(&source) {
                self.storage.pending_fsyncs().note_failure();
            }
            StorageError::Io {
                operation: "make durable the directory of",
                path: path.to_owned(),
                source,
            }
        })
    }

    /// Reserves the next `count` blocks of the fork for the caller, or fewer if that many would not
    /// fit in the current segment. The blocks don't exist on disk until they are allocated by
    /// [`Relation::allocate`] or written.
    ///
    /// # Errors
    /// [`StorageError`]: the cluster is read-only, the length is unknown, or the fork is full.
    pub(crate) fn reserve(&self, count: u32) -> Result<Range<BlockNo>, StorageError> {
        self.storage.writer()?;
        let ends = self.storage.ends();
        // Don't hold the lock while determining the fork's length, because that takes system calls.
        // If two sessions do that at the same time, the slower one uses the value stored by the
        // faster one.
        let known = ends.lock().get(&(self.locator, self.fork)).copied();
        let end = match known {
            Some(end) => end,
            None => self.file_blocks()?,
        };
        let mut ends = ends.lock();
        let end = ends.entry((self.locator, self.fork)).or_insert(end);
        let count = count.min(self.locator.blocks_left(*end));
        if count == 0 {
            let location = self.location(*end);
            return Err(StorageError::BeyondEnd { location, blocks: BlockNo::MAX });
        }
        let first = *end;
        *end += count;
        Ok(first..first + count)
    }

    /// Releases reserved blocks. If later blocks have been reserved in the meantime, we can't
    /// release them, and they stay in the fork as zeroed pages.
    pub(crate) fn unreserve(&self, blocks: &Range<BlockNo>) {
        let mut ends = self.storage.ends().lock();
        if let Some(end) = ends.get_mut(&(self.locator, self.fork))
            && *end == blocks.end
        {
            *end = blocks.start;
        }
    }

    /// Allocates zeroed space for reserved blocks, creating the segment if necessary. This may
    /// block. Even if the allocation fails, the segment needs an fsync, because part of the space
    /// may have been allocated.
    ///
    /// # Errors
    /// [`StorageError`]; `EOPNOTSUPP` if the caller must write zeros instead.
    pub(crate) fn allocate(&self, blocks: &Range<BlockNo>) -> Result<(), StorageError> {
        let (segment, offset) = self.segment_of(blocks.start);
        let file = self.segment_for_writing(segment, blocks.start)?;
        let length = u64::from(blocks.end - blocks.start) * BLOCK_SIZE as u64;
        let allocated = self.storage.writer()?.allocate(&file, offset, length);
        self.storage.pending_fsyncs().note((self.locator, self.fork, segment));
        allocated.map_err(|source| StorageError::Io {
            operation: "extend file",
            path: self.path(segment),
            source,
        })
    }

    /// Returns the segment of a reserved block, creating the segment if it doesn't exist.
    pub(crate) fn segment_for_writing(
        &self,
        segment: u32,
        block: BlockNo,
    ) -> Result<File, StorageError> {
        self.storage.writer()?;
        let file = self.segment_file(segment, block, true)?;
        // Usually a segment is created for its first block. But the session that reserved the first
        // block may have failed, so any session may find that it is the first to use the segment.
        // Every session must therefore check for this before it writes to the segment.
        let is_new =
            || Ok::<_, StorageError>(segment > 0 && self.segment_length(segment)? == Some(0));
        if block.is_multiple_of(self.locator.segment_blocks()) || is_new()? {
            self.fill_up(segment)?;
            self.sync_directory(&self.path(segment))?;
        }
        Ok(file)
    }

    /// Extends the previous segment to its full size, leaving a hole. This is necessary because,
    /// although blocks are reserved in order, sessions may write them in any order or not at all.
    /// If the previous segment weren't full, the fork would appear to end there, and scans wouldn't
    /// see the blocks in the new segment.
    fn fill_up(&self, segment: u32) -> Result<(), StorageError> {
        let Some(before) = segment.checked_sub(1) else { return Ok(()) };
        let full = u64::from(self.locator.segment_blocks()) * BLOCK_SIZE as u64;
        if self.segment_length(before)?.is_none_or(|bytes| bytes >= full) {
            return Ok(());
        }
        let file = self.segment_file(before, self.locator.first_block(before), false)?;
        let filled = self.storage.writer()?.truncate(&file, full);
        self.storage.pending_fsyncs().note((self.locator, self.fork, before));
        filled.map_err(|source| StorageError::Io {
            operation: "extend file",
            path: self.path(before),
            source,
        })
    }

    /// Opens all segments that we would have to change to truncate the fork to `blocks` blocks.
    /// Returns `None` if the fork isn't longer than that. We don't change anything yet. This way we
    /// find most errors before the pool invalidates any pages.
    ///
    /// # Errors
    /// [`StorageError`]: the cluster is read-only, or a segment cannot be opened.
    pub(crate) fn prepare_truncate(
        &self,
        blocks: BlockNo,
    ) -> Result<Option<Truncation>, StorageError> {
        self.storage.writer()?;
        // Reserved blocks may already have pages in the pool, even though they aren't part of the
        // file yet.
        let given = self.storage.ends().lock().get(&(self.locator, self.fork)).copied();
        if blocks >= self.file_blocks()?.max(given.unwrap_or_default()) {
            return Ok(None);
        }
        let (last, offset) = self.segment_of(blocks);
        let mut segments = Vec::new();
        for segment in last..=LAST_SEGMENT {
            if self.segment_length(segment)?.is_none() {
                break;
            }
            let file = self.segment_file(segment, blocks, false)?;
            segments.push((segment, file, if segment == last { offset } else { 0 }));
        }
        Ok(Some(Truncation { relation: self.clone(), blocks, segments }))
    }

    /// How many segments [`Relation::remove`] has to remove.
    ///
    /// # Errors
    /// [`StorageError`]: the cluster is read-only, or we can't determine a segment's length.
    pub(crate) fn prepare_remove(&self) -> Result<u32, StorageError> {
        self.storage.writer()?;
        let mut segments = 0;
        while self.segment_length(segments)?.is_some() {
            segments += 1;
        }
        Ok(segments)
    }

    /// Removes the fork's first `segments` files. No session may use the fork any more.
    ///
    /// # Errors
    /// [`StorageError::Damaged`]; some segments may already have been removed, starting with the
    /// last.
    pub(crate) fn remove(&self, segments: u32) -> Result<(), StorageError> {
        let writer = self.storage.writer()?;
        self.storage.pending_fsyncs().forget(self.locator, Some(self.fork), 0);
        self.storage.ends().lock().remove(&(self.locator, self.fork));
        let mut removed = Ok(());
        for segment in (0..segments).rev() {
            let path = self.path(segment);
            if let Err(source) = writer.remove(&path) {
                let location = Location::new(path).at_block(0);
                removed = Err(StorageError::Damaged { operation: "remove file", location, source });
                break;
            }
        }
        // We must do this last, even after a failure. Another session may have opened a file while
        // we were removing it, and such a file must not stay in the table.
        self.storage.forget(self.locator);
        removed
    }

    /// Returns a segment's length in bytes without opening it, or `None` if it doesn't exist.
    fn segment_length(&self, segment: u32) -> Result<Option<u64>, StorageError> {
        let system = self.storage.system();
        if let Some(file) = self.storage.table().peek(&self.key(segment)) {
            let length = system.length(&file);
            return length.map(Some).map_err(|e| StorageError::examining(file.path(), e));
        }
        let path = self.path(segment);
        system.file_length(&path).map_err(|error| StorageError::examining(&path, error))
    }

    /// Opens a segment file, without retrying. Files of our own clusters are opened for writing,
    /// all others only for reading. If the cluster uses direct I/O, we also check that the file
    /// really bypasses the page cache and that an 8 kB block satisfies its alignment requirements.
    fn try_open(&self, path: PathBuf, block: BlockNo, create: bool) -> Result<File, StorageError> {
        let direct = self.storage.is_direct();
        let opened = match self.storage.writer() {
            Ok(writer) => writer.open_for_writing(&path, direct, create),
            Err(_) => self.storage.system().open(&path, direct),
        };
        match opened {
            Ok(file) if direct => {
                check_direct(path, file.is_direct(), file.alignment())?;
                Ok(file)
            }
            Ok(file) => Ok(file),
            Err(source) => {
                Err(StorageError::opening(Location::new(path).at_block(block), direct, source))
            }
        }
    }

    /// Returns a segment's file from the open-file table, opening it if necessary. `block` is only
    /// used in error messages.
    fn segment_file(
        &self,
        segment: u32,
        block: BlockNo,
        create: bool,
    ) -> Result<File, StorageError> {
        let open = || self.open_segment(segment, block, create);
        self.storage.table().get(self.key(segment), open)
    }

    /// Opens a segment. If the process is out of descriptors, we close the files that we've kept
    /// open for their fsync, and try again.
    fn open_segment(
        &self,
        segment: u32,
        block: BlockNo,
        create: bool,
    ) -> Result<File, StorageError> {
        match self.try_open(self.path(segment), block, create) {
            Err(error)
                if error.is_out_of_descriptors()
                    && self.storage.pending_fsyncs().close_kept_files() =>
            {
                self.try_open(self.path(segment), block, create)
            }
            opened => opened,
        }
    }

    /// A block's location, for an error.
    pub fn location(&self, block: BlockNo) -> Location {
        Location::new(self.path(self.segment_of(block).0)).at_block(block)
    }

    /// The segment's key in the open-file table.
    pub(super) fn key(&self, segment: u32) -> Key {
        Key::new(self.storage.number(), self.locator, self.fork, segment)
    }
}

/// A truncation that has been prepared: the new length, and the open segments it will change.
pub(crate) struct Truncation {
    relation: Relation,
    blocks: BlockNo,
    /// Segment number, file and new length in bytes.
    segments: Vec<(u32, File, u64)>,
}

impl Truncation {
    /// Truncates the fork. No session may use the removed blocks any more.
    ///
    /// We truncate the last segment first, so that a crash can't leave a gap in the fork. As in
    /// PostgreSQL, segments beyond the new end are truncated to zero length but not removed,
    /// because other sessions may still have them open.
    ///
    /// # Errors
    /// [`StorageError::Damaged`]; some segments may already have been truncated, starting with the
    /// last.
    pub(crate) fn run(self) -> Result<(), StorageError> {
        let Self { relation, blocks, segments } = self;
        let writer = relation.storage.writer()?;
        for (segment, file, length) in segments.into_iter().rev() {
            let truncated = writer.truncate(&file, length);
            // The truncation must be fsynced too. Otherwise, old pages with valid checksums might
            // reappear after a crash.
            relation.storage.pending_fsyncs().note((relation.locator, relation.fork, segment));
            truncated.map_err(|source| StorageError::Damaged {
                operation: "truncate file",
                location: Location::new(relation.path(segment)).at_block(blocks),
                source,
            })?;
        }
        relation.storage.ends().lock().remove(&(relation.locator, relation.fork));
        Ok(())
    }
}

/// Checks that a file opened for direct I/O really bypasses the page cache, and that a block
/// satisfies its alignment requirements. We can't silently fall back to buffered I/O, because
/// mixing the two on one file can return stale data.
fn check_direct(path: PathBuf, is_direct: bool, alignment: u32) -> Result<(), StorageError> {
    if !is_direct {
        return Err(StorageError::direct(path));
    }
    if alignment == 0 || !BLOCK_SIZE.is_multiple_of(alignment as usize) {
        return Err(StorageError::alignment(path, alignment));
    }
    Ok(())
}

/// Whether changes may have been lost because we failed to fsync a directory. The errors listed
/// here come from opening the directory. In that case no fsync was issued, so the caller can try
/// again. After any other error, we must assume that something was lost.
fn is_loss(error: &io::Error) -> bool {
    let of_open = [
        Errno::ACCESS,
        Errno::LOOP,
        Errno::MFILE,
        Errno::NAMETOOLONG,
        Errno::NFILE,
        Errno::NOENT,
        Errno::NOTDIR,
        Errno::PERM,
    ];
    Errno::from_io_error(error).is_none_or(|errno| !of_open.contains(&errno))
}

impl fmt::Debug for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Relation({}, {}, {})", self.storage.number(), self.locator, self.fork)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_must_hold_whole_sectors() {
        for (is_direct, alignment, expected) in [
            (true, 512, None),
            (true, 4096, None),
            (true, 8192, None),
            (
                true,
                16384,
                Some(
                    "\"/none/16384\" cannot be read by direct I/O: the file system, unknown, \
                     requires multiples of 16384 bytes, expected at most 8192",
                ),
            ),
            (
                false,
                1,
                Some(
                    "\"/none/16384\" cannot be opened for direct I/O: the file system, unknown, \
                     does not support it",
                ),
            ),
        ] {
            let found = check_direct("/none/16384".into(), is_direct, alignment);
            assert_eq!(found.err().map(|e| e.to_string()).as_deref(), expected, "{alignment}");
        }
    }
}
