//! The simulated disk: files with a volatile and a durable image, and mounts that can hang.
//!
//! ```text
//!   write ──▶ volatile ──fsync──▶ durable        read ◀── volatile
//!                 ▲                  │
//!                 └───── crash ◀─────┴── and parts of unsynced writes
//! ```
//! A file is found by name, or by id while an instance has it open. A single mutex protects all
//! state. Operations take no virtual time while they hold the mutex. Only the fault plan adds
//! delays, outside the mutex.
//!
//! The disk can run out of space ([`Disk::limit_space`]). A sync can fail as on Linux
//! ("fsyncgate"): it reports the error once and marks the data clean, although the data was never
//! written ([`Disk::lose_syncs`]). Kernel writeback can also fail before the sync
//! ([`Disk::lose_writebacks`]). In that case each open file reports the error once, at its next
//! sync or awaited writeback, as Linux does with `errseq_t`. A new file is guaranteed to survive a
//! crash only after its directory was synced.
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
    /// Names of open files, by file id. An id is valid until the file is removed or the disk
    /// crashes.
    open: Map<u64, String>,
    /// Ids of removed files that are still open. Their writes and syncs succeed without effect, so
    /// that a late checkpoint write is harmless. Their reads fail.
    removed: Set<u64>,
    /// Devices whose mount currently hangs.
    held: Set<u64>,
    /// Number of threads blocked in the executor because a mount hangs.
    stuck: usize,
    /// Number of I/Os that hung mounts block in the simulated device. The device just keeps
    /// these I/Os queued, so no thread blocks.
    held_in_device: usize,
    /// Number of operations executed. A reordered I/O waits for this to change.
    performed: u64,
    /// Limit on the total size of all files, in bytes; `None` means no limit.
    space: Option<u64>,
    /// How many of the next syncs fail and lose their data.
    lost_syncs: u32,
    /// How many of the next writebacks fail and lose their data.
    lost_writebacks: u32,
    /// How many of its file's losses each open file has reported, by file id. An open file's count
    /// starts with the losses that were reported before it was opened, so that it doesn't report
    /// them again.
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

    /// Removes a file durably. If an instance still has it open, its writes and syncs succeed
    /// without effect, and its reads fail with `EBADF`.
    pub fn remove(&self, name: &str) {
        let state = &mut *self.state.lock();
        state.files.remove(name);
        state.new_names.remove(name);
        // A file created later under the same name is a different file, so the old ids must not
        // find it by name.
        let ids = state.open.iter().filter(|(_, open)| *open == name).map(|(id, _)| *id);
        let ids: Vec<u64> = ids.collect();
        for id in ids {
            state.open.remove(&id);
            state.removed.insert(id);
        }
    }

    /// Truncates a file or extends it with zeros. The change bypasses the instance and is durable
    /// immediately.
    pub fn set_length(&self, name: &str, length: usize) {
        if let Some(image) = self.state.lock().files.get_mut(name) {
            image.volatile.resize(length, 0);
            image.settle();
        }
    }

    /// Limits the total size of all files, in bytes; `None` removes the limit. A write that needs
    /// more space is short, or fails with `ENOSPC` if not even one byte fits.
    pub fn limit_space(&self, bytes: Option<u64>) {
        self.state.lock().space = bytes;
    }

    /// Makes the next `count` syncs that have unsynced data fail with `EIO` and drop that data. As
    /// on Linux, the data can still be read until a crash, and the next sync succeeds although the
    /// data was never written. A checkpointer that retries a failed fsync therefore loses data.
    pub fn lose_syncs(&self, count: u32) {
        self.state.lock().lost_syncs = count;
    }

    /// Makes the next `count` writebacks of files with unsynced data drop that data, as
    /// [`Disk::lose_syncs`] does. Each open file reports the loss once, with `EIO`, from a sync or
    /// from an awaited writeback.
    pub fn lose_writebacks(&self, count: u32) {
        self.state.lock().lost_writebacks = count;
    }

    /// Total size of all files in bytes.
    pub fn used(&self) -> u64 {
        self.state.lock().used()
    }

    /// Truncates an open file, or extends it with zeros. The new length is durable after the next
    /// sync of the file. Returns false if the disk is full, and `None` if the file was removed.
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

    /// Overwrites bytes of a file. The change bypasses the instance and is durable immediately.
    /// Tests use this to damage or repair a page.
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

    /// The volatile contents of a file; empty if it does not exist.
    pub fn content(&self, name: &str) -> Vec<u8> {
        self.state.lock().files.get(name).map(|file| file.volatile.clone()).unwrap_or_default()
    }

    /// The durable contents of a file; empty if it does not exist.
    pub fn durable(&self, name: &str) -> Vec<u8> {
        self.state.lock().files.get(name).map(|file| file.durable.clone()).unwrap_or_default()
    }

    /// Crashes the disk. Of each unsynced write, either everything, nothing, or some of its sectors
    /// survive. All open files are closed. The seed determines the result, so a crash can be
    /// repeated.
    pub fn crash(&self, seed: u64) {
        self.state.lock().crash(seed);
    }

    /// Returns a copy of the disk as a crash would leave it. This disk is unchanged, so one run can
    /// be checked against many crashes.
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

    /// Executes one operation and returns the bytes transferred, or a negative errno. Faults that
    /// prevent the transfer return before we touch the disk. Other faults change what the transfer
    /// does.
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
            match request.operation {
                Operation::Readv => image.read(request, fault),
                Operation::Writev => image.write(request, fault, free),
                Operation::Fsync | Operation::Fdatasync => {
                    let lost = state.lost_syncs > 0 && !image.is_synced();
                    state.lost_syncs -= u32::from(lost);
                    // The sync may fail itself, and it may also report an earlier writeback
                    // failure. -EIO is negative and success is 0, so the minimum of the two results
                    // is the error.
                    let synced = image.sync(lost);
                    synced
                        .min(image.report_loss(state.reported.entry(request.file_id).or_default()))
                }
                // Writeback does not change what survives a crash: unsynced data may survive or
                // not, as before.
                Operation::BeginWriteback => {
                    if state.lost_writebacks > 0 && !image.is_synced() {
                        state.lost_writebacks -= 1;
                        image.lose();
                    }
                    match request.awaits {
                        true => {
                            image.report_loss(state.reported.entry(request.file_id).or_default())
                        }
                        false => 0,
                    }
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
        // Sorted, because a hash table's iteration order must not determine which file gets which
        // random number.
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
            file.sync(false);
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
