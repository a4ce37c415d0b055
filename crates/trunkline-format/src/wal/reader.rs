//! **Log reader**: turns the pages of the log into records, across pages and segment files.
//!
//! The reader does no I/O. It says which page it needs next, the caller passes a piece of the log
//! that begins there, and the reader returns records until the piece is used up:
//!
//! ```text
//!   wanted() = 0/01000000 ──▶ caller reads 1 MB there ──▶ next(&chunk) ──▶ Record, Record, …, None
//!        ▲                                                                                     │
//!        ╰──────────────── wanted() = 0/01100000 ◀─────────────────────────────────────────────╯
//! ```
//! A caller can therefore read ahead as far as it likes, from files, archives or a network.
//!
//! **Continuation.** A record starts at a multiple of 8 and may be cut at the end of any page. It
//! continues after the header of the next one, which repeats how much is still to come. We copy
//! only records that are cut, and only bytes that were read, so a length that lies costs nothing.
//!
//! **Overwritten continuation.** If a server crashed in the middle of a record, it doesn't write
//! over the part that is there, since a standby may have it already. It goes on at the page where
//! the rest should have begun, and flags that page. Reading continues there.
//!
//! **Start.** The start position may lie anywhere. The reader finds the first record at or after
//! it: from the first page on, it skips a continuation and then follows the records. Of the `previous`
//! link of the first record, it can only check that it points to an earlier LSN. If the start is known to be
//! that of a record, the search is left out ([`LogReader::at_record`]).
//!
//! | State | Entered when | Left when |
//! |---|---|---|
//! | `Find` | created | a page has space behind its continuation |
//! | `Between` | created at a record, a record ended, or a page was overwritten | the header of a record is there |
//! | `Inside` | a record is cut at the end of a page | its last byte is there, or it was overwritten |
//! | `Ended` | no record can be read | never |
//!
//! Mirrors the rules of `XLogReadRecord` in PostgreSQL's `access/transam/xlogreader.c`.

use crate::control::PgVersion;
use crate::ids::Lsn;
use crate::little_endian::read_at;

use super::log_end::{EndReason, LogEnd};
use super::page_header::{LOG_PAGE_SIZE, LogIdentity, LogPageError, LogPageHeader};
use super::record::{RECORD_HEADER_SIZE, RECORD_SIZE_MAX, Record, RecordHeader, record_crc};
use super::resource_manager::{ResourceManager, is_switch, overwritten_record};

/// A piece of the log: whole pages that follow each other. They may belong to several segments.
#[derive(Clone, Copy, Debug)]
pub struct LogChunk<'c> {
    /// The position of the first page.
    pub start: Lsn,
    /// The pages. An incomplete page at the end is ignored.
    pub bytes: &'c [u8],
}

impl<'c> LogChunk<'c> {
    /// Whether the chunk contains the whole page at `place`.
    pub fn has_page(&self, place: Lsn) -> bool {
        self.page(place).is_some()
    }

    fn page(&self, place: Lsn) -> Option<&'c [u8]> {
        let offset = usize::try_from(place.0.checked_sub(self.start.0)?).ok()?;
        self.bytes.get(offset..offset.checked_add(LOG_PAGE_SIZE)?)
    }

    fn bytes_at(&self, place: Lsn, length: usize) -> &'c [u8] {
        let offset = place.0.saturating_sub(self.start.0) as usize;
        self.bytes.get(offset..offset.saturating_add(length)).unwrap_or_default()
    }
}

/// A record and its place in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogRecord<'r> {
    /// Where the record begins. This is what PostgreSQL calls its LSN when it prints records.
    pub start: Lsn,
    /// Where the record ends, rounded up to a multiple of 8: the LSN of the pages that it changes.
    pub end: Lsn,
    /// The version of the server that wrote it.
    pub version: PgVersion,
    /// The timeline of the page on which it ends.
    pub timeline: u32,
    /// The record.
    pub record: Record<'r>,
}

/// What the reader has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogEvent<'r> {
    /// The next record.
    Record(LogRecord<'r>),
    /// The record that began at `record` was cut off by a crash, and the log continues at `page`.
    Overwritten {
        /// Where the lost record begins.
        record: Lsn,
        /// The page on which the server went on.
        page: Lsn,
    },
    /// The log ends. All further calls return the same.
    End(LogEnd),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Find,
    Between,
    Inside { start: Lsn, length: u32 },
    Ended(LogEnd),
}

/// What one step has found, without borrowing anything.
enum Step {
    /// A step inside the reader; nothing to return yet.
    Nothing,
    /// The record is in the chunk as a whole.
    InPlace {
        start: Lsn,
        length: usize,
    },
    /// The record has been put together in `cut`.
    Assembled {
        start: Lsn,
    },
    Overwritten {
        record: Lsn,
        page: Lsn,
    },
    NeedsPage,
}

/// Reads the records of one log.
#[derive(Debug)]
pub struct LogReader {
    log: LogIdentity,
    /// Records before this position are read but not returned.
    from: Lsn,
    state: State,
    /// The next byte to read.
    at: Lsn,
    /// The header of the page that contains `at`, once it has been checked.
    page: Option<LogPageHeader>,
    /// The start of the last complete record.
    previous: Option<Lsn>,
    /// Version and timeline of the last page.
    version: Option<PgVersion>,
    timeline: u32,
    /// The bytes so far of a record that is cut.
    cut: Vec<u8>,
    /// The record that was cut off and overwritten last.
    overwritten: Option<Lsn>,
}

impl LogReader {
    /// Reads the log from the first record at or after `from`.
    pub fn new(log: LogIdentity, from: Lsn) -> Self {
        Self {
            log,
            from,
            state: State::Find,
            at: page_of(from),
            page: None,
            previous: None,
            version: None,
            timeline: 0,
            cut: Vec::new(),
            overwritten: None,
        }
    }

    /// Reads the log from the record that begins at `start`, which an earlier pass has found there. The
    /// records before it on its page are not looked at.
    pub fn at_record(log: LogIdentity, start: Lsn) -> Self {
        Self { state: State::Between, at: start, ..Self::new(log, start) }
    }

    /// The position of the page that the reader needs next.
    pub fn wanted(&self) -> Lsn {
        page_of(self.at)
    }

    /// Where the next record begins, as far as it is known. If the log can't be read on, it ends
    /// here.
    pub fn position(&self) -> Lsn {
        match self.state {
            State::Inside { start, .. } => start,
            State::Ended(end) => end.record,
            State::Find | State::Between => self.at,
        }
    }

    /// Whether the reader is in the middle of a record.
    pub fn is_inside_record(&self) -> bool {
        matches!(self.state, State::Inside { .. })
    }

    /// The next record of the log. `None` if `chunk` doesn't contain the page at
    /// [`wanted`](Self::wanted).
    pub fn next<'r>(&'r mut self, chunk: &LogChunk<'r>) -> Option<LogEvent<'r>> {
        let (start, end) = loop {
            let found = match self.state {
                State::Ended(end) => return Some(LogEvent::End(end)),
                State::Find => self.find(chunk),
                State::Between => self.begin(chunk),
                State::Inside { start, length } => self.go_on(chunk, start, length),
            };
            match found {
                Ok(Step::Nothing) => {}
                Ok(Step::NeedsPage) => return None,
                Ok(Step::Overwritten { record, page }) => {
                    return Some(LogEvent::Overwritten { record, page });
                }
                Ok(Step::InPlace { start, length }) => {
                    match self.check(start, chunk.bytes_at(start, length)) {
                        Ok(record) => {
                            let end = self.pass(start, record.header());
                            if start >= self.from {
                                return Some(self.event(start, end, record));
                            }
                        }
                        Err(reason) => self.end(LogEnd { record: start, place: start, reason }),
                    }
                }
                Ok(Step::Assembled { start }) => match self.check(start, &self.cut) {
                    Ok(record) => {
                        let header = *record.header();
                        let end = self.pass(start, &header);
                        if start >= self.from {
                            break (start, end);
                        }
                    }
                    // The part that was written last is on the page of the last byte.
                    Err(reason) => {
                        let place = page_of(Lsn(self.at.0.saturating_sub(1)));
                        self.end(LogEnd { record: start, place, reason });
                    }
                },
                Err(end) => self.end(end),
            }
        };
        // It has been decoded above, but a borrow of `cut` must not outlive an iteration.
        let record = Record::parse(&self.cut).ok()?;
        Some(self.event(start, end, record))
    }

    fn event<'r>(&self, start: Lsn, end: Lsn, record: Record<'r>) -> LogEvent<'r> {
        let version = self.version.unwrap_or(PgVersion::V15);
        LogEvent::Record(LogRecord { start, end, version, timeline: self.timeline, record })
    }

    /// The only place that changes the state.
    fn enter(&mut self, state: State) {
        let is_legal = match (self.state, state) {
            (State::Find, State::Between | State::Ended(_)) => true,
            (State::Between, State::Between | State::Inside { .. } | State::Ended(_)) => true,
            (State::Inside { .. }, State::Between | State::Ended(_)) => true,
            (State::Find | State::Inside { .. }, State::Find | State::Inside { .. }) => false,
            (State::Between, State::Find) | (State::Ended(_), _) => false,
        };
        assert!(is_legal, "from {:?} to {state:?}", self.state);
        self.state = state;
    }

    fn end(&mut self, end: LogEnd) {
        self.enter(State::Ended(end));
    }

    fn end_here(&self, reason: EndReason) -> LogEnd {
        LogEnd { record: self.at, place: self.at, reason }
    }

    /// Moves behind a complete record and returns its end. `at` is behind its last byte already.
    fn pass(&mut self, start: Lsn, header: &RecordHeader) -> Lsn {
        self.previous = Some(start);
        self.enter(State::Between);
        if is_switch(header) {
            // The rest of the segment is empty. This is also where such a record ends.
            let size = u64::from(self.log.segment_size.bytes());
            self.at = Lsn(self.at.0.checked_next_multiple_of(size).unwrap_or(u64::MAX));
        }
        self.at
    }

    /// Skips the continuation at the start of the first page.
    fn find(&mut self, chunk: &LogChunk<'_>) -> Result<Step, LogEnd> {
        let Some((header, _)) = self.load(chunk)? else { return Ok(Step::NeedsPage) };
        let size = header.size() as u64;
        let rest = if header.is_continuation { header.remaining } else { 0 };
        let rest = align(u64::from(rest));
        if size + rest >= LOG_PAGE_SIZE as u64 {
            self.at = Lsn(page_of(self.at).0.saturating_add(LOG_PAGE_SIZE as u64));
            return Ok(Step::Nothing);
        }
        self.at = Lsn(page_of(self.at).0 + size + rest);
        self.enter(State::Between);
        Ok(Step::Nothing)
    }

    /// Begins a record at `at`.
    fn begin(&mut self, chunk: &LogChunk<'_>) -> Result<Step, LogEnd> {
        let Some((header, page)) = self.load(chunk)? else { return Ok(Step::NeedsPage) };
        if offset_in_page(self.at) == 0 {
            if header.is_continuation {
                return Err(self.end_here(EndReason::UnexpectedContinuation));
            }
            self.at = Lsn(self.at.0 + header.size() as u64);
        }
        let start = self.at;
        let rest = page.get(offset_in_page(start)..).unwrap_or_default();
        let Some(length) = read_at::<u32>(rest, 0) else {
            // Positions are multiples of 8, so at least 8 bytes are left.
            return Err(self.end_here(EndReason::Unwritten));
        };
        self.check_length(length)?;
        if let Some(header) = RecordHeader::parse(rest) {
            self.check_header(start, &header).map_err(|reason| self.end_here(reason))?;
        }
        if (length as usize) <= rest.len() {
            self.at = Lsn(start.0.saturating_add(align(u64::from(length))));
            return Ok(Step::InPlace { start, length: length as usize });
        }
        self.cut.clear();
        self.cut.extend_from_slice(rest);
        self.enter(State::Inside { start, length });
        self.at = Lsn(page_of(start).0.saturating_add(LOG_PAGE_SIZE as u64));
        Ok(Step::Nothing)
    }

    /// Continues the record that began at `start` on the page at `at`.
    fn go_on(&mut self, chunk: &LogChunk<'_>, start: Lsn, length: u32) -> Result<Step, LogEnd> {
        let Some((header, page)) = self.load(chunk)? else { return Ok(Step::NeedsPage) };
        let end = |reason| LogEnd { record: start, place: page_of(self.at), reason };
        if header.is_overwritten && !header.is_continuation {
            self.enter(State::Between);
            self.overwritten = Some(start);
            return Ok(Step::Overwritten { record: start, page: self.at });
        }
        if !header.is_continuation {
            return Err(end(EndReason::NotContinued));
        }
        let expected = length.saturating_sub(self.cut.len() as u32);
        if header.remaining != expected {
            return Err(end(EndReason::Remaining { found: header.remaining, expected }));
        }
        let room = page.get(header.size()..).unwrap_or_default();
        let part = room.get(..expected as usize).unwrap_or(room);
        self.cut.extend_from_slice(part);
        let used = header.size() as u64 + align(part.len() as u64);
        self.at = Lsn(page_of(self.at).0.saturating_add(used));
        if (self.cut.len() as u32) < length {
            return Ok(Step::Nothing);
        }
        Ok(Step::Assembled { start })
    }

    /// The page that contains `at`, and its header. The header is checked only once. `None` if the
    /// chunk doesn't contain the page.
    fn load<'c>(
        &mut self,
        chunk: &LogChunk<'c>,
    ) -> Result<Option<(LogPageHeader, &'c [u8])>, LogEnd> {
        let place = page_of(self.at);
        let Some(page) = chunk.page(place) else { return Ok(None) };
        if let Some(header) = self.page.filter(|header| header.address == place) {
            return Ok(Some((header, page)));
        }
        let header = LogPageHeader::parse_at(page, place, &self.log);
        let header = header.and_then(|header| self.check_page(header)).map_err(|error| LogEnd {
            record: self.position(),
            place,
            reason: EndReason::Page(error),
        })?;
        self.page = Some(header);
        self.version = Some(header.version);
        self.timeline = header.timeline;
        Ok(Some((header, page)))
    }

    /// Compares a page with the pages before it.
    fn check_page(&self, header: LogPageHeader) -> Result<LogPageHeader, LogPageError> {
        if let Some(expected) = self.version.filter(|version| *version != header.version) {
            return Err(LogPageError::Version { found: header.version, expected });
        }
        if header.timeline < self.timeline {
            let (found, expected) = (header.timeline, self.timeline);
            return Err(LogPageError::Timeline { found, expected });
        }
        Ok(header)
    }

    fn check_length(&self, length: u32) -> Result<(), LogEnd> {
        if length == 0 {
            return Err(self.end_here(EndReason::Unwritten));
        }
        if !(RECORD_HEADER_SIZE as u32..=RECORD_SIZE_MAX).contains(&length) {
            return Err(self.end_here(EndReason::Length { found: length }));
        }
        Ok(())
    }

    /// Checks what the header alone shows. This comes before the rest of the record is read, since
    /// a header that is garbage may announce a gigabyte.
    fn check_header(&self, start: Lsn, header: &RecordHeader) -> Result<(), EndReason> {
        if !ResourceManager(header.manager).is_valid() {
            return Err(EndReason::Manager { found: header.manager });
        }
        match self.previous {
            Some(expected) if header.previous != expected => {
                Err(EndReason::Previous { found: header.previous, expected })
            }
            None if header.previous >= start => {
                Err(EndReason::PreviousNotBefore { found: header.previous, start })
            }
            _ => Ok(()),
        }
    }

    /// Checks and decodes a complete record.
    fn check<'b>(&self, start: Lsn, bytes: &'b [u8]) -> Result<Record<'b>, EndReason> {
        let header = RecordHeader::parse(bytes).ok_or(EndReason::Unwritten)?;
        self.check_header(start, &header)?;
        let computed = record_crc(bytes);
        if header.crc != computed {
            return Err(EndReason::Crc { found: header.crc, computed });
        }
        let record = Record::parse(bytes).map_err(EndReason::Record)?;
        match (self.overwritten, overwritten_record(&record)) {
            (Some(expected), Some(found)) if found != expected => {
                Err(EndReason::Overwritten { found, expected })
            }
            _ => Ok(record),
        }
    }
}

/// The position of the page that contains `place`.
fn page_of(place: Lsn) -> Lsn {
    Lsn(place.0 - place.0 % LOG_PAGE_SIZE as u64)
}

fn offset_in_page(place: Lsn) -> usize {
    (place.0 % LOG_PAGE_SIZE as u64) as usize
}

/// Records start at multiples of 8.
fn align(length: u64) -> u64 {
    length.next_multiple_of(8)
}
