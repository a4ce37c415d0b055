//! Where the blocks of a relation are: in its file, or in the log of a cluster that was not shut down
//! ([`crate::replay`]).
//!
//! ```text
//!   block ─▶ not in the log ───▶ its file, up to the next block that is in the log
//!            in the log, built ─▶ scratch file
//!            in the log ────────▶ built: base and records ─▶ written to the scratch file
//! ```
//! A session reads pages of the scratch file as it reads all others, with the same streams, checks and
//! caches.
//!
//! Unlogged relations are as they are after a recovery: their main fork is a copy of the `_init` fork, and
//! they have no maps, whatever the crashed directory has.

use std::fs::File as StdFile;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;

use rustix::fs::OFlags;
use trunkline_format::segment::segment_of;
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, Lsn, PageBytes};

use super::built_pages::BuiltPages;
use super::error::StorageError;
use super::relation::{Located, Relation};
use crate::replay::{ForkChanges, ForkKey, PageRecords, PageRedoError, PageSource, RECORDS_MAX};

/// How many pages are built at once for a scan. Their records are read together.
const AHEAD: u32 = 64;

/// Where a block is.
pub(super) enum ReplayedPlace {
    /// In the file of this fork, and so are the blocks behind it, as many as this in all.
    File {
        /// The fork: the relation's own, or the `_init` fork of an unlogged relation.
        of: Relation,
        /// From 1 on.
        blocks: u32,
    },
    /// In the scratch file.
    Built(Located),
    /// In the log only.
    NotBuilt,
}

/// Where the contents of a block come from.
#[derive(Debug)]
pub enum PageOrigin {
    /// From a file, as they are there.
    File {
        /// The segment file. That of the `_init` fork if the relation is unlogged.
        path: PathBuf,
    },
    /// From the log.
    Log {
        /// The segment file to which a server would write the page. It needn't exist.
        path: PathBuf,
        /// The page.
        page: Box<PageBytes>,
        /// The records that it was built from. None if the page is empty: the log extends the relation
        /// to it or cuts off what was there, and no record names it.
        records: PageRecords,
    },
}

impl Relation {
    /// Returns the fork's length in blocks, up to the end of the first segment that isn't full. If
    /// a segment ends mid-block, the partial block isn't counted. Note that we have to check the
    /// length of every segment, so callers shouldn't call this for every block they access.
    ///
    /// If the log names a block that the relation can't have, the length is one block more than it can
    /// have. Reading that block is the error about the record, so a scan reads all other blocks first.
    ///
    /// # Errors
    /// [`StorageError`]: the first segment is missing, a segment is too long, or a length is
    /// unknown.
    pub fn blocks(&self) -> Result<BlockNo, StorageError> {
        let Some(built) = self.storage().built() else { return self.file_blocks() };
        let source = self.source(built)?;
        let in_file = match source.file_blocks() {
            Ok(blocks) => Some(blocks),
            Err(StorageError::SegmentMissing { .. }) => None,
            Err(error) => return Err(error),
        };
        let key = key_of(&source);
        let missing = || StorageError::SegmentMissing { location: source.location(0) };
        let blocks = built.replay().length(&key, in_file).ok_or_else(missing)?;
        let is_longer = built.replay().impossible(&key, in_file).is_some();
        Ok(blocks.saturating_add(BlockNo::from(is_longer)))
    }

    /// The error for a block whose page can't be built.
    fn not_replayed(&self, block: BlockNo, error: PageRedoError) -> StorageError {
        StorageError::Replay { location: self.location(block), source: Box::new(error) }
    }

    /// The error for a page of the file that is newer than the end of the log.
    pub(crate) fn newer(&self, block: BlockNo, found: Lsn) -> StorageError {
        let end = self.storage().replay().map_or(Lsn(0), |replay| replay.report().end);
        self.not_replayed(block, PageRedoError::Newer { found, end })
    }

    /// Returns the location of `block`, opening its segment if necessary. We don't check whether
    /// the block is within the file, because that would take an extra system call for each I/O. If
    /// the block is past the end of the file, the read returns no bytes, and [`Relation::missing`]
    /// then finds out why.
    ///
    /// If the block is in the log only, its page is built first.
    ///
    /// # Errors
    /// [`StorageError`]: the segment is missing or cannot be opened, the number is out of range, or the
    /// page can't be built.
    pub fn locate(&self, block: BlockNo) -> Result<Located, StorageError> {
        let Some(built) = self.storage().built() else { return self.locate_file(block) };
        loop {
            match self.place(built, block)? {
                ReplayedPlace::Built(located) => return Ok(located),
                ReplayedPlace::File { of, blocks } => {
                    return Ok(of.locate_file(block)?.at_most(blocks));
                }
                ReplayedPlace::NotBuilt => self.source(built)?.build(built, block)?,
            }
        }
    }

    /// Whether the segment containing `block` is open, in which case [`Relation::locate`] doesn't
    /// need a system call. If the segment isn't open, the session must submit its staged I/O before
    /// it calls `locate`, because opening the file may block. A session that must not block uses a
    /// `SegmentOpener` instead.
    pub fn is_open(&self, block: BlockNo) -> bool {
        match self.storage().built().map(|built| self.place(built, block)) {
            None => self.is_file_open(block),
            Some(Ok(ReplayedPlace::File { of, .. })) => of.is_file_open(block),
            Some(Ok(ReplayedPlace::Built(_)) | Err(_)) => true,
            Some(Ok(ReplayedPlace::NotBuilt)) => false,
        }
    }

    /// Finds out why a read of `block` returned no bytes: either the file is shorter than the
    /// caller expected, or it was removed.
    pub fn missing(&self, block: BlockNo) -> StorageError {
        match self.blocks() {
            Ok(blocks) => StorageError::BeyondEnd { location: self.location(block), blocks },
            Err(error) => error,
        }
    }

    /// Where a block is. Reads nothing, but looks once whether a relation is unlogged, and how long its
    /// file is.
    pub(super) fn place(
        &self,
        built: &BuiltPages,
        block: BlockNo,
    ) -> Result<ReplayedPlace, StorageError> {
        let source = self.source(built)?;
        let key = key_of(&source);
        let Some(changes) = built.replay().fork(&key) else {
            return Ok(ReplayedPlace::File { of: source, blocks: BlockNo::MAX });
        };
        if changes.exists() == Some(false) {
            return Err(StorageError::SegmentMissing { location: self.location(block) });
        }
        // Behind the end of the file, blocks that no record names are empty: a server has extended the
        // relation by several blocks at once.
        let left = source.in_file(built, &key)?.saturating_sub(block);
        if let PageSource::File { blocks } = changes.source(block)
            && left > 0
        {
            return Ok(ReplayedPlace::File { of: source, blocks: blocks.min(left) });
        }
        Ok(match built.find(&key, block) {
            Some(page) => ReplayedPlace::Built(Located {
                file: page.file,
                offset: page.offset,
                blocks_left: page.run,
            }),
            None => ReplayedPlace::NotBuilt,
        })
    }

    /// Builds a page. If the page before it was built too, the caller is probably a scan, and some pages
    /// behind it are built together with it.
    fn build(&self, built: &BuiltPages, block: BlockNo) -> Result<(), StorageError> {
        let key = key_of(self);
        let in_file = self.in_file(built, &key)?;
        let blocks = self.check_length(built, &key, block)?;
        let is_scan = block.checked_sub(1).is_some_and(|before| built.is_built(&key, before));
        let end = if is_scan { blocks.min(block.saturating_add(AHEAD)) } else { block + 1 };
        let is_to_build = |at: &BlockNo| {
            let is_in_log = *at >= in_file || built.replay().source(&key, *at) == PageSource::Log;
            *at == block || is_in_log && !built.is_built(&key, *at)
        };
        let to_build = (block..end).take_while(is_to_build);
        let to_build = within(RECORDS_MAX, to_build, |at| built.replay().record_count(&key, *at));
        let pages = built.replay().build_all(&key, to_build, |at| read_base(self, at));
        for (at, page) in (block..).zip(pages) {
            let page = page.map_err(|error| error.at(self, at));
            match page.and_then(|page| self.keep(built, (&key, at), &page)) {
                // The session that asks for that page gets the error.
                Err(_) if at > block => break,
                kept => kept?,
            }
        }
        Ok(())
    }

    /// The relation's length, if it has the block. Blocks that the relation can have are built even if the
    /// log also names one that it can't have.
    fn check_length(
        &self,
        built: &BuiltPages,
        key: &ForkKey,
        block: BlockNo,
    ) -> Result<BlockNo, StorageError> {
        let in_file = self.in_file(built, key)?;
        let blocks = built.replay().length(key, Some(in_file)).unwrap_or_default();
        if block < blocks {
            return Ok(blocks);
        }
        Err(match built.replay().impossible(key, Some(in_file)) {
            Some((_, error)) => self.not_replayed(block, error),
            None => StorageError::BeyondEnd { location: self.location(block), blocks },
        })
    }

    /// The fork whose pages this one has at the end of the log: that of an unlogged relation's main fork is
    /// the `_init` fork.
    ///
    /// # Errors
    /// [`StorageError`]: the map of an unlogged relation is gone, or a length is unknown.
    pub fn replayed_fork(&self) -> Result<Fork, StorageError> {
        let Some(built) = self.storage().built() else { return Ok(self.fork()) };
        Ok(self.source(built)?.fork())
    }

    /// Where the contents of a block come from, and if that is the log, its page. The pool and the scratch
    /// file are not used, and a page of the file is not read, so that a damaged one can be shown as it is.
    ///
    /// # Errors
    /// [`StorageError`]: the relation was removed, the block is behind its end, or the page can't be built.
    pub fn page_origin(&self, block: BlockNo) -> Result<PageOrigin, StorageError> {
        let (segment, _) = segment_of(block);
        let Some(built) = self.storage().built() else {
            return Ok(PageOrigin::File { path: self.path(segment) });
        };
        if let ReplayedPlace::File { of, .. } = self.place(built, block)? {
            // The caller knows an unlogged relation by its main fork, whose file may have such a block.
            if of.fork() != self.fork() && block >= of.file_blocks()? {
                return Err(self.missing(block));
            }
            return Ok(PageOrigin::File { path: of.path(segment) });
        }
        let source = self.source(built)?;
        let key = key_of(&source);
        source.check_length(built, &key, block)?;
        let page = built.replay().build(&key, block, || read_base(&source, block));
        let page = page.map_err(|error| error.at(&source, block))?;
        let records = built.replay().records(&key, block);
        let records = records.map_err(|error| source.not_replayed(block, error))?;
        Ok(PageOrigin::Log { path: source.path(segment), page, records })
    }

    fn keep(
        &self,
        built: &BuiltPages,
        (key, block): (&ForkKey, BlockNo),
        page: &PageBytes,
    ) -> Result<(), StorageError> {
        let kept = built.keep(key, block, page, self.storage().system());
        kept.map_err(|source| scratch_error("write to a file without a name in", built, source))
    }

    /// The length of the fork's file, which doesn't change.
    fn in_file(&self, built: &BuiltPages, key: &ForkKey) -> Result<BlockNo, StorageError> {
        if let Some(blocks) = built.in_file(key) {
            return Ok(blocks);
        }
        let blocks = match self.file_blocks() {
            Ok(blocks) => blocks,
            Err(StorageError::SegmentMissing { .. }) => 0,
            Err(error) => return Err(error),
        };
        built.set_in_file(key, blocks);
        Ok(blocks)
    }

    /// The fork whose pages this fork has: its own, or the `_init` fork if it is the main fork of an unlogged
    /// relation. The maps of an unlogged relation are missing, since recovery removes them.
    fn source(&self, built: &BuiltPages) -> Result<Relation, StorageError> {
        if self.fork() == Fork::Init {
            return Ok(self.clone());
        }
        let init = self.storage().relation(self.locator(), Fork::Init);
        match (init.is_init(built)?, self.fork()) {
            (false, _) => Ok(self.clone()),
            (true, Fork::Main) => Ok(init),
            (true, _) => Err(StorageError::SegmentMissing { location: self.location(0) }),
        }
    }

    /// Whether this `_init` fork exists as of the end of the log, which means that the relation is unlogged.
    fn is_init(&self, built: &BuiltPages) -> Result<bool, StorageError> {
        if let Some(known) = built.is_unlogged(self.locator()) {
            return Ok(known);
        }
        let is_unlogged = match built.replay().fork(&key_of(self)).and_then(ForkChanges::exists) {
            Some(exists) => exists,
            None => match self.file_blocks() {
                Ok(_) => true,
                Err(StorageError::SegmentMissing { .. }) => false,
                Err(error) => return Err(error),
            },
        };
        built.set_unlogged(self.locator(), is_unlogged);
        Ok(is_unlogged)
    }
}

/// The first of the blocks, up to the one with which they have `most` records.
fn within(
    most: u32,
    blocks: impl Iterator<Item = BlockNo>,
    record_count: impl Fn(&BlockNo) -> u32,
) -> impl Iterator<Item = BlockNo> {
    let mut records = 0_u32;
    blocks.take_while(move |at| {
        let has_room = records < most;
        records = records.saturating_add(record_count(at));
        has_room
    })
}

fn key_of(relation: &Relation) -> ForkKey {
    (relation.locator().into(), relation.fork())
}

fn scratch_error(operation: &'static str, built: &BuiltPages, source: io::Error) -> StorageError {
    StorageError::Io { operation, path: built.replay().scratch().to_owned(), source }
}

/// Why a page could not be built, before its location is known.
enum BuildError {
    Redo(PageRedoError),
    Storage(StorageError),
}

impl From<PageRedoError> for BuildError {
    fn from(error: PageRedoError) -> Self {
        Self::Redo(error)
    }
}

impl BuildError {
    fn at(self, relation: &Relation, block: BlockNo) -> StorageError {
        match self {
            Self::Redo(source) => {
                let location = relation.location(block);
                StorageError::Replay { location, source: Box::new(source) }
            }
            Self::Storage(error) => error,
        }
    }
}

/// Reads a block of the relation's file. `None` if the file doesn't have it as a whole.
fn read_base(relation: &Relation, block: BlockNo) -> Result<Option<Box<PageBytes>>, BuildError> {
    let (segment, offset) = segment_of(block);
    let path: PathBuf = relation.path(segment);
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = match StdFile::options().read(true).custom_flags(flags).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let error = StorageError::opening(relation.location(block), false, error);
            return Err(BuildError::Storage(error));
        }
    };
    let mut page = Box::new([0; BLOCK_SIZE]);
    match file.read_exact_at(&mut page[..], offset) {
        Ok(()) => Ok(Some(page)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(source) => {
            Err(BuildError::Storage(StorageError::Io { operation: "read file", path, source }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_many_records_are_not_built_together() {
        let counts = [3, 5, 2, 10, 100, 1];
        for (most, expected) in
            [(0, 0), (1, 1), (3, 1), (4, 2), (10, 3), (11, 4), (20, 4), (21, 5), (121, 6)]
        {
            let blocks = within(most, 7..13, |at| counts[*at as usize - 7]);
            assert_eq!(blocks.collect::<Vec<_>>(), (7..7 + expected).collect::<Vec<_>>(), "{most}");
        }
        let huge = within(RECORDS_MAX, 0..3, |_| u32::MAX);
        assert_eq!(huge.collect::<Vec<_>>(), [0], "a page that is too large is built alone");
    }
}
