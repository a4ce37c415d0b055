//! Opens the data directory given on the command line, and formats paths below it.

use std::path::{Path, PathBuf};

use trunkline_engine::datadir::{DataDir, OpenOptions};
use trunkline_engine::pool::ReadError;
use trunkline_engine::storage::StorageError;

use crate::exit::{Failure, message};
use crate::options::Global;

/// Opens the data directory given by the options and prints its warnings to standard error.
pub(crate) fn open(global: &Global) -> Result<DataDir, Failure> {
    let options = OpenOptions { force_unclean: global.force_unclean };
    let dir = DataDir::open(global.require_pgdata()?, options)?;
    let dir = dir.with_tablespaces(&global.tablespace_mapping)?;
    for warning in dir.warnings() {
        message("warning", warning);
    }
    Ok(dir)
}

/// The hint for a tablespace whose link points to `target`, where there is nothing.
pub(crate) fn moved_tablespace_hint(target: &Path) -> String {
    format!("use -T {}=NEWDIR if the tablespace has been moved", target.display())
}

/// The failure to use a file of a relation. If the file is missing because its tablespace has been
/// moved, nothing is wrong with the relation.
pub(crate) fn storage_failure(error: StorageError, dir: &DataDir) -> Failure {
    match dir.dangling_link(error.path()) {
        Some(target) => Failure::cannot_run(&error).with_hint(moved_tablespace_hint(&target)),
        None => ReadError::Storage(error).into(),
    }
}

/// The path that a symbolic link given by the user leads to. Any other path, also that of a link to
/// nothing, stays as it is.
pub(crate) fn resolve_link(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// A path relative to the data directory, if it is inside it.
pub(crate) fn relative(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
