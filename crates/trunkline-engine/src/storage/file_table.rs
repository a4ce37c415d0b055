//! The open-file table for segments (PostgreSQL's `fd.c`), which closes files by clock sweep to
//! stay within its limit.
//!
//! The number of files a process can have open is limited, and a large cluster has more segments
//! than that. The table keeps at most `limit` segments open. When it's full, it closes one segment
//! before it opens another. In PostgreSQL, each backend has its own virtual file descriptors
//! (VFDs). Here all sessions share one table, so each segment is opened only once per process
//! rather than once per session.
//!
//! ```text
//!   key ──▶ shard ──▶ map: key ──▶ slot of the clock      [f][f ✓][ ][f]
//!                                                            ▲ hand
//! ```
//! The table is divided into shards, each with its own lock and clock. The clock hand skips files
//! that have been used since it last passed them. As a result, files that were used only once are
//! closed before files that are used often, so a scan of thousands of small relations doesn't close
//! the segments of the large ones. With the plain LRU list that `fd.c` uses, it would.
//!
//! When the table closes a file, it only drops its own reference. Every I/O in flight holds another
//! clone of the [`File`], and the descriptor stays open until the last clone is dropped. This
//! guarantees that the kernel doesn't reuse a descriptor number while an I/O still needs it. We
//! don't hold a shard lock while opening or closing a file, because both may block.
//!
//! Since we don't hold a lock while opening a file, [`FileTable::get`] must deal with two race
//! conditions. First, two threads may open the same segment at the same time. In that case, the
//! slower thread uses the file that the other thread has inserted, and closes its own. Second, the
//! relation may be removed while we're opening one of its segments. We detect that because the
//! shard's epoch has changed, and then return the file to the caller without inserting it into the
//! table.

use std::fmt;
use std::hash::{Hash, Hasher};

use trunkline_aio::File;
use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::atomic::{AtomicU64, AtomicUsize, Ordering};
use trunkline_aio::facade::hash::Map;
use trunkline_format::Fork;

use super::error::StorageError;
use super::locator::RelationLocator;

/// Number of shards in a large table. We have to look up the segment for every read and write, so a
/// single lock would be contended.
const SHARDS_MAX: usize = 16;

/// Minimum number of slots per shard. With only a few slots per shard, the clock would close files
/// that are still being used, so we give a small table fewer shards instead of smaller ones.
const SHARD_SLOTS_MIN: usize = 32;

/// Identifies a segment file by cluster, relation, fork and segment number. `storage` is the
/// cluster's number ([`super::Storage::number`]). We need it because one table contains the files
/// of all clusters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    locator: RelationLocator,
    segment: u32,
    storage: u16,
    fork: Fork,
}

impl Key {
    pub(super) fn new(storage: u16, locator: RelationLocator, fork: Fork, segment: u32) -> Self {
        Self { locator, segment, storage, fork }
    }

    /// Packs the key into two words for hashing, with the fields that vary most in the second word.
    /// The fork overlaps with the database's bits, and so do the segments of an SLRU with its number, so in
    /// theory two different keys can produce the same words. That's OK because we compare keys field by field.
    fn words(&self) -> [u64; 2] {
        let RelationLocator { tablespace, database, relfilenode } = self.locator;
        let high = u64::from(tablespace.0) << 32 | u64::from(database.0);
        let file = u64::from(self.segment) << 17 | u64::from(self.storage) << 1;
        let low = u64::from(relfilenode) << 32 ^ file;
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
    /// Number of open files, including those being opened. It is not protected by any shard's lock,
    /// because the limit applies to the table as a whole.
    count: AtomicUsize,
    /// The shard to evict the next file from. We go through the shards in turn, no matter which
    /// shard needs the room.
    hand: AtomicUsize,
    opens: AtomicU64,
    evictions: AtomicU64,
}

/// One shard of the table. Every slot of `clock` either holds an entry, in which case `index`
/// points to it, or is empty and listed in `free`.
#[derive(Default)]
struct Shard {
    index: Map<Key, usize>,
    clock: Vec<Option<Entry>>,
    /// The clock's empty slots.
    free: Vec<usize>,
    /// The next slot for the clock hand to look at. It may be equal to the clock's length, in which
    /// case the hand continues at the first slot.
    hand: usize,
    hits: u64,
    /// Incremented by every call to [`Shard::forget`]. If the epoch has changed since we began to
    /// open a file, we must not insert the file, because its relation may have been removed in the
    /// meantime.
    epoch: u64,
}

struct Entry {
    key: Key,
    file: File,
    /// Whether the file has been looked up since the hand last passed it. Initially false, so that
    /// a file that is opened but never used again is evicted first.
    used: bool,
}

impl FileTable {
    /// Creates a table that keeps at most `limit` files open (at least one). If more than `limit`
    /// threads are opening files at the same time, we exceed the limit by one file for each
    /// additional thread. A file that is evicted during an I/O stays open until the I/O completes.
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

    /// Returns the file for `key`, calling `open` to open it if it isn't in the table. If the
    /// process is out of descriptors, we close other files and try again, closing twice as many
    /// each time.
    ///
    /// We don't hold any lock while calling `open`. Several threads may call `open` for the same
    /// key at the same time, and a single call of this function may call it more than once.
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
        // Make room before opening the file, so that we don't exceed the limit if several threads
        // open files at the same time. If the open fails, dropping `slot` gives the room back.
        let slot = self.reserve_slot();
        let file = self.open_file(open)?;
        let (file, mine) = {
            let mut shard = shard.lock();
            match shard.peek(&key) {
                // Another thread was faster. We close our file below, outside the lock.
                Some(theirs) => (theirs, Some(file)),
                None => {
                    // Don't insert the file if the epoch has changed. The relation may have been
                    // removed since we looked up the file, and if its relfilenode were then reused,
                    // the table would return this file for the new relation.
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

    /// Returns the file for `key` if it is open, and marks it as used.
    pub(super) fn find(&self, key: &Key) -> Option<File> {
        self.shard(key).lock().find(key)
    }

    /// Returns the file for `key` if it is open. We don't mark the file as used, because callers of
    /// this function only need its length or identity, which is no reason to keep the file open
    /// longer.
    pub(super) fn peek(&self, key: &Key) -> Option<File> {
        self.shard(key).lock().peek(key)
    }

    /// Removes all files of a relation or of a whole cluster. A relation's forks and segments are
    /// spread over all shards, so we have to visit every entry of the table. That's OK because it
    /// only happens when a relation is dropped, truncated or replaced, or a cluster is closed.
    pub(super) fn forget(&self, storage: u16, locator: Option<RelationLocator>) {
        let wanted = |key: &Key| {
            key.storage == storage && locator.is_none_or(|locator| locator == key.locator)
        };
        for shard in &self.shards {
            // The files are closed at the end of each iteration, when we no longer hold the shard's
            // lock.
            let forgotten = shard.lock().forget(wanted);
            self.count.fetch_sub(forgotten.len(), Ordering::SeqCst);
        }
    }

    /// Opens a file. If the process is out of descriptors, we evict other files and try again, as
    /// PostgreSQL's `BasicOpenFilePerm` does. This can happen even if we're below our own limit,
    /// because other parts of the process use descriptors too. We evict twice as many files after
    /// each failed attempt, so that only a few attempts are needed.
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

    /// Evicts one file. In the first round we skip any shard that holds less than its share of the
    /// files, because otherwise the files in a nearly empty shard would be evicted sooner than
    /// other files. If we find no victim that way, we accept any shard in the second round.
    fn evict(&self) -> bool {
        let share = self.limit / self.shards.len();
        for least in [share, 1] {
            for _ in 0..self.shards.len() {
                let at = self.hand.fetch_add(1, Ordering::SeqCst) % self.shards.len();
                let victim = self.shards[at].lock().evict(least);
                // The victim is closed at the end of this iteration, when we no longer hold the
                // lock.
                if victim.is_some() {
                    self.count.fetch_sub(1, Ordering::SeqCst);
                    self.evictions.fetch_add(1, Ordering::SeqCst);
                    return true;
                }
            }
        }
        false
    }

    /// Returns the key's shard, using Fibonacci hashing of both words. This must be cheap, because
    /// we have to look up the segment for every I/O.
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

    /// Advances the clock hand to a file that hasn't been used since the hand last passed it, and
    /// removes that file. Does nothing if the shard has fewer than `least` files. The loop ends
    /// after at most two rounds: the hand clears the `used` flag of each file it passes, and no
    /// lookup can set the flag again while we hold the lock.
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

    /// Removes all entries that `wanted` selects and returns their files, so that the caller can
    /// close them after releasing the lock. We must change the epoch even if we find no such entry,
    /// because another thread may be about to insert one.
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
    use trunkline_format::segment::LAST_SEGMENT;

    fn key(relfilenode: u32) -> Key {
        let locator = RelationLocator { tablespace: Oid(1663), database: Oid(5), relfilenode };
        Key::new(1, locator, Fork::Main, 0)
    }

    /// We evict from the shards in turn, so each shard should hold about the same number of files.
    /// Otherwise, how long a file stays open would depend on its relfilenode.
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

    /// A relation's segments, and relations with consecutive relfilenodes, must be spread over all
    /// shards.
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
