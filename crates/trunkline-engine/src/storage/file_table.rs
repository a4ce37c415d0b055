//! Open files, never more than a limit, shared by all clusters of an instance.
//!
//! ```text
//!   key ──▶ shard ──▶ map: key ──▶ place in the clock      [f][f ✓][ ][f]
//!                                                             ▲ hand
//! ```
//! Which file has to go is decided by a clock in each shard: the hand passes over files that were
//! used since it came by last. A file that is used once therefore goes before one that is used again
//! and again, so that walking over thousands of small relations does not push out the large ones. A
//! file gives up its place only here: whoever reads from it has a clone, and the descriptor is closed
//! with the last of them. Files are opened and closed outside the locks, since both may block.

use std::fmt;
use std::hash::{Hash, Hasher};

use trunkline_aio::File;
use trunkline_aio::sync::Mutex;
use trunkline_aio::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use trunkline_aio::sync::hash::Map;
use trunkline_format::Fork;
use trunkline_format::segment::LAST_SEGMENT;

use super::{RelationLocator, StorageError};

/// Shards of a large table.
const SHARDS_MAX: usize = 16;

/// Places that a shard should have at least: a clock of few places is a poor one.
const SHARD_PLACES_MIN: usize = 32;

/// A segment file of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    locator: RelationLocator,
    storage: u16,
    segment: u16,
    fork: Fork,
}

const _: () = assert!(LAST_SEGMENT <= u16::MAX as u32);

impl Key {
    pub(super) fn new(storage: u16, locator: RelationLocator, fork: Fork, segment: u32) -> Self {
        debug_assert!(segment <= LAST_SEGMENT);
        Self { locator, storage, segment: segment as u16, fork }
    }

    /// The key in two words, the larger differences in the second.
    fn words(&self) -> [u64; 2] {
        let RelationLocator { tablespace, database, relfilenode } = self.locator;
        let high = u64::from(tablespace.0) << 32 | u64::from(database.0);
        let file = u64::from(self.segment) << 17 | u64::from(self.storage) << 1;
        let low = u64::from(relfilenode) << 32 | file;
        [high ^ (self.fork as u64) << 30, low]
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [high, low] = self.words();
        state.write_u64(high);
        state.write_u64(low);
    }
}

/// See the module.
pub(super) struct FileTable {
    shards: Box<[Mutex<Shard>]>,
    limit: usize,
    /// Files in the table, and those about to be.
    places: AtomicUsize,
    /// The shard that is to give up a file next.
    hand: AtomicUsize,
    opens: AtomicU64,
    evictions: AtomicU64,
}

#[derive(Default)]
struct Shard {
    index: Map<Key, usize>,
    clock: Vec<Option<Entry>>,
    free: Vec<usize>,
    hand: usize,
    hits: u64,
    /// Moves with every forgetting: a file whose opening began before must not be entered.
    epoch: u64,
}

struct Entry {
    key: Key,
    file: File,
    used: bool,
}

impl FileTable {
    /// A table of at most `limit` files, at least 1. While more than `limit` threads open files at
    /// the same time, there may be one more for each; and a file that was evicted during an I/O
    /// stays open until that I/O is over.
    pub(super) fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        let shards = (limit / SHARD_PLACES_MIN).clamp(1, SHARDS_MAX);
        Self {
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            limit,
            places: AtomicUsize::new(0),
            hand: AtomicUsize::new(0),
            opens: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
        }
    }

    /// The most files that it keeps open.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Files in the table now, those being opened included.
    pub(super) fn open(&self) -> usize {
        self.places.load(Ordering::SeqCst)
    }

    /// Times that a file was wanted and was open, since the start.
    pub(super) fn hits(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().hits).sum()
    }

    /// Times that a file was opened, since the start.
    pub(super) fn opens(&self) -> u64 {
        self.opens.load(Ordering::SeqCst)
    }

    /// Files that had to go for another one, since the start.
    pub(super) fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::SeqCst)
    }

    /// The file of `key`, by `open` if it is not here. When descriptors are short, others are closed
    /// for it, more with each attempt.
    pub(super) fn get(
        &self,
        key: Key,
        open: impl Fn() -> Result<File, StorageError>,
    ) -> Result<File, StorageError> {
        let shard = self.shard(&key);
        let epoch = {
            let mut shard = shard.lock();
            if let Some(file) = shard.find(&key) {
                return Ok(file);
            }
            shard.epoch
        };
        let place = self.take_place();
        let file = self.open_file(open)?;
        let (file, mine) = {
            let mut shard = shard.lock();
            match shard.find_again(&key) {
                // Somebody was faster. Ours is closed by and by, outside the lock.
                Some(theirs) => (theirs, Some(file)),
                None => {
                    if shard.epoch == epoch {
                        shard.enter(key, file.clone());
                        place.keep();
                    }
                    (file, None)
                }
            }
        };
        drop(mine);
        Ok(file)
    }

    /// The file of `key` if it is open. Does not count as a use.
    pub(super) fn peek(&self, key: &Key) -> Option<File> {
        self.shard(key).lock().find_again(key)
    }

    /// Lets go of all files of a relation, or of a whole cluster.
    pub(super) fn forget(&self, storage: u16, locator: Option<RelationLocator>) {
        let wanted = |key: &Key| {
            key.storage == storage && locator.is_none_or(|locator| locator == key.locator)
        };
        for shard in &self.shards {
            let forgotten = shard.lock().forget(wanted);
            self.places.fetch_sub(forgotten.len(), Ordering::SeqCst);
        }
    }

    fn open_file(
        &self,
        open: impl Fn() -> Result<File, StorageError>,
    ) -> Result<File, StorageError> {
        let mut count = 1;
        loop {
            match open() {
                Err(error) if error.is_shortage() && self.evict_many(count) => count *= 2,
                opened => {
                    self.opens.fetch_add(u64::from(opened.is_ok()), Ordering::SeqCst);
                    return opened;
                }
            }
        }
    }

    /// A place for one more file, at the cost of another one if the table is full.
    fn take_place(&self) -> Place<'_> {
        self.places.fetch_add(1, Ordering::SeqCst);
        while self.open() > self.limit && self.evict() {}
        Place(self)
    }

    /// Lets go of several files; false if there was none.
    fn evict_many(&self, count: usize) -> bool {
        (0..count).take_while(|_| self.evict()).count() > 0
    }

    /// Lets go of one file, of a shard that has its share of them, if there is one.
    fn evict(&self) -> bool {
        let share = self.limit / self.shards.len();
        for least in [share, 1] {
            for _ in 0..self.shards.len() {
                let at = self.hand.fetch_add(1, Ordering::SeqCst) % self.shards.len();
                let victim = self.shards[at].lock().evict(least);
                // Closed here, after the lock.
                if victim.is_some() {
                    self.places.fetch_sub(1, Ordering::SeqCst);
                    self.evictions.fetch_add(1, Ordering::SeqCst);
                    return true;
                }
            }
        }
        false
    }

    fn shard(&self, key: &Key) -> &Mutex<Shard> {
        let [high, low] = key.words();
        let mixed = (high.rotate_left(32) ^ low).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.shards[(mixed >> 40) as usize % self.shards.len()]
    }
}

impl Shard {
    /// The file, for use.
    fn find(&mut self, key: &Key) -> Option<File> {
        let entry = self.clock[*self.index.get(key)?].as_mut()?;
        entry.used = true;
        self.hits += 1;
        Some(entry.file.clone())
    }

    /// The file, without a trace.
    fn find_again(&self, key: &Key) -> Option<File> {
        self.clock[*self.index.get(key)?].as_ref().map(|entry| entry.file.clone())
    }

    fn enter(&mut self, key: Key, file: File) {
        let entry = Some(Entry { key, file, used: false });
        let at = self.free.pop().unwrap_or(self.clock.len());
        match self.clock.get_mut(at) {
            Some(place) => *place = entry,
            None => self.clock.push(entry),
        }
        let before = self.index.insert(key, at);
        assert!(before.is_none(), "a file has one place");
    }

    fn remove(&mut self, at: usize) -> Option<File> {
        let entry = self.clock[at].take()?;
        self.index.remove(&entry.key);
        self.free.push(at);
        Some(entry.file)
    }

    /// The next file that was not used since the hand came by last, if there are `least` at all.
    fn evict(&mut self, least: usize) -> Option<File> {
        if self.index.len() < least.max(1) {
            return None;
        }
        loop {
            let at = self.hand % self.clock.len();
            self.hand = at + 1;
            match &mut self.clock[at] {
                Some(entry) if entry.used => entry.used = false,
                Some(_) => return self.remove(at),
                None => {}
            }
        }
    }

    fn forget(&mut self, wanted: impl Fn(&Key) -> bool) -> Vec<File> {
        self.epoch += 1;
        let is_wanted = |place: &Option<Entry>| place.as_ref().is_some_and(|e| wanted(&e.key));
        let found: Vec<usize> =
            (0..self.clock.len()).filter(|&at| is_wanted(&self.clock[at])).collect();
        found.into_iter().filter_map(|at| self.remove(at)).collect()
    }
}

/// A place in the table, given back unless a file has it.
struct Place<'a>(&'a FileTable);

impl Place<'_> {
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.places.fetch_sub(1, Ordering::SeqCst);
    }
}

impl fmt::Debug for FileTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileTable")
            .field("limit", &self.limit)
            .field("open", &self.open())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use trunkline_aio::Builder;
    use trunkline_aio::sync::random::Rng;
    use trunkline_format::Oid;

    fn key(relfilenode: u32) -> Key {
        let locator = RelationLocator { tablespace: Oid(1663), database: Oid(5), relfilenode };
        Key::new(1, locator, Fork::Main, 0)
    }

    /// Shards give up files in turn, yet no shard starves or takes all places in the long run: a
    /// file's life would then depend on its number.
    #[test]
    fn shards_keep_their_shares() {
        let aio = Builder::new().start().expect("started");
        let table = FileTable::new(512);
        let mut random = Rng::new(0x5EED);
        for _ in 0..50_000 {
            let open = || Ok(aio.open_virtual(Path::new("virtual"), 1, false));
            table.get(key(random.below(1 << 32) as u32), open).expect("opened");
        }
        assert_eq!((table.open(), aio.open_files()), (512, 512));
        let sizes: Vec<usize> = table.shards.iter().map(|shard| shard.lock().index.len()).collect();
        assert_eq!(sizes.len(), SHARDS_MAX);
        assert!(sizes.iter().all(|size| (24..=40).contains(size)), "{sizes:?}");
    }

    /// A relation's segments, forks and neighbours spread over the shards.
    #[test]
    fn keys_spread() {
        let table = FileTable::new(512);
        let locator = key(16384).locator;
        let segments = (0..1600).map(|segment| Key::new(1, locator, Fork::Main, segment));
        let neighbours = (0..1600).map(|number| key(16384 + number));
        for keys in [segments.collect::<Vec<_>>(), neighbours.collect()] {
            let mut counts = Map::<*const Mutex<Shard>, usize>::default();
            for key in &keys {
                *counts.entry(std::ptr::from_ref(table.shard(key))).or_default() += 1;
            }
            let counts: Vec<usize> = counts.into_values().collect();
            assert_eq!(counts.len(), SHARDS_MAX);
            assert!(counts.iter().all(|count| (50..=150).contains(count)), "{counts:?}");
        }
    }

    /// What differs in any part is another file.
    #[test]
    fn keys_differ_in_every_part() {
        let mut keys = vec![key(1), key(2)];
        let RelationLocator { tablespace, database, relfilenode } = key(1).locator;
        for locator in [
            RelationLocator { tablespace: Oid(1664), database, relfilenode },
            RelationLocator { tablespace, database: Oid(6), relfilenode },
        ] {
            keys.push(Key::new(1, locator, Fork::Main, 0));
        }
        keys.extend(Fork::ALL[1..].iter().map(|&fork| Key::new(1, key(1).locator, fork, 0)));
        keys.push(Key::new(2, key(1).locator, Fork::Main, 0));
        keys.push(Key::new(1, key(1).locator, Fork::Main, LAST_SEGMENT));
        for (at, key) in keys.iter().enumerate() {
            for other in &keys[at + 1..] {
                assert_ne!(key, other);
                assert_ne!(key.words(), other.words(), "{key:?}, {other:?}");
            }
        }
    }
}
