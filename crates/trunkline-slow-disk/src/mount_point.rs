//! **Mount point**: the checks before a mount, and the unmount.
//!
//! A slow disk whose process was killed leaves its mount behind. The next start finds it, checks
//! that it is one of ours and that its process is gone, and removes it. A mount of any other program
//! is never touched.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use crate::mount_table::{mounted_at, mounts_at};

/// Lets users other than root unmount their own FUSE file systems. It is part of the package that
/// lets them mount.
const HELPER: &str = "fusermount3";

/// Stale mounts that we remove from one mount point. Each killed process leaves at most one.
const STALE_MAX: u32 = 64;

/// Why a directory could not be mounted or unmounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// A system call failed.
    #[error("could not {action} \"{path}\": {error}")]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// A path isn't that of a directory.
    #[error("\"{0}\" is not a directory")]
    NotADirectory(PathBuf),
    /// The mount point has files, which the mount would hide.
    #[error("mount point \"{0}\" is not empty: expected an empty directory")]
    NotEmpty(PathBuf),
    /// One of the directories contains the other.
    #[error(
        "\"{directory}\" and mount point \"{mount_point}\" contain each other: expected separate directories"
    )]
    Nested {
        /// The directory to mount.
        directory: PathBuf,
        /// The mount point.
        mount_point: PathBuf,
    },
    /// Something is mounted there, and its process is alive or it isn't ours.
    #[error("\"{source_name}\" is already mounted at \"{mount_point}\"")]
    Mounted {
        /// The mount point.
        mount_point: PathBuf,
        /// What is mounted there.
        source_name: String,
    },
    /// Something else is mounted over our mount, so an unmount would remove that.
    #[error("\"{source_name}\" is mounted over \"{mount_point}\"")]
    Covered {
        /// The mount point.
        mount_point: PathBuf,
        /// What is mounted over it.
        source_name: String,
    },
    /// Another slow disk uses the directory.
    #[error("another slow disk uses \"{0}\"")]
    InUse(PathBuf),
    /// FUSE refused.
    #[error("could not mount \"{path}\": {error}")]
    Fuse {
        /// The mount point.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
}

impl MountError {
    pub(crate) fn io(action: &'static str, path: &Path, error: impl Into<io::Error>) -> MountError {
        MountError::Io { action, path: path.to_owned(), error: error.into() }
    }

    /// How to fix it, if that isn't obvious.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            MountError::Fuse { error, .. } if error.kind() == io::ErrorKind::NotFound => Some(
                "load the kernel's module fuse and, unless you are root, install the package fuse3",
            ),
            MountError::Fuse { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => {
                Some("a container needs the device /dev/fuse and the capability CAP_SYS_ADMIN")
            }
            MountError::InUse(_) => Some("a directory can be mounted once at a time"),
            MountError::Mounted { .. } => Some("unmount it, or choose another mount point"),
            MountError::Covered { .. } => Some("unmount what covers it first"),
            _ => None,
        }
    }
}

/// What had to be done to unmount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmounted {
    /// It is unmounted, with all data written.
    Now,
    /// It is no longer visible, but processes may still have files open. The file system ends when
    /// the last of them is closed.
    WhenClosed,
}

/// Locks the directory to mount, and returns its descriptor. The lock is released when the
/// descriptor is closed, even if this process is killed.
///
/// # Errors
/// It isn't a directory, or another slow disk has locked it.
pub(crate) fn lock(directory: &Path) -> Result<rustix::fd::OwnedFd, MountError> {
    let open = |error: io::Error| MountError::io("open", directory, error);
    if !fs::metadata(directory).map_err(open)?.is_dir() {
        return Err(MountError::NotADirectory(directory.to_owned()));
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened =
        rustix::fs::open(directory, flags, Mode::empty()).map_err(|error| open(error.into()))?;
    match rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(opened),
        Err(Errno::WOULDBLOCK) => Err(MountError::InUse(directory.to_owned())),
        Err(error) => Err(MountError::io("lock", directory, error)),
    }
}

/// Removes mounts at `mount_point` that killed slow disks have left. Returns how many.
///
/// # Errors
/// Something else is mounted there.
pub(crate) fn clean(mount_point: &Path) -> Result<u32, MountError> {
    for cleaned in 0..STALE_MAX {
        let mounted = mounted_at(mount_point)
            .map_err(|error| MountError::io("look for mounts at", mount_point, error))?;
        let Some(mounted) = mounted else { return Ok(cleaned) };
        if !mounted.is_slow_disk() || !is_stale(mount_point) {
            let mount_point = mount_point.to_owned();
            return Err(MountError::Mounted { mount_point, source_name: mounted.source });
        }
        detach(mount_point, &mounted.device)?;
    }
    let mount_point = mount_point.to_owned();
    Err(MountError::Mounted { mount_point, source_name: crate::mount_table::SOURCE.to_owned() })
}

/// Whether the process of a FUSE mount is gone. `stat` may not show it, because the kernel has the
/// attributes in its cache, but `statvfs` always asks the process.
fn is_stale(mount_point: &Path) -> bool {
    let asked = rustix::fs::statvfs(mount_point);
    matches!(asked, Err(Errno::NOTCONN | Errno::CONNABORTED))
}

/// Checks the two directories.
pub(crate) fn check(directory: &Path, mount_point: &Path) -> Result<(), MountError> {
    let metadata =
        fs::metadata(mount_point).map_err(|error| MountError::io("open", mount_point, error))?;
    if !metadata.is_dir() {
        return Err(MountError::NotADirectory(mount_point.to_owned()));
    }
    let directory =
        fs::canonicalize(directory).map_err(|error| MountError::io("resolve", directory, error))?;
    if directory.starts_with(mount_point) || mount_point.starts_with(&directory) {
        let mount_point = mount_point.to_owned();
        return Err(MountError::Nested { directory, mount_point });
    }
    let mut entries =
        fs::read_dir(mount_point).map_err(|error| MountError::io("list", mount_point, error))?;
    match entries.next() {
        Some(_) => Err(MountError::NotEmpty(mount_point.to_owned())),
        None => Ok(()),
    }
}

/// The absolute path of a mount point. The last component isn't followed, because it may be a stale
/// mount, which can't be resolved.
pub(crate) fn absolute(mount_point: &Path) -> Result<PathBuf, MountError> {
    let failed = |error| MountError::io("resolve", mount_point, error);
    let absolute = std::path::absolute(mount_point).map_err(failed)?;
    let is_link = fs::symlink_metadata(&absolute).is_ok_and(|metadata| metadata.is_symlink());
    match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) if !is_link => {
            Ok(fs::canonicalize(parent).map_err(failed)?.join(name))
        }
        _ => fs::canonicalize(&absolute).map_err(failed),
    }
}

/// Unmounts the mount with this device number, after the kernel has written all data. If files are
/// open, the mount disappears now and ends when they are closed.
///
/// # Errors
/// [`MountError::Covered`]: something else is mounted over it. [`MountError::Io`]: the unmount
/// failed.
pub fn unmount(mount_point: &Path, device: &str) -> Result<Unmounted, MountError> {
    if !is_on_top(mount_point, device)? {
        // Another program has unmounted it, perhaps while files were open.
        return Ok(Unmounted::WhenClosed);
    }
    match rustix::mount::unmount(mount_point, UnmountFlags::empty()) {
        Ok(()) => Ok(Unmounted::Now),
        // It was unmounted by another program meanwhile.
        Err(Errno::INVAL) => Ok(Unmounted::WhenClosed),
        Err(Errno::BUSY) => detach(mount_point, device).map(|()| Unmounted::WhenClosed),
        Err(Errno::PERM) => match help_to_unmount(mount_point, &["-u"]) {
            Ok(()) => Ok(Unmounted::Now),
            Err(_) => detach(mount_point, device).map(|()| Unmounted::WhenClosed),
        },
        Err(error) => Err(MountError::io("unmount", mount_point, error)),
    }
}

/// Whether the mount with this device number is the topmost one, which an unmount would remove.
/// False means that it is no longer mounted there.
fn is_on_top(mount_point: &Path, device: &str) -> Result<bool, MountError> {
    let mounts = mounts_at(mount_point)
        .map_err(|error| MountError::io("look for mounts at", mount_point, error))?;
    match (mounts.iter().any(|mounted| mounted.device == device), mounts.last()) {
        (true, Some(top)) if top.device != device => Err(MountError::Covered {
            mount_point: mount_point.to_owned(),
            source_name: top.source.clone(),
        }),
        (is_mounted, _) => Ok(is_mounted),
    }
}

/// Unmounts what an earlier run has left at `mount_point`, whether its process is alive or not.
/// Returns whether there was a mount. The caller must know that the mount point is its own.
///
/// # Errors
/// Something else than a slow disk is mounted there, or the unmount failed.
pub fn unmount_leftover(mount_point: &Path) -> Result<bool, MountError> {
    for cleaned in 0..STALE_MAX {
        let mounted = mounted_at(mount_point)
            .map_err(|error| MountError::io("look for mounts at", mount_point, error))?;
        match mounted {
            None => return Ok(cleaned > 0),
            Some(mounted) if mounted.is_slow_disk() => {
                unmount(mount_point, &mounted.device)?;
            }
            Some(mounted) => {
                let mount_point = mount_point.to_owned();
                return Err(MountError::Mounted { mount_point, source_name: mounted.source });
            }
        }
    }
    let mount_point = mount_point.to_owned();
    Err(MountError::Mounted { mount_point, source_name: crate::mount_table::SOURCE.to_owned() })
}

/// Takes the mount away from its path, whether or not files are open.
fn detach(mount_point: &Path, device: &str) -> Result<(), MountError> {
    if !is_on_top(mount_point, device)? {
        return Ok(());
    }
    match rustix::mount::unmount(mount_point, UnmountFlags::DETACH) {
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(Errno::PERM) => help_to_unmount(mount_point, &["-u", "-z"])
            .map_err(|error| MountError::io("unmount", mount_point, error)),
        Err(error) => Err(MountError::io("unmount", mount_point, error)),
    }
}

fn help_to_unmount(mount_point: &Path, options: &[&str]) -> io::Result<()> {
    let done = Command::new(HELPER).args(options).arg("--").arg(mount_point).output()?;
    match done.status.success() {
        true => Ok(()),
        false => {
            let text = String::from_utf8_lossy(&done.stderr);
            Err(io::Error::other(format!("{HELPER}: {}", text.trim())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_directories_are_refused() {
        let temp = tempfile::tempdir().expect("directory");
        let path = fs::canonicalize(temp.path()).expect("resolved");
        for name in ["dir", "dir/inner", "mount", "full"] {
            fs::create_dir(path.join(name)).expect("directory");
        }
        for name in ["full/file", "file"] {
            fs::write(path.join(name), "").expect("written");
        }
        for (directory, mount_point, expected) in [
            ("dir", "dir", "contain each other"),
            ("dir", "dir/inner", "contain each other"),
            ("dir/inner", "dir", "contain each other"),
            ("dir", "full", "is not empty"),
            ("dir", "file", "is not a directory"),
            ("file", "mount", "is not a directory"),
            ("none", "mount", "could not open"),
        ] {
            let (directory, mount_point) = (path.join(directory), path.join(mount_point));
            let failed = lock(&directory).and_then(|_lock| check(&directory, &mount_point));
            let error = failed.expect_err(expected).to_string();
            assert!(error.contains(expected), "{directory:?} at {mount_point:?}: {error}");
        }
        check(&path.join("dir"), &path.join("mount")).expect("good");
        let _lock = lock(&path.join("dir")).expect("locked");
        let second = lock(&path.join("dir")).expect_err("in use");
        assert!(matches!(second, MountError::InUse(_)), "{second}");
    }

    #[test]
    fn what_is_mounted_by_others_stays() {
        for failed in [
            clean(Path::new("/proc")).map(|_| ()),
            unmount_leftover(Path::new("/proc")).map(|_| ()),
        ] {
            let error = failed.expect_err("mounted").to_string();
            assert!(error.ends_with("is already mounted at \"/proc\""), "{error}");
        }
        assert!(!unmount_leftover(Path::new("/nowhere")).expect("nothing to do"));
        // Ours isn't mounted there, or no longer.
        assert_eq!(
            unmount(Path::new("/proc"), "0:0").expect("nothing to do"),
            Unmounted::WhenClosed
        );
        assert!(mounted_at(Path::new("/proc")).expect("read").is_some());
    }
}
