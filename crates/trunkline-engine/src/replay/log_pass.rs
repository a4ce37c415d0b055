//! Reads the log record by record, and reports why it ends.

use trunkline_format::Lsn;
use trunkline_format::wal::{LogChunk, LogEnd, LogEvent, LogReader, LogRecord, SegmentName};

use super::error::ReplayError;
use crate::log_files::{LogFiles, LogFilesError, LogScan};

/// Whether to go on after a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Next,
    Stop,
}

/// Where a log ends, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PassEnd {
    /// The end of the last record.
    pub(super) end: Lsn,
    pub(super) segment: SegmentName,
    pub(super) reason: String,
    /// Something is missing: the log goes on behind this place, or a file is too short.
    pub(super) is_gap: bool,
    /// The gap may come from flushes in flight, of which a later one was written and an earlier one was not: all
    /// files are there and complete, and no segment but the next one continues the log.
    pub(super) may_be_flushes: bool,
    /// There is no further file, or nothing was written there ([`EndReason::is_usual`]).
    ///
    /// [`EndReason::is_usual`]: trunkline_format::wal::EndReason::is_usual
    pub(super) is_usual: bool,
}

/// Calls `each` for every record from `from` on. Returns `None` if `each` stopped the pass.
pub(super) fn pass(
    mut scan: LogScan<'_>,
    from: Lsn,
    each: &mut dyn FnMut(&LogRecord<'_>) -> Result<Step, ReplayError>,
) -> Result<Option<PassEnd>, ReplayError> {
    let files = scan.files();
    let mut reader = LogReader::new(files.identity(), from);
    let ended = |reader: &LogReader, place: Lsn, reason: String, is_usual: bool| {
        let (mut reason, mut is_gap) = (reason, false);
        if let Some(later) = files.continues_after(place) {
            reason += &format!(", but the log goes on in \"{}\"", later.display());
            is_gap = true;
        }
        let end = reader.position();
        let segment = files.name(end);
        if files.name(place) != segment {
            reason += &format!(", in segment {}", files.name(place));
        }
        PassEnd { end, segment, reason, is_gap, may_be_flushes: false, is_usual }
    };
    loop {
        let place = reader.wanted();
        let part = match scan.read(place) {
            Ok(Some(part)) => part,
            Ok(None) => {
                let missing = files.missing(place);
                // Servers name the files that they keep for later without leaving out one.
                let has_later = missing.behind.is_some();
                let end = ended(&reader, place, missing.to_string(), !has_later);
                return Ok(Some(PassEnd { is_gap: end.is_gap || has_later, ..end }));
            }
            Err(error @ LogFilesError::Compressed { .. }) => {
                let end = ended(&reader, place, error.to_string(), false);
                return Ok(Some(PassEnd { is_gap: true, ..end }));
            }
            Err(error) => return Err(error.into()),
        };
        let chunk = LogChunk { start: place, bytes: part.bytes };
        if !chunk.has_page(place) {
            let expected = files.identity().segment_size.bytes();
            let reason = format!("the file has {} bytes, expected {expected}", part.file_length);
            let is_partial = files.is_partial(place);
            let end = ended(&reader, place, reason, is_partial);
            return Ok(Some(PassEnd { is_gap: end.is_gap || !is_partial, ..end }));
        }
        while let Some(event) = reader.next(&chunk) {
            match event {
                LogEvent::Record(record) => {
                    if each(&record)? == Step::Stop {
                        return Ok(None);
                    }
                }
                LogEvent::Overwritten { .. } => {}
                LogEvent::End(LogEnd { place, reason, .. }) => {
                    let damage = files.damage_at(place, &reason, part.file_length);
                    let (is_damage, is_usual) = (damage.is_some(), reason.is_usual());
                    let reason = damage.unwrap_or_else(|| reason.to_string());
                    let end = ended(&reader, place, reason, is_usual);
                    // No flush writes more than one segment ahead of the oldest that is not durable.
                    let next = Lsn(place.0 + u64::from(files.identity().segment_size.bytes()));
                    let may_be_flushes =
                        end.is_gap && !is_damage && files.continues_after(next).is_none();
                    let is_gap = end.is_gap || is_damage;
                    return Ok(Some(PassEnd { may_be_flushes, is_gap, ..end }));
                }
            }
        }
    }
}

/// What is at a place where a record should begin: the record, passed to `check`, or why there is
/// none.
pub(super) fn at<T>(
    files: &LogFiles,
    place: Lsn,
    check: impl FnOnce(&LogRecord<'_>) -> Result<T, String>,
) -> Result<Result<T, String>, ReplayError> {
    let (mut check, mut found) = (Some(check), None);
    if files.path(place).is_none() {
        let missing = files.missing(place);
        return Err(crate::log_files::LogFilesError::from(missing).into());
    }
    let end = pass(LogScan::new(files), place, &mut |record| {
        found = Some(match check.take() {
            Some(check) if record.start == place => check(record),
            _ => Err(format!("the next record begins at {}", record.start)),
        });
        Ok(Step::Stop)
    })?;
    Ok(found.unwrap_or_else(|| Err(end.map(|end| end.reason).unwrap_or_default())))
}
