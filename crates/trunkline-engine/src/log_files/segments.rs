//! Finds the segment files of one log, and chooses which of them are read.
//!
//! A folder may contain segments of several timelines, history files, and recycled files
//! with future names. For each segment number, we take the file of the newest timeline in the history
//! ([`History`]), but never return to an older timeline than that of the previous segment. With a
//! control file, we begin with the first segment of the contiguous run that contains its checkpoint;
//! segments before a gap are left over from earlier.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::wal::{
    EndReason, LONG_HEADER_SIZE, LogIdentity, LogPageError, LogPageHeader, SegmentName, SegmentSize,
};
use trunkline_format::{ControlFile, Lsn};

use super::error::{LogFilesError, MissingSegment};
use super::history::History;
use super::open_segments::OpenSegments;
use super::segment_file::{CHUNK, Form, OpenSegment, SegmentFile, read_start};

/// The files of one log. Reading needs a [`SegmentCursor`] besides, so several threads can read.
#[derive(Debug)]
pub struct LogFiles {
    log: LogIdentity,
    history: History,
    /// By segment number.
    files: BTreeMap<u64, SegmentFile>,
    /// The first segment to read.
    first: u64,
    checkpoint: Option<Lsn>,
    /// Segments from which parts were read recently.
    open: Mutex<OpenSegments>,
}

/// The segment that was read last, which stays open.
#[derive(Debug, Default)]
pub struct SegmentCursor(Option<(u64, Arc<OpenSegment>)>);

impl LogFiles {
    /// The segments in some folders. If several contain the same segment, complete files are
    /// preferred, and then those of the first folder.
    ///
    /// Without a timeline, that of the control file is taken, or else the newest there is.
    ///
    /// # Errors
    /// [`LogFilesError`]: a folder can't be read, or there are no usable segments.
    pub fn of_folders(
        folders: &[PathBuf],
        timeline: Option<u32>,
        control: Option<&ControlFile>,
    ) -> Result<LogFiles, LogFilesError> {
        let mut found = Vec::new();
        for (rank, folder) in folders.iter().enumerate() {
            list(folder, rank, &mut found)?;
        }
        found.sort_by_key(|(rank, file)| (file.name, file.form.is_partial, *rank, file.form));
        let shown: Vec<String> = folders.iter().map(|it| format!("\"{}\"", it.display())).collect();
        let shown = shown.join(", ");
        let Some((_, last)) = found.last() else {
            let verb = if folders.len() == 1 { "contains" } else { "contain" };
            let text = format!("{shown} {verb} no log segments");
            return Err(LogFilesError::NoSegments { text });
        };
        let of_control = control.map(|control| control.checkpoint.timeline);
        let timeline = timeline.or(of_control).unwrap_or_else(|| last.name.timeline());
        let log = match control {
            Some(control) => LogIdentity {
                // The parser of control files accepts no other sizes.
                segment_size: SegmentSize::new(control.wal_segment_size).ok_or_else(|| {
                    LogFilesError::NoSegments {
                        text: "the control file has an invalid segment size".into(),
                    }
                })?,
                system_identifier: Some(control.system_identifier),
            },
            None => identity_in(&found)?,
        };
        let history = History::read(folders, timeline)?;
        let mut by_number: BTreeMap<u64, Vec<SegmentFile>> = BTreeMap::new();
        for (_, file) in found {
            by_number.entry(number(&file, log.segment_size)?).or_default().push(file);
        }
        let (mut files, mut newest) = (BTreeMap::new(), 0);
        for (number, of_number) in by_number {
            let best = history.candidates(number, log.segment_size).find_map(|timeline| {
                of_number.iter().find(|file| file.name.timeline() == timeline)
            });
            if let Some(file) = best.filter(|file| file.name.timeline() >= newest) {
                newest = file.name.timeline();
                files.insert(number, file.clone());
            }
        }
        let checkpoint = control
            .filter(|control| control.checkpoint.timeline == timeline)
            .map(|control| control.checkpoint.location);
        Self::of(log, history, files, checkpoint, &format!("timeline {timeline} in {shown}"))
    }

    /// The given files, or all files of one folder.
    ///
    /// # Errors
    /// As for [`LogFiles::of_folders`]; [`LogFilesError::Duplicate`].
    pub fn of_paths(paths: &[PathBuf], timeline: Option<u32>) -> Result<LogFiles, LogFilesError> {
        if let [folder] = paths
            && folder.is_dir()
        {
            return Self::of_folders(paths, timeline, None);
        }
        let mut named = Vec::new();
        for path in paths {
            let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let (name, form) = Form::of_name(file_name);
            let header = FirstHeader::read(path, form)?;
            // A file with another name is where its own header says.
            let name = SegmentName::parse(name).unwrap_or_else(|| {
                let number = header.segment_size.segment_of(header.header.address);
                SegmentName::of(header.header.timeline, number, header.segment_size)
            });
            named.push((SegmentFile { path: path.clone(), name, form }, header));
        }
        let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let shown = shown.join(", ");
        let Some((_, header)) = named.first() else {
            return Err(LogFilesError::NoSegments { text: "no file given".into() });
        };
        let log = header.identity();
        let size = log.segment_size;
        let mut files = BTreeMap::new();
        for (file, _) in named {
            if timeline.is_some_and(|timeline| timeline != file.name.timeline()) {
                continue;
            }
            let path = file.path.clone();
            if let Some(other) = files.insert(number(&file, size)?, file) {
                return Err(LogFilesError::Duplicate { path, other: other.path });
            }
        }
        let newest = files.values().map(|file| file.name.timeline()).max();
        let history = History::read(&[], timeline.or(newest).unwrap_or(1))?;
        Self::of(log, history, files, None, &shown)
    }

    fn of(
        log: LogIdentity,
        history: History,
        files: BTreeMap<u64, SegmentFile>,
        checkpoint: Option<Lsn>,
        shown: &str,
    ) -> Result<LogFiles, LogFilesError> {
        let Some((&first, _)) = files.first_key_value() else {
            let text = format!("there are no log segments of {shown}");
            return Err(LogFilesError::NoSegments { text });
        };
        let mut found = LogFiles { log, history, files, first, checkpoint, open: Mutex::default() };
        // Before a gap, only what the checkpoint needs is of interest.
        if let Some(place) = checkpoint {
            let needed = found.log.segment_size.segment_of(place);
            let run = (0..=needed).rev().take_while(|number| found.files.contains_key(number));
            found.first = run.last().unwrap_or(first);
        }
        Ok(found)
    }

    /// Sizes and the system identifier.
    pub fn identity(&self) -> LogIdentity {
        self.log
    }

    /// The timeline that is followed, and its ancestors.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The checkpoint in the control file, if it is on the timeline that is followed.
    pub fn checkpoint(&self) -> Option<Lsn> {
        self.checkpoint
    }

    /// The position to start at: the given one, or the beginning of the first segment.
    ///
    /// # Errors
    /// [`LogFilesError::Missing`].
    pub fn start(&self, from: Option<Lsn>) -> Result<Lsn, LogFilesError> {
        let Some(from) = from else { return Ok(self.log.segment_size.start_of(self.first)) };
        if self.files.contains_key(&self.log.segment_size.segment_of(from)) {
            return Ok(from);
        }
        Err(self.missing(from).into())
    }

    /// The number of segments, and the names of the first and the last one.
    pub fn range(&self) -> Option<(usize, SegmentName, SegmentName)> {
        let (_, first) = self.files.first_key_value()?;
        let (_, last) = self.files.last_key_value()?;
        Some((self.files.len(), first.name, last.name))
    }

    /// The name of the segment that contains a place.
    pub fn name(&self, place: Lsn) -> SegmentName {
        let number = self.log.segment_size.segment_of(place);
        match self.files.get(&number) {
            Some(file) => file.name,
            // A missing one would be of the timeline of the last one before it.
            None => {
                let before = self.files.range(..number).next_back();
                let first = self.files.get(&self.first);
                let timeline = before.map(|(_, file)| file).or(first);
                let timeline = timeline.map_or(0, |file| file.name.timeline());
                SegmentName::of(timeline, number, self.log.segment_size)
            }
        }
    }

    /// The path of the segment that contains a place, if it exists.
    pub fn path(&self, place: Lsn) -> Option<&Path> {
        let number = self.log.segment_size.segment_of(place);
        self.files.get(&number).map(|file| file.path.as_path())
    }

    /// The path of the segment that contains a place, if it is not compressed.
    pub(crate) fn plain_path(&self, place: Lsn) -> Option<&Path> {
        let number = self.log.segment_size.segment_of(place);
        self.files.get(&number).filter(|file| file.form.is_plain()).map(|file| file.path.as_path())
    }

    /// Whether the file of a segment may end before the segment does, since it is still being
    /// received.
    pub fn is_partial(&self, place: Lsn) -> bool {
        let number = self.log.segment_size.segment_of(place);
        self.files.get(&number).is_some_and(|file| file.form.is_partial)
    }

    /// The number of segments from the one that contains `from` up to the one that contains `to`.
    pub fn count(&self, from: Lsn, to: Lsn) -> usize {
        let of = |place| self.log.segment_size.segment_of(place);
        if from > to { 0 } else { self.files.range(of(from)..=of(to)).count() }
    }

    /// What is known about a segment that doesn't exist.
    pub fn missing(&self, place: Lsn) -> MissingSegment {
        let number = self.log.segment_size.segment_of(place);
        let name = |file: Option<(&u64, &SegmentFile)>| file.map(|(_, file)| file.name);
        MissingSegment {
            name: self.name(place),
            place,
            before: name(self.files.range(..number).next_back()),
            behind: name(self.files.range(number..).next()),
        }
    }

    /// Whether this is the beginning of the first segment, which has no valid page before it.
    pub fn is_first_page(&self, place: Lsn) -> bool {
        place == self.log.segment_size.start_of(self.first)
    }

    /// Reads the log from `place` on, into `buffer`, up to a megabyte or the end of the file, and
    /// returns the length of the file. `None` if there is no such file. Only the cursor keeps the segment,
    /// since a scan of the whole log doesn't come back.
    ///
    /// # Errors
    /// [`LogFilesError::Io`], [`LogFilesError::Compressed`].
    pub fn read(
        &self,
        cursor: &mut SegmentCursor,
        place: Lsn,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<u64>, LogFilesError> {
        let open = |_, file: &SegmentFile, size| Ok(Arc::new(file.open(size)?));
        self.read_from(cursor, place, CHUNK, buffer, open)
    }

    /// [`LogFiles::read`] of at most `most` bytes anywhere in the log: segments stay open, also those that
    /// had to be decompressed.
    ///
    /// # Errors
    /// As for [`LogFiles::read`].
    pub fn read_part(
        &self,
        cursor: &mut SegmentCursor,
        place: Lsn,
        most: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<u64>, LogFilesError> {
        let open = |number, file: &SegmentFile, size| self.keep_open(number, file, size);
        self.read_from(cursor, place, most, buffer, open)
    }

    /// A segment that stays open.
    fn keep_open(
        &self,
        number: u64,
        file: &SegmentFile,
        size: u32,
    ) -> Result<Arc<OpenSegment>, LogFilesError> {
        if let Some(open) = self.open.lock().find(number) {
            return Ok(open);
        }
        let opened = Arc::new(file.open(size)?);
        Ok(self.open.lock().keep(number, opened))
    }

    /// Keeps the file of a segment open, if it is not compressed. Some file systems forget what they have
    /// cached of a file when it is opened again, and the log is read twice: as a whole, and then for single
    /// pages. An error is that of the read.
    pub(super) fn hold(&self, place: Lsn) -> Option<Arc<OpenSegment>> {
        let number = self.log.segment_size.segment_of(place);
        let file = self.files.get(&number).filter(|file| file.form.is_plain())?;
        self.keep_open(number, file, self.log.segment_size.bytes()).ok()
    }

    /// Advises the kernel that the log from `place` on will be read soon with [`LogFiles::read_part`]. Does
    /// nothing for a compressed segment.
    pub(crate) fn advise(&self, place: Lsn, bytes: NonZeroU64) {
        if let Some(open) = self.hold(place) {
            open.advise(u64::from(self.log.segment_size.offset(place)), bytes);
        }
    }

    fn read_from(
        &self,
        cursor: &mut SegmentCursor,
        place: Lsn,
        most: usize,
        buffer: &mut Vec<u8>,
        open: impl FnOnce(u64, &SegmentFile, u32) -> Result<Arc<OpenSegment>, LogFilesError>,
    ) -> Result<Option<u64>, LogFilesError> {
        let number = self.log.segment_size.segment_of(place);
        let Some(found) = self.files.get(&number) else { return Ok(None) };
        let size = self.log.segment_size.bytes();
        if cursor.0.as_ref().is_none_or(|(open, _)| *open != number) {
            // Close the old one first, so that only one is in memory.
            cursor.0 = None;
            cursor.0 = Some((number, open(number, found, size)?));
        }
        let Some((_, open)) = &cursor.0 else { return Ok(None) };
        let offset = u64::from(self.log.segment_size.offset(place));
        let count = u64::from(size).saturating_sub(offset).min(most as u64);
        let read = open.read(offset, count, buffer);
        read.map_err(|error| LogFilesError::io("read", &found.path, error))?;
        Ok(Some(open.length()))
    }

    /// A later file that begins with a page of this log, which then can't end before it.
    pub fn continues_after(&self, place: Lsn) -> Option<&Path> {
        let number = self.log.segment_size.segment_of(place);
        let mut later = self.files.range(number.saturating_add(1)..);
        let is_valid = |(number, file): &(&u64, &SegmentFile)| {
            let start = self.log.segment_size.start_of(**number);
            let header = first_bytes(&file.path, file.form);
            let header = header.map(|bytes| LogPageHeader::parse_at(&bytes, start, &self.log));
            let Ok(Ok(header)) = header else { return false };
            // A server that leaves a timeline keeps the files behind that place under new names.
            [self.history.timeline_at(start), file.name.timeline()].contains(&header.timeline)
        };
        later.find(is_valid).map(|(_, file)| file.path.as_path())
    }
}

/// What the files of a log are, whether or not their log is read.
#[derive(Debug, Default)]
pub struct FileCheck {
    /// Files behind the end of the log without log: empty, or recycled by a server and not written since.
    pub unused: u64,
    /// Files that can't be read, that are cut off, or that are not segments of this log.
    pub faults: Vec<LogFilesError>,
}

impl LogFiles {
    /// Examines the files from the segment that contains `from` on: the length of each, and the first page of
    /// those behind the segment that contains `end`, where the log ends. A file that continues the log
    /// there is not reported: see [`LogFiles::continues_after`].
    pub fn check_files(&self, from: Lsn, end: Lsn) -> FileCheck {
        let segment_of = |place| self.log.segment_size.segment_of(place);
        let (mut check, last) = (FileCheck::default(), segment_of(end));
        for (&number, file) in self.files.range(segment_of(from)..) {
            let outcome = self.check_length(file).and_then(|()| match number > last {
                true => self.check_first_page(number, file),
                false => Ok(true),
            });
            match outcome {
                Ok(true) => {}
                Ok(false) => check.unused += 1,
                Err(error) => check.faults.push(error),
            }
        }
        check
    }

    /// A complete plain file has the length of a segment. Others are decompressed when they are read.
    fn check_length(&self, file: &SegmentFile) -> Result<(), LogFilesError> {
        if file.form != Form::PLAIN {
            return Ok(());
        }
        let metadata = std::fs::metadata(&file.path);
        let found = metadata.map_err(|error| LogFilesError::io("read", &file.path, error))?.len();
        let expected = u64::from(self.log.segment_size.bytes());
        if found == expected {
            return Ok(());
        }
        let reason = format!("the file has {found} bytes, expected {expected}");
        Err(LogFilesError::NotASegment { path: file.path.clone(), reason })
    }

    /// Whether a file begins with the page that belongs there (true), or was recycled (false).
    fn check_first_page(&self, number: u64, file: &SegmentFile) -> Result<bool, LogFilesError> {
        let start = self.log.segment_size.start_of(number);
        let bytes = first_bytes(&file.path, file.form)?;
        let error = match LogPageHeader::parse_at(&bytes, start, &self.log) {
            Ok(_) => return Ok(true),
            Err(LogPageError::Empty) => return Ok(false),
            Err(error @ LogPageError::Address { .. }) => {
                let long = LogPageHeader::parse(&bytes).ok().and_then(|header| header.long);
                match (long.map(|long| long.system_identifier), self.log.system_identifier) {
                    (Some(found), Some(expected)) if found != expected => {
                        LogPageError::System { found, expected }
                    }
                    (Some(_), _) => return Ok(false),
                    (None, _) => error,
                }
            }
            Err(error) => error,
        };
        let (path, reason) = (file.path.clone(), error.to_string());
        Err(LogFilesError::NotASegment { path, reason })
    }

    /// Why no crash of a server leaves a log that ends at `place` for this reason, in a file of this length. `None` if one may.
    pub fn damage_at(&self, place: Lsn, reason: &EndReason, file_length: u64) -> Option<String> {
        let expected = u64::from(self.log.segment_size.bytes());
        if file_length != expected && !self.is_partial(place) {
            let file = format!("the file has {file_length} bytes, expected {expected}");
            return Some(format!("{reason}, and {file}"));
        }
        if reason.is_never_left_by_a_crash(self.history.has_ancestors()) {
            return Some(reason.to_string());
        }
        // A recycled file is of the same cluster.
        self.check_segment(place).err().map(|error| error.to_string())
    }

    /// Refuses a segment whose first page is not of this log. It may be one that was recycled.
    ///
    /// # Errors
    /// [`LogFilesError`]. There is none for a segment that doesn't exist.
    pub fn check_segment(&self, place: Lsn) -> Result<(), LogFilesError> {
        let number = self.log.segment_size.segment_of(place);
        match self.files.get(&number) {
            Some(file) => self.check_first_page(number, file).map(drop),
            None => Ok(()),
        }
    }
}

/// The segments in a folder.
fn list(
    folder: &Path,
    rank: usize,
    found: &mut Vec<(usize, SegmentFile)>,
) -> Result<(), LogFilesError> {
    let cannot_read = |error| LogFilesError::io("read directory", folder, error);
    for entry in std::fs::read_dir(folder).map_err(cannot_read)? {
        let file_name = entry.map_err(cannot_read)?.file_name();
        let Some(file_name) = file_name.to_str() else { continue };
        let (name, form) = Form::of_name(file_name);
        if let Some(name) = SegmentName::parse(name) {
            found.push((rank, SegmentFile { path: folder.join(file_name), name, form }));
        }
    }
    Ok(())
}

/// A segment's number.
fn number(file: &SegmentFile, size: SegmentSize) -> Result<u64, LogFilesError> {
    let bytes = size.bytes();
    file.name.number(size).ok_or_else(|| LogFilesError::Name { path: file.path.clone(), bytes })
}

/// Sizes and identifier from the first file whose header is valid.
fn identity_in(found: &[(usize, SegmentFile)]) -> Result<LogIdentity, LogFilesError> {
    let mut first_error = None;
    for (_, file) in found {
        match FirstHeader::read(&file.path, file.form) {
            Ok(header) => return Ok(header.identity()),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error
        .unwrap_or_else(|| LogFilesError::NoSegments { text: "there are no log segments".into() }))
}

/// The header of a file's first page, which names the log that the file belongs to.
struct FirstHeader {
    header: LogPageHeader,
    segment_size: SegmentSize,
}

impl FirstHeader {
    fn read(path: &Path, form: Form) -> Result<FirstHeader, LogFilesError> {
        let bytes = first_bytes(path, form)?;
        let invalid = |reason: String| LogFilesError::NotASegment { path: path.into(), reason };
        let header = LogPageHeader::parse(&bytes).map_err(|error| invalid(error.to_string()))?;
        let size = header.long.and_then(|long| SegmentSize::new(long.segment_size));
        let segment_size =
            size.ok_or_else(|| invalid("the first page has no valid segment size".into()))?;
        Ok(FirstHeader { header, segment_size })
    }

    fn identity(&self) -> LogIdentity {
        let system_identifier = self.header.long.map(|long| long.system_identifier);
        LogIdentity { segment_size: self.segment_size, system_identifier }
    }
}

/// The first bytes of a file's segment.
fn first_bytes(path: &Path, form: Form) -> Result<Vec<u8>, LogFilesError> {
    let file = read_start(path, form, LONG_HEADER_SIZE)?;
    if file.len() < LONG_HEADER_SIZE {
        return Err(LogFilesError::TooShort { path: path.to_owned(), bytes: file.len() as u64 });
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_files::test_segments::{name, packed, segment};
    use std::fs;

    /// The byte that the page at `place` is filled with, or why it can't be read.
    fn fill_at(files: &LogFiles, cursor: &mut SegmentCursor, place: u64) -> Result<u8, String> {
        let mut buffer = Vec::new();
        match files.read(cursor, Lsn(place), &mut buffer) {
            Ok(Some(_)) => Ok(buffer[100]),
            Ok(None) => Err(files.missing(Lsn(place)).to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn archives_are_read_in_every_form() {
        let folder = tempfile::tempdir().expect("a folder");
        for (number, suffix) in [(3, ""), (4, ".gz"), (5, ".lz4"), (6, ".zst"), (7, ".partial")] {
            let bytes = packed(&segment(1, number, number as u8), suffix);
            fs::write(folder.path().join(name(1, number) + suffix), bytes).expect("written");
        }
        let files = LogFiles::of_folders(&[folder.path().into()], None, None).expect("a log");
        assert_eq!(files.identity().system_identifier, Some(77));
        let mut cursor = SegmentCursor::default();
        for number in [3, 7, 5, 4, 6] {
            for offset in [0, 8192, (1 << 20) - 8192] {
                let found = fill_at(&files, &mut cursor, (number << 20) + offset);
                assert_eq!(found, Ok(number as u8));
            }
        }
        assert_eq!(
            fill_at(&files, &mut cursor, (9 << 20) + 8),
            Err("there is no segment 000000010000000000000009, which contains 0/00900008; the last \
                 segment is 000000010000000000000007"
                .to_owned())
        );
    }

    /// A page is built from records of several segments by turns.
    #[test]
    fn parts_of_a_compressed_segment_are_read_from_memory() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |number| folder.path().join(name(1, number) + ".gz");
        for number in [3, 4] {
            let bytes = packed(&segment(1, number, number as u8), ".gz");
            fs::write(path(number), bytes).expect("written");
        }
        let files = LogFiles::of_folders(&[folder.path().into()], None, None).expect("a log");
        let (mut cursor, mut buffer) = (SegmentCursor::default(), Vec::new());
        let mut part = |number: u64, page: u64| {
            let place = Lsn((number << 20) + page * 8192);
            let length = files.read_part(&mut cursor, place, 16 << 10, &mut buffer).expect("read");
            assert_eq!((length, buffer.len()), (Some(1 << 20), 16 << 10));
            buffer[100]
        };
        assert_eq!((part(3, 0), part(4, 0)), (3, 4));
        // If one of them were decompressed again, that would fail.
        [3, 4].iter().for_each(|number| fs::write(path(*number), "").expect("emptied"));
        for page in 1..20 {
            assert_eq!((part(3, page), part(4, page)), (3, 4));
        }
    }

    /// A file that unpacks to more than a segment, and one that is cut.
    #[test]
    fn a_compressed_file_contains_a_segment_and_no_more() {
        for suffix in [".gz", ".lz4", ".zst"] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join(name(1, 3) + suffix);
            let bomb = packed(&[&segment(1, 3, 3)[..], &[0]].concat(), suffix);
            fs::write(&path, bomb).expect("written");
            let folders = [folder.path().to_owned()];
            let files = LogFiles::of_folders(&folders, None, None).expect("a log");
            let mut cursor = SegmentCursor::default();
            let error = fill_at(&files, &mut cursor, 3 << 20).expect_err("too long");
            assert!(error.ends_with("it contains more than 1048576 bytes"), "{error}");
            let mut cut = packed(&segment(1, 3, 3), suffix);
            cut.truncate(cut.len() - 20);
            fs::write(&path, &cut).expect("written");
            let error = fill_at(&files, &mut cursor, 3 << 20).expect_err("cut");
            assert!(error.contains("can't be decompressed"), "{error}");
            if suffix == ".lz4" {
                // The whole segment is one block, which is lost.
                continue;
            }
            // While it is being received, a file may end anywhere.
            fs::rename(&path, folder.path().join(name(1, 3) + suffix + ".partial"))
                .expect("renamed");
            let files = LogFiles::of_folders(&folders, None, None).expect("a log");
            assert_eq!(fill_at(&files, &mut cursor, 3 << 20), Ok(3));
        }
    }

    #[test]
    fn a_segment_is_taken_from_the_newest_timeline_and_never_from_an_older_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let history = "1\t0/4000A0\tx\n";
        fs::write(folder.path().join("00000002.history"), history).expect("written");
        // Timeline 2 begins in segment 4. Segment 6 of it is missing.
        for (timeline, number) in [(1, 3), (1, 4), (1, 5), (1, 6), (2, 3), (2, 4), (2, 5), (2, 7)] {
            let bytes = segment(timeline, number, timeline as u8);
            fs::write(folder.path().join(name(timeline, number)), bytes).expect("written");
        }
        let files = LogFiles::of_folders(&[folder.path().into()], None, None).expect("a log");
        let mut cursor = SegmentCursor::default();
        let found = [3, 4, 5, 7].map(|number| fill_at(&files, &mut cursor, number << 20));
        assert_eq!(found, [1, 2, 2, 2].map(Ok));
        assert_eq!(
            files.missing(Lsn(6 << 20)).to_string(),
            "there is no segment 000000020000000000000006, which contains 0/00600000; there are \
             000000020000000000000005 before it and 000000020000000000000007 behind it"
        );
    }

    /// At its promotion, a server gives segments of the old timeline that it no longer needs names of the new one.
    #[test]
    fn a_file_that_was_kept_from_another_timeline_continues_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let history = "1\t0/3000A0\tx\n";
        fs::write(folder.path().join("00000002.history"), history).expect("written");
        for (number, timeline) in [(3, 1), (4, 1)] {
            let bytes = segment(timeline, number, 1);
            fs::write(folder.path().join(name(2, number)), bytes).expect("written");
        }
        let files = || LogFiles::of_folders(&[folder.path().into()], None, None).expect("a log");
        assert_eq!(files().continues_after(Lsn(3 << 20)), None);
        // The segment of the switch begins on the old one.
        assert!(files().continues_after(Lsn(2 << 20)).is_some());
        fs::write(folder.path().join(name(2, 4)), segment(2, 4, 1)).expect("written");
        assert!(files().continues_after(Lsn(3 << 20)).is_some());
    }

    #[test]
    fn complete_files_of_any_folder_come_before_partial_ones() {
        let (first, second) =
            (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("two"));
        let write = |folder: &Path, number, suffix: &str, fill| {
            let path = folder.join(name(1, number) + suffix);
            fs::write(path, packed(&segment(1, number, fill), suffix)).expect("written");
        };
        write(first.path(), 3, ".partial", 1);
        write(second.path(), 3, ".gz", 2);
        write(first.path(), 4, "", 1);
        write(second.path(), 4, "", 2);
        // A server asks its archive first, whose segments are whole; that in pg_wal may be an old one.
        write(first.path(), 5, ".zst", 1);
        write(second.path(), 5, "", 2);
        let folders = [first.path().to_owned(), second.path().to_owned()];
        let files = LogFiles::of_folders(&folders, None, None).expect("a log");
        let mut cursor = SegmentCursor::default();
        assert_eq!(fill_at(&files, &mut cursor, 3 << 20), Ok(2));
        assert_eq!(fill_at(&files, &mut cursor, 4 << 20), Ok(1));
        assert_eq!(fill_at(&files, &mut cursor, 5 << 20), Ok(1));
    }
}
