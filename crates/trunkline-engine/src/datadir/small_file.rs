//! Reads the small files of a data directory. We only read regular files, and limit how much we
//! read.
//!
//! If we don't know where a data directory came from, we can't assume that these names refer to
//! regular files. A link could lead out of the directory, opening a pipe would wait forever for a
//! writer, and reading a huge file would use up all memory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::error::DataDirError;

/// Reads a whole file, but at most its first `limit` bytes. Returns `None` if the file doesn't
/// exist. We must check the file's type before opening it, because opening a pipe would block. Note
/// that we wouldn't notice if the file were replaced between the check and the open; this isn't
/// meant as protection against an attacker.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, DataDirError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(DataDirError::NotAFile { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(DataDirError::io("open file", path, source)),
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(DataDirError::io("open file", path, source)),
    };
    let mut bytes = Vec::new();
    match file.take(limit).read_to_end(&mut bytes) {
        Ok(_) => Ok(Some(bytes)),
        Err(source) => Err(DataDirError::io("read file", path, source)),
    }
}

/// Whether a file, or anything else, with this name exists.
pub(super) fn exists(path: &Path) -> Result<bool, DataDirError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(DataDirError::io("examine file", path, source)),
    }
}
