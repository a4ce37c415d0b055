//! Reads the small files of a data directory. We only read regular files, and limit how much we
//! read.
//!
//! If we don't know where a data directory came from, we can't assume that these names refer to
//! regular files. A link could lead out of the directory, opening a pipe would wait forever for a
//! writer, and reading a huge file would use up all memory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Why a small file can't be read.
#[derive(Debug)]
pub(crate) enum SmallFileError {
    /// It is a directory, a link, a pipe or a device.
    NotAFile {
        /// Its path.
        path: PathBuf,
    },
    /// The kernel reported an error.
    Io {
        /// What failed, such as "open file".
        operation: &'static str,
        /// Its path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl SmallFileError {
    fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { operation, path: path.to_owned(), source }
    }
}

/// Opens a file for reading. Returns `None` if it doesn't exist.
///
/// We check the file's type before opening it, because opening a device can have side effects. We
/// check it again afterwards, because the file may have been replaced in the meantime. Thanks to
/// `O_NONBLOCK`, opening a pipe doesn't wait for a writer.
pub(crate) fn open(path: &Path) -> Result<Option<File>, SmallFileError> {
    let not_a_file = || SmallFileError::NotAFile { path: path.to_owned() };
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(not_a_file()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(SmallFileError::io("open file", path, source)),
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match File::options().read(true).custom_flags(flags.bits() as i32).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
            return Err(not_a_file());
        }
        Err(source) => return Err(SmallFileError::io("open file", path, source)),
    };
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(Some(file)),
        Ok(_) => Err(not_a_file()),
        Err(source) => Err(SmallFileError::io("examine file", path, source)),
    }
}

/// Reads a whole file, but at most its first `limit` bytes. Returns `None` if the file doesn't
/// exist.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, SmallFileError> {
    let Some(file) = open(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    match file.take(limit).read_to_end(&mut bytes) {
        Ok(_) => Ok(Some(bytes)),
        Err(source) => Err(SmallFileError::io("read file", path, source)),
    }
}

/// Whether a file, or anything else, with this name exists.
pub(crate) fn exists(path: &Path) -> Result<bool, SmallFileError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(SmallFileError::io("examine file", path, source)),
    }
}
