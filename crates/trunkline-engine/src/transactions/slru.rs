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
use trunkline_format::transam::Slru;
use trunkline_format::transam::multixact::MultixactLayout;

use super::page_cache::{CachedPage, Key, PageCache, is_lasting};
use crate::storage::Storage;

/// The SLRU files of one cluster, and a cache of their pages.
#[derive(Debug)]
pub(super) struct SlruFiles {
    storage: Storage,
    layout: MultixactLayout,
    cache: Mutex<PageCache>,
    /// The last read of each page, until the session that issued it has got the page. If that
    /// session gives up, it remains here until the next read of the page, but its I/O has ended or
    /// will end without that session.
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
    ///
    /// If the cluster is read through its log, the log may have changed the page. The replay then has
    /// all of it, whatever is in the file.
    pub(super) fn cached(&self, key: &Key) -> Option<CachedPage> {
        if let Some(replay) = self.storage.replay()
            && let Some(page) = replay.status_page(key.0, key.1)
        {
            return Some(Ok(page));
        }
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

    /// Adds a page that was just read, by `io` if it exists, to the cache. If two sessions read the
    /// same page after all, the second one just replaces the cached page with an identical copy.
    pub(super) fn remember(&self, key: Key, io: Option<WaitRef>, page: &CachedPage) {
        if is_lasting(page) {
            self.cache.lock().insert(key, page.clone());
        }
        // Another session's later read may still be in flight.
        let mut reads = self.reads.lock();
        if reads.get(&key).copied() == io {
            reads.remove(&key);
        }
    }

    /// Returns the path of a segment.
    pub(super) fn path(&self, slru: Slru, segment: u64) -> PathBuf {
        self.storage.root().join(slru.path(self.layout, segment))
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::{SlruFault, SlruProblem};
    use super::*;
    use crate::storage::{Layout, OpenFiles};
    use std::io;
    use trunkline_aio::facade::Arc;
    use trunkline_aio::{Builder, Class, MethodKind};

    /// A page could not be read, so another session reads it again. When the first session learns
    /// of its error, others must still find the second read.
    #[test]
    fn only_the_own_read_of_a_page_is_forgotten() {
        let aio = Builder::new().method(MethodKind::Sync).region_bytes(1 << 20).start();
        let aio = aio.expect("starts");
        let layout = Layout { checksums: true, tablespace_directory: "PG_18_202506291".into() };
        let storage = Storage::new(".".as_ref(), layout, &OpenFiles::kernel(&aio, 4), false);
        let (files, key) = (SlruFiles::new(&storage, PgVersion::V18), (Slru::CommitLog, 0));
        let mut session = aio.session().expect("a session");
        let mut read = || session.try_acquire(Class::Foreground).expect("a handle").wait_ref();
        let (first, second) = (read(), read());
        assert_ne!(first, second);
        assert_eq!(files.note_read(key, None, first), None);
        assert_eq!(files.note_read(key, Some(first), second), None);
        let problem = SlruProblem::Read(io::ErrorKind::Other.into());
        let failed = Err(Arc::new(SlruFault { path: "pg_xact/0000".into(), offset: 0, problem }));
        for (io, left) in [(Some(first), Some(second)), (None, Some(second)), (Some(second), None)]
        {
            files.remember(key, io, &failed);
            assert_eq!(files.last_read(&key), left);
        }
        assert!(files.cached(&key).is_none());
    }
}
