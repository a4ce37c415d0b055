//! Reads `backup_label` and `tablespace_map`, and checks for signal files: they determine how a data
//! directory is replayed.

use std::io;
use std::path::{Path, PathBuf};

use trunkline_format::Oid;
use trunkline_format::backup_label::{
    BACKUP_LABEL_NAME, BackupLabel, TABLESPACE_MAP_NAME, parse_tablespace_map,
};

use super::error::ReplayError;
use crate::small_file;

/// The most bytes of a label or map that are read.
const BYTES_MAX: u64 = 1 << 20;

/// What the small files say.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub(super) label: Option<BackupLabel>,
    /// Tablespaces that a server would link when it recovers the backup, whatever links there are.
    pub(super) tablespaces: Vec<(Oid, PathBuf)>,
    pub(super) has_signal: bool,
}

impl Directory {
    pub(super) fn read(root: &Path) -> Result<Self, ReplayError> {
        let path = root.join(BACKUP_LABEL_NAME);
        let label = match read(&path)? {
            Some(bytes) => {
                let parsed = BackupLabel::parse(&bytes);
                Some(parsed.map_err(|source| ReplayError::Label { path, source })?)
            }
            None => None,
        };
        let path = root.join(TABLESPACE_MAP_NAME);
        // Without a label, the map is left over, and a server ignores it.
        let tablespaces = match read(&path)?.filter(|_| label.is_some()) {
            Some(bytes) => {
                let parsed = parse_tablespace_map(&bytes);
                parsed.map_err(|source| ReplayError::Label { path, source })?
            }
            None => Vec::new(),
        };
        let tablespaces = tablespaces.into_iter().map(|(oid, path)| (oid, path_of(path)));
        let has_signal = small_file::exists(&root.join("recovery.signal"))?
            || small_file::exists(&root.join("standby.signal"))?;
        Ok(Self { label, tablespaces: tablespaces.collect(), has_signal })
    }
}

/// The tablespaces that a server would link when it recovers the backup in `root`, and where they are. None if it
/// isn't a backup.
///
/// # Errors
/// [`ReplayError`].
pub fn mapped_tablespaces(root: &Path) -> Result<Vec<(Oid, PathBuf)>, ReplayError> {
    Ok(Directory::read(root)?.tablespaces)
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    std::ffi::OsString::from_vec(bytes).into()
}

/// Reads a small regular file. `None` if it doesn't exist.
fn read(path: &Path) -> Result<Option<Vec<u8>>, ReplayError> {
    let bytes = small_file::read(path, BYTES_MAX + 1)?;
    if bytes.as_ref().is_some_and(|bytes| bytes.len() as u64 > BYTES_MAX) {
        let text = format!("it has more than {BYTES_MAX} bytes");
        return Err(ReplayError::io(path, io::Error::other(text)));
    }
    Ok(bytes)
}
