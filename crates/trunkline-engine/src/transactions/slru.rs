//! The cluster's SLRU files: commit log, multixact offsets and multixact members.
//!
//! An SLRU consists of segments of 32 pages without page headers. Without a header there is no data
//! checksum, so damage in these files only shows up as implausible contents. We report a missing
//! segment as missing, and the caller decides whether that is an error.

use std::io;
use std::path::PathBuf;

use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Class, File, Session, Slots, Status};
use trunkline_format::transam::multixact::{self, MultixactLayout};
use trunkline_format::transam::{SlruPosition, commit_log};
use trunkline_format::{BLOCK_SIZE, PageBytes, PgVersion};

use super::error::TransactionError;
use super::page_cache::{PageCache, Slru};
use crate::storage::Storage;

/// How many times we try to read a page that is entirely within the file. If a read returns short,
/// we read the page again from its beginning.
const READS_MAX: u32 = 8;

/// The SLRU files of one cluster, with their cached pages. Every lookup reads through
/// [`SlruFiles::look`].
#[derive(Debug)]
pub(super) struct SlruFiles {
    storage: Storage,
    layout: MultixactLayout,
    cache: Mutex<PageCache>,
}

impl SlruFiles {
    /// The files of a cluster of this version. Reads nothing yet.
    pub(super) fn new(storage: &Storage, version: PgVersion) -> Self {
        let layout = MultixactLayout::of(version);
        Self { storage: storage.clone(), layout, cache: Mutex::default() }
    }

    /// The layout of the multixact files.
    pub(super) fn layout(&self) -> MultixactLayout {
        self.layout
    }

    /// Passes a page to `look`, reading it first if it isn't cached. Returns `None` if its file is
    /// missing.
    ///
    /// We don't hold the lock during the read, because other scans must not have to wait for our
    /// I/O. Two scans can therefore read the same page concurrently, in which case the second one
    /// replaces the entry with identical contents.
    pub(super) fn look<T>(
        &self,
        session: &mut Session,
        slru: Slru,
        place: SlruPosition,
        look: impl Fn(&PageBytes) -> T,
    ) -> Result<Option<T>, TransactionError> {
        let key = (slru, place.page);
        if let Some(found) = self.cache.lock().get(&key, &look) {
            return Ok(found);
        }
        let page = self.read(session, slru, place)?;
        let found = page.as_deref().map(&look);
        self.cache.lock().insert(key, page);
        Ok(found)
    }

    /// Reads a page. Bytes beyond the end of the file read as zeros. Returns `None` if the file
    /// doesn't exist. This is the only place that decides what a missing or short file means for a
    /// page.
    fn read(
        &self,
        session: &mut Session,
        slru: Slru,
        place: SlruPosition,
    ) -> Result<Option<Box<PageBytes>>, TransactionError> {
        let path = self.path(slru, place.segment());
        let offset = SlruPosition { byte: 0, ..place }.offset();
        let io = |source: io::Error| TransactionError::Io {
            path: path.clone(),
            offset,
            source: Arc::new(source),
        };
        let system = self.storage.system();
        // Never use direct I/O here: the server also reads and writes these files through the page
        // cache.
        let file = match system.open(&path, false) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
        };
        // Note that we don't continue a short read where it ended, but repeat the whole read. Short
        // reads are so rare here that resuming them isn't worth the code.
        for _ in 0..READS_MAX {
            // If the file ends there, the read is complete even though it's short. Ask for the
            // length every time, in case the file has changed.
            let length = system.length(&file).map_err(io)?.saturating_sub(offset);
            let wanted = length.min(BLOCK_SIZE as u64) as usize;
            let (page, found) = match read_page(session, &file, offset)? {
                Ok(read) => read,
                Err(error) => return Err(io(error)),
            };
            if found >= wanted {
                return Ok(Some(page));
            }
        }
        Err(io(io::ErrorKind::UnexpectedEof.into()))
    }

    /// A segment's path. Segment names have different lengths in different PostgreSQL versions.
    pub(super) fn path(&self, slru: Slru, segment: u64) -> PathBuf {
        let (directory, name) = match slru {
            Slru::CommitLog => (commit_log::DIRECTORY, commit_log::segment_name(segment)),
            Slru::Offsets => (multixact::OFFSETS_DIRECTORY, self.layout.offsets_name(segment)),
            Slru::Members => (multixact::MEMBERS_DIRECTORY, self.layout.members_name(segment)),
        };
        self.storage.root().join(directory).join(name)
    }
}

/// Reads one page into a leased frame. Returns the frame and the number of bytes read; the rest of
/// the frame is zero.
fn read_page(
    session: &mut Session,
    file: &File,
    offset: u64,
) -> Result<io::Result<(Box<PageBytes>, usize)>, TransactionError> {
    // Lease the frame from the page region, which is registered with the rings.
    let lease = session.lease(1).ok_or(TransactionError::Memory)?;
    let mut slots = Slots::new(1);
    if let Some(memory) = slots.memory(0) {
        memory.push(lease);
    }
    let io = session.acquire(Class::Foreground)?.needed_now();
    if let Err(error) = io.read(file, offset, BLOCK_SIZE as u32, &mut slots, 0) {
        return Ok(Err(io::Error::other(error)));
    }
    let outcome = session.wait(&mut slots, 0)?;
    if outcome.status == Status::Error {
        return Ok(Err(io::Error::from_raw_os_error(outcome.detail as i32)));
    }
    // Copy the page out and release the frame, because frames are scarce and cached pages live
    // long.
    let mut page = Box::new([0; BLOCK_SIZE]);
    let found = (outcome.count as usize).min(BLOCK_SIZE);
    if let Some(frame) = slots.memory(0).and_then(|memory| memory.first())
        && let (Some(to), Some(from)) = (page.get_mut(..found), frame.get(..found))
    {
        to.copy_from_slice(from);
    }
    Ok(Ok((page, found)))
}
