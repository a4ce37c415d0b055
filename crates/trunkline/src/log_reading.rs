//! **Reading a log to its end**, for all commands that do.
//!
//! `pg_waldump` reports every end of a log as an error. We look at the reason: a log may end where
//! nothing was written yet, where a recycled file has kept old pages, or at the last file, but only if no
//! later file continues it and the control file's checkpoint is not behind that place. Anything else is a
//! finding, with segment and position.
//!
//! **A torn end.** A crash can leave a last record of which only a part was written, so that its CRC
//! is wrong. We accept that in `pg_wal` of a cluster that has crashed, as replay does, but not in an
//! archive, in a backup, or after a shutdown: there, all records were complete once.

use std::path::{Path, PathBuf};

use trunkline_engine::datadir::read_control_file;
use trunkline_engine::log_files::{LogFiles, LogFilesError, SegmentCursor};
use trunkline_engine::replay::{Consistency, ReplayStart, Situation};
use trunkline_format::backup_label::BACKUP_LABEL_NAME;
use trunkline_format::wal::{EndReason, LogChunk, LogEnd, LogEvent, LogReader};
use trunkline_format::{ControlFile, Lsn};

use crate::data_dir::resolve_link;
use crate::exit::{Exit, Failure, message};

/// The log of a data directory.
pub(crate) struct ClusterLog {
    pub(crate) files: LogFiles,
    /// For [`Stop::verdict`].
    pub(crate) torn: TornEnd,
}

/// Where the log may end with a record of which only a part was written.
#[derive(Debug)]
pub(crate) enum TornEnd {
    Nowhere,
    /// In the segments of this folder, since a crash has ended their log.
    In(PathBuf),
}

impl TornEnd {
    /// For the log of the data directory `root`.
    pub(crate) fn of_cluster(root: &Path, control: &ControlFile) -> TornEnd {
        let situation = Situation { control, label: None, has_signal: false, has_archive: false };
        // The log of a backup was copied, and so is as complete as it was meant to be.
        match situation.start() {
            Ok(Some(ReplayStart { consistency: Consistency::EndOfLog { .. }, .. }))
                if !root.join(BACKUP_LABEL_NAME).exists() =>
            {
                TornEnd::In(resolve_link(&root.join("pg_wal")))
            }
            _ => TornEnd::Nowhere,
        }
    }

    /// Whether a crash can leave this end. The header of a page is written as a whole or not at all, so a
    /// wrong one is no torn write. A checkpoint is complete before the control file names it.
    fn allows(&self, end: &LogEnd, segments: &LogFiles) -> bool {
        let TornEnd::In(folder) = self else { return false };
        let is_there = segments.path(end.place).is_some_and(|path| path.starts_with(folder));
        let is_behind = segments.checkpoint().is_some_and(|checkpoint| checkpoint < end.record);
        is_there && is_behind && !matches!(end.reason, EndReason::Page(_))
    }
}

/// Opens the log of a data directory. Segments in the folders `archives` come before those in `pg_wal`.
pub(crate) fn of_cluster(
    root: &Path,
    archives: &[PathBuf],
    timeline: Option<u32>,
) -> Result<ClusterLog, Failure> {
    let control = match read_control_file(&root.join("global/pg_control")) {
        Ok(control) => Some(control),
        Err(error) => {
            let text = "the log is read without the control file";
            message("warning", format_args!("{error}; {text}"));
            None
        }
    };
    let mut folders = archives.to_vec();
    folders.push(resolve_link(&root.join("pg_wal")));
    let files = LogFiles::of_folders(&folders, timeline, control.as_ref())?;
    let torn = control.map_or(TornEnd::Nowhere, |control| TornEnd::of_cluster(root, &control));
    Ok(ClusterLog { files, torn })
}

/// Prints a note: the log goes on behind a record that was lost.
pub(crate) fn note_overwritten(record: Lsn, page: Lsn) {
    let text = "was cut off by a crash; the log continues at";
    message("note", format_args!("the record at {record} {text} {page}"));
}

/// Why reading ended.
pub(crate) enum Stop {
    /// A record at or after `--to`.
    Bound,
    /// The log has no next record. The file has this length.
    End { end: LogEnd, length: u64 },
    /// There is no file for the segment that contains this place. The last record may be cut.
    NoSegment { place: Lsn, cut: Option<Lsn> },
    /// The segment that contains this place can't be decompressed. The last record may be cut.
    NotUnpacked { place: Lsn, cut: Option<Lsn>, error: LogFilesError },
    /// The file ends before this place.
    CutFile { place: Lsn, length: u64 },
}

/// Passes on what the reader finds, up to the end.
pub(crate) fn read(
    reader: &mut LogReader,
    segments: &LogFiles,
    to: Option<Lsn>,
    consume: &mut dyn FnMut(LogEvent<'_>) -> Result<(), Failure>,
) -> Result<Stop, Failure> {
    let (mut cursor, mut buffer) = (SegmentCursor::default(), Vec::new());
    loop {
        let place = reader.wanted();
        // The end of a segment may be the bound: then the next one may be missing.
        if !reader.is_inside_record() && to.is_some_and(|to| reader.position() >= to) {
            return Ok(Stop::Bound);
        }
        let cut = reader.is_inside_record().then(|| reader.position());
        let length = match segments.read(&mut cursor, place, &mut buffer) {
            Ok(Some(length)) => length,
            Ok(None) => return Ok(Stop::NoSegment { place, cut }),
            Err(error @ LogFilesError::Compressed { .. }) => {
                return Ok(Stop::NotUnpacked { place, cut, error });
            }
            Err(error) => return Err(error.into()),
        };
        let chunk = LogChunk { start: place, bytes: &buffer };
        if !chunk.has_page(place) {
            return Ok(Stop::CutFile { place, length });
        }
        while let Some(event) = reader.next(&chunk) {
            match event {
                LogEvent::Record(record) if to.is_some_and(|to| record.start >= to) => {
                    return Ok(Stop::Bound);
                }
                LogEvent::End(end) => return Ok(Stop::End { end, length }),
                event => consume(event)?,
            }
        }
    }
}

impl Stop {
    /// Whether the log may end like this.
    pub(crate) fn verdict(
        self,
        to: Option<Lsn>,
        segments: &LogFiles,
        torn: &TornEnd,
    ) -> Result<Exit, Failure> {
        let (record, place, reason, is_usual) = match self {
            Stop::Bound => return Ok(Exit::Good),
            Stop::End { end, length } => {
                let (reason, is_usual) = match segments.damage_at(end.place, &end.reason, length) {
                    Some(damage) => (damage, false),
                    // A log that begins with an invalid page is none.
                    None if end.reason.is_usual() => {
                        (end.reason.to_string(), !segments.is_first_page(end.place))
                    }
                    None if torn.allows(&end, segments) => {
                        (format!("{}, as a crash can leave it", end.reason), true)
                    }
                    None => (end.reason.to_string(), false),
                };
                (end.record, end.place, reason, is_usual)
            }
            // Servers name the files that they keep for later without leaving out one, as replay knows too.
            Stop::NoSegment { place, cut } => {
                let missing = segments.missing(place);
                (cut.unwrap_or(place), place, missing.to_string(), missing.behind.is_none())
            }
            Stop::NotUnpacked { place, cut, error } => {
                (cut.unwrap_or(place), place, error.to_string(), false)
            }
            Stop::CutFile { place, length } => {
                let expected = segments.identity().segment_size.bytes();
                let reason = format!("the file has {length} bytes, expected {expected}");
                // A segment that an archive has got while it was written is not complete.
                (place, place, reason, segments.is_partial(place))
            }
        };
        let at = format!("log ends at {record} in segment {}", segments.name(record));
        let page = format!(", on the page at {place} in segment {}", segments.name(place));
        let page = if record == place { "" } else { &*page };
        let text = format!("{at}{page}: {reason}");
        if let Some(later) = segments.continues_after(place) {
            let later = later.display();
            return Err(Failure::findings(format_args!("{text}; but it goes on in \"{later}\"")));
        }
        if !is_usual {
            return Err(Failure::findings(text));
        }
        if let Some(checkpoint) = segments.checkpoint().filter(|checkpoint| record <= *checkpoint) {
            let text = format!("{text}; but the control file has a checkpoint at {checkpoint}");
            return Err(Failure::findings(text));
        }
        if let Some(to) = to {
            return Err(Failure::findings(format_args!("{text}; --to is {to}")));
        }
        message("note", text);
        Ok(Exit::Good)
    }
}
