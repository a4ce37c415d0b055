//! Reads records of the log at given places, in ascending order for each user.
//!
//! Places that are close together are read together: each read that continues near the end of the one before is twice as
//! long. Places far apart are read one by one, since more would only be copied in vain.

use std::num::NonZeroU64;
use std::time::Duration;

use trunkline_aio::clock;
use trunkline_format::Lsn;
use trunkline_format::wal::{LOG_PAGE_SIZE, LogChunk, LogEvent, LogReader, LogRecord};

use super::page_redo::{PageRedoError, RecordPlace};
use crate::log_files::{LogFiles, SegmentCursor};

/// How much of the log is read at least: a page, which most records don't exceed.
const READ_MIN: usize = LOG_PAGE_SIZE;
/// How much is read at most.
const READ_MAX: usize = 256 << 10;
/// How much the kernel is advised of for a record: an image and the page that it may reach into.
const ADVICE: u64 = 16 << 10;

/// Reads records. Keeps the part of the log that it read last.
#[derive(Debug, Default)]
pub(super) struct RecordReader {
    cursor: SegmentCursor,
    start: Lsn,
    bytes: Vec<u8>,
    /// How much to read next, if that is near.
    length: usize,
    /// The longest that a read has taken since this was asked for last.
    slowest: Duration,
}

impl RecordReader {
    /// Passes the record that begins at `place` to `use_record`.
    ///
    /// # Errors
    /// [`PageRedoError::Log`] or [`PageRedoError::Files`]: it is not there any more. Or the error of `use_record`.
    pub(super) fn with<T>(
        &mut self,
        files: &LogFiles,
        place: Lsn,
        use_record: impl FnOnce(&LogRecord<'_>) -> Result<T, PageRedoError>,
    ) -> Result<T, PageRedoError> {
        let changed =
            |reason: String| PageRedoError::Log { place: RecordPlace::new(files, place), reason };
        let mut reader = LogReader::at_record(files.identity(), place);
        loop {
            let wanted = reader.wanted();
            if !(LogChunk { start: self.start, bytes: &self.bytes }).has_page(wanted) {
                self.read(files, wanted)?;
                if self.bytes.is_empty() {
                    return Err(changed(files.missing(wanted).to_string()));
                }
            }
            let chunk = LogChunk { start: self.start, bytes: &self.bytes };
            match reader.next(&chunk) {
                None | Some(LogEvent::Overwritten { .. }) => {}
                Some(LogEvent::Record(record)) if record.start == place => {
                    return use_record(&record);
                }
                Some(LogEvent::Record(record)) => {
                    let found = record.start;
                    return Err(changed(format!("the next record begins at {found}")));
                }
                Some(LogEvent::End(end)) => return Err(changed(end.reason.to_string())),
            }
        }
    }

    /// Reads the log from the page at `wanted` on. `bytes` is empty if it ends there.
    fn read(&mut self, files: &LogFiles, wanted: Lsn) -> Result<(), PageRedoError> {
        let end = self.start.0 + self.bytes.len() as u64;
        let is_near = (end..=end + 2 * READ_MIN as u64).contains(&wanted.0);
        self.length = if is_near { (2 * self.length).clamp(READ_MIN, READ_MAX) } else { READ_MIN };
        self.start = wanted;
        let begun = clock::now();
        let read = files.read_part(&mut self.cursor, wanted, self.length, &mut self.bytes);
        self.slowest = self.slowest.max(clock::now().since(begun));
        if !matches!(read, Ok(Some(_))) || self.bytes.len() < LOG_PAGE_SIZE {
            self.bytes.clear();
        }
        read?;
        Ok(())
    }

    /// The longest that a read has taken since the last call.
    pub(super) fn take_slowest(&mut self) -> Duration {
        std::mem::take(&mut self.slowest)
    }
}

/// Advises the kernel of records that will be read soon, in ascending order.
#[derive(Debug, Default)]
pub(super) struct RecordAdvice {
    /// How many places are done with.
    passed: usize,
    /// Up to where the kernel was advised.
    end: Lsn,
}

impl RecordAdvice {
    /// How many places ahead the kernel is advised of: more than storage usually serves at once. Not tuned by measurement.
    const AHEAD: usize = 128;

    /// The record at index `at` will be read next, and those behind it soon.
    pub(super) fn pass(
        &mut self,
        files: &LogFiles,
        at: usize,
        place_of: impl Fn(usize) -> Option<Lsn>,
    ) {
        self.passed = self.passed.max(at);
        while self.passed < at + Self::AHEAD
            && let Some(place) = place_of(self.passed)
        {
            self.passed += 1;
            let page = Lsn(place.0 - place.0 % LOG_PAGE_SIZE as u64);
            if place >= self.end
                && let Some(bytes) = NonZeroU64::new(ADVICE)
            {
                files.advise(page, bytes);
                self.end = Lsn(page.0 + ADVICE);
            }
        }
    }
}
