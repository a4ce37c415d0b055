//! The log of a backup: is it complete to the point where the files are consistent, and how far does
//! it reach?
//!
//! ```text
//!   backup_label ─▶ start ─── records ───▶ consistent ─── records ───▶ end      behind it
//!                    ╰──── every CRC, every link, every timeline ────╯          foreign? damaged?
//! ```
//! The replay of the directory reads all of this anyway. We let it go on at a gap, because the pages
//! are still worth a check if the files were consistent before it.

use std::path::Path;

use trunkline_engine::datadir::{DataDir, DataDirError, OpenOptions};
use trunkline_engine::replay::{Replay, ReplayError, ReplayOptions};
use trunkline_format::Lsn;

use super::finding::Finding;
use super::manifest::Manifest;
use crate::data_dir::replay_options;
use crate::exit::Failure;
use crate::options::Context;

/// What the log contains.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogReport {
    pub(super) start: Lsn,
    /// Where the files are consistent.
    pub(super) consistent: Option<Lsn>,
    /// The newest position that can be reached.
    pub(super) end: Lsn,
    pub(super) records: u64,
    /// Segments from the start to the end.
    pub(super) segments: usize,
    /// Files behind the end that a server has recycled.
    pub(super) unused: u64,
}

/// The directory as it is after the replay of its log, or the reason why it can't be replayed.
pub(super) enum Opened {
    Directory(Box<DataDir>),
    /// Something is wrong with the backup.
    Finding(Finding),
    /// The directory could not be read.
    Failed(Failure),
}

/// Replays the log.
pub(super) fn open(context: &Context<'_>, root: &Path) -> Result<Opened, Failure> {
    // A gap is a finding, not a reason to stop.
    let options = ReplayOptions { allow_incomplete: true, ..replay_options(context, root)? };
    Ok(match DataDir::open_replayed(root, OpenOptions::default(), &options) {
        Ok(dir) => {
            let dir = dir.with_tablespaces(&context.global.tablespace_mapping)?;
            Opened::Directory(Box::new(dir))
        }
        Err(error) => match finding(&error) {
            Some(finding) => Opened::Finding(finding),
            None => Opened::Failed(error.into()),
        },
    })
}

/// What is wrong with the backup, if the directory was refused for that.
fn finding(error: &DataDirError) -> Option<Finding> {
    match error {
        DataDirError::Replay { source, .. } => match &**source {
            ReplayError::Files(files) if files.is_readable() => {
                Some(Finding::of_log("log", source))
            }
            ReplayError::Files(_)
            | ReplayError::Io { .. }
            | ReplayError::Instance(_)
            | ReplayError::Thread(_)
            | ReplayError::Memory { .. }
            | ReplayError::Spilling { .. }
            | ReplayError::CopiedDatabase { .. }
            | ReplayError::TooEarly { .. }
            | ReplayError::NotReached { .. }
            // No replay needs these files.
            | ReplayError::Prepared { .. }
            | ReplayError::NoPast => None,
            ReplayError::Start(_) | ReplayError::Label { .. } => {
                Some(Finding::new(Path::new("backup_label"), "label", source))
            }
            ReplayError::Record { .. }
            | ReplayError::Timeline { .. }
            | ReplayError::Diverged { .. }
            | ReplayError::Incomplete { .. }
            | ReplayError::Effect { .. }
            | ReplayError::RelationMap { .. } => Some(Finding::of_log("log", source)),
        },
        DataDirError::NotADataDir { missing, .. } => {
            Some(Finding::new(Path::new(missing), "directory", "does not exist"))
        }
        DataDirError::Version { .. } | DataDirError::VersionMismatch { .. } => {
            Some(Finding::new(Path::new("PG_VERSION"), "directory", error))
        }
        DataDirError::Control { source, .. } => {
            Some(Finding::new(Path::new("global/pg_control"), "directory", source))
        }
        _ => None,
    }
}

/// Judges the log that was replayed.
pub(super) fn judge(replay: &Replay, manifest: Option<&Manifest>) -> (LogReport, Vec<Finding>) {
    let (report, files) = (replay.report(), replay.log_files());
    let mut findings = Vec::new();
    if let Some(warning) = &report.warning {
        findings.push(Finding::of_log("log_incomplete", warning));
    } else if !report.is_usual_end {
        let (end, segment, reason) = (report.end, files.name(report.end), &report.reason);
        let text = format!("the log ends at {end} in segment {segment}: {reason}");
        findings.push(Finding::of_log("log_damaged", text));
    }
    let check = files.check_files(report.start, report.end);
    findings.extend(check.faults.iter().map(|fault| Finding::of_log("log_segment", fault)));
    if let Some(manifest) = manifest {
        findings.extend(ranges(manifest, replay));
    }
    let found = LogReport {
        start: report.start,
        consistent: report.consistent,
        end: report.end,
        records: report.records,
        segments: files.count(report.start, Lsn(report.end.0.saturating_sub(1))),
        unused: check.unused,
    };
    (found, findings)
}

/// Compares the log that the manifest names with the one that was replayed.
fn ranges(manifest: &Manifest, replay: &Replay) -> Vec<Finding> {
    let (report, history) = (replay.report(), replay.log_files().history());
    let mut findings = Vec::new();
    for range in manifest.ranges.iter().filter(|range| !history.contains(range.timeline)) {
        let (timeline, followed) = (range.timeline, history.timeline());
        let text =
            format!("has log of timeline {timeline}, but that of timeline {followed} was read");
        findings.push(Finding::of_manifest("log_range", text));
    }
    let start = manifest.ranges.iter().map(|range| range.start).min();
    let end = manifest.ranges.iter().map(|range| range.end).max();
    if let Some(start) = start.filter(|start| *start != report.start) {
        let text = format!("the log begins at {start}, but replay at {}", report.start);
        findings.push(Finding::of_manifest("log_range", text));
    }
    if let Some(end) = end.filter(|end| *end > report.end) {
        let text = format!("needs log to {end}, but it ends at {}", report.end);
        findings.push(Finding::of_manifest("log_range", text));
    }
    if let Some((end, consistent)) = end.zip(report.consistent).filter(|(end, at)| at > end) {
        let text = format!("needs log to {end}, but the files are consistent only at {consistent}");
        findings.push(Finding::of_manifest("log_range", text));
    }
    findings
}
