//! Failures of `trunkline copy`, with hints how to copy the data that is still readable.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use trunkline_engine::catalog::CatalogError;
use trunkline_engine::copy::{CopyError, PlanError};
use trunkline_engine::datadir::DataDir;
use trunkline_engine::storage::StorageError;

use super::args::CopyArgs;
use crate::catalog_session::database_failure;
use crate::data_dir::{moved_tablespace_hint, scratch_failure};
use crate::exit::{Exit, Failure};

/// The hint for damaged data.
const KEEP_GOING: &str = "use --keep-going to skip damaged rows";

/// The hint for a missing relation file.
const RESTORE: &str = "restore the file, or use --keep-going to leave out what was in it";

/// The hint for a missing or short file of the commit log or of multixacts.
const LEAVE_OUT: &str = "restore the file, or use --keep-going to leave out the rows that need it";

/// The hint for a catalog that we need to print values, and that has lost pages.
const LEAVE_COLUMNS: &str =
    "restore the file, or leave out the columns that need it with --columns";

/// The failure to read the catalog.
pub(super) fn catalog_failure(error: CatalogError, dir: &DataDir) -> Failure {
    let hint = match &error {
        error if error.file_fault().is_some() => Some(LEAVE_OUT),
        // It has its own hint.
        error if error.lost_pages() => None,
        error => error.is_damage().then_some(KEEP_GOING),
    };
    database_failure(error, dir).with_hint_if_any(hint)
}

/// If a catalog has lost pages, the name of something that doesn't exist may be right, so we don't
/// blame the user.
pub(super) fn blame_damage(mut failure: Failure, faults: &[CatalogError]) -> Failure {
    if failure.exit == Exit::Usage && faults.iter().any(CatalogError::lost_pages) {
        failure.exit = Exit::Findings;
    }
    failure
}

/// The failure to plan the copy of a table.
pub(super) fn plan_failure(error: PlanError) -> Failure {
    let hint = error.hint();
    match error {
        // We read this catalog to print values of a column's type. `--keep-going` doesn't help.
        PlanError::Catalog(error) if error.lost_pages() => {
            Failure::from(error).with_hint(LEAVE_COLUMNS)
        }
        PlanError::Catalog(error) => error.into(),
        other @ PlanError::Output { .. } => Failure::cannot_run(other).with_hint_if_any(hint),
        other => Failure::usage(other).with_hint_if_any(hint),
    }
}

/// The failure of the copy itself. If the reader of our standard output has gone, that is not worth
/// a message, even if `-o` names the same pipe, as `/dev/stdout` does.
pub(super) fn copy_failure(error: CopyError, args: &CopyArgs, dir: &DataDir) -> Failure {
    match error {
        CopyError::Output { source, .. } if args.output().is_none_or(is_standard_output) => {
            Failure::output(&source)
        }
        CopyError::Output { .. } => Failure::cannot_run(error),
        CopyError::Job(error) => error.into(),
        CopyError::Finding { ref finding, .. } => match finding.storage() {
            Some(storage) if let Some(target) = dir.dangling_link(storage.path()) => {
                Failure::cannot_run(&error).with_hint(moved_tablespace_hint(&target))
            }
            Some(storage) if let Some(failure) = scratch_failure(&error, storage, dir) => failure,
            Some(StorageError::SegmentMissing { .. }) => {
                Failure::findings(&error).with_hint(RESTORE)
            }
            // If the error has its own hint, such as for a missing permission, it isn't caused by
            // damage.
            Some(storage) if let Some(hint) = storage.hint() => {
                Failure::cannot_run(&error).with_hint(hint)
            }
            // The row may be fine. Without the file, we just don't know whether it is visible.
            _ if finding.file_fault().is_some() => Failure::cannot_run(&error).with_hint(LEAVE_OUT),
            _ => Failure::findings(&error).with_hint(KEEP_GOING),
        },
    }
}

/// Returns whether a file is the one that is our standard output.
fn is_standard_output(path: &Path) -> bool {
    let ours = rustix::fs::fstat(io::stdout().as_fd());
    let same = |named: fs::Metadata| {
        ours.is_ok_and(|ours| (named.dev(), named.ino()) == (ours.st_dev, ours.st_ino))
    };
    fs::metadata(path).is_ok_and(same)
}
