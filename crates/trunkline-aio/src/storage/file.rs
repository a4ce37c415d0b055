//! Reference-counted files: an I/O keeps its file open until it completes.
//!
//! The kernel may go on using a descriptor long after it has accepted a request. If we closed the
//! descriptor and its number were reused, the I/O would go to a different file. To prevent this,
//! each handle holds a clone of the [`File`], and the descriptor is closed only when the last clone
//! is dropped. PostgreSQL solves the same problem by waiting for a descriptor's I/O before closing
//! it (`pgaio_closing_fd`).
//!
//! Closing a file may block, for example on a network file system or on FUSE. A thread that
//! completes other sessions' I/O must therefore never close a file. Instead, it calls
//! [`File::give_up`], and a worker closes the file later.

use crate::facade::Mutex;
use crate::facade::atomic::{AtomicU64, Ordering};
use crate::facade::hash::Map;
use crate::limits::LANES_MAX;
use crate::storage::file_system;
use crate::storage::write_latency::WriteLatency;
use rustix::fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::io::{Errno, retry_on_intr};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Direct I/O alignment in bytes, if the file system doesn't report it. PostgreSQL assumes the same
/// value.
pub const DIRECT_ALIGNMENT_DEFAULT: u32 = 4096;

/// Options for opening a file. The default opens an existing file for buffered reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Open for writing too.
    pub write: bool,
    /// Create the file if it is missing.
    pub create: bool,
    /// Bypass the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Refuse to open a symbolic link.
    pub no_follow: bool,
}

/// An open file. Clones share the descriptor, which is closed when the last clone is dropped.
#[derive(Clone)]
pub struct File(Arc<Inner>);

struct Inner {
    /// `None` for a file that exists only in a simulated executor or method.
    fd: Option<OwnedFd>,
    id: u64,
    path: PathBuf,
    /// `st_dev`, which identifies the mount.
    device: u64,
    /// The mount's lane in worker queues and rings.
    lane: u8,
    direct: bool,
    alignment: u32,
    latency: Arc<WriteLatency>,
    registry: Arc<FileRegistry>,
}

/// The open files of an instance, by id, and what we know about the mounts they are on.
#[derive(Debug, Default)]
pub(crate) struct FileRegistry {
    names: Mutex<Map<u64, PathBuf>>,
    /// The device number for each lane. We never reassign a lane, so a mount keeps its lane even if
    /// all of its files are closed.
    lanes: Mutex<Vec<u64>>,
    /// Write latencies, by device number.
    latencies: Mutex<Map<u64, Arc<WriteLatency>>>,
    /// The id of the most recently opened file. Unlike descriptors, ids are never reused. A view
    /// can therefore never show the name of a different file.
    next_id: AtomicU64,
}

impl FileRegistry {
    /// The path of an open file, for views and messages.
    pub(crate) fn name(&self, id: u64) -> Option<PathBuf> {
        self.names.lock().get(&id).cloned()
    }

    /// Number of files open through this instance.
    pub(crate) fn open_files(&self) -> usize {
        self.names.lock().len()
    }

    /// The lane of a mount. When all lanes are assigned, further mounts share the last one.
    fn lane(&self, device: u64) -> u8 {
        let mut lanes = self.lanes.lock();
        let at = lanes.iter().position(|&d| d == device).unwrap_or_else(|| {
            if lanes.len() < LANES_MAX {
                lanes.push(device);
            }
            lanes.len() - 1
        });
        at as u8
    }

    /// Returns the latency record for the mount that `fd` is on. For each device, we check just
    /// once whether the file system is local. We do so without holding the lock, because fstatfs(2)
    /// may need to access the network.
    fn latency(&self, fd: &OwnedFd, device: u64) -> Arc<WriteLatency> {
        let known = self.latencies.lock().get(&device).cloned();
        known.unwrap_or_else(|| self.latency_of(device, file_system::is_local(fd)))
    }

    fn latency_of(&self, device: u64, local: bool) -> Arc<WriteLatency> {
        let mut latencies = self.latencies.lock();
        let new = || Arc::new(WriteLatency::new(local));
        Arc::clone(latencies.entry(device).or_insert_with(new))
    }

    fn register(&self, path: &Path) -> u64 {
        let id = self.next_id.fetch_add(1, Ordering::SeqCst) + 1;
        self.names.lock().insert(id, path.to_owned());
        id
    }
}

impl File {
    /// Opens a file.
    ///
    /// # Errors
    /// The errors of open(2). A file system without support for direct I/O returns `EINVAL`.
    pub(crate) fn open(
        registry: &Arc<FileRegistry>,
        path: &Path,
        options: OpenOptions,
    ) -> io::Result<Self> {
        let mut flags = OFlags::CLOEXEC;
        flags |= if options.write { OFlags::RDWR } else { OFlags::RDONLY };
        flags.set(OFlags::CREATE, options.create);
        flags.set(OFlags::DIRECT, options.direct);
        flags.set(OFlags::NOFOLLOW, options.no_follow);
        // Use O_NONBLOCK, so that opening a FIFO in place of a data file doesn't block.
        let fd = rustix::fs::open(path, flags | OFlags::NONBLOCK, Mode::RUSR | Mode::WUSR)?;
        let stat = rustix::fs::fstat(&fd)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile | FileType::BlockDevice => {}
            FileType::Directory => return Err(Errno::ISDIR.into()),
            other => {
                let text = format!("not a regular file but a {other:?}");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        }
        // Clear O_NONBLOCK again: otherwise io_uring would return EAGAIN instead of waiting.
        rustix::fs::fcntl_setfl(&fd, flags & OFlags::DIRECT)?;
        let alignment = if options.direct { direct_alignment(&fd) } else { 1 };
        Ok(Self(Arc::new(Inner {
            id: registry.register(path),
            path: path.to_owned(),
            device: stat.st_dev,
            lane: registry.lane(stat.st_dev),
            direct: options.direct,
            alignment,
            latency: registry.latency(&fd, stat.st_dev),
            fd: Some(fd),
            registry: Arc::clone(registry),
        })))
    }

    /// Creates a file without a descriptor, for executors and methods that simulate the storage.
    pub(crate) fn without_descriptor(
        registry: &Arc<FileRegistry>,
        path: &Path,
        device: u64,
        direct: bool,
    ) -> Self {
        Self(Arc::new(Inner {
            fd: None,
            id: registry.register(path),
            path: path.to_owned(),
            device,
            lane: registry.lane(device),
            direct,
            alignment: if direct { DIRECT_ALIGNMENT_DEFAULT } else { 1 },
            latency: registry.latency_of(device, true),
            registry: Arc::clone(registry),
        }))
    }

    /// Identity within the instance. Never reused.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The path the file was opened with.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The device number of its mount (`st_dev`).
    pub fn device(&self) -> u64 {
        self.0.device
    }

    /// Whether it bypasses the page cache.
    pub fn is_direct(&self) -> bool {
        self.0.direct
    }

    /// The required alignment of offsets and lengths in bytes; 1 if the file is not direct.
    pub fn alignment(&self) -> u32 {
        self.0.alignment
    }

    /// Whether the file is on a file system that accepts I/O without waiting for the storage.
    pub(crate) fn is_local(&self) -> bool {
        self.0.latency.is_local()
    }

    /// The latency of recent buffered writes to its mount.
    pub(crate) fn write_latency(&self) -> &WriteLatency {
        &self.0.latency
    }

    /// Current length in bytes.
    ///
    /// # Errors
    /// The errors of fstat(2); `Unsupported` for a file without a descriptor.
    pub fn length(&self) -> io::Result<u64> {
        let fd = self.descriptor().ok_or(io::ErrorKind::Unsupported)?;
        Ok(rustix::fs::fstat(fd)?.st_size.unsigned_abs())
    }

    /// Allocates disk space for `length` bytes of zeros at `offset`, and extends the file if
    /// necessary (posix_fallocate(3)). May block.
    ///
    /// # Errors
    /// The errors of fallocate(2), such as `EOPNOTSUPP` and `ENOSPC`; `Unsupported` for a file
    /// without a descriptor.
    pub fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        let fd = self.descriptor().ok_or(io::ErrorKind::Unsupported)?;
        let flags = FallocateFlags::empty();
        Ok(retry_on_intr(|| rustix::fs::fallocate(fd, flags, offset, length))?)
    }

    /// Truncates the file to `length` bytes, or extends it with a hole. May block.
    ///
    /// # Errors
    /// The errors of ftruncate(2); `Unsupported` for a file without a descriptor.
    pub fn set_length(&self, length: u64) -> io::Result<()> {
        let fd = self.descriptor().ok_or(io::ErrorKind::Unsupported)?;
        Ok(retry_on_intr(|| rustix::fs::ftruncate(fd, length))?)
    }

    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.0.fd.as_ref().map(AsFd::as_fd)
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.0.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    pub(crate) fn lane(&self) -> usize {
        usize::from(self.0.lane)
    }

    /// Drops a clone without closing the file. If this was the last clone, returns the file. If
    /// several threads do this at the same time, the file is returned to exactly one of them.
    pub(crate) fn give_up(self) -> Option<AbandonedFile> {
        Arc::into_inner(self.0).map(AbandonedFile)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.registry.names.lock().remove(&self.id);
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File({}, {})", self.0.id, self.0.path.display())
    }
}

/// The direct I/O alignment reported by statx(2): the larger of the offset and memory alignments.
fn direct_alignment(fd: &OwnedFd) -> u32 {
    let wanted = StatxFlags::DIOALIGN;
    match rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, wanted) {
        Ok(stat) if stat.stx_dio_offset_align != 0 => {
            stat.stx_dio_offset_align.max(stat.stx_dio_mem_align)
        }
        // The kernel or the file system doesn't report an alignment.
        _ => DIRECT_ALIGNMENT_DEFAULT,
    }
}

/// An open file that nothing uses any more. Dropping it closes the file.
#[derive(Debug)]
pub(crate) struct AbandonedFile(Inner);

impl AbandonedFile {
    /// The lane of the file's mount. Since closing the file may hang if the mount hangs, it counts
    /// towards that lane's share.
    pub(crate) fn lane(&self) -> usize {
        usize::from(self.0.lane)
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File({}, {})", self.id, self.path.display())
    }
}
