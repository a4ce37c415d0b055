//! Attributes of files, in the form of FUSE.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use rustix::fs::{Stat, Timespec, UTIME_NOW, UTIME_OMIT};

/// Converts what `stat` says. `number` is the inode's number in the FUSE protocol.
pub(crate) fn attributes(number: u64, stat: &Stat) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: u64::try_from(stat.st_size).unwrap_or(0),
        blocks: u64::try_from(stat.st_blocks).unwrap_or(0),
        atime: time(stat.st_atime, stat.st_atime_nsec),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec),
        crtime: UNIX_EPOCH,
        kind: kind(rustix::fs::FileType::from_raw_mode(stat.st_mode)),
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: stat.st_rdev as u32,
        blksize: u32::try_from(stat.st_blksize).unwrap_or(4096),
        flags: 0,
    }
}

/// Converts the type of a file.
pub(crate) fn kind(kind: rustix::fs::FileType) -> FileType {
    match kind {
        rustix::fs::FileType::Directory => FileType::Directory,
        rustix::fs::FileType::Symlink => FileType::Symlink,
        rustix::fs::FileType::Fifo => FileType::NamedPipe,
        rustix::fs::FileType::Socket => FileType::Socket,
        rustix::fs::FileType::CharacterDevice => FileType::CharDevice,
        rustix::fs::FileType::BlockDevice => FileType::BlockDevice,
        rustix::fs::FileType::RegularFile | rustix::fs::FileType::Unknown => FileType::RegularFile,
    }
}

/// Converts a time to set. `None` leaves the old one.
pub(crate) fn timespec(time: Option<TimeOrNow>) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(TimeOrNow::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(TimeOrNow::SpecificTime(time)) => match time.duration_since(UNIX_EPOCH) {
            Ok(since) => Timespec {
                tv_sec: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: since.subsec_nanos().into(),
            },
            // Nanoseconds count forward, also before 1970.
            Err(before) => {
                let before = before.duration();
                let borrowed = u64::from(before.subsec_nanos() > 0);
                let seconds = i64::try_from(before.as_secs() + borrowed).unwrap_or(i64::MAX);
                let nanos = (1_000_000_000 - before.subsec_nanos()) % 1_000_000_000;
                Timespec { tv_sec: -seconds, tv_nsec: nanos.into() }
            }
        },
    }
}

fn time(seconds: i64, nanos: u64) -> SystemTime {
    let nanos = Duration::from_nanos(nanos);
    let whole = Duration::from_secs(seconds.unsigned_abs());
    // A file's time may be anything. The kernel's own limits are within those of this type.
    let time =
        if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    time.and_then(|time| time.checked_add(nanos)).unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_are_kept() {
        for (seconds, nanos) in [(0, 0), (1, 5), (-1, 0), (-1, 999_999_999), (-86_400, 1)] {
            let found = timespec(Some(TimeOrNow::SpecificTime(time(seconds, nanos))));
            assert_eq!((found.tv_sec, found.tv_nsec), (seconds, nanos as i64));
        }
        assert_eq!(timespec(None).tv_nsec, UTIME_OMIT);
    }
}
