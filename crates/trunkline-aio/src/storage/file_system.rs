//! File system types, identified by their statfs(2) magic numbers.
//!
//! We use the magic numbers to name file systems in messages, and to find out which of them accept
//! I/O without waiting for the storage. On all other file systems, a session or a ring driver must
//! not submit I/O itself, because the system call could hang.

use rustix::fs::StatFs;
use std::os::fd::AsFd;
use std::path::Path;

/// Known file systems by magic number (linux/magic.h). Each entry contains the file system's name
/// and a flag. The flag is set if the file system is known to queue I/O or, if we ask it not to
/// wait, at least to refuse I/O that would block.
const FILE_SYSTEMS: [(u64, &str, bool); 9] = [
    (0xEF53, "ext4", true),
    (0x5846_5342, "xfs", true),
    (0x9123_683E, "btrfs", true),
    (0x0102_1994, "tmpfs", true),
    (0xF2F5_2010, "f2fs", true),
    (0x6573_5546, "fuse", false),
    (0x6969, "nfs", false),
    (0x794C_7630, "overlayfs", false),
    (0x2FC1_2FC1, "zfs", false),
];

/// Returns true if the file system of an open file accepts I/O without waiting for the storage.
/// Other file systems (FUSE, network file systems) may perform a whole read inside the system call
/// that submits it. We treat an unknown file system as not local, which is slower but safe. Note
/// that on a network file system, this check itself goes over the network.
pub(crate) fn is_local(fd: impl AsFd) -> bool {
    let known = rustix::fs::fstatfs(fd).ok().and_then(|stat| known(&stat));
    known.is_some_and(|(_, _, local)| local)
}

/// The name of the file system containing `path`, or its statfs(2) magic number if we don't know
/// the name.
pub fn file_system_name(path: &Path) -> String {
    let Ok(stat) = rustix::fs::statfs(path) else { return "unknown".into() };
    match known(&stat) {
        Some((_, name, _)) => name.into(),
        None => format!("type 0x{:X}", magic(&stat)),
    }
}

fn known(stat: &StatFs) -> Option<(u64, &'static str, bool)> {
    FILE_SYSTEMS.into_iter().find(|(number, ..)| *number == magic(stat))
}

fn magic(stat: &StatFs) -> u64 {
    stat.f_type as u64 & 0xFFFF_FFFF
}
