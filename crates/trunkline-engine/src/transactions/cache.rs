//! The pages that were read last: a clock over a fixed number of places.
//! A file that is missing is remembered too, or every row would look for it again.

use trunkline_aio::sync::hash::Map;
use trunkline_format::PageBytes;

use super::Kind;

/// Pages that are kept: a mebibyte, the fates of four million transactions.
const PAGES_MAX: usize = 128;

/// Which page.
pub(super) type Key = (Kind, u64);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Cache {
    places: Vec<Entry>,
    index: Map<Key, usize>,
    hand: usize,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    /// `None`: there is no file.
    page: Option<Box<PageBytes>>,
    used: bool,
}

impl Cache {
    /// What `look` sees in a page: `None` if it is not cached, `Some(None)` if it has no file.
    pub(super) fn get<T>(
        &mut self,
        key: &Key,
        look: impl Fn(&PageBytes) -> T,
    ) -> Option<Option<T>> {
        let entry = self.places.get_mut(*self.index.get(key)?)?;
        entry.used = true;
        Some(entry.page.as_deref().map(look))
    }

    /// Keeps a page, in place of one that was not used lately if there are enough.
    pub(super) fn insert(&mut self, key: Key, page: Option<Box<PageBytes>>) {
        let entry = Entry { key, page, used: false };
        // Somebody else may have read it meanwhile.
        if let Some(place) = self.index.get(&key).and_then(|&at| self.places.get_mut(at)) {
            *place = entry;
            return;
        }
        if self.places.len() < PAGES_MAX {
            self.index.insert(key, self.places.len());
            self.places.push(entry);
            return;
        }
        let at = self.victim();
        if let Some(place) = self.places.get_mut(at) {
            self.index.remove(&place.key);
            *place = entry;
            self.index.insert(key, at);
        }
    }

    /// The next place that was not used since the hand came by last.
    fn victim(&mut self) -> usize {
        loop {
            let at = self.hand % PAGES_MAX;
            self.hand = at + 1;
            match self.places.get_mut(at) {
                Some(entry) if entry.used => entry.used = false,
                _ => return at,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_format::BLOCK_SIZE;

    #[test]
    fn the_used_stay() {
        let mut cache = Cache::default();
        let first = |cache: &mut Cache, page| cache.get(&(Kind::CommitLog, page), |page| page[0]);
        for page in 1..1000 {
            let bytes = (page % 3 > 0).then(|| Box::new([page as u8; BLOCK_SIZE]));
            cache.insert((Kind::CommitLog, page), bytes);
            assert_eq!(first(&mut cache, 1), Some(Some(1)), "used all the time");
            // Without a look of the cache's own: a page that was looked at once is used as well.
            let entry = &cache.places[cache.index[&(Kind::CommitLog, page)]];
            let expected = (page % 3 > 0).then_some(page as u8);
            assert_eq!(entry.page.as_deref().map(|page| page[0]), expected);
        }
        assert_eq!((cache.places.len(), cache.index.len()), (PAGES_MAX, PAGES_MAX));
        assert_eq!(first(&mut cache, 2), None);
        assert_eq!(cache.get(&(Kind::Members, 999), |_| ()), None);
        cache.insert((Kind::CommitLog, 999), None);
        assert_eq!(first(&mut cache, 999), Some(None));
    }
}
