//! The cluster's SLRU files: commit log, multixact offsets and multixact members.
//!
//! An SLRU is stored in segments of 32 pages each. The pages have no header and therefore no
//! checksum, so we can only notice damage in these files if their contents are implausible, or if
//! a page doesn't exist. In the latter case, the caller decides whether the page must exist.

use std::path::PathBuf;

use trunkline_aio::facade::Mutex;
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

    /// The cluster.
    pub(super) fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Returns a page if it is cached.
    pub(super) fn cached(&self, key: &Key) -> Option<CachedPage> {
        self.cache.lock().get(key)
    }

    /// Adds a page that was just read to the cache. Two scans may read the same page at the same
    /// time. That's harmless, because the second scan just replaces the cached page with an
    /// identical copy.
    pub(super) fn remember(&self, key: Key, page: &CachedPage) {
        // Don't remember I/O errors, because the next attempt to read the page may succeed.
        if page.as_ref().err().is_none_or(|fault| fault.is_absent()) {
            self.cache.lock().insert(key, page.clone());
        }
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
