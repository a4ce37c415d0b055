//! `trunkline backup verify DIR`: does this backup restore?
//!
//! ```text
//!   backup_manifest ─▶ files: there, size, checksum          as pg_verifybackup does
//!   backup_label ────▶ log: complete, consistent, archive    replayed in memory
//!   pages ───────────▶ as verify does, after that replay     nothing is written
//! ```
//! Each part is checked whatever the others have found, as far as it can be. A finding in one of them
//! then doesn't hide one in another. Only pages need a log that reaches the point of consistency:
//! before that they are of different moments, and every finding would be doubtful.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::ValueHint;
use trunkline_aio::facade::Arc;
use trunkline_engine::datadir::{DataDir, read_control_file};
use trunkline_engine::job::End;
use trunkline_format::backup_label::BACKUP_LABEL_NAME;

use super::files::{FilesReport, check_files};
use super::finding::{Finding, MANIFEST};
use super::log::{self, LogReport, Opened};
use super::manifest::Manifest;
use super::report::Report;
use crate::data_dir::{COMBINE_BACKUPS, LABEL_BYTES_MAX, read_file, refuse_incremental};
use crate::exit::{Exit, Failure, message};
use crate::interrupt::Interrupt;
use crate::monitor::JobMonitor;
use crate::options::{Context, Global};
use crate::output::print_report;
use crate::replay_options::ARCHIVE;
use crate::verify::CheckedPages;

/// The most bytes of a manifest that are read. A file takes about 150 bytes.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// Names that the archives of a backup in tar format begin with.
const TAR_NAMES: [&str; 4] = ["base.tar", "base.tar.gz", "base.tar.lz4", "base.tar.zst"];

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyBackupArgs {
    /// Directory of the backup. It may also be given as -D DIR, but not by $PGDATA.
    // Cli::parse_args makes sure that there is one.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(context: &Context<'_>, args: &VerifyBackupArgs) -> Result<Exit, Failure> {
    let global = context.global;
    let root = match &args.directory {
        Some(directory) => directory.as_path(),
        None => global.require_pgdata()?,
    };
    refuse_options(global)?;
    refuse_format(root)?;
    let interrupt = Interrupt::install()?;
    let mut report = Report::new(root);
    let monitor = Arc::new(JobMonitor::new(interrupt.clone(), global));
    report.files = check_manifest(root, global, &monitor, &mut report)?;
    if interrupt.requested() {
        return Err(interrupt.failure());
    }
    let opened = log::open(context, root)?;
    if interrupt.requested() {
        return Err(interrupt.failure());
    }
    let mut failure = None;
    match opened {
        Opened::Directory(dir) => {
            warn(&dir);
            report.log = check_log(&dir, &mut report);
            let is_consistent = report.log.is_none_or(|log| log.consistent.is_some());
            if is_consistent {
                // What the other parts have found must be printed in any case.
                match CheckedPages::check(context, &dir, &interrupt) {
                    Ok(pages) => report.pages = Some(pages),
                    Err(error) => failure = Some(error),
                }
            }
        }
        Opened::Finding(finding) => report.findings.push(finding),
        Opened::Failed(error) => failure = Some(error),
    }
    print_report(global, &report.json(), || report.text())?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let end = report.pages.as_ref().map_or(End::Complete, |pages| pages.report().end);
    let (denied, total) = (report.denied(), report.findings_total());
    if denied > 0 && end == End::Complete {
        return Err(Failure::denied(denied, total.saturating_sub(denied)));
    }
    let exit = if total == 0 { Exit::Good } else { Exit::Findings };
    Ok(interrupt.exit_after(end, exit))
}

/// Options that would make less than the whole backup good enough.
fn refuse_options(global: &Global) -> Result<(), Failure> {
    let name = match global.force_unclean {
        true => Some("--force-unclean"),
        false => global.replay.given_besides(&[ARCHIVE]),
    };
    match name {
        Some(name) => {
            let text = format!("{name} can't be used with backup verify, which checks everything");
            Err(Failure::usage(text))
        }
        None => Ok(()),
    }
}

/// Refuses what is no base backup in plain format.
fn refuse_format(root: &Path) -> Result<(), Failure> {
    let cannot_read = |path: &Path, error: io::Error| {
        Failure::cannot_run(format_args!("could not read \"{}\": {error}", path.display()))
    };
    fs::read_dir(root).map_err(|error| cannot_read(root, error))?;
    if let Some(name) = TAR_NAMES.iter().find(|name| root.join(name).is_file()) {
        let text = format!("\"{}\" is a backup in tar format ({name})", root.display());
        return Err(Failure::cannot_run(text).with_hint("extract it into an empty directory first"));
    }
    let path = root.join(BACKUP_LABEL_NAME);
    match read_file(&path, LABEL_BYTES_MAX) {
        Ok(bytes) => {
            // A label that is damaged is a finding of the replay.
            refuse_incremental(root, &bytes)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if !root.join(MANIFEST).exists() {
                let text = format!(
                    "\"{}\" is not a base backup: it has neither {MANIFEST} nor {BACKUP_LABEL_NAME}",
                    root.display()
                );
                return Err(Failure::cannot_run(text));
            }
        }
        Err(error) => return Err(cannot_read(&path, error)),
    }
    Ok(())
}

/// Checks the manifest, and the files with it.
fn check_manifest(
    root: &Path,
    global: &Global,
    monitor: &Arc<JobMonitor>,
    report: &mut Report,
) -> Result<Option<FilesReport>, Failure> {
    let path = root.join(MANIFEST);
    let manifest = match read_file(&path, MANIFEST_BYTES_MAX) {
        Ok(bytes) if bytes.len() as u64 > MANIFEST_BYTES_MAX => {
            let text = format!("has more than {MANIFEST_BYTES_MAX} bytes");
            report.findings.push(Finding::of_manifest("manifest", text));
            return Ok(None);
        }
        Ok(bytes) => Manifest::parse(&bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            report.findings.push(Finding::of_manifest("manifest", "does not exist"));
            return Ok(None);
        }
        Err(error) => {
            let text = format!("could not read \"{}\": {error}", path.display());
            return Err(Failure::cannot_run(text));
        }
    };
    let manifest = match manifest {
        Ok(manifest) => manifest,
        Err(error) => {
            report.findings.push(Finding::of_manifest("manifest", error));
            return Ok(None);
        }
    };
    let names = manifest.files.keys().filter_map(|path| path.file_name());
    let is_incremental =
        |name: &&std::ffi::OsStr| name.as_encoded_bytes().starts_with(b"INCREMENTAL.");
    if let Some(name) = { names }.find(is_incremental) {
        let (root, name) = (root.display(), name.display());
        let text = format!("\"{root}\" is an incremental backup: its manifest has {name}");
        return Err(Failure::cannot_run(text).with_hint(COMBINE_BACKUPS));
    }
    if let Some(expected) = manifest.system_identifier
        && let Ok(control) = read_control_file(&root.join("global/pg_control"))
        && control.system_identifier != expected
    {
        let found = control.system_identifier;
        let text = format!("is of system {expected}, but global/pg_control is of system {found}");
        report.findings.push(Finding::of_manifest("system_identifier", text));
    }
    let files = check_files(root, &global.tablespace_mapping, &manifest, monitor)?;
    report.manifest = Some(manifest);
    Ok(Some(files))
}

/// The warnings of the directory. That its log is incomplete is a finding.
fn warn(dir: &DataDir) {
    use trunkline_engine::datadir::Warning;
    for warning in dir.warnings().iter().filter(|it| !matches!(it, Warning::Incomplete(_))) {
        message("warning", warning);
    }
}

fn check_log(dir: &DataDir, report: &mut Report) -> Option<LogReport> {
    let replay = dir.replay()?;
    let (log, findings) = log::judge(replay, report.manifest.as_ref());
    report.findings.extend(findings);
    message("note", replay.report());
    Some(log)
}
