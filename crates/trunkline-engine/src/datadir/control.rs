//! `PG_VERSION` and `global/pg_control`: the version of the server that created the directory.
//!
//! Both files must have the same version, and it must be one that we know. We refuse anything else,
//! because if we had to guess the layout, we would silently return garbage. A server overwrites its
//! control file in place, so our copy may be torn. If the checksum is wrong, we therefore read the
//! file again, like PostgreSQL's `get_controlfile`.

use std::path::Path;

use rustix::io::Errno;
use trunkline_format::ControlFile;

use super::error::DataDirError;
use crate::small_file;

const VERSION_NAME: &str = "PG_VERSION";
/// The path of the control file in a data directory.
pub(crate) const CONTROL_NAME: &str = "global/pg_control";

/// Size of the control file. Only the first few hundred bytes are used.
const CONTROL_BYTES: u64 = 8192;

/// How many times we try to read the control file if it is invalid but keeps changing.
const READS_MAX: usize = 10;

/// The major version in `PG_VERSION`, 15 to 19.
pub(super) fn read_major(directory: &Path) -> Result<u32, DataDirError> {
    let path = directory.join(VERSION_NAME);
    let bytes = small_file::read(&path, 64)?.ok_or_else(|| missing(directory, VERSION_NAME))?;
    let line = bytes.split(|&b| b == b'\n').next().unwrap_or_default();
    let found = String::from_utf8_lossy(&line[..line.len().min(16)]).into_owned();
    match found.parse() {
        Ok(major @ 15..=19) => Ok(major),
        _ => Err(DataDirError::Version { path, found }),
    }
}

/// Reads and checks a control file. Its path may be anywhere, even outside a data directory.
///
/// # Errors
/// [`DataDirError::Io`], [`DataDirError::NotAFile`] or [`DataDirError::Control`].
pub fn read_control_file(path: &Path) -> Result<ControlFile, DataDirError> {
    match read_parsed(path)? {
        Some((control, _)) => Ok(control),
        None => Err(DataDirError::io("open file", path, Errno::NOENT.into())),
    }
}

/// Reads a control file whose CRC is wrong, to show what is left of it.
///
/// # Errors
/// As for [`read_control_file`]: other kinds of damage are still refused.
pub fn read_control_file_despite_crc(path: &Path) -> Result<ControlFile, DataDirError> {
    let bytes = small_file::read(path, CONTROL_BYTES)?
        .ok_or_else(|| DataDirError::io("open file", path, Errno::NOENT.into()))?;
    ControlFile::parse_despite_crc(&bytes)
        .map_err(|source| DataDirError::Control { path: path.to_owned(), source })
}

/// The control file of a data directory, parsed and as bytes.
pub(super) fn read_control(directory: &Path) -> Result<(ControlFile, Vec<u8>), DataDirError> {
    read_parsed(&directory.join(CONTROL_NAME))?.ok_or_else(|| missing(directory, CONTROL_NAME))
}

/// A data directory's control file, as bytes.
pub(super) fn read_bytes(directory: &Path) -> Result<Vec<u8>, DataDirError> {
    let bytes = small_file::read(&directory.join(CONTROL_NAME), CONTROL_BYTES)?;
    bytes.ok_or_else(|| missing(directory, CONTROL_NAME))
}

/// Reads the control file until it is valid, or until we've read the same invalid bytes twice. In
/// the latter case the file must be damaged rather than torn, because no server is currently
/// writing it. Returns `None` if the file doesn't exist.
fn read_parsed(path: &Path) -> Result<Option<(ControlFile, Vec<u8>)>, DataDirError> {
    let mut before: Option<Vec<u8>> = None;
    for read in 1.. {
        let Some(bytes) = small_file::read(path, CONTROL_BYTES)? else { break };
        match ControlFile::parse(&bytes) {
            Ok(control) => return Ok(Some((control, bytes))),
            Err(source) if read == READS_MAX || before.as_ref() == Some(&bytes) => {
                return Err(DataDirError::Control { path: path.to_owned(), source });
            }
            Err(_) => before = Some(bytes),
        }
    }
    Ok(None)
}

fn missing(directory: &Path, missing: &'static str) -> DataDirError {
    DataDirError::NotADataDir { path: directory.to_owned(), missing }
}

/// Checks that both files have the same major version.
pub(super) fn check_versions(
    directory: &Path,
    version_file: u32,
    control: &ControlFile,
) -> Result<(), DataDirError> {
    let control_file = control.version.major();
    if version_file == control_file {
        return Ok(());
    }
    Err(DataDirError::VersionMismatch { path: directory.to_owned(), version_file, control_file })
}
