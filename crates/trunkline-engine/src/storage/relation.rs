//! One fork of a relation: how long it is, and where its blocks are.
//!
//! A fork ends with its first segment that is not full, as PostgreSQL sees it: a relation that was
//! cut off may leave later segments behind, which mean nothing.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use trunkline_aio::File;
use trunkline_format::segment::{LAST_SEGMENT, segment_of};
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, RelationFile, SEGMENT_BLOCKS};

use super::file_table::Key;
use super::{RelationLocator, Storage, StorageError};

/// Where a block is.
#[derive(Debug, Clone)]
pub struct Located {
    /// The open segment. Keeps its descriptor open, also when the table has let go of it.
    pub file: File,
    /// Where the block begins in it, in bytes.
    pub offset: u64,
    /// Blocks from this one to the end of a full segment, 1 to [`SEGMENT_BLOCKS`]; the file may be
    /// shorter.
    pub blocks_left: u32,
}

/// One fork of a relation. Clones are cheap; none holds a file open.
#[derive(Clone)]
pub struct Relation {
    storage: Storage,
    locator: RelationLocator,
    fork: Fork,
}

impl Relation {
    pub(super) fn new(storage: Storage, locator: RelationLocator, fork: Fork) -> Self {
        Self { storage, locator, fork }
    }

    /// The cluster it is of.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The numbers that name its files.
    pub fn locator(&self) -> RelationLocator {
        self.locator
    }

    /// Which fork of the relation.
    pub fn fork(&self) -> Fork {
        self.fork
    }

    /// The file of a segment, beginning with the data directory's path.
    pub fn path(&self, segment: u32) -> PathBuf {
        let relfilenode = self.locator.relfilenode;
        let file = RelationFile { relfilenode, fork: self.fork, segment };
        self.storage.directory(&self.locator).join(file.to_string())
    }

    /// Blocks of the fork now: those of the full segments, and of the first that is not full. What
    /// follows the last whole block of a segment does not count.
    ///
    /// # Errors
    /// [`StorageError`]: the first segment is missing, one is too long, or the system does not tell.
    pub fn blocks(&self) -> Result<BlockNo, StorageError> {
        let mut blocks = 0;
        for segment in 0..=LAST_SEGMENT {
            let Some(bytes) = self.segment_length(segment)? else {
                if segment == 0 {
                    return Err(StorageError::SegmentMissing { path: self.path(0), block: 0 });
                }
                break;
            };
            let most = u64::from(blocks_after(blocks)) * BLOCK_SIZE as u64;
            if bytes > most {
                return Err(StorageError::TooLong { path: self.path(segment), bytes, most });
            }
            let in_segment = (bytes / BLOCK_SIZE as u64) as u32;
            blocks += in_segment;
            if in_segment < SEGMENT_BLOCKS {
                break;
            }
        }
        Ok(blocks)
    }

    /// The segments that do not end with a block, and their lengths in bytes: the last page of each was
    /// cut off. Those that the system does not tell of are passed over.
    pub fn partial_segments(&self) -> Vec<(PathBuf, u64)> {
        let lengths = (0..=LAST_SEGMENT).map_while(|segment| {
            let bytes = self.segment_length(segment).ok()??;
            Some((self.path(segment), bytes))
        });
        lengths.filter(|(_, bytes)| bytes % BLOCK_SIZE as u64 != 0).collect()
    }

    /// The segment that holds `block`, opened if it was not, and where the block is in it. Does not
    /// look at the length of the file.
    ///
    /// # Errors
    /// [`StorageError`]: the segment is missing or cannot be opened, or no relation has such a block.
    pub fn locate(&self, block: BlockNo) -> Result<Located, StorageError> {
        let (segment, offset) = segment_of(block);
        let blocks_left = blocks_after(block);
        if blocks_left == 0 {
            let path = self.path(segment);
            return Err(StorageError::BeyondEnd { path, block, blocks: BlockNo::MAX });
        }
        let open = || self.open_or_make_room(segment, block, false);
        let file = self.storage.table().get(self.key(segment), open)?;
        Ok(Located { file, offset, blocks_left })
    }

    /// Whether the segment that holds `block` is open now, so that [`Relation::locate`] need not ask
    /// the system.
    pub fn is_open(&self, block: BlockNo) -> bool {
        self.storage.table().peek(&self.key(segment_of(block).0)).is_some()
    }

    /// Whether a file that was found for a block is still the one of that name, as far as the table knows:
    /// the relation may have been removed since, and another one made under its number.
    pub(crate) fn is_current(&self, (file, block): (&File, BlockNo)) -> bool {
        let found = self.storage.table().peek(&self.key(segment_of(block).0));
        found.is_none_or(|found| found.id() == file.id())
    }

    /// Makes the fork's first file, empty. A number that was removed is not to be used again before a
    /// checkpoint has ended that began later: who writes a page looks its file up by that number first,
    /// and may have found the old one (PostgreSQL keeps the empty file until then for the same reason).
    ///
    /// # Errors
    /// [`StorageError`]: the cluster is not for writing, the file is there already, or the system
    /// refuses. Every later checkpoint fails if it could not write the directory.
    pub fn create(&self) -> Result<(), StorageError> {
        let direct = self.storage.is_direct();
        let path = self.path(0);
        if self.segment_length(0)?.is_some() {
            let source = io::ErrorKind::AlreadyExists.into();
            return Err(StorageError::Io { operation: "create file", path, source });
        }
        let opened = self.storage.writer()?.open_for_writing(&path, direct, true);
        opened.map_err(|e| StorageError::opening(path.clone(), 0, direct, e))?;
        self.storage.pending_fsyncs().note((self.locator, self.fork, 0));
        self.sync_directory(&path).inspect_err(|_| {
            // Whoever tries again is to find nothing. If this fails too, he is told that there is a file.
            self.storage.pending_fsyncs().forget(self.locator, Some(self.fork), 0);
            let _ = self.storage.writer().map(|writer| writer.remove(&path));
        })
    }

    /// Makes a file's name durable. A failed sync is one for ever, as that of a segment: what the system
    /// could not write it tells of once, so to try again proves nothing.
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

    /// Gives out the next `count` blocks of the fork, or fewer: none beyond the segment of the first.
    /// They are there once [`Relation::make_room`] says so, or when they are written.
    ///
    /// # Errors
    /// [`StorageError`]: the cluster is not for writing, the fork cannot be looked at or is full.
    pub(crate) fn give_out(&self, count: u32) -> Result<Range<BlockNo>, StorageError> {
        self.storage.writer()?;
        let ends = &self.storage.0.ends;
        let known = ends.lock().get(&(self.locator, self.fork)).copied();
        let end = match known {
            Some(end) => end,
            None => self.blocks()?,
        };
        let mut ends = ends.lock();
        let end = ends.entry((self.locator, self.fork)).or_insert(end);
        let count = count.min(blocks_after(*end));
        if count == 0 {
            let path = self.path(segment_of(*end).0);
            return Err(StorageError::BeyondEnd { path, block: *end, blocks: BlockNo::MAX });
        }
        let first = *end;
        *end += count;
        Ok(first..first + count)
    }

    /// Takes back blocks that were given out last, if nobody has got any since.
    pub(crate) fn take_back(&self, blocks: &Range<BlockNo>) {
        let mut ends = self.storage.0.ends.lock();
        if let Some(end) = ends.get_mut(&(self.locator, self.fork))
            && *end == blocks.end
        {
            *end = blocks.start;
        }
    }

    /// Makes room for blocks of one segment, as zeros, making the segment if need be. May block.
    ///
    /// # Errors
    /// [`StorageError`]; `EOPNOTSUPP` where zeros have to be written instead.
    pub(crate) fn make_room(&self, blocks: &Range<BlockNo>) -> Result<(), StorageError> {
        let (segment, offset) = segment_of(blocks.start);
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

    /// The segment of a block that was given out, made if it is not there.
    pub(crate) fn segment_for_writing(
        &self,
        segment: u32,
        block: BlockNo,
    ) -> Result<File, StorageError> {
        self.storage.writer()?;
        let open = || self.open_or_make_room(segment, block, true);
        let file = self.storage.table().get(self.key(segment), open)?;
        // Perhaps it has just been made: who has its first block may have failed to. Nobody writes to it
        // before somebody has done this.
        let is_new =
            || Ok::<_, StorageError>(segment > 0 && self.segment_length(segment)? == Some(0));
        if block.is_multiple_of(SEGMENT_BLOCKS) || is_new()? {
            self.fill_up(segment)?;
            self.sync_directory(&self.path(segment))?;
        }
        Ok(file)
    }

    /// Makes the segment before another one full, with a hole: blocks are given out in order, but
    /// those of one session may be there, or fail to be, before those of another.
    fn fill_up(&self, segment: u32) -> Result<(), StorageError> {
        let Some(before) = segment.checked_sub(1) else { return Ok(()) };
        let full = u64::from(SEGMENT_BLOCKS) * BLOCK_SIZE as u64;
        if self.segment_length(before)?.is_none_or(|bytes| bytes >= full) {
            return Ok(());
        }
        let open = || self.open_or_make_room(before, before * SEGMENT_BLOCKS, false);
        let file = self.storage.table().get(self.key(before), open)?;
        let filled = self.storage.writer()?.truncate(&file, full);
        self.storage.pending_fsyncs().note((self.locator, self.fork, before));
        filled.map_err(|source| StorageError::Io {
            operation: "extend file",
            path: self.path(before),
            source,
        })
    }

    /// Opens what is needed to cut the fork off so that `blocks` are left; `None` if there is nothing
    /// to be cut off. Changes nothing.
    ///
    /// # Errors
    /// [`StorageError`]: the cluster is not for writing, or a segment cannot be opened.
    pub(crate) fn prepare_truncate(&self, blocks: BlockNo) -> Result<Option<Cut>, StorageError> {
        self.storage.writer()?;
        // Blocks that were given out may have pages, and be no part of the file yet.
        let given = self.storage.0.ends.lock().get(&(self.locator, self.fork)).copied();
        if blocks >= self.blocks()?.max(given.unwrap_or_default()) {
            return Ok(None);
        }
        let (last, offset) = segment_of(blocks);
        let mut segments = Vec::new();
        for segment in last..=LAST_SEGMENT {
            if self.segment_length(segment)?.is_none() {
                break;
            }
            let open = || self.open_or_make_room(segment, blocks, false);
            let file = self.storage.table().get(self.key(segment), open)?;
            segments.push((segment, file, if segment == last { offset } else { 0 }));
        }
        Ok(Some(Cut { relation: self.clone(), blocks, segments }))
    }

    /// How many segments there are to be removed.
    ///
    /// # Errors
    /// [`StorageError`]: the cluster is not for writing, or cannot be looked at.
    pub(crate) fn prepare_remove(&self) -> Result<u32, StorageError> {
        self.storage.writer()?;
        let mut segments = 0;
        while self.segment_length(segments)?.is_some() {
            segments += 1;
        }
        Ok(segments)
    }

    /// Removes the fork's files, so many. Nobody may use them any more.
    ///
    /// # Errors
    /// [`StorageError::Damaged`]; some segments may be gone, the last ones first.
    pub(crate) fn remove(&self, segments: u32) -> Result<(), StorageError> {
        let writer = self.storage.writer()?;
        self.storage.pending_fsyncs().forget(self.locator, Some(self.fork), 0);
        self.storage.0.ends.lock().remove(&(self.locator, self.fork));
        let mut removed = Ok(());
        for segment in (0..segments).rev() {
            let path = self.path(segment);
            if let Err(source) = writer.remove(&path) {
                removed =
                    Err(StorageError::Damaged { operation: "remove file", path, block: 0, source });
                break;
            }
        }
        // Afterwards, and also if that failed: who has opened a file meanwhile has the old one, and who
        // opens it from now on finds it gone.
        self.storage.forget(self.locator);
        removed
    }

    /// Why `block` could not be read, when a read ended before it: the file is shorter than the
    /// caller thought, or no longer what it was.
    pub fn missing(&self, block: BlockNo) -> StorageError {
        let path = self.path(segment_of(block).0);
        match self.blocks() {
            Ok(blocks) => StorageError::BeyondEnd { path, block, blocks },
            Err(error) => error,
        }
    }

    /// Length in bytes; `None` if there is no such segment. Does not open it.
    fn segment_length(&self, segment: u32) -> Result<Option<u64>, StorageError> {
        let system = self.storage.system();
        if let Some(file) = self.storage.table().peek(&self.key(segment)) {
            let length = system.length(&file);
            return length.map(Some).map_err(|e| StorageError::examining(file.path(), e));
        }
        let path = self.path(segment);
        system.file_length(&path).map_err(|error| StorageError::examining(&path, error))
    }

    fn open_as(&self, path: PathBuf, block: BlockNo, create: bool) -> Result<File, StorageError> {
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
            Err(source) => Err(StorageError::opening(path, block, direct, source)),
        }
    }

    /// Opens a segment; where descriptors are short, at the cost of those that are kept for a sync.
    fn open_or_make_room(
        &self,
        segment: u32,
        block: BlockNo,
        create: bool,
    ) -> Result<File, StorageError> {
        match self.open_as(self.path(segment), block, create) {
            Err(error)
                if error.is_shortage() && self.storage.pending_fsyncs().close_kept_files() =>
            {
                self.open_as(self.path(segment), block, create)
            }
            opened => opened,
        }
    }

    fn key(&self, segment: u32) -> Key {
        Key::new(self.storage.number(), self.locator, self.fork, segment)
    }
}

/// What a fork is to be cut off to, and the open segments that it takes.
pub(crate) struct Cut {
    relation: Relation,
    blocks: BlockNo,
    /// With the length that each is to have.
    segments: Vec<(u32, File, u64)>,
}

impl Cut {
    /// Does it. Nobody may use the blocks that go any more.
    ///
    /// # Errors
    /// [`StorageError::Damaged`]; some segments may be cut off already, the last ones first.
    pub(crate) fn run(self) -> Result<(), StorageError> {
        let Self { relation, blocks, segments } = self;
        let writer = relation.storage.writer()?;
        for (segment, file, length) in segments.into_iter().rev() {
            let truncated = writer.truncate(&file, length);
            // Old pages with right checksums must not come back after a crash.
            relation.storage.pending_fsyncs().note((relation.locator, relation.fork, segment));
            truncated.map_err(|source| StorageError::Damaged {
                operation: "truncate file",
                path: relation.path(segment),
                block: blocks,
                source,
            })?;
        }
        relation.storage.0.ends.lock().remove(&(relation.locator, relation.fork));
        Ok(())
    }
}

/// A file that was to be opened for direct I/O must be, and in blocks.
fn check_direct(path: PathBuf, is_direct: bool, alignment: u32) -> Result<(), StorageError> {
    if !is_direct {
        return Err(StorageError::direct(path));
    }
    if alignment == 0 || !BLOCK_SIZE.is_multiple_of(alignment as usize) {
        return Err(StorageError::alignment(path, alignment));
    }
    Ok(())
}

/// Whether a directory's sync may have failed for what it had to write: unless the error is an answer to
/// opening the directory, which loses nothing.
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

/// Blocks from `block` on that fit into its segment. The last segment can have one less: the last
/// number means "no block".
fn blocks_after(block: BlockNo) -> u32 {
    (SEGMENT_BLOCKS - block % SEGMENT_BLOCKS).min(BlockNo::MAX - block)
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
                    "\"/none/16384\" cannot be read by direct I/O: the file system, unknown, wants \
                     multiples of 16384 bytes, expected at most 8192",
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

    #[test]
    fn blocks_to_the_end_of_a_segment() {
        for (block, left) in [
            (0, 131_072),
            (131_071, 1),
            (131_072, 131_072),
            (LAST_SEGMENT * SEGMENT_BLOCKS, 131_071),
            (BlockNo::MAX - 1, 1),
            (BlockNo::MAX, 0),
        ] {
            assert_eq!(blocks_after(block), left, "block {block}");
        }
    }
}
