//! The cluster's SLRU files: commit log, multixact offsets and multixact members.
//!
//! An SLRU is stored in segments of 32 pages each. The pages have no header and therefore no
//! checksum, so we can only notice damage in these files if their contents are implausible, or if
//! a page doesn't exist. In the latter case, the caller decides whether the page must exist.

use std::io;
use std::path::PathBuf;

use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Class, File, Session, Slots, Status};
use trunkline_format::transam::multixact::{self, MultixactLayout};
use trunkline_format::transam::{SlruPosition, commit_log};
use trunkline_format::{BLOCK_SIZE, PageBytes, PgVersion};

use super::error::{SlruFault, SlruProblem, StatusId, TransactionError};
use super::page_cache::{CachedPage, PageCache, Slru};
use crate::storage::Storage;

/// Maximum number of attempts to read a page that is entirely within the file. After a short read,
/// we read the whole page again.
const READS_MAX: u32 = 8;

/// The SLRU files of one cluster, and a cache of their pages. Every lookup goes through
/// [`SlruFiles::look`].
#[derive(Debug)]
pub(super) struct SlruFiles {
    storage: Storage,
    layout: MultixactLayout,
    cache: Mutex<PageCache>,
}

impl SlruFiles {
    /// The SLRU files of a cluster with the given version. Doesn't read anything yet.
    pub(super) fn new(storage: &Storage, version: PgVersion) -> Self {
        let layout = MultixactLayout::of(version);
        Self { storage: storage.clone(), layout, cache: Mutex::default() }
    }

    /// The layout of the multixact files.
    pub(super) fn layout(&self) -> MultixactLayout {
        self.layout
    }

    /// Looks up the page for `id`, reading it if it isn't cached, and passes it to `look`.
    ///
    /// We don't hold the lock while reading the page, because otherwise other scans would have to
    /// wait for our I/O. Two scans may therefore read the same page at the same time. That's
    /// harmless, because the second scan just replaces the cached page with an identical copy.
    ///
    /// # Errors
    /// [`TransactionError::Status`] if the page doesn't exist or cannot be read.
    pub(super) fn look<T>(
        &self,
        session: &mut Session,
        id: StatusId,
        slru: Slru,
        place: SlruPosition,
        look: impl Fn(&PageBytes) -> T,
    ) -> Result<T, TransactionError> {
        let key = (slru, place.page);
        let status = |fault| TransactionError::Status { id, fault };
        if let Some(found) = self.cache.lock().get(&key, &look) {
            return found.map_err(status);
        }
        let page = self.read(session, slru, place)?;
        let found = page.as_deref().map(&look).map_err(Arc::clone);
        // Don't remember I/O errors, because the next attempt to read the page may succeed.
        if page.as_ref().err().is_none_or(|fault| fault.is_absent()) {
            self.cache.lock().insert(key, page);
        }
        found.map_err(status)
    }

    /// Reads a page. PostgreSQL extends these files by whole pages and refuses to read a partial
    /// one, so if the file ends before the end of the page, we treat the page as missing. No other
    /// function has to deal with short files, but the caller must decide what a missing page means.
    fn read(
        &self,
        session: &mut Session,
        slru: Slru,
        place: SlruPosition,
    ) -> Result<CachedPage, TransactionError> {
        let path = self.path(slru, place.segment());
        let offset = SlruPosition { byte: 0, ..place }.offset();
        let fault = |problem| Ok(Err(Arc::new(SlruFault { path: path.clone(), offset, problem })));
        let system = self.storage.system();
        // Never use direct I/O here: the server also reads and writes these files through the page
        // cache.
        let file = match system.open(&path, false) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return fault(SlruProblem::Missing);
            }
            Err(error) => return fault(SlruProblem::Open(error)),
        };
        // Note that after a short read, we don't continue where it ended but read the whole page
        // again. Short reads are so rare here that it isn't worth adding code to resume them.
        for _ in 0..READS_MAX {
            // If the file ends within this page, a short read is all we can get. We check the
            // file's length on every attempt, in case it has changed.
            let length = match system.length(&file) {
                Ok(length) => length.saturating_sub(offset),
                Err(error) => return fault(SlruProblem::Read(error)),
            };
            let (page, found) = match read_page(session, &file, offset)? {
                Ok(read) => read,
                Err(error) => return fault(SlruProblem::Read(error)),
            };
            if found == BLOCK_SIZE {
                return Ok(Ok(page));
            }
            if found as u64 >= length {
                return fault(SlruProblem::Short { found });
            }
        }
        fault(SlruProblem::Read(io::ErrorKind::UnexpectedEof.into()))
    }

    /// Returns the path of a segment. The length of segment names depends on the PostgreSQL
    /// version.
    pub(super) fn path(&self, slru: Slru, segment: u64) -> PathBuf {
        let (directory, name) = match slru {
            Slru::CommitLog => (commit_log::DIRECTORY, commit_log::segment_name(segment)),
            Slru::Offsets => (multixact::OFFSETS_DIRECTORY, self.layout.offsets_name(segment)),
            Slru::Members => (multixact::MEMBERS_DIRECTORY, self.layout.members_name(segment)),
        };
        self.storage.root().join(directory).join(name)
    }
}

/// Reads one page into a leased frame. Returns a copy of the page and the number of bytes read. Any
/// bytes that weren't read are zero.
fn read_page(
    session: &mut Session,
    file: &File,
    offset: u64,
) -> Result<io::Result<(Box<PageBytes>, usize)>, TransactionError> {
    // Lease the frame from the page region, because that memory is registered with the rings.
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
    // Copy the page and release the frame. There aren't many frames, and we may keep the page in
    // the cache for a long time.
    let mut page = Box::new([0; BLOCK_SIZE]);
    let found = (outcome.count as usize).min(BLOCK_SIZE);
    if let Some(frame) = slots.memory(0).and_then(|memory| memory.first())
        && let (Some(to), Some(from)) = (page.get_mut(..found), frame.get(..found))
    {
        to.copy_from_slice(from);
    }
    Ok(Ok((page, found)))
}
