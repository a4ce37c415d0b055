//! The disk: files as bytes, with a volatile and a durable image, and mounts that can hang.
//!
//! ```text
//!   write ──▶ volatile ──fsync──▶ durable        read ◀── volatile
//!                 ▲                  │
//!                 └───── crash ◀─────┴── and a torn part of what was not synced
//! ```
//! Files are found by name, and, while an instance has them open, by the id that the instance gave
//! them. All of it is under one lock: what the disk does takes no time but what a plan adds.
//! The disk can be full ([`Disk::limit_space`]), and a sync can fail as Linux lets it fail: once, and
//! what was to be synced is never written again ([`Disk::lose_syncs`]).
//! ```
//! # use trunkline_sim::Disk;
//! let disk = Disk::new();
//! disk.create("a", 1, &[1, 2, 3]);
//! assert_eq!(disk.content("a"), [1, 2, 3]);
//! ```

use crate::fault::Fault;
use crate::gate::pause;
use std::path::Path;
use std::time::Duration;
use trunkline_aio::clock;
use trunkline_aio::sync::atomic::Ordering;
use trunkline_aio::sync::hash::{Map, Set};
use trunkline_aio::sync::random::Rng;
use trunkline_aio::sync::{Futex, Mutex};
use trunkline_aio::{Aio, File, Operation, Request};

/// Sizes in which a crash can tear a write, in bytes.
pub const SECTOR_SIZES: [usize; 2] = [512, 4096];

/// How long an overtaken I/O waits for another one to overtake it.
const OVERTAKEN_WITHIN: Duration = Duration::from_millis(2);

const EVERYBODY: u32 = u32::MAX >> 1;

/// See the module.
#[derive(Debug, Default)]
pub struct Disk {
    state: Mutex<State>,
    /// Moves when anything changes that somebody might wait for.
    bell: Futex,
}

#[derive(Debug, Default)]
struct State {
    files: Map<String, Image>,
    /// Names by the ids that an instance gave.
    open: Map<u64, String>,
    /// Ids of open files that were removed.
    removed: Set<u64>,
    held: Set<u64>,
    /// Executions that stand before a mount that hangs.
    stuck: usize,
    /// I/Os that a device has for such mounts.
    held_in_device: usize,
    performed: u64,
    /// Bytes that all files together may have; none is no limit.
    space: Option<u64>,
    /// Syncs that are still to fail, and to lose what they were to keep.
    lost_syncs: u32,
}

/// What a crash may undo.
#[derive(Debug, Clone)]
enum Change {
    /// Bytes written at an offset.
    Bytes(usize, Vec<u8>),
    /// The file was cut off, or made longer by zeros.
    Length(usize),
}

#[derive(Debug, Default, Clone)]
struct Image {
    device: u64,
    volatile: Vec<u8>,
    durable: Vec<u8>,
    /// Changes since the last sync, oldest first.
    unsynced: Vec<Change>,
}

impl Disk {
    /// Without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a file, or replaces one, durably.
    pub fn create(&self, name: &str, device: u64, content: &[u8]) {
        let image = Image {
            device,
            volatile: content.to_vec(),
            durable: content.to_vec(),
            unsynced: Vec::new(),
        };
        self.state.lock().files.insert(name.to_owned(), image);
    }

    /// Opens a file through an instance, made with `content` if there is none of that name.
    pub fn open(&self, aio: &Aio, name: &str, device: u64, content: &[u8]) -> File {
        let missing = !self.state.lock().files.contains_key(name);
        if missing {
            self.create(name, device, content);
        }
        let file = aio.open_virtual(Path::new(name), device, false);
        self.state.lock().open.insert(file.id(), name.to_owned());
        file
    }

    /// Opens a file through an instance if there is one of that name.
    pub fn open_existing(&self, aio: &Aio, name: &str, direct: bool) -> Option<File> {
        let device = self.state.lock().files.get(name)?.device;
        let file = aio.open_virtual(Path::new(name), device, direct);
        self.state.lock().open.insert(file.id(), name.to_owned());
        Some(file)
    }

    /// Removes a file durably. What an instance has open of it takes writes and syncs, which nobody
    /// will see, and answers no more to reads (`EBADF`).
    pub fn remove(&self, name: &str) {
        let state = &mut *self.state.lock();
        state.files.remove(name);
        // A file of the same name that comes later is another one.
        let ids = state.open.iter().filter(|(_, open)| *open == name).map(|(id, _)| *id);
        let ids: Vec<u64> = ids.collect();
        for id in ids {
            state.open.remove(&id);
            state.removed.insert(id);
        }
    }

    /// Cuts a file off, or makes it longer by zeros, durably.
    pub fn set_length(&self, name: &str, length: usize) {
        if let Some(image) = self.state.lock().files.get_mut(name) {
            image.volatile.resize(length, 0);
            image.settle();
        }
    }

    /// All files together may have so many bytes: what would need more fails with `ENOSPC`, or ends
    /// short. `None`: as many as they like.
    pub fn limit_space(&self, bytes: Option<u64>) {
        self.state.lock().space = bytes;
    }

    /// The next `count` syncs that have something to do fail with `EIO`, and the disk forgets what
    /// they were to keep: it can still be read, until a crash, and a later sync says that all is well.
    pub fn lose_syncs(&self, count: u32) {
        self.state.lock().lost_syncs = count;
    }

    /// Bytes of all files together.
    pub fn used(&self) -> u64 {
        self.state.lock().used()
    }

    /// Cuts an open file off, or makes it longer by zeros, as far as there is room. Durable with the
    /// file's next sync. False: no room. `None`: the file was removed.
    pub(crate) fn change_length(&self, file: &File, length: usize) -> Option<bool> {
        let state = &mut *self.state.lock();
        let free = state.free();
        let image = state.files.get_mut(state.open.get(&file.id())?)?;
        if length.saturating_sub(image.volatile.len()) as u64 > free {
            return Some(false);
        }
        image.volatile.resize(length, 0);
        image.unsynced.push(Change::Length(length));
        Some(true)
    }

    /// Changes bytes of a file durably, past every instance: damage, or its repair.
    pub fn overwrite(&self, name: &str, offset: usize, bytes: &[u8]) {
        if let Some(image) = self.state.lock().files.get_mut(name) {
            store(&mut image.volatile, offset, bytes);
            image.settle();
        }
    }

    /// Length of a file in bytes; `None` if there is none of that name.
    pub fn length(&self, name: &str) -> Option<u64> {
        self.state.lock().files.get(name).map(|image| image.volatile.len() as u64)
    }

    /// Length in bytes of a file that an instance has open; `None` if it was removed.
    pub fn length_of_open(&self, file: &File) -> Option<u64> {
        let state = self.state.lock();
        let name = state.open.get(&file.id())?;
        state.files.get(name).map(|image| image.volatile.len() as u64)
    }

    /// What a read of the whole file would see; empty if there is no such file.
    pub fn content(&self, name: &str) -> Vec<u8> {
        self.state.lock().files.get(name).map(|file| file.volatile.clone()).unwrap_or_default()
    }

    /// What would be left of a file if nothing unsynced survived a crash now.
    pub fn durable(&self, name: &str) -> Vec<u8> {
        self.state.lock().files.get(name).map(|file| file.durable.clone()).unwrap_or_default()
    }

    /// Crashes: of every unsynced write all, nothing, or some sectors survive. Ids of files are
    /// forgotten with the instance that gave them.
    pub fn crash(&self, seed: u64) {
        self.state.lock().crash(seed);
    }

    /// What a crash would leave now, as another disk; this one goes on.
    #[must_use]
    pub fn after_crash(&self, seed: u64) -> Self {
        let files = self.state.lock().files.clone();
        let mut state = State { files, ..State::default() };
        state.crash(seed);
        Self { state: Mutex::new(state), bell: Futex::default() }
    }

    /// Makes a mount hang: nothing given to it ends until [`Disk::release`].
    pub fn hold(&self, device: u64) {
        self.state.lock().held.insert(device);
        self.ring();
    }

    /// The mount works again.
    pub fn release(&self, device: u64) {
        self.state.lock().held.remove(&device);
        self.ring();
    }

    /// Every mount works again.
    pub fn release_all(&self) {
        self.state.lock().held.clear();
        self.ring();
    }

    /// Waits until `count` I/Os have got stuck at mounts that hang.
    pub fn wait_stuck(&self, count: usize) {
        self.wait(|state| state.stuck + state.held_in_device >= count);
    }

    /// For a device: how many of its I/Os are stuck.
    pub(crate) fn set_held_in_device(&self, count: usize) {
        let changed = std::mem::replace(&mut self.state.lock().held_in_device, count) != count;
        if changed {
            self.ring();
        }
    }

    /// Operations carried out so far.
    pub fn performed(&self) -> u64 {
        self.state.lock().performed
    }

    /// Whether the mount of an open file hangs.
    pub(crate) fn is_held(&self, file_id: u64) -> bool {
        self.state.lock().is_held(file_id)
    }

    /// For a blocking executor: stands before a mount that hangs.
    pub(crate) fn pass(&self, file_id: u64) {
        if !self.is_held(file_id) {
            return;
        }
        self.state.lock().stuck += 1;
        self.ring();
        self.wait(|state| !state.is_held(file_id));
        self.state.lock().stuck -= 1;
        self.ring();
    }

    /// For a blocking executor: lets another operation go first, if there is one.
    pub(crate) fn be_overtaken(&self) {
        let before = self.performed();
        let until = clock::now().after(OVERTAKEN_WITHIN);
        loop {
            let seen = self.bell_value();
            let left = until.since(clock::now());
            if self.performed() != before || left.is_zero() {
                return;
            }
            self.bell.wait(seen, Some(left));
        }
    }

    /// For a blocking executor: takes time.
    pub(crate) fn delay(time: Duration) {
        pause(time);
    }

    /// For a device: sleeps until the bell rings after `seen`, or for `timeout`.
    pub(crate) fn wait_bell(&self, seen: u32, timeout: Option<Duration>) {
        self.bell.wait(seen, timeout);
    }

    pub(crate) fn bell_value(&self) -> u32 {
        self.bell.word().load(Ordering::SeqCst)
    }

    pub(crate) fn ring(&self) {
        self.bell.word().fetch_add(1, Ordering::SeqCst);
        self.bell.wake(EVERYBODY);
    }

    fn wait(&self, done: impl Fn(&State) -> bool) {
        loop {
            let seen = self.bell_value();
            if done(&self.state.lock()) {
                return;
            }
            self.bell.wait(seen, None);
        }
    }

    /// Carries out one operation, whole, at this moment. Bytes, or minus errno.
    pub(crate) fn perform(&self, request: &mut Request<'_>, fault: Option<Fault>) -> i32 {
        match fault {
            Some(Fault::Interrupted) => return -libc::EINTR,
            Some(Fault::Again) => return -libc::EAGAIN,
            Some(Fault::Error(errno)) => return -errno,
            Some(Fault::EndOfFile) => return 0,
            _ => {}
        }
        let done = {
            let state = &mut *self.state.lock();
            state.performed += 1;
            let free = state.free();
            let name = state.open.get(&request.file_id);
            let Some(image) = name.and_then(|name| state.files.get_mut(name)) else {
                let removed = state.removed.contains(&request.file_id);
                return match request.operation {
                    Operation::Writev if removed => request.length as i32,
                    Operation::Fsync | Operation::Fdatasync | Operation::BeginWriteback
                        if removed =>
                    {
                        0
                    }
                    _ => -libc::EBADF,
                };
            };
            match request.operation {
                Operation::Readv => image.read(request, fault),
                Operation::Writev => image.write(request, fault, free),
                Operation::Fsync | Operation::Fdatasync => {
                    let lost = state.lost_syncs > 0 && !image.unsynced.is_empty();
                    state.lost_syncs -= u32::from(lost);
                    image.sync(lost)
                }
                // What is not synced may or may not be there after a crash, hint or no hint.
                Operation::BeginWriteback => 0,
            }
        };
        self.ring();
        done
    }
}

impl State {
    fn crash(&mut self, seed: u64) {
        let mut rng = Rng::new(seed);
        self.open.clear();
        self.removed.clear();
        let mut names: Vec<&String> = self.files.keys().collect();
        names.sort_unstable();
        let names: Vec<String> = names.into_iter().cloned().collect();
        for name in names {
            let Some(image) = self.files.get_mut(&name) else { continue };
            for change in std::mem::take(&mut image.unsynced) {
                match change {
                    Change::Bytes(offset, bytes) => {
                        keep_some(&mut image.durable, offset, &bytes, &mut rng);
                    }
                    Change::Length(length) if rng.below(2) == 0 => image.durable.resize(length, 0),
                    Change::Length(_) => {}
                }
            }
            image.volatile = image.durable.clone();
        }
    }

    fn used(&self) -> u64 {
        self.files.values().map(|image| image.volatile.len() as u64).sum()
    }

    /// Bytes that files may still grow by.
    fn free(&self) -> u64 {
        self.space.map_or(u64::MAX, |space| space.saturating_sub(self.used()))
    }

    fn is_held(&self, file_id: u64) -> bool {
        let name = self.open.get(&file_id);
        let image = name.and_then(|name| self.files.get(name));
        image.is_some_and(|image| self.held.contains(&image.device))
    }
}

impl Image {
    fn read(&self, request: &mut Request<'_>, fault: Option<Fault>) -> i32 {
        let start = (request.offset as usize).min(self.volatile.len());
        let mut left = &self.volatile[start..];
        if let Some(Fault::Short(length)) = fault {
            left = &left[..left.len().min(length as usize)];
        }
        let mut rotten = match fault {
            Some(Fault::BitRot(at)) => Some(at as usize % (request.length as usize).max(1)),
            _ => None,
        };
        let mut count = 0;
        for buffer in request.targets() {
            let length = buffer.len().min(left.len());
            buffer[..length].copy_from_slice(&left[..length]);
            if let Some(at) = rotten
                && at < length
            {
                buffer[at] ^= 1 << (at % 8);
                rotten = None;
            }
            rotten = rotten.map(|at| at - length.min(at));
            left = &left[length..];
            count += length;
        }
        count as i32
    }

    fn write(&mut self, request: &Request<'_>, fault: Option<Fault>, free: u64) -> i32 {
        let offset = request.offset as usize;
        let mut bytes: Vec<u8> = Vec::with_capacity(request.length as usize);
        request.sources().for_each(|buffer| bytes.extend_from_slice(buffer));
        let end = (self.volatile.len() as u64).saturating_add(free);
        let room = usize::try_from(end).unwrap_or(usize::MAX).saturating_sub(offset);
        if room == 0 {
            return -libc::ENOSPC;
        }
        bytes.truncate(room);
        match fault {
            Some(Fault::LostWrite) => {}
            Some(Fault::Short(length)) => {
                bytes.truncate(length as usize);
                self.put(offset, &bytes);
            }
            Some(Fault::Misdirected(by)) => self.put(offset + by as usize, &bytes),
            Some(Fault::TornWrite(sector)) => {
                for (number, part) in bytes.chunks((sector as usize).max(1)).enumerate() {
                    if number % 2 == 0 {
                        self.put(offset + number * sector as usize, part);
                    }
                }
            }
            _ => self.put(offset, &bytes),
        }
        bytes.len() as i32
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        store(&mut self.volatile, offset, bytes);
        self.unsynced.push(Change::Bytes(offset, bytes.to_vec()));
    }

    /// Makes durable what was changed since the last sync, unless that is lost.
    fn sync(&mut self, lost: bool) -> i32 {
        let changes = std::mem::take(&mut self.unsynced);
        if lost {
            return -libc::EIO;
        }
        for change in changes {
            match change {
                Change::Bytes(offset, bytes) => store(&mut self.durable, offset, &bytes),
                Change::Length(length) => self.durable.resize(length, 0),
            }
        }
        0
    }

    /// Makes everything durable that can be read.
    fn settle(&mut self) {
        self.durable.clone_from(&self.volatile);
        self.unsynced.clear();
    }
}

fn store(image: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if image.len() < end {
        image.resize(end, 0);
    }
    image[offset..end].copy_from_slice(bytes);
}

/// All of a write, nothing of it, or a random half of its sectors.
fn keep_some(image: &mut Vec<u8>, offset: usize, bytes: &[u8], rng: &mut Rng) {
    match rng.below(3) {
        0 => {}
        1 => store(image, offset, bytes),
        _ => {
            let sector = SECTOR_SIZES[rng.below(SECTOR_SIZES.len() as u64) as usize];
            for (number, part) in bytes.chunks(sector).enumerate() {
                if rng.below(2) == 0 {
                    store(image, offset + number * sector, part);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(durable: &[u8]) -> Image {
        Image { volatile: durable.to_vec(), durable: durable.to_vec(), ..Image::default() }
    }

    #[test]
    fn a_crash_keeps_what_was_synced_and_tears_the_rest_at_sectors() {
        let (mut kept, mut lost, mut torn) = (0, 0, 0);
        for seed in 0..200 {
            let disk = Disk::new();
            let mut file = image(&[0; 16384]);
            file.put(0, &[1; 8192]);
            file.sync(false);
            file.put(8192, &[2; 8192]);
            disk.state.lock().files.insert("a".into(), file);
            disk.crash(seed);
            let found = disk.content("a");
            assert_eq!(found[..8192], [1; 8192], "synced, seed {seed}");
            let sectors: Vec<bool> = found[8192..].chunks(512).map(|s| s == [2; 512]).collect();
            let whole = found[8192..].chunks(512).all(|s| s == [2; 512] || s == [0; 512]);
            assert!(whole, "torn inside a sector, seed {seed}");
            match sectors.iter().filter(|&&new| new).count() {
                0 => lost += 1,
                16 => kept += 1,
                _ => torn += 1,
            }
            assert_eq!(disk.durable("a"), found);
        }
        assert!(kept > 20 && lost > 20 && torn > 20, "{kept} kept, {lost} lost, {torn} torn");
    }

    #[test]
    fn what_a_sync_has_lost_is_there_until_the_crash_and_never_synced() {
        let mut file = image(&[0; 8192]);
        file.put(0, &[1; 4096]);
        assert_eq!(file.sync(true), -libc::EIO);
        file.put(4096, &[2; 4096]);
        assert_eq!(file.sync(false), 0, "the second sync knows nothing");
        assert_eq!(file.volatile[..4096], [1; 4096]);
        assert_eq!(
            (&file.durable[..4096], &file.durable[4096..]),
            (&[0; 4096][..], &[2; 4096][..])
        );
    }

    #[test]
    fn the_same_seed_crashes_alike() {
        let crashed = |seed| {
            let disk = Disk::new();
            for name in ["a", "b", "c"] {
                let mut file = image(&[0; 8192]);
                file.put(0, &[1; 8192]);
                file.put(4096, &[2; 8192]);
                disk.state.lock().files.insert(name.into(), file);
            }
            disk.crash(seed);
            ["a", "b", "c"].map(|name| disk.content(name))
        };
        assert_eq!(crashed(5), crashed(5));
        assert!((0..20).any(|seed| crashed(seed) != crashed(seed + 1)));
    }
}
