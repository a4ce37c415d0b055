//! The cluster's SLRU files: commit log, multixact offsets and multixact members.
//!
//! An SLRU is stored in segments of 32 pages each. The pages have no header and therefore no
//! checksum, so we can only notice damage in these files if their contents are implausible, or if
//! a page doesn't exist. In the latter case, the caller decides whether the page must exist.

use std::path::PathBuf;

use trunkline_aio::WaitRef;
use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::hash::Map;
use trunkline_format::PgVersion;
use trunkline_format::transam::commit_log;
use trunkline_format::transam::multixact::{self, MultixactLayout};

use super::page_cache::{CachedPage, Key, PageCache, Slru};
use crate::storage::Storage;

/// The SLRU files of one cluster, and a cache of their pages.
#[derive(Debug)]
pub(super) struct SlruFiles {
    storage: Storage,
    layout: MultixactLayout,
    cache: Mutex<PageCache>,
    /// The last read of each page that isn't in the cache. If the session that issued it gives up,
    /// it remains here, but by then its I/O has ended or will end without that session.
    reads: Mutex<Map<Key, WaitRef>>,
}

impl SlruFiles {
    /// The SLRU files of a cluster with the given version. Doesn't read anything yet.
    pub(super) fn new(storage: &Storage, version: PgVersion) -> Self {
        let layout = MultixactLayout::of(version);
        let (cache, reads) = (Mutex::default(), Mutex::default());
        Self { storage: storage.clone(), layout, cache, reads }
    }

    /// The layout of the multixact files.
    pub(super) fn layout(&self) -> MultixactLayout {
        self.layout
    }

    /// The cluster.
    pub(super) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Returns a page if it is cached.
    pub(super) fn cached(&self, key: &Key) -> Option<CachedPage> {
        self.cache.lock().get(key)
    }

    /// Returns the last read of a page, which may have completed.
    pub(super) fn last_read(&self, key: &Key) -> Option<WaitRef> {
        self.reads.lock().get(key).copied()
    }

    /// Notes that `io` is about to read a page, provided that `before` is still the page's last
    /// read. If another session was faster, returns that session's read instead.
    pub(super) fn note_read(
        &self,
        key: Key,
        before: Option<WaitRef>,
        io: WaitRef,
    ) -> Option<WaitRef> {
        let mut reads = self.reads.lock();
        let faster = reads.get(&key).copied().filter(|last| before != Some(*last));
        if faster.is_none() {
            reads.insert(key, io);
        }
        faster
    }

    /// Adds a page that was just read to the cache. If two sessions read the same page after all,
    /// the second one just replaces the cached page with an identical copy.
    pub(super) fn remember(&self, key: Key, page: &CachedPage) {
        // Don't remember I/O errors, because the next attempt to read the page may succeed.
        if page.as_ref().err().is_none_or(|fault| fault.is_absent()) {
            self.cache.lock().insert(key, page.clone());
        }
        self.reads.lock().remove(&key);
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
