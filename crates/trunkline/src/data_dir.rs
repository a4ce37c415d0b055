//! Opens the data directory given on the command line, and formats paths below it.

use std::fmt::Display;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use trunkline_engine::datadir::{DataDir, OpenOptions, read_control_file};
use trunkline_engine::pool::ReadError;
use trunkline_engine::replay::{Replay, ReplayOptions, mapped_tablespaces};
use trunkline_engine::storage::StorageError;
use trunkline_format::backup_label::{BACKUP_LABEL_NAME, BackupLabel};

use crate::exit::{Failure, message};
use crate::options::{Context, Global};
use crate::replay_options::{ARCHIVE, NO_REPLAY};

/// The hint if the directory for pages that are built from the log can't be used.
const OTHER_SCRATCH: &str = "choose another directory with --scratch";

/// The hint for an incremental backup.
pub(crate) const COMBINE_BACKUPS: &str =
    "combine it with the backup that it is based on (pg_combinebackup)";

/// The most bytes of a `backup_label` that are read.
pub(crate) const LABEL_BYTES_MAX: u64 = 1 << 20;

/// Opens the data directory given by the options and prints its warnings to standard error. If it was
/// not shut down, its log is replayed in memory, and one line says how much of it.
pub(crate) fn open(context: &Context<'_>) -> Result<DataDir, Failure> {
    let dir = open_for_log(context)?;
    if dir.replay().is_none() {
        warn_of_archive(context.global);
    }
    Ok(dir)
}

/// [`open`] for a command that also reads the log of a cluster that was shut down.
pub(crate) fn open_for_log(context: &Context<'_>) -> Result<DataDir, Failure> {
    let dir = open_quietly(context, &[NO_REPLAY])?;
    report(&dir);
    Ok(dir)
}

/// [`open`] for a command that reads the log itself, and the directory only for its catalogs.
pub(crate) fn open_for_names(context: &Context<'_>) -> Result<DataDir, Failure> {
    // The command reads the archive even if nothing is replayed.
    let dir = open_quietly(context, &[NO_REPLAY, ARCHIVE])?;
    report(&dir);
    Ok(dir)
}

/// Warns that `--wal` has no effect, since nothing is replayed.
pub(crate) fn warn_of_archive(global: &Global) {
    if global.replay.given_besides(&[NO_REPLAY]) == Some(ARCHIVE) {
        let text = "the cluster was shut down cleanly, so no log is replayed, and --wal is ignored";
        message("warning", text);
    }
}

/// Prints the warnings of a data directory, and what was replayed.
pub(crate) fn report(dir: &DataDir) {
    for warning in dir.warnings() {
        message("warning", warning);
    }
    if let Some(replay) = dir.replay() {
        if let Some(doubt) = replay.report().doubt() {
            message("warning", doubt);
        }
        message("note", replay.report());
        match dir.prepared_xids().map(|xids| xids.len()) {
            Ok(0) => {}
            Ok(1) => {
                message("note", "1 prepared transaction has not ended; its changes are not shown");
            }
            Ok(prepared) => {
                let text = "prepared transactions have not ended; their changes are not shown";
                message("note", format_args!("{prepared} {text}"));
            }
            Err(error) => message("warning", error),
        }
    }
}

/// Opens the data directory without a message. If it is read as it lies, only options of a replay in
/// `allowed` are accepted.
fn open_quietly(context: &Context<'_>, allowed: &[&str]) -> Result<DataDir, Failure> {
    let global = context.global;
    let (path, replay) = (global.require_pgdata()?, &global.replay);
    // Without a replay, it would only be noticed by files that are missing.
    if let Ok(bytes) = read_file(&path.join(BACKUP_LABEL_NAME), LABEL_BYTES_MAX) {
        refuse_incremental(path, &bytes)?;
    }
    let options = OpenOptions { force_unclean: global.force_unclean, as_it_lies: replay.no_replay };
    let dir = match as_it_lies(global, allowed)? {
        true => DataDir::open(path, options)?,
        false => DataDir::open_replayed(path, options, &replay_options(context, path)?)?,
    };
    let dir = dir.with_tablespaces(&global.tablespace_mapping)?;
    Ok(dir)
}

/// Refuses an incremental backup: most of its files contain only the blocks that were changed. `label` is
/// its `backup_label`; whether that is damaged is for others to judge.
pub(crate) fn refuse_incremental(root: &Path, label: &[u8]) -> Result<(), Failure> {
    match BackupLabel::parse(label) {
        Ok(BackupLabel { incremental_from: Some(from), .. }) => {
            let text = format!("\"{}\" is an incremental backup from {from}", root.display());
            Err(Failure::cannot_run(text).with_hint(COMBINE_BACKUPS))
        }
        _ => Ok(()),
    }
}

/// Reads a regular file, at most `most + 1` bytes, so that the caller can detect a longer one.
pub(crate) fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether the user wants to see the files without a replay. Then options of a replay are refused, but not
/// those in `allowed`.
pub(crate) fn as_it_lies(global: &Global, allowed: &[&str]) -> Result<bool, Failure> {
    let name = match (global.replay.no_replay, global.force_unclean) {
        (true, _) => NO_REPLAY,
        (false, true) => "--force-unclean",
        (false, false) => return Ok(false),
    };
    match global.replay.given_besides(allowed) {
        Some(other) => Err(Failure::usage(format_args!(
            "{other} can't be used with {name}, which reads no log"
        ))),
        None => Ok(true),
    }
}

/// The options of the replay of a data directory. A scratch directory inside of it or of one of its
/// tablespaces is refused, because the list of changed pages, and pages that are built from the log, may
/// be written there.
pub(crate) fn replay_options(context: &Context<'_>, data: &Path) -> Result<ReplayOptions, Failure> {
    if context.global.replay.checks_log() {
        return Err(Failure::usage("--wal needs a directory; only verify checks the log itself"));
    }
    let options = context.global.replay.options(&context.settings);
    let scratch = options.scratch.display();
    let refused = |place| {
        let text = format!("\"{scratch}\" is inside {place}, and nothing is written there");
        Err(Failure::usage(text).with_hint(OTHER_SCRATCH))
    };
    if is_inside(&options.scratch, data) {
        return refused("the data directory".to_owned());
    }
    // The log may be on a volume of its own.
    if is_inside(&options.scratch, &data.join("pg_wal")) {
        return refused("the folder of the log, \"pg_wal\"".to_owned());
    }
    // The file system of a tablespace may hang, so we don't touch it unless a replay is needed.
    if !needs_replay(data) {
        return Ok(options);
    }
    let links = fs::read_dir(data.join("pg_tblspc")).into_iter().flatten().flatten();
    let links = links.map(|link| link.path());
    let moved = context.global.tablespace_mapping.iter().map(|(_, new)| new.clone());
    let mapped = mapped_tablespaces(data).unwrap_or_default().into_iter().map(|(_, place)| place);
    let found = { links.chain(mapped).chain(moved) }
        .find(|tablespace| is_inside(&options.scratch, tablespace));
    if let Some(tablespace) = found {
        return refused(format!("the tablespace \"{}\"", tablespace.display()));
    }
    if let Some(scratch) = context.global.replay.scratch() {
        require_writable(scratch)?;
    }
    Ok(options)
}

/// Checks a scratch directory before the log is replayed, which may take long.
fn require_writable(scratch: &Path) -> Result<(), Failure> {
    let found = fs::metadata(scratch).and_then(|found| match found.is_dir() {
        true => Ok(rustix::fs::access(scratch, Access::WRITE_OK | Access::EXEC_OK)?),
        false => Err(rustix::io::Errno::NOTDIR.into()),
    });
    found.map_err(|error| {
        let scratch = scratch.display();
        Failure::usage(format_args!("could not use \"{scratch}\" for --scratch: {error}"))
    })
}

/// Whether the files of a data directory lack changes that are in its log.
pub(crate) fn needs_replay(root: &Path) -> bool {
    // What can't be read is not known to be complete.
    let control = read_control_file(&root.join("global/pg_control"));
    control.map_or(true, |control| Replay::is_needed(root, &control).unwrap_or(true))
}

/// The failure to write into the directory for pages that are built from the log, which is no damage.
pub(crate) fn scratch_failure(
    error: impl Display,
    storage: &StorageError,
    dir: &DataDir,
) -> Option<Failure> {
    let is_of_scratch = dir.replay().is_some_and(|replay| replay.scratch() == storage.path());
    is_of_scratch.then(|| Failure::cannot_run(error).with_hint(OTHER_SCRATCH))
}

/// Warns that a command shows a file as it lies, if its newest contents are in the log.
pub(crate) fn warn_of_files(dir: &DataDir) {
    if dir.replay().is_some() {
        message("warning", "the file is shown as it lies, without what the log changes in it");
    }
}

/// Whether a path is inside a directory, wherever links lead.
fn is_inside(path: &Path, directory: &Path) -> bool {
    resolve_link(path).starts_with(resolve_link(directory))
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
