//! The file system below a case: it can refuse what it is asked for, and let others do something at
//! the worst moment.
//!
//! It also knows the names of what it opened, so that the probe, which sees files by number, can look
//! what a write has written.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use trunkline_aio::sync::hash::Map;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{File, Observed};
use trunkline_engine::storage::{FileSystem, WritableFiles};
use trunkline_format::{BLOCK_SIZE, BlockNo, SEGMENT_BLOCKS};
use trunkline_sim::Disk;
use trunkline_sim::rig::Instance;

/// A file system that knows the names of what it opened, and can refuse what it is asked for.
pub(crate) struct Files {
    inner: Box<dyn WritableFiles>,
    disk: Option<Arc<Disk>>,
    names: Mutex<Map<u64, PathBuf>>,
    refused: Mutex<Option<(Call, i32)>>,
    /// See [`Files::was_refused`].
    struck: Mutex<Vec<(Call, i32)>>,
    /// See [`Files::before_allocation`].
    interlude: Mutex<Option<Interlude>>,
    /// See [`Files::before_open`].
    opening: Mutex<Option<Interlude>>,
}

/// What happens meanwhile.
type Interlude = Box<dyn FnOnce() + Send>;

/// What a file system is asked for beside I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Open,
    Length,
    Allocate,
    Truncate,
    Remove,
    SyncDirectory,
}

impl Call {
    pub(crate) const ALL: [Call; 6] = [
        Call::Open,
        Call::Length,
        Call::Allocate,
        Call::Truncate,
        Call::Remove,
        Call::SyncDirectory,
    ];
}

impl Files {
    /// Those of an instance.
    pub(crate) fn new(instance: &Instance) -> Self {
        Self {
            inner: instance.files(),
            disk: instance.is_simulated().then(|| Arc::clone(&instance.disk)),
            names: Mutex::default(),
            refused: Mutex::default(),
            struck: Mutex::default(),
            interlude: Mutex::default(),
            opening: Mutex::default(),
        }
    }

    /// A call fails with an errno from now on.
    pub(crate) fn refuse(&self, call: Call, errno: i32) {
        *self.refused.lock() = Some((call, errno));
    }

    /// Nothing fails any more.
    pub(crate) fn refuse_nothing(&self) {
        *self.refused.lock() = None;
    }

    /// Whether somebody was told that a call fails with an errno, ever.
    pub(crate) fn was_refused(&self, call: Call, errno: i32) -> bool {
        self.struck.lock().contains(&(call, errno))
    }

    /// When room is made in a file the next time, this happens first: what others do then.
    pub(crate) fn before_allocation(&self, interlude: impl FnOnce() + Send + 'static) {
        *self.interlude.lock() = Some(Box::new(interlude));
    }

    /// When a file is opened the next time, this happens first.
    pub(crate) fn before_open(&self, interlude: impl FnOnce() + Send + 'static) {
        *self.opening.lock() = Some(Box::new(interlude));
    }

    fn asked(&self, call: Call) -> io::Result<()> {
        let opening = if call == Call::Open { self.opening.lock().take() } else { None };
        opening.into_iter().for_each(|interlude| interlude());
        match *self.refused.lock() {
            Some((refused, errno)) if refused == call => {
                self.struck.lock().push((call, errno));
                Err(io::Error::from_raw_os_error(errno))
            }
            _ => Ok(()),
        }
    }

    /// What a write has written: the first block, and the bytes.
    pub(crate) fn written(&self, io: &Observed, length: usize) -> Option<(BlockNo, Vec<u8>)> {
        let path = self.names.lock().get(&io.file_id)?.clone();
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

    fn note(&self, path: &Path, opened: io::Result<File>) -> io::Result<File> {
        let file = opened?;
        self.names.lock().insert(file.id(), path.to_owned());
        Ok(file)
    }
}

impl FileSystem for Files {
    fn open(&self, path: &Path, direct: bool) -> io::Result<File> {
        self.asked(Call::Open)?;
        self.note(path, self.inner.open(path, direct))
    }

    fn length(&self, file: &File) -> io::Result<u64> {
        self.asked(Call::Length)?;
        self.inner.length(file)
    }

    fn file_length(&self, path: &Path) -> io::Result<Option<u64>> {
        self.asked(Call::Length)?;
        self.inner.file_length(path)
    }
}

impl WritableFiles for Files {
    fn open_for_writing(&self, path: &Path, direct: bool, create: bool) -> io::Result<File> {
        self.asked(Call::Open)?;
        self.note(path, self.inner.open_for_writing(path, direct, create))
    }

    fn allocate(&self, file: &File, offset: u64, length: u64) -> io::Result<()> {
        let interlude = self.interlude.lock().take();
        interlude.into_iter().for_each(|interlude| interlude());
        self.asked(Call::Allocate)?;
        self.inner.allocate(file, offset, length)
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        self.asked(Call::Truncate)?;
        self.inner.truncate(file, length)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.asked(Call::Remove)?;
        self.inner.remove(path)
    }

    fn sync_directory_of(&self, path: &Path) -> io::Result<()> {
        self.asked(Call::SyncDirectory)?;
        self.inner.sync_directory_of(path)
    }
}
