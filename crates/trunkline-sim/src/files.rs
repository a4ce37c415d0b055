//! The simulated disk as a file system: relations of the engine lie on it like on the kernel's.
//!
//! A path is a name on the disk as it stands, so a cluster at `/sim` has a file `/sim/base/5/16384`.
//! ```
//! use trunkline_aio::{Builder, sync::Arc};
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
use std::fmt;
use std::io;
use std::path::Path;
use trunkline_aio::sync::Arc;
use trunkline_aio::{Aio, File};
use trunkline_engine::storage::FileSystem;

/// See the module. Keeps its instance alive.
pub struct SimFiles {
    aio: Aio,
    disk: Arc<Disk>,
}

impl SimFiles {
    /// The files of `disk`, for I/O through `aio`.
    pub fn new(aio: &Aio, disk: &Arc<Disk>) -> Self {
        Self { aio: aio.clone(), disk: Arc::clone(disk) }
    }
}

/// The disk's name of a path.
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

impl fmt::Debug for SimFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimFiles")
    }
}
