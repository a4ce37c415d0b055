//! File system types, identified by their statfs(2) magic numbers.
//!
//! The magic numbers give us names for messages. They also tell us which file systems accept I/O
//! without waiting for the storage. On all others, a session or ring driver must not submit I/O
//! itself, because the system call could hang.

use std::os::fd::AsFd;
use std::path::Path;

// File system magic numbers, from linux/magic.h.
const EXT4: u64 = 0xEF53;
const XFS: u64 = 0x5846_5342;
const BTRFS: u64 = 0x9123_683E;
const TMPFS: u64 = 0x0102_1994;
const F2FS: u64 = 0xF2F5_2010;

/// File systems known to queue I/O, or to refuse it when asked not to wait.
const LOCAL: [u64; 5] = [EXT4, XFS, BTRFS, TMPFS, F2FS];

/// Whether `fd`'s file system accepts I/O without waiting for the storage. Other file systems
/// (FUSE, network file systems) may handle a read before the system call that submits it returns.
/// We treat an unknown file system as not local, which is slower but safe. On a network file
/// system, this check itself goes over the network.
pub(crate) fn is_local(fd: impl AsFd) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|stat| LOCAL.contains(&(stat.f_type as u64 & 0xFFFF_FFFF)))
}

/// The name of the file system containing `path`, or its statfs(2) magic number if we don't know
/// the name.
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
