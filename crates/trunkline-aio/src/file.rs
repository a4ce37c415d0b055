//! Counted files: an I/O keeps its file open from stage to completion.
//!
//! A request that the kernel has accepted may look at the descriptor late; were it closed and the
//! number reused, the I/O would hit another file. So a handle owns a clone of the [`File`], and the
//! descriptor is closed when the last clone is gone, never by a thread that merely completed
//! somebody's I/O: closing may block, so such a thread leaves the last clone in the graveyard.

use crate::limits::LANES_MAX;
use crate::pace::Pace;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::hash::Map;
use crate::sync::{Arc, Mutex};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

/// Alignment that direct I/O needs, in bytes, where the file system does not say (PostgreSQL
/// assumes the same).
pub const DIRECT_ALIGNMENT_DEFAULT: u32 = 4096;

/// How to open a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Open for writing too.
    pub write: bool,
    /// Create the file if it is missing.
    pub create: bool,
    /// Bypass the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Refuse to open through a symbolic link in the last component.
    pub no_follow: bool,
}

/// An open file; clones share the descriptor.
#[derive(Clone)]
pub struct File(Arc<Inner>);

struct Inner {
    // None for a file that exists only in the storage of a method's own.
    fd: Option<OwnedFd>,
    id: u64,
    path: PathBuf,
    device: u64,
    lane: u8,
    direct: bool,
    alignment: u32,
    pace: Arc<Pace>,
    registry: Arc<Registry>,
}

/// Names of the open files by id, and the lanes of their mounts.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    names: Mutex<Map<u64, PathBuf>>,
    lanes: Mutex<Vec<u64>>,
    /// By device.
    paces: Mutex<Map<u64, Arc<Pace>>>,
    next_id: AtomicU64,
}

impl Registry {
    /// The path of an open file, for views and messages.
    pub(crate) fn name(&self, id: u64) -> Option<PathBuf> {
        self.names.lock().get(&id).cloned()
    }

    /// Files open through this instance.
    pub(crate) fn open_files(&self) -> usize {
        self.names.lock().len()
    }

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

    /// Asked once per device: over a network this is a question to the other side.
    fn pace(&self, fd: &OwnedFd, device: u64) -> Arc<Pace> {
        let known = self.paces.lock().get(&device).cloned();
        known.unwrap_or_else(|| {
            let local = rustix::fs::fstatfs(fd)
                .is_ok_and(|stat| LOCAL.contains(&(stat.f_type as u64 & 0xFFFF_FFFF)));
            self.pace_of(device, local)
        })
    }

    fn pace_of(&self, device: u64, local: bool) -> Arc<Pace> {
        let mut paces = self.paces.lock();
        Arc::clone(paces.entry(device).or_insert_with(|| Arc::new(Pace::new(local))))
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
    /// As open(2). A file system that refuses direct I/O answers `EINVAL`.
    pub(crate) fn open(
        registry: &Arc<Registry>,
        path: &Path,
        options: OpenOptions,
    ) -> io::Result<Self> {
        let mut flags = OFlags::CLOEXEC;
        flags |= if options.write { OFlags::RDWR } else { OFlags::RDONLY };
        flags.set(OFlags::CREATE, options.create);
        flags.set(OFlags::DIRECT, options.direct);
        flags.set(OFlags::NOFOLLOW, options.no_follow);
        // A fifo in place of a data file must not stop us at open.
        let fd = rustix::fs::open(path, flags | OFlags::NONBLOCK, Mode::RUSR | Mode::WUSR)?;
        let stat = rustix::fs::fstat(&fd)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile | FileType::BlockDevice => {}
            FileType::Directory => return Err(io::ErrorKind::IsADirectory.into()),
            other => {
                let text = format!("not a regular file but a {other:?}");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        }
        // With O_NONBLOCK left on, io_uring answers EAGAIN where it should wait.
        rustix::fs::fcntl_setfl(&fd, flags & OFlags::DIRECT)?;
        let alignment = if options.direct { direct_alignment(&fd) } else { 1 };
        Ok(Self(Arc::new(Inner {
            id: registry.register(path),
            path: path.to_owned(),
            device: stat.st_dev,
            lane: registry.lane(stat.st_dev),
            direct: options.direct,
            alignment,
            pace: registry.pace(&fd, stat.st_dev),
            fd: Some(fd),
            registry: Arc::clone(registry),
        })))
    }

    /// A file without a descriptor, for methods with storage of their own.
    pub(crate) fn without_descriptor(
        registry: &Arc<Registry>,
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
            pace: registry.pace_of(device, true),
            registry: Arc::clone(registry),
        }))
    }

    /// Identity within the instance; never reused.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The path it was opened by.
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

    /// What offsets and lengths must be multiples of, in bytes; 1 if it is not direct.
    pub fn alignment(&self) -> u32 {
        self.0.alignment
    }

    /// Whether the kernel takes I/O on it over without waiting for the storage. Other file systems
    /// (FUSE, those over a network) may answer a read before they return from being asked for it.
    pub(crate) fn is_taken_at_once(&self) -> bool {
        self.0.pace.is_local()
    }

    /// What is known of its mount's writes.
    pub(crate) fn pace(&self) -> &Pace {
        &self.0.pace
    }

    /// Length in bytes now.
    ///
    /// # Errors
    /// As fstat(2); `ENOTSUP` for a file without a descriptor.
    pub fn length(&self) -> io::Result<u64> {
        let fd = self.descriptor().ok_or(io::ErrorKind::Unsupported)?;
        Ok(rustix::fs::fstat(fd)?.st_size.unsigned_abs())
    }

    /// Makes room for `length` bytes at `offset`, as zeros and within the file's length
    /// (posix_fallocate(3)). May block.
    ///
    /// # Errors
    /// As fallocate(2): `EOPNOTSUPP` where the file system cannot, `ENOSPC`; `ENOTSUP` for a file
    /// without a descriptor.
    pub fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        let fd = self.descriptor().ok_or(io::ErrorKind::Unsupported)?;
        loop {
            match rustix::fs::fallocate(fd, rustix::fs::FallocateFlags::empty(), offset, length) {
                Err(rustix::io::Errno::INTR) => {}
                result => return Ok(result?),
            }
        }
    }

    /// Cuts the file off, or makes it longer with a hole, to `length` bytes. May block.
    ///
    /// # Errors
    /// As ftruncate(2); `ENOTSUP` for a file without a descriptor.
    pub fn set_length(&self, length: u64) -> io::Result<()> {
        let fd = self.descriptor().ok_or(io::ErrorKind::Unsupported)?;
        loop {
            match rustix::fs::ftruncate(fd, length) {
                Err(rustix::io::Errno::INTR) => {}
                result => return Ok(result?),
            }
        }
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

fn direct_alignment(fd: &OwnedFd) -> u32 {
    let wanted = StatxFlags::DIOALIGN;
    match rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, wanted) {
        Ok(stat) if stat.stx_dio_offset_align != 0 => {
            stat.stx_dio_offset_align.max(stat.stx_dio_mem_align)
        }
        // The kernel or the file system does not say.
        _ => DIRECT_ALIGNMENT_DEFAULT,
    }
}

// Numbers of file systems, from linux/magic.h.
const EXT4: u64 = 0xEF53;
const XFS: u64 = 0x5846_5342;
const BTRFS: u64 = 0x9123_683E;
const TMPFS: u64 = 0x0102_1994;
const F2FS: u64 = 0xF2F5_2010;

/// File systems of which it is known that they queue I/O, or refuse to when asked not to wait.
const LOCAL: [u64; 5] = [EXT4, XFS, BTRFS, TMPFS, F2FS];

/// The type of the file system that holds `path`, as statfs(2) numbers it, named where known.
pub fn file_system_name(path: &Path) -> String {
    let Ok(stat) = rustix::fs::statfs(path) else { return "unknown".into() };
    let name = match stat.f_type as u64 & 0xFFFF_FFFF {
        EXT4 => "ext4",
        XFS => "xfs",
        BTRFS => "btrfs",
        TMPFS => "tmpfs",
        0x6573_5546 => "fuse",
        0x6969 => "nfs",
        0x794C_7630 => "overlayfs",
        0x2FC1_2FC1 => "zfs",
        F2FS => "f2fs",
        other => return format!("type 0x{other:X}"),
    };
    name.to_owned()
}

/// A file that nobody uses any more and that is still open. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct Unused {
    inner: Inner,
}

impl Unused {
    /// The lane of its mount, since closing may hang as long as the mount does.
    pub(crate) fn lane(&self) -> usize {
        usize::from(self.inner.lane)
    }
}

impl File {
    /// Gives up a clone without closing: the file itself if this was the last clone. Of several
    /// clones given up at once, exactly one gets it.
    pub(crate) fn give_up(self) -> Option<Unused> {
        Arc::into_inner(self.0).map(|inner| Unused { inner })
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File({}, {})", self.id, self.path.display())
    }
}
