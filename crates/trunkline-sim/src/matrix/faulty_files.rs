//! The file system that is used by cluster cases. A case can ask it to make a call fail, or to run
//! a hook before a call.
//!
//! A fault plan can only inject faults into I/O. With this file system, we can also inject faults
//! into the other file system calls, which the engine makes synchronously (open, length, allocate,
//! truncate, unlink, and fsync of a directory).
//!
//! This file system also remembers the path of every file it has opened. The write checker needs
//! the path to read back the blocks that were written, because an I/O only contains the id of the
//! file.

use super::Instance;
use crate::disk::Disk;
use crate::pause::PausePoint;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use trunkline_aio::facade::hash::Map;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{File, Observed};
use trunkline_engine::storage::{FileSystem, WritableFiles};
use trunkline_format::{BLOCK_SIZE, BlockNo, SEGMENT_BLOCKS};

/// A wrapper around an instance's file system.
pub struct FaultyFiles {
    inner: Box<dyn WritableFiles>,
    /// The simulated disk; `None` on real files.
    disk: Option<Arc<Disk>>,
    /// Paths by file id.
    paths: Mutex<Map<u64, PathBuf>>,
    /// The call that must fail, with its errno.
    fault: Mutex<Option<(FileCall, i32)>>,
    /// See [`FaultyFiles::has_failed`].
    failed: Mutex<Vec<(FileCall, i32)>>,
    /// By call: what to run before the next one.
    hooks: Mutex<[Option<Hook>; FileCall::ALL.len()]>,
}

/// A hook set by a test case, which is called only once. We don't hold any of this file system's
/// locks while we call it, so the hook is allowed to block.
type Hook = Box<dyn FnOnce() + Send>;

/// A file system call other than block I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileCall {
    /// Opens or creates a file.
    Open,
    /// Returns the length of a file.
    Length,
    /// Reserves space in a file (`posix_fallocate`).
    Allocate,
    /// Truncates a file.
    Truncate,
    /// Gives a file another name.
    Rename,
    /// Removes a file.
    Remove,
    /// Syncs a directory, which makes its names durable.
    SyncDirectory,
}

impl FileCall {
    /// All calls.
    pub const ALL: [FileCall; 7] = [
        FileCall::Open,
        FileCall::Length,
        FileCall::Allocate,
        FileCall::Truncate,
        FileCall::Rename,
        FileCall::Remove,
        FileCall::SyncDirectory,
    ];
}

impl fmt::Debug for FaultyFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyFiles")
    }
}

impl FaultyFiles {
    /// Wraps an instance's file system.
    pub fn new(instance: &Instance) -> Self {
        Self {
            inner: instance.files(),
            disk: instance.is_simulated().then(|| Arc::clone(&instance.disk)),
            paths: Mutex::default(),
            fault: Mutex::default(),
            failed: Mutex::default(),
            hooks: Mutex::default(),
        }
    }

    /// Makes a call fail with an errno from now on. Replaces any earlier fault.
    pub fn fail(&self, call: FileCall, errno: i32) {
        *self.fault.lock() = Some((call, errno));
    }

    /// Lets all calls succeed again.
    pub fn clear_fault(&self) {
        *self.fault.lock() = None;
    }

    /// Whether a call has ever failed with this errno. Coverage checks use this.
    pub fn has_failed(&self, call: FileCall, errno: i32) -> bool {
        self.failed.lock().contains(&(call, errno))
    }

    /// Runs `hook` before the next call of this kind.
    pub fn before(&self, call: FileCall, hook: impl FnOnce() + Send + 'static) {
        self.hooks.lock()[call as usize] = Some(Box::new(hook));
    }

    /// Stops the next thread that makes a call of this kind, until the returned point is released.
    pub fn hold(&self, call: FileCall) -> PausePoint {
        let point = PausePoint::new();
        let held = point.clone();
        self.before(call, move || held.wait());
        point
    }

    /// Runs the hook for this call, and then fails the call if a fault is set for it.
    fn call(&self, call: FileCall) -> io::Result<()> {
        let hook = self.hooks.lock()[call as usize].take();
        hook.into_iter().for_each(|hook| hook());
        match *self.fault.lock() {
            Some((failing, errno)) if failing == call => {
                self.failed.lock().push((call, errno));
                Err(io::Error::from_raw_os_error(errno))
            }
            _ => Ok(()),
        }
    }

    /// Reads back the blocks covered by a write of `length` bytes. Returns the number of
    /// the first block within the fork and the contents of the blocks. Returns `None` if we don't
    /// know the file or if it has been removed.
    pub(super) fn written(&self, io: &Observed, length: usize) -> Option<(BlockNo, Vec<u8>)> {
        let path = self.paths.lock().get(&io.file_id)?.clone();
        let segment = path.extension().and_then(|part| part.to_str()?.parse().ok()).unwrap_or(0);
        let first = segment * SEGMENT_BLOCKS + (io.offset / BLOCK_SIZE as u64) as BlockNo;
        if let Some(disk) = &self.disk {
            let (bytes, offset) = (disk.content(path.to_str()?), io.offset as usize);
            return Some((first, bytes.get(offset..offset + length)?.to_vec()));
        }
        let mut bytes = vec![0; length];
        fs::File::open(path).ok()?.read_exact_at(&mut bytes, io.offset).ok()?;
        Some((first, bytes))
    }

    /// Records the path of a file that was opened.
    fn remember(&self, path: &Path, opened: io::Result<File>) -> io::Result<File> {
        let file = opened?;
        self.paths.lock().insert(file.id(), path.to_owned());
        Ok(file)
    }
}

impl FileSystem for FaultyFiles {
    fn open(&self, path: &Path, direct: bool) -> io::Result<File> {
        self.call(FileCall::Open)?;
        self.remember(path, self.inner.open(path, direct))
    }

    fn length(&self, file: &File) -> io::Result<u64> {
        self.call(FileCall::Length)?;
        self.inner.length(file)
    }

    fn file_length(&self, path: &Path) -> io::Result<Option<u64>> {
        self.call(FileCall::Length)?;
        self.inner.file_length(path)
    }
}

impl WritableFiles for FaultyFiles {
    fn open_for_writing(&self, path: &Path, direct: bool, create: bool) -> io::Result<File> {
        self.call(FileCall::Open)?;
        self.remember(path, self.inner.open_for_writing(path, direct, create))
    }

    fn allocate(&self, file: &File, offset: u64, length: u64) -> io::Result<()> {
        self.call(FileCall::Allocate)?;
        self.inner.allocate(file, offset, length)
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        self.call(FileCall::Truncate)?;
        self.inner.truncate(file, length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(FileCall::Rename)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call(FileCall::Remove)?;
        self.inner.remove(path)
    }

    fn sync_directory_of(&self, path: &Path) -> io::Result<()> {
        self.call(FileCall::SyncDirectory)?;
        self.inner.sync_directory_of(path)
    }
}
