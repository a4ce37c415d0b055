//! The open-file table for segments (PostgreSQL's `fd.c`): bounded, with clock replacement.
//!
//! A process can have only a limited number of files open, and a large cluster has more segments
//! than that. The table keeps up to `limit` segments open, and closes another segment whenever it
//! needs room. In PostgreSQL each backend has a private table of virtual file descriptors (VFDs).
//! Here all sessions share one table, so a segment is opened once per process rather than once per
//! session.
//!
//! ```text
//!   key ──▶ shard ──▶ map: key ──▶ slot of the clock      [f][f ✓][ ][f]
//!                                                            ▲ hand
//! ```
//! Each shard has a lock and a clock: the hand skips files that were used since it last passed. A
//! file used only once is therefore closed before frequently used files, so scanning thousands of
//! small relations doesn't close the large relations' segments. Plain LRU, which `fd.c` uses, would
//! close them.
//!
//! Closing a file here only drops the table's reference. Readers hold a clone of the [`File`], and
//! the descriptor isn't closed until the last clone is dropped. So the kernel can't reuse a
//! descriptor number that an I/O in flight still needs. We open and close files outside the shard
//! locks, because both may block.
//!
//! Opening files outside the lock creates two races, which [`FileTable::get`] must handle. First,
//! two threads may open the same segment; the slower thread then finds the entry, uses that, and
//! closes its own file. Second, a relation may be removed while we're opening one of its segments.
//! In that case the shard's epoch has changed, so we return the file to the caller without
//! inserting it.

use std::fmt;
use std::hash::{Hash, Hasher};

use trunkline_aio::File;
use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::atomic::{AtomicU64, AtomicUsize, Ordering};
use trunkline_aio::facade::hash::Map;
use trunkline_format::Fork;
use trunkline_format::segment::LAST_SEGMENT;

use super::error::StorageError;
use super::locator::RelationLocator;

/// Number of shards in a large table. Every read and write looks up its segment, so a single lock
/// would be contended.
const SHARDS_MAX: usize = 16;

/// Minimum number of slots per shard. A clock with only a few slots would close files that are
/// still in use, so a small table has fewer shards rather than smaller shards.
const SHARD_SLOTS_MIN: usize = 32;

/// Identifies a segment file: cluster, relation, fork and segment number. `storage` is the
/// cluster's number ([`super::Storage::number`]), which we need because all clusters' files are in
/// one table.
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

    /// The key as two words, for hashing. The second word contains the parts that differ most
    /// between keys. Two different keys can in theory have the same words, because the fork shares
    /// bits with the database; equality compares the fields instead.
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

/// The open-file table for segments.
pub(super) struct FileTable {
    shards: Box<[Mutex<Shard>]>,
    limit: usize,
    /// Open files, including those being opened. The limit applies to the table as a whole, so this
    /// counter isn't protected by any shard's lock.
    count: AtomicUsize,
    /// The shard to evict from next. Shards take turns, no matter which shard needs the room.
    hand: AtomicUsize,
    opens: AtomicU64,
    evictions: AtomicU64,
}

/// One shard of the table. `index`, `clock` and `free` must always agree: every clock slot either
/// holds an entry that the index points to, or is in the free list.
#[derive(Default)]
struct Shard {
    index: Map<Key, usize>,
    clock: Vec<Option<Entry>>,
    /// The clock's empty slots.
    free: Vec<usize>,
    /// The next slot the clock hand looks at. May equal the clock's length, in which case it wraps.
    hand: usize,
    hits: u64,
    /// Incremented by every [`Shard::forget`]. A file that we began to open in an earlier epoch
    /// isn't inserted, because it may belong to a removed relation.
    epoch: u64,
}

struct Entry {
    key: Key,
    file: File,
    /// Whether the file has been looked up since the hand last passed. It's initially false, so
    /// files that are opened but never used again are evicted first.
    used: bool,
}

impl FileTable {
    /// A table of at most `limit` files, at least 1. If more than `limit` threads open files at the
    /// same time, each additional thread exceeds the limit by one file. A file evicted during an
    /// I/O stays open until that I/O completes.
    pub(super) fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        let shards = (limit / SHARD_SLOTS_MIN).clamp(1, SHARDS_MAX);
        Self {
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            limit,
            count: AtomicUsize::new(0),
            hand: AtomicUsize::new(0),
            opens: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
        }
    }

    /// Maximum number of files kept open.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Number of files currently open, including those being opened.
    pub(super) fn open(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Number of lookups that found the file open, since startup.
    pub(super) fn hits(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().hits).sum()
    }

    /// Number of files opened since startup.
    pub(super) fn opens(&self) -> u64 {
        self.opens.load(Ordering::SeqCst)
    }

    /// Number of files evicted since startup.
    pub(super) fn evictions(&self) -> u64 {
        self.evictions.load(Ordering::SeqCst)
    }

    /// The file for `key`. If it isn't in the table, calls `open` to open it. If the process is out
    /// of descriptors, we close other files first, twice as many with each attempt.
    ///
    /// `open` is called without holding any lock. It may be called by several threads for the same
    /// key, and more than once within one call.
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
        // Make room before opening the file, so that concurrent opens stay within the limit. If the
        // open fails, dropping `slot` releases the room.
        let slot = self.reserve_slot();
        let file = self.open_file(open)?;
        let (file, mine) = {
            let mut shard = shard.lock();
            match shard.peek(&key) {
                // Another thread was faster. We close our file below, outside the lock.
                Some(theirs) => (theirs, Some(file)),
                None => {
                    // If the epoch has changed, the relation may have been removed since the
                    // lookup, and a later relation with the same number would get this file.
                    if shard.epoch == epoch {
                        shard.insert(key, file.clone());
                        slot.keep();
                    }
                    (file, None)
                }
            }
        };
        drop(mine);
        Ok(file)
    }

    /// The file for `key`, if it is open. Doesn't mark the file as used, because callers only need
    /// its length or identity, and that shouldn't keep it open longer.
    pub(super) fn peek(&self, key: &Key) -> Option<File> {
        self.shard(key).lock().peek(key)
    }

    /// Removes all of a relation's or a whole cluster's files. We must visit every entry, because a
    /// relation's forks and segments are spread over all shards. That's acceptable since it only
    /// happens when a relation is dropped.
    pub(super) fn forget(&self, storage: u16, locator: Option<RelationLocator>) {
        let wanted = |key: &Key| {
            key.storage == storage && locator.is_none_or(|locator| locator == key.locator)
        };
        for shard in &self.shards {
            // The files are closed at the end of each iteration, after the shard's lock has been
            // released.
            let forgotten = shard.lock().forget(wanted);
            self.count.fetch_sub(forgotten.len(), Ordering::SeqCst);
        }
    }

    /// Opens a file, evicting other files while the process is out of descriptors. That can happen
    /// even below our limit, because other parts of the process use descriptors too. PostgreSQL's
    /// `BasicOpenFilePerm` does the same. We evict twice as many files after each failure, which
    /// bounds the number of attempts.
    fn open_file(
        &self,
        open: impl Fn() -> Result<File, StorageError>,
    ) -> Result<File, StorageError> {
        let mut count = 1;
        loop {
            match open() {
                Err(error) if error.is_out_of_descriptors() && self.evict_many(count) => count *= 2,
                opened => {
                    self.opens.fetch_add(u64::from(opened.is_ok()), Ordering::SeqCst);
                    return opened;
                }
            }
        }
    }

    /// Reserves a slot for one more file, evicting another file if the table is full.
    fn reserve_slot(&self) -> ReservedSlot<'_> {
        self.count.fetch_add(1, Ordering::SeqCst);
        while self.open() > self.limit && self.evict() {}
        ReservedSlot(self)
    }

    /// Evicts up to `count` files. Returns false if there were none.
    fn evict_many(&self, count: usize) -> bool {
        (0..count).take_while(|_| self.evict()).count() > 0
    }

    /// Evicts one file. The first round skips shards that hold less than their share, because
    /// otherwise files in a nearly empty shard would be evicted sooner than other files. If no
    /// shard qualifies, the second round accepts any shard.
    fn evict(&self) -> bool {
        let share = self.limit / self.shards.len();
        for least in [share, 1] {
            for _ in 0..self.shards.len() {
                let at = self.hand.fetch_add(1, Ordering::SeqCst) % self.shards.len();
                let victim = self.shards[at].lock().evict(least);
                // The file is closed here, after the lock is released.
                if victim.is_some() {
                    self.count.fetch_sub(1, Ordering::SeqCst);
                    self.evictions.fetch_add(1, Ordering::SeqCst);
                    return true;
                }
            }
        }
        false
    }

    /// The key's shard, by Fibonacci hashing of both words. This must be cheap, because every I/O
    /// looks up its segment.
    fn shard(&self, key: &Key) -> &Mutex<Shard> {
        let [high, low] = key.words();
        let mixed = (high.rotate_left(32) ^ low).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.shards[(mixed >> 40) as usize % self.shards.len()]
    }
}

impl Shard {
    /// Looks up a file and marks it as used.
    fn find(&mut self, key: &Key) -> Option<File> {
        let entry = self.clock[*self.index.get(key)?].as_mut()?;
        entry.used = true;
        self.hits += 1;
        Some(entry.file.clone())
    }

    /// Looks up a file without marking it as used.
    fn peek(&self, key: &Key) -> Option<File> {
        self.clock[*self.index.get(key)?].as_ref().map(|entry| entry.file.clone())
    }

    fn insert(&mut self, key: Key, file: File) {
        let entry = Some(Entry { key, file, used: false });
        let at = self.free.pop().unwrap_or(self.clock.len());
        match self.clock.get_mut(at) {
            Some(place) => *place = entry,
            None => self.clock.push(entry),
        }
        let before = self.index.insert(key, at);
        assert!(before.is_none(), "a file is in the table once");
    }

    fn remove(&mut self, at: usize) -> Option<File> {
        let entry = self.clock[at].take()?;
        self.index.remove(&entry.key);
        self.free.push(at);
        Some(entry.file)
    }

    /// Advances the hand to a file that hasn't been used since the hand last passed, and removes
    /// that file. Does nothing if the shard has fewer than `least` files. This takes at most two
    /// rounds: the hand clears each file's `used` flag as it passes, and no lookup can set the flag
    /// again while we hold the lock.
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

    /// Removes the wanted entries and returns their files, so that the caller can close them
    /// without holding the lock. We change the epoch even if there were no such entries, because
    /// one might be about to be inserted.
    fn forget(&mut self, wanted: impl Fn(&Key) -> bool) -> Vec<File> {
        self.epoch += 1;
        let is_wanted = |place: &Option<Entry>| place.as_ref().is_some_and(|e| wanted(&e.key));
        let found: Vec<usize> =
            (0..self.clock.len()).filter(|&at| is_wanted(&self.clock[at])).collect();
        found.into_iter().filter_map(|at| self.remove(at)).collect()
    }
}

/// A reserved slot, which is released unless a file is inserted.
struct ReservedSlot<'a>(&'a FileTable);

impl ReservedSlot<'_> {
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for ReservedSlot<'_> {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
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
    use trunkline_aio::facade::random::Rng;
    use trunkline_format::Oid;

    fn key(relfilenode: u32) -> Key {
        let locator = RelationLocator { tablespace: Oid(1663), database: Oid(5), relfilenode };
        Key::new(1, locator, Fork::Main, 0)
    }

    /// Shards evict in turn, so each shard keeps about its share of the files. Otherwise a file's
    /// lifetime would depend on its number.
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

    /// A relation's segments, forks and neighbours are spread over the shards.
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
