//! The operating system's files, opened for one I/O instance.
//!
//! We only open regular files. The data directory may come from an untrusted source, and if a
//! segment were a symbolic link, it could point to a file outside the cluster. `O_NOFOLLOW` only
//! refuses a link in the last component of a path. We still follow the links in `pg_tblspc`, which
//! are created by PostgreSQL and point to directories.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use rustix::io::Errno;
use trunkline_aio::{Aio, File, OpenOptions};

use super::file_system::{FileSystem, WritableFiles};

/// The operating system's files. Keeps the I/O instance alive.
pub struct KernelFiles {
    aio: Aio,
}

impl KernelFiles {
    /// Opens the operating system's files for I/O through `aio`.
    pub fn new(aio: &Aio) -> Self {
        Self { aio: aio.clone() }
    }
}

impl FileSystem for KernelFiles {
    fn open(&self, path: &Path, direct: bool) -> io::Result<File> {
        let options = OpenOptions { direct, no_follow: true, ..OpenOptions::default() };
        self.aio.open(path, options)
    }

    fn length(&self, file: &File) -> io::Result<u64> {
        file.length()
    }

    fn file_length(&self, path: &Path) -> io::Result<Option<u64>> {
        // Return `ELOOP` for a link, like open(2) with `O_NOFOLLOW`, so that callers can treat both
        // alike.
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
            Ok(metadata) if metadata.is_symlink() => Err(Errno::LOOP.into()),
            Ok(metadata) if metadata.is_dir() => Err(Errno::ISDIR.into()),
            Ok(_) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl WritableFiles for KernelFiles {
    fn open_for_writing(&self, path: &Path, direct: bool, create: bool) -> io::Result<File> {
        self.aio.open(path, OpenOptions { direct, create, write: true, no_follow: true })
    }

    fn allocate(&self, file: &File, offset: u64, length: u64) -> io::Result<()> {
        file.allocate(offset, length)
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        file.set_length(length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn sync_directory_of(&self, path: &Path) -> io::Result<()> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        match fs::File::open(directory.unwrap_or(Path::new(".")))?.sync_all() {
            // Some file systems don't support fsync on a directory. Like PostgreSQL's fsync_fname,
            // we ignore EBADF and EINVAL in that case.
            Err(error) if is_unsupported(&error) => Ok(()),
            synced => synced,
        }
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(|errno| [Errno::BADF, Errno::INVAL].contains(&errno))
}

impl fmt::Debug for KernelFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KernelFiles")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_aio::Builder;

    #[test]
    fn a_file_system_without_directory_sync_is_not_a_failure() {
        let files = KernelFiles::new(&Builder::new().start().expect("starts"));
        let bare = fs::File::open("/proc").and_then(|proc| proc.sync_all());
        assert!(is_unsupported(&bare.expect_err("not supported")));
        files.sync_directory_of(Path::new("/proc/name")).expect("no failure");
        files.sync_directory_of(Path::new("/none/name")).expect_err("no directory");
    }
}
