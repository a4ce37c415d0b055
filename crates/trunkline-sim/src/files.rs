//! File system of the simulated disk, which the engine uses to open, extend, truncate and remove
//! segments.
//!
//! We use the full path as the name of the file on the simulated disk. For example, a cluster at
//! `/sim` might have a file called `/sim/base/5/16384`. A new file becomes durable when its
//! directory is synced, and a change in its length becomes durable when the file itself is synced.
//! Removing a file is durable immediately.
//! ```
//! use trunkline_aio::{Builder, facade::Arc};
//! use trunkline_engine::storage::FileSystem;
//! use trunkline_sim::{Disk, SimFiles};
//!
//! let (aio, disk) = (Builder::new().start()?, Arc::new(Disk::new()));
//! let files = SimFiles::new(&aio, &disk);
//! assert!(files.open("/sim/base/5/1".as_ref(), false).is_err());
//! disk.create("/sim/base/5/1", 1, &[0; 8192]);
//! assert_eq!(files.file_length("/sim/base/5/1".as_ref())?, Some(8192));
//! # Ok::<(), std::io::Error>(())
//! ```

use crate::disk::Disk;
use std::io;
use std::path::Path;
use trunkline_aio::facade::Arc;
use trunkline_aio::{Aio, File};
use trunkline_engine::storage::{FileSystem, WritableFiles};

/// The file system of a simulated disk. It keeps a reference to the I/O instance, because that is
/// where the open files belong.
#[derive(Debug)]
pub struct SimFiles {
    aio: Aio,
    disk: Arc<Disk>,
}

impl SimFiles {
    /// A file system for `disk` that does its I/O through `aio`.
    pub fn new(aio: &Aio, disk: &Arc<Disk>) -> Self {
        Self { aio: aio.clone(), disk: Arc::clone(disk) }
    }
}

/// The mount for files created here.
const DEVICE: u64 = 1;

/// Converts a path to a file name on the disk.
fn name(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| io::ErrorKind::InvalidFilename.into())
}

impl FileSystem for SimFiles {
    fn open(&self, path: &Path, direct: bool) -> io::Result<File> {
        let file = self.disk.open_existing(&self.aio, name(path)?, direct);
        file.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    fn length(&self, file: &File) -> io::Result<u64> {
        let length = self.disk.length_of_open(file);
        length.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
    }

    fn file_length(&self, path: &Path) -> io::Result<Option<u64>> {
        Ok(self.disk.length(name(path)?))
    }
}

impl WritableFiles for SimFiles {
    fn open_for_writing(&self, path: &Path, direct: bool, create: bool) -> io::Result<File> {
        let name = name(path)?;
        match self.disk.open_existing(&self.aio, name, direct) {
            Some(file) => Ok(file),
            None if create => {
                self.disk.make(name, DEVICE);
                Ok(self.disk.open(&self.aio, name, DEVICE, &[]))
            }
            None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
        }
    }

    fn allocate(&self, file: &File, offset: u64, length: u64) -> io::Result<()> {
        let end = offset.saturating_add(length);
        match self.length(file)? >= end {
            true => Ok(()),
            false => self.change_length(file, end),
        }
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        self.change_length(file, length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        match self.disk.rename(name(from)?, name(to)?) {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(libc::ENOENT)),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(name(path)?);
        Ok(())
    }

    fn sync_directory_of(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_names_beside(name(path)?);
        Ok(())
    }
}

impl SimFiles {
    /// Truncates or extends an open file. We return the same errors as the kernel, which are
    /// `ENOSPC` if the disk is full and `EBADF` if the file has been removed.
    fn change_length(&self, file: &File, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).map_err(io::Error::other)?;
        match self.disk.change_length(file, length) {
            Some(true) => Ok(()),
            Some(false) => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
            None => Err(io::Error::from_raw_os_error(libc::EBADF)),
        }
    }
}
