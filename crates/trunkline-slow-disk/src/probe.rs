//! **Probe file**: a file that exists only while the accuracy of a mount is measured.
//!
//! Its reads take the latency of the profile, without limits, and touch nothing in the directory
//! below, so they show what FUSE and this machine add to the latency. Directories don't list it.

use std::ffi::OsStr;
use std::time::UNIX_EPOCH;

use fuser::{FileAttr, FileType, INodeNo};
use trunkline_aio::facade::atomic::{AtomicBool, Ordering};

/// The name, in the root directory.
pub(crate) const NAME: &str = ".trunkline-slow-disk-probe";

/// The inode's number. No file system uses numbers that large.
pub(crate) const INODE: u64 = u64::MAX - 1;

/// The size: larger than any measurement reads.
pub(crate) const SIZE: u64 = 1 << 40;

/// Whether the probe file exists now.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    // Only one thread measures, and it opens the file after it has made it exist. Relaxed is enough,
    // because the open passes through the kernel.
    exists: AtomicBool,
}

impl Probe {
    /// Makes the file exist, or no longer exist. Open files stay open.
    pub(crate) fn set_exists(&self, exists: bool) {
        self.exists.store(exists, Ordering::Relaxed);
    }

    /// The attributes of the file, if it exists and this is its name.
    pub(crate) fn find(&self, parent: u64, name: &OsStr) -> Option<FileAttr> {
        let is_probe = parent == INodeNo::ROOT.0 && name == NAME;
        (is_probe && self.exists.load(Ordering::Relaxed)).then(Self::attributes)
    }

    /// The attributes of the file.
    pub(crate) fn attributes() -> FileAttr {
        FileAttr {
            ino: INodeNo(INODE),
            size: SIZE,
            blocks: 0,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: FileType::RegularFile,
            perm: 0o444,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}
