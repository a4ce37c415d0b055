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
//! what was to be synced is never written again ([`Disk::lose_syncs`]). So can writing back before that
//! ([`Disk::lose_writebacks`]), which each open file is then told of once: by its next sync, or by a
//! write-back that it waits for. A new file is there after a crash if its directory was synced, else
//! perhaps.
//! ```
//! # use trunkline_sim::Disk;
//! let disk = Disk::new();
//! disk.create("a", 1, &[1, 2, 3]);
//! assert_eq!(disk.content("a"), [1, 2, 3]);
//! ```

mod image;
mod mounts;

pub use image::SECTOR_SIZES;

use crate::fault::Fault;
use image::Image;
use std::path::Path;
use trunkline_aio::sync::hash::{Map, Set};
use trunkline_aio::sync::random::Rng;
use trunkline_aio::sync::{Futex, Mutex};
use trunkline_aio::{Aio, File, Operation, Request};

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
    /// The same of write-backs.
    lost_writebacks: u32,
    /// By id: losses of the file that were told to this open file, or to another one before it was opened.
    heard: Map<u64, u64>,
    /// Names that a crash may take away.
    new_names: Set<String>,
}

impl Disk {
    /// Without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a file, or replaces one, durably.
    pub fn create(&self, name: &str, device: u64, content: &[u8]) {
        let state = &mut *self.state.lock();
        state.new_names.remove(name);
        state.files.insert(name.to_owned(), Image::new(device, content));
    }

    /// Makes an empty file, whose name is durable with the next sync of its directory.
    pub(crate) fn make(&self, name: &str, device: u64) {
        let state = &mut *self.state.lock();
        state.new_names.insert(name.to_owned());
        state.files.insert(name.to_owned(), Image::new(device, &[]));
    }

    /// Makes durable the names of the directory that a file is in.
    pub(crate) fn sync_names_beside(&self, name: &str) {
        let directory = Path::new(name).parent();
        self.state.lock().new_names.retain(|new| Path::new(new).parent() != directory);
    }

    /// Opens a file through an instance, made with `content` if there is none of that name.
    pub fn open(&self, aio: &Aio, name: &str, device: u64, content: &[u8]) -> File {
        let missing = !self.state.lock().files.contains_key(name);
        if missing {
            self.create(name, device, content);
        }
        let file = aio.open_virtual(Path::new(name), device, false);
        self.state.lock().note_open(&file, name);
        file
    }

    /// Opens a file through an instance if there is one of that name.
    pub fn open_existing(&self, aio: &Aio, name: &str, direct: bool) -> Option<File> {
        let device = self.state.lock().files.get(name)?.device;
        let file = aio.open_virtual(Path::new(name), device, direct);
        self.state.lock().note_open(&file, name);
        Some(file)
    }

    /// Removes a file durably. What an instance has open of it takes writes and syncs, which nobody
    /// will see, and answers no more to reads (`EBADF`).
    pub fn remove(&self, name: &str) {
        let state = &mut *self.state.lock();
        state.files.remove(name);
        state.new_names.remove(name);
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

    /// The next `count` times that a file with something to keep is to be written back before its sync,
    /// the disk forgets that, as by [`Disk::lose_syncs`]. Each open file of it is told once, with `EIO`:
    /// by a write-back that is waited for, or by a sync.
    pub fn lose_writebacks(&self, count: u32) {
        self.state.lock().lost_writebacks = count;
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
        image.resize(length);
        Some(true)
    }

    /// Changes bytes of a file durably, past every instance: damage, or its repair.
    pub fn overwrite(&self, name: &str, offset: usize, bytes: &[u8]) {
        if let Some(image) = self.state.lock().files.get_mut(name) {
            image.overwrite(offset, bytes);
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
        let (files, new_names) = {
            let state = self.state.lock();
            (state.files.clone(), state.new_names.clone())
        };
        let mut state = State { files, new_names, ..State::default() };
        state.crash(seed);
        Self { state: Mutex::new(state), bell: Futex::default() }
    }

    /// Operations carried out so far.
    pub fn performed(&self) -> u64 {
        self.state.lock().performed
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
                    let lost = state.lost_syncs > 0 && !image.is_synced();
                    state.lost_syncs -= u32::from(lost);
                    let synced = image.sync(lost);
                    synced.min(image.tell(state.heard.entry(request.file_id).or_default()))
                }
                // What is not synced may or may not be there after a crash, hint or no hint.
                Operation::BeginWriteback => {
                    if state.lost_writebacks > 0 && !image.is_synced() {
                        state.lost_writebacks -= 1;
                        image.lose();
                    }
                    match request.awaits {
                        true => image.tell(state.heard.entry(request.file_id).or_default()),
                        false => 0,
                    }
                }
            }
        };
        self.ring();
        done
    }
}

impl State {
    fn note_open(&mut self, file: &File, name: &str) {
        self.open.insert(file.id(), name.to_owned());
        let told = self.files.get(name).map_or(0, Image::told);
        self.heard.insert(file.id(), told);
    }

    fn crash(&mut self, seed: u64) {
        let mut rng = Rng::new(seed);
        self.open.clear();
        self.removed.clear();
        self.heard.clear();
        let mut new: Vec<String> = self.new_names.drain().collect();
        new.sort_unstable();
        for name in new.into_iter().filter(|_| rng.below(2) == 0) {
            self.files.remove(&name);
        }
        let mut names: Vec<&String> = self.files.keys().collect();
        names.sort_unstable();
        let names: Vec<String> = names.into_iter().cloned().collect();
        for name in names {
            let Some(image) = self.files.get_mut(&name) else { continue };
            image.crash(&mut rng);
        }
    }

    fn used(&self) -> u64 {
        self.files.values().map(|image| image.volatile.len() as u64).sum()
    }

    /// Bytes that files may still grow by.
    fn free(&self) -> u64 {
        self.space.map_or(u64::MAX, |space| space.saturating_sub(self.used()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_keeps_what_was_synced_and_tears_the_rest_at_sectors() {
        let (mut kept, mut lost, mut torn) = (0, 0, 0);
        for seed in 0..200 {
            let disk = Disk::new();
            let mut file = Image::new(1, &[0; 16384]);
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
    fn a_crash_may_take_a_name_that_was_not_synced() {
        let (mut kept, mut lost) = (0, 0);
        for seed in 0..40 {
            let disk = Disk::new();
            disk.make("/a/1", 1);
            disk.make("/b/1", 1);
            disk.sync_names_beside("/b/2");
            let left = disk.after_crash(seed);
            assert_eq!(left.length("/b/1"), Some(0), "its directory was synced, seed {seed}");
            assert_eq!(disk.length("/a/1"), Some(0), "nobody has crashed");
            *(if left.length("/a/1").is_some() { &mut kept } else { &mut lost }) += 1;
        }
        assert!(kept > 5 && lost > 5, "{kept} kept, {lost} lost");
    }

    #[test]
    fn the_same_seed_crashes_alike() {
        let crashed = |seed| {
            let disk = Disk::new();
            for name in ["a", "b", "c"] {
                let mut file = Image::new(1, &[0; 8192]);
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
