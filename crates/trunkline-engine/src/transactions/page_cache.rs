//! A small page cache for SLRU files with clock replacement, the counterpart of the buffers in
//! PostgreSQL's `slru.c`.
//!
//! The cache also remembers which pages don't exist. Otherwise, we would try to open a missing file
//! again for every row that needs it.

use trunkline_aio::facade::Arc;
use trunkline_aio::facade::hash::Map;
use trunkline_format::PageBytes;
use trunkline_format::transam::Slru;

use super::error::SlruFault;

/// Maximum number of cached pages. They take 1 MiB and hold the statuses of four million
/// transactions.
const PAGES_MAX: usize = 128;

/// The kind of SLRU file, and the page number within it.
pub(super) type Key = (Slru, u64);

/// The cache. A single mutex protects all of it. That's good enough, because each scan searches its
/// own [`StatusPages`](super::StatusPages) first and rarely needs this cache.
#[derive(Debug, Default)]
pub(super) struct PageCache {
    entries: Vec<Entry>,
    index: Map<Key, usize>,
    /// The clock hand: the entry at which the next search for a victim starts.
    hand: usize,
}

/// A page, or the reason why it does not exist. Scans that use the page share it with the cache.
pub(super) type CachedPage = Result<Arc<PageBytes>, Arc<SlruFault>>;

/// Whether the next attempt to read the page would have the same result. After an I/O error, it may
/// succeed.
pub(super) fn is_lasting(page: &CachedPage) -> bool {
    page.as_ref().err().is_none_or(|fault| fault.is_absent())
}

/// A cached page, or a page that we know does not exist.
#[derive(Debug)]
struct Entry {
    key: Key,
    page: CachedPage,
    /// Whether the entry has been used since the clock hand last passed it.
    used: bool,
}

impl PageCache {
    /// Looks up a page. Returns `None` if the page isn't in the cache, and an error if we know from
    /// the cache that the page doesn't exist.
    pub(super) fn get(&mut self, key: &Key) -> Option<CachedPage> {
        let entry = self.entries.get_mut(*self.index.get(key)?)?;
        entry.used = true;
        Some(entry.page.clone())
    }

    /// Adds a page. If the cache is full, the page replaces one that hasn't been used recently.
    pub(super) fn insert(&mut self, key: Key, page: CachedPage) {
        let entry = Entry { key, page, used: false };
        // Another session may have read and inserted the same page in the meantime.
        if let Some(place) = self.index.get(&key).and_then(|&at| self.entries.get_mut(at)) {
            *place = entry;
            return;
        }
        if self.entries.len() < PAGES_MAX {
            self.index.insert(key, self.entries.len());
            self.entries.push(entry);
            return;
        }
        let at = self.victim();
        if let Some(place) = self.entries.get_mut(at) {
            self.index.remove(&place.key);
            *place = entry;
            self.index.insert(key, at);
        }
    }

    /// Clock sweep: advances the hand to the first entry that hasn't been used since the hand last
    /// passed it, clearing the used bits along the way. The loop ends after at most one full sweep,
    /// because by then the hand has cleared every used bit.
    fn victim(&mut self) -> usize {
        loop {
            let at = self.hand % PAGES_MAX;
            self.hand = at + 1;
            match self.entries.get_mut(at) {
                Some(entry) if entry.used => entry.used = false,
                _ => return at,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::SlruProblem;
    use super::*;
    use trunkline_format::BLOCK_SIZE;

    #[test]
    fn pages_in_use_are_not_replaced() {
        let mut cache = PageCache::default();
        let fault = Arc::new(SlruFault {
            path: "pg_xact/0000".into(),
            offset: 0,
            problem: SlruProblem::Missing,
        });
        let first = |cache: &mut PageCache, page| {
            Some(cache.get(&(Slru::CommitLog, page))?.ok().map(|page| page[0]))
        };
        for page in 1..1000 {
            let missing = || Arc::clone(&fault);
            let bytes = Some(Arc::new([page as u8; BLOCK_SIZE])).filter(|_| page % 3 > 0);
            cache.insert((Slru::CommitLog, page), bytes.ok_or_else(missing));
            assert_eq!(first(&mut cache, 1), Some(Some(1)), "used all the time");
            // Not through get(), which would mark the page as used.
            let entry = &cache.entries[cache.index[&(Slru::CommitLog, page)]];
            let expected = (page % 3 > 0).then_some(page as u8);
            assert_eq!(entry.page.as_deref().ok().map(|page| page[0]), expected);
        }
        assert_eq!((cache.entries.len(), cache.index.len()), (PAGES_MAX, PAGES_MAX));
        assert_eq!(first(&mut cache, 2), None);
        assert!(cache.get(&(Slru::Members, 999)).is_none());
        cache.insert((Slru::CommitLog, 999), Err(fault));
        assert_eq!(first(&mut cache, 999), Some(None));
    }
}
