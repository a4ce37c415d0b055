//! The simulated disk: files with a volatile and a durable image, and mounts that can hang.
//!
//! ```text
//!   write ──▶ volatile ──fsync──▶ durable        read ◀── volatile
//!                 ▲                  │
//!                 └───── crash ◀─────┴── and parts of unsynced writes
//! ```
//! A file can be looked up by its name, or by its id while an instance has it open. All of the
//! disk's state is protected by a single mutex. No virtual time passes while the mutex is held. If
//! the fault plan injects a delay, it happens before the mutex is acquired.
//!
//! The disk can run out of space (see [`Disk::limit_space`]). A sync can fail in the same way as on
//! Linux ("fsyncgate"), where the error is only reported once, and the data is then treated as
//! clean although it was never written (see [`Disk::lose_syncs`]). The kernel's writeback can also
//! fail before there is any sync (see [`Disk::lose_writebacks`]). In that case, each open file
//! reports the error once, the next time the file is synced or we wait for its writeback, just like
//! `errseq_t` in Linux. A new file may be lost in a crash until its directory has been synced.
//! ```
//! # use trunkline_sim::Disk;
//! let disk = Disk::new();
//! disk.create("a", 1, &[1, 2, 3]);
//! assert_eq!(disk.content("a"), [1, 2, 3]);
//! ```

mod image;
mod mounts;

pub use image::SECTOR_SIZES;

use crate::event_count::EventCount;
use crate::fault::Fault;
use image::Image;
use std::path::Path;
use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::hash::{Map, Set};
use trunkline_aio::facade::random::Rng;
use trunkline_aio::{Aio, File, Operation, Request};

/// A simulated disk.
#[derive(Debug, Default)]
pub struct Disk {
    state: Mutex<DiskState>,
    /// Incremented by every change that a thread may wait for.
    changed: EventCount,
}

#[derive(Debug, Default)]
struct DiskState {
    files: Map<String, Image>,
    /// The names of open files, indexed by file id. An id remains valid until the file is removed
    /// or the disk crashes.
    open: Map<u64, String>,
    /// Ids of files that have been removed but are still open. Writes and syncs of such a file
    /// succeed but do nothing, so that it is OK for a checkpoint to write a block of a file that
    /// has just been removed. Reads fail.
    removed: Set<u64>,
    /// Devices whose mount currently hangs.
    held: Set<u64>,
    /// Number of threads blocked in the executor because a mount hangs.
    stuck: usize,
    /// Number of I/Os in the simulated device that are blocked because a mount is hung. The device
    /// just keeps them in its queue, so they don't block any thread.
    held_in_device: usize,
    /// Number of operations executed. A reordered I/O waits for this to change.
    performed: u64,
    /// Limit on the total size of all files, in bytes; `None` means no limit.
    space: Option<u64>,
    /// How many of the next syncs fail and lose their data.
    lost_syncs: u32,
    /// How many of the next writebacks fail and lose their data.
    lost_writebacks: u32,
    /// The number of writeback failures that each open file has already reported, indexed by file
    /// id. When a file is opened, this is set to the number of failures that had been reported by
    /// then, so that the newly opened file doesn't report them again.
    reported: Map<u64, u64>,
    /// New files in directories that haven't been synced since. A crash may remove them.
    new_names: Set<String>,
}

impl Disk {
    /// A disk without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates or replaces a file, with durable contents and a durable name.
    pub fn create(&self, name: &str, device: u64, content: &[u8]) {
        let state = &mut *self.state.lock();
        state.new_names.remove(name);
        state.files.insert(name.to_owned(), Image::new(device, content));
    }

    /// Creates an empty file. Its name becomes durable when its directory is synced.
    pub(crate) fn make(&self, name: &str, device: u64) {
        let state = &mut *self.state.lock();
        state.new_names.insert(name.to_owned());
        state.files.insert(name.to_owned(), Image::new(device, &[]));
    }

    /// Syncs a file's directory, which makes all names in it durable.
    pub(crate) fn sync_names_beside(&self, name: &str) {
        let directory = Path::new(name).parent();
        self.state.lock().new_names.retain(|new| Path::new(new).parent() != directory);
    }

    /// Opens a file through an instance. If the file does not exist, creates it with `content`.
    pub fn open(&self, aio: &Aio, name: &str, device: u64, content: &[u8]) -> File {
        let missing = !self.state.lock().files.contains_key(name);
        if missing {
            self.create(name, device, content);
        }
        let file = aio.open_virtual(Path::new(name), device, false);
        self.state.lock().note_open(&file, name);
        file
    }

    /// Opens a file through an instance. Returns `None` if the file does not exist.
    pub fn open_existing(&self, aio: &Aio, name: &str, direct: bool) -> Option<File> {
        let device = self.state.lock().files.get(name)?.device;
        let file = aio.open_virtual(Path::new(name), device, direct);
        self.state.lock().note_open(&file, name);
        Some(file)
    }

    /// Renames a file. A crash before the directory is synced removes the file: until then, neither name is
    /// guaranteed. Returns false if there is no such file.
    pub(crate) fn rename(&self, from: &str, to: &str) -> bool {
        let state = &mut *self.state.lock();
        let Some(image) = state.files.remove(from) else { return false };
        state.new_names.remove(from);
        state.new_names.insert(to.to_owned());
        state.files.insert(to.to_owned(), image);
        let names = state.open.values_mut().filter(|name| *name == from);
        names.for_each(|name| to.clone_into(name));
        true
    }

    /// Removes a file. The removal is durable immediately. If an instance still has the file open,
    /// its writes and syncs will succeed without doing anything, and its reads will fail with
    /// `EBADF`.
    pub fn remove(&self, name: &str) {
        let state = &mut *self.state.lock();
        state.files.remove(name);
        state.new_names.remove(name);
        // If a file with the same name is created later, it is a different file, so we must make
        // sure that the old ids don't refer to it.
        let ids = state.open.iter().filter(|(_, open)| *open == name).map(|(id, _)| *id);
        let ids: Vec<u64> = ids.collect();
        for id in ids {
            state.open.remove(&id);
            state.removed.insert(id);
        }
    }

    /// Truncates a file or extends it with zeros. This bypasses the I/O instance, and the new
    /// length is durable immediately.
    pub fn set_length(&self, name: &str, length: usize) {
        if let Some(image) = self.state.lock().files.get_mut(name) {
            image.volatile.resize(length, 0);
            image.settle();
        }
    }

    /// Limits the total size of all files to the given number of bytes, or removes the limit if it
    /// is `None`. If there isn't enough space left for a write, the write is short. If there is no
    /// space left at all, it fails with `ENOSPC`.
    pub fn limit_space(&self, bytes: Option<u64>) {
        self.state.lock().space = bytes;
    }

    /// Makes the next `count` syncs fail with `EIO` and drop the data they should have made
    /// durable. Syncs of files that have no unsynced data are not counted. As on Linux, the data
    /// can still be read until the next crash, and the next sync succeeds although the data was
    /// never written, except through another open file, which reports the error once, too. If a checkpointer simply retries a failed fsync, it will therefore lose data.
    pub fn lose_syncs(&self, count: u32) {
        self.state.lock().lost_syncs = count;
    }

    /// Like [`Disk::lose_syncs`], but drops the data in the next `count` writebacks of files that
    /// have unsynced data. Each open file then reports `EIO` once, the next time the file is synced
    /// or we wait for its writeback.
    pub fn lose_writebacks(&self, count: u32) {
        self.state.lock().lost_writebacks = count;
    }

    /// Total size of all files in bytes.
    pub fn used(&self) -> u64 {
        self.state.lock().used()
    }

    /// Truncates an open file, or extends it with zeros. The new length is not durable until the
    /// file has been synced. Returns false if there is not enough space on the disk, or `None` if
    /// the file has been removed.
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

    /// Overwrites part of a file. This bypasses the I/O instance, and the change is durable
    /// immediately. Tests use this to damage a page or to repair it.
    pub fn overwrite(&self, name: &str, offset: usize, bytes: &[u8]) {
        if let Some(image) = self.state.lock().files.get_mut(name) {
            image.overwrite(offset, bytes);
        }
    }

    /// Length of a file in bytes; `None` if it does not exist.
    pub fn length(&self, name: &str) -> Option<u64> {
        self.state.lock().files.get(name).map(|image| image.volatile.len() as u64)
    }

    /// Length in bytes of an open file; `None` if it was removed.
    pub fn length_of_open(&self, file: &File) -> Option<u64> {
        let state = self.state.lock();
        let name = state.open.get(&file.id())?;
        state.files.get(name).map(|image| image.volatile.len() as u64)
    }

    /// The name of the file that an instance has opened under this id. `None` if the file was removed, or
    /// if the disk has crashed since.
    pub fn name_of(&self, file_id: u64) -> Option<String> {
        self.state.lock().open.get(&file_id).cloned()
    }

    /// The volatile contents of a file; empty if it does not exist.
    pub fn content(&self, name: &str) -> Vec<u8> {
        self.state.lock().files.get(name).map(|file| file.volatile.clone()).unwrap_or_default()
    }

    /// The durable contents of a file; empty if it does not exist.
    pub fn durable(&self, name: &str) -> Vec<u8> {
        self.state.lock().files.get(name).map(|file| file.durable.clone()).unwrap_or_default()
    }

    /// Simulates a crash. For each write that has not been synced, we choose at random whether all
    /// of it, none of it, or only some of its sectors survive. All open files are closed. The
    /// result depends only on the seed, so the crash can be repeated.
    pub fn crash(&self, seed: u64) {
        self.state.lock().crash(seed);
    }

    /// Returns a copy of this disk as it would be after a crash. This disk itself is not changed,
    /// so we can try many different crashes at the same point of a run.
    #[must_use]
    pub fn after_crash(&self, seed: u64) -> Self {
        let (files, new_names) = {
            let state = self.state.lock();
            (state.files.clone(), state.new_names.clone())
        };
        let mut state = DiskState { files, new_names, ..DiskState::default() };
        state.crash(seed);
        Self { state: Mutex::new(state), changed: EventCount::default() }
    }

    /// Number of operations executed.
    pub fn performed(&self) -> u64 {
        self.state.lock().performed
    }

    /// Executes one operation and returns the number of bytes transferred, or a negative errno. If
    /// the fault prevents the transfer altogether, we return before touching the disk. All other
    /// faults are passed on to the code that performs the transfer.
    pub(crate) fn perform(&self, request: &mut Request<'_>, fault: Option<Fault>) -> i32 {
        if let Some(raw) = fault.and_then(Fault::without_transfer) {
            return raw;
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
            let reported = state.reported.entry(request.file_id).or_default();
            let writes = request.operation == Operation::Writev;
            assert!(writes || !request.durable, "only a write can be durable");
            match request.operation {
                Operation::Readv => image.read(request, fault),
                Operation::Writev if request.durable => {
                    let first = image.changes();
                    let written = image.write(request, fault, free);
                    let lost = state.lost_syncs > 0 && image.changes() > first;
                    state.lost_syncs -= u32::from(lost);
                    let synced = image.sync_write(first, lost).min(image.report_loss(reported));
                    if synced < 0 { synced } else { written }
                }
                Operation::Writev => image.write(request, fault, free),
                Operation::Fsync | Operation::Fdatasync => {
                    let lost = state.lost_syncs > 0 && !image.is_synced();
                    state.lost_syncs -= u32::from(lost);
                    if lost {
                        // Each file that is open now reports it once, as on Linux.
                        image.lose();
                    }
                    // The sync itself can fail, or it may have to report an earlier writeback
                    // failure. Both results are either 0 or -EIO, so by taking the minimum we
                    // return the error, if there is one.
                    image.sync().min(image.report_loss(reported))
                }
                // Writeback makes no difference to what survives a crash. Until the data is synced,
                // it may or may not survive, just as before.
                Operation::BeginWriteback => {
                    if state.lost_writebacks > 0 && !image.is_synced() {
                        state.lost_writebacks -= 1;
                        image.lose();
                    }
                    if request.awaits { image.report_loss(reported) } else { 0 }
                }
            }
        };
        self.notify();
        done
    }
}

impl DiskState {
    /// Registers an open file. Losses already reported by another open file count as seen.
    fn note_open(&mut self, file: &File, name: &str) {
        self.open.insert(file.id(), name.to_owned());
        let reported = self.files.get(name).map_or(0, Image::reported_losses);
        self.reported.insert(file.id(), reported);
    }

    fn crash(&mut self, seed: u64) {
        let mut rng = Rng::new(seed);
        self.open.clear();
        self.removed.clear();
        self.reported.clear();
        // Sort the files, because the random number that we use for each file must not depend on
        // the iteration order of a hash table.
        let mut new: Vec<String> = self.new_names.drain().collect();
        new.sort_unstable();
        for name in new.into_iter().filter(|_| rng.below(2) == 0) {
            self.files.remove(&name);
        }
        // Sorted for the same reason.
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

    /// Free space in bytes.
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
            file.sync();
            file.put(8192, &[2; 8192]);
            disk.state.lock().files.insert("a".into(), file);
            disk.crash(seed);
            let found = disk.content("a");
            assert_eq!(found[..8192], [1; 8192], "synced, seed {seed}");
            let sectors: Vec<bool> = found[8192..].chunks(512).map(|s| s == [2; 512]).collect();
            let whole = found[8192..].chunks(512).all(|s| s == [2; 512] || s == [0; 512]);
            assert!(whole, "torn within a sector, seed {seed}");
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
    fn a_crash_may_remove_a_name_that_was_not_synced() {
        let (mut kept, mut lost) = (0, 0);
        for seed in 0..40 {
            let disk = Disk::new();
            disk.make("/a/1", 1);
            disk.make("/b/1", 1);
            disk.sync_names_beside("/b/2");
            let left = disk.after_crash(seed);
            assert_eq!(left.length("/b/1"), Some(0), "its directory was synced, seed {seed}");
            assert_eq!(disk.length("/a/1"), Some(0), "this disk has not crashed");
            *(if left.length("/a/1").is_some() { &mut kept } else { &mut lost }) += 1;
        }
        assert!(kept > 5 && lost > 5, "{kept} kept, {lost} lost");
    }

    #[test]
    fn a_seed_repeats_its_crash() {
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
