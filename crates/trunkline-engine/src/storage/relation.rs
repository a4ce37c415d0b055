//! One fork of a relation: how long it is, and where its blocks are.
//!
//! A fork ends with its first segment that is not full, as PostgreSQL sees it: a relation that was
//! cut off may leave later segments behind, which mean nothing.

use std::fmt;
use std::path::PathBuf;

use trunkline_aio::File;
use trunkline_format::segment::{LAST_SEGMENT, segment_of};
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, RelationFile, SEGMENT_BLOCKS};

use super::table::Key;
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
        let file =
            self.storage.files().get(self.key(segment), || self.open(self.path(segment), block))?;
        Ok(Located { file, offset, blocks_left })
    }

    /// Whether the segment that holds `block` is open now, so that [`Relation::locate`] need not ask
    /// the system.
    pub fn is_open(&self, block: BlockNo) -> bool {
        self.storage.files().peek(&self.key(segment_of(block).0)).is_some()
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
        if let Some(file) = self.storage.files().peek(&self.key(segment)) {
            let length = system.length(&file);
            return length.map(Some).map_err(|e| StorageError::examining(file.path(), e));
        }
        let path = self.path(segment);
        system.file_length(&path).map_err(|error| StorageError::examining(&path, error))
    }

    fn open(&self, path: PathBuf, block: BlockNo) -> Result<File, StorageError> {
        let direct = self.storage.is_direct();
        match self.storage.system().open(&path, direct) {
            Ok(file) if direct => {
                check_direct(path, file.is_direct(), file.alignment())?;
                Ok(file)
            }
            Ok(file) => Ok(file),
            Err(source) => Err(StorageError::opening(path, block, direct, source)),
        }
    }

    fn key(&self, segment: u32) -> Key {
        Key::new(self.storage.number(), self.locator, self.fork, segment)
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
