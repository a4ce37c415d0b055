//! The segment files that a command line names, as one log.
//!
//! A directory may contain segments of several timelines, history files, and files that the server
//! keeps for later use. We take, for each segment number, the file of the newest timeline in the
//! history ([`History`]). With a control file, we begin with the first segment of the run that
//! contains its checkpoint; what lies before a gap is left over from other times.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use trunkline_engine::datadir::read_control_file;
use trunkline_format::wal::{
    LONG_HEADER_SIZE, LogIdentity, LogPageHeader, SegmentName, SegmentSize,
};
use trunkline_format::{ControlFile, Lsn};

use super::timelines::History;
use crate::data_dir::resolve_link;
use crate::exit::{Failure, message};

/// How much is read at once.
const CHUNK: u64 = 1 << 20;

/// The files of one log.
#[derive(Debug)]
pub(super) struct Segments {
    log: LogIdentity,
    /// By segment number.
    files: BTreeMap<u64, SegmentFile>,
    /// The first segment to read.
    first: u64,
    timeline: u32,
    checkpoint: Option<Lsn>,
    /// The file that was read last.
    open: Option<(u64, File)>,
}

#[derive(Debug)]
struct SegmentFile {
    path: PathBuf,
    name: SegmentName,
}

impl Segments {
    /// The log of a data directory.
    pub(super) fn of_cluster(root: &Path, timeline: Option<u32>) -> Result<Segments, Failure> {
        let control = match read_control_file(&root.join("global/pg_control")) {
            Ok(control) => Some(control),
            Err(error) => {
                let text = "the log is read without the control file";
                message("warning", format_args!("{error}; {text}"));
                None
            }
        };
        Self::of_folder(&resolve_link(&root.join("pg_wal")), timeline, control.as_ref())
    }

    /// The given files, or all files of one folder.
    pub(super) fn of_paths(paths: &[PathBuf], timeline: Option<u32>) -> Result<Segments, Failure> {
        if let [folder] = paths
            && folder.is_dir()
        {
            return Self::of_folder(folder, timeline, None);
        }
        let mut named = Vec::new();
        for path in paths {
            let header = first_header(path)?;
            let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // A file with another name is where its own header says.
            let name = SegmentName::parse(file_name).unwrap_or_else(|| {
                let number = header.segment_size().segment_of(header.address());
                SegmentName::of(header.timeline(), number, header.segment_size())
            });
            named.push(SegmentFile { path: path.clone(), name });
        }
        let Some(first) = named.first() else { return Err(Failure::usage("no file given")) };
        let header = first_header(&first.path)?;
        let size = header.segment_size();
        let mut files = BTreeMap::new();
        for file in named {
            if timeline.is_some_and(|timeline| timeline != file.name.timeline()) {
                continue;
            }
            let number = file.name.number(size).ok_or_else(|| invalid_name(&file.path, size))?;
            let path = file.path.display().to_string();
            if let Some(other) = files.insert(number, file) {
                let other = other.path.display();
                let text = format!("\"{path}\" and \"{other}\" are the same segment");
                return Err(Failure::usage(text).with_hint("select one with --timeline"));
            }
        }
        let log = LogIdentity { segment_size: size, system_identifier: header.system() };
        Self::of(log, files, None, &paths_shown(paths))
    }

    /// The segments in a folder.
    fn of_folder(
        folder: &Path,
        timeline: Option<u32>,
        control: Option<&ControlFile>,
    ) -> Result<Segments, Failure> {
        let shown = folder.display();
        let cannot_read = |error| {
            Failure::cannot_run(format_args!("could not read directory \"{shown}\": {error}"))
        };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(cannot_read)? {
            let name = entry.map_err(cannot_read)?.file_name();
            names.extend(name.to_str().and_then(SegmentName::parse));
        }
        names.sort();
        let Some(last) = names.last() else {
            return Err(Failure::cannot_run(format_args!("\"{shown}\" contains no log segments")));
        };
        let of_control = control.map(|control| control.checkpoint.timeline);
        let timeline = timeline.or(of_control).unwrap_or_else(|| last.timeline());
        let log = match control {
            Some(control) => LogIdentity {
                segment_size: SegmentSize::new(control.wal_segment_size).ok_or_else(|| {
                    Failure::findings("the control file has an invalid segment size")
                })?,
                system_identifier: Some(control.system_identifier),
            },
            None => Self::identity_in(folder, &names)?,
        };
        let history = History::read(folder, timeline)?;
        let mut files = BTreeMap::new();
        for name in &names {
            let Some(number) = name.number(log.segment_size) else {
                return Err(invalid_name(&folder.join(name.to_string()), log.segment_size));
            };
            let start = log.segment_size.start_of(number);
            let best = history.candidates(start).find(|timeline| {
                names.contains(&SegmentName::of(*timeline, number, log.segment_size))
            });
            if best == Some(name.timeline()) {
                let path = folder.join(name.to_string());
                files.insert(number, SegmentFile { path, name: *name });
            }
        }
        let checkpoint = control
            .filter(|control| control.checkpoint.timeline == timeline)
            .map(|control| control.checkpoint.location);
        Self::of(log, files, checkpoint, &format!("timeline {timeline} in \"{shown}\""))
    }

    /// Sizes and identifier from the first file whose header is valid.
    fn identity_in(folder: &Path, names: &[SegmentName]) -> Result<LogIdentity, Failure> {
        let mut first_failure = None;
        for name in names {
            match first_header(&folder.join(name.to_string())) {
                Ok(header) => {
                    let segment_size = header.segment_size();
                    return Ok(LogIdentity { segment_size, system_identifier: header.system() });
                }
                Err(failure) => first_failure = first_failure.or(Some(failure)),
            }
        }
        Err(first_failure.unwrap_or_else(|| Failure::cannot_run("there are no log segments")))
    }

    fn of(
        log: LogIdentity,
        files: BTreeMap<u64, SegmentFile>,
        checkpoint: Option<Lsn>,
        shown: &str,
    ) -> Result<Segments, Failure> {
        let none = || Failure::cannot_run(format_args!("there are no log segments of {shown}"));
        let (mut first, file) = files.first_key_value().ok_or_else(none)?;
        let timeline = file.name.timeline();
        // Before a gap, only what the checkpoint needs is of interest.
        let needed = checkpoint.map(|place| log.segment_size.segment_of(place));
        let run = files.keys().rev().skip_while(|number| needed.is_some_and(|it| **number > it));
        let mut expected = needed;
        for number in run {
            if expected.is_none() || expected != Some(*number) {
                break;
            }
            first = number;
            expected = number.checked_sub(1);
        }
        let first = *first;
        let timeline = files.get(&first).map_or(timeline, |file| file.name.timeline());
        Ok(Segments { log, files, first, timeline, checkpoint, open: None })
    }

    /// Sizes and the system identifier.
    pub(super) fn identity(&self) -> LogIdentity {
        self.log
    }

    /// The checkpoint in the control file.
    pub(super) fn checkpoint(&self) -> Option<Lsn> {
        self.checkpoint
    }

    /// The position to start at: the given one, or the beginning of the first segment.
    pub(super) fn start(&self, from: Option<Lsn>) -> Result<Lsn, Failure> {
        let Some(from) = from else { return Ok(self.log.segment_size.start_of(self.first)) };
        if self.files.contains_key(&self.log.segment_size.segment_of(from)) {
            return Ok(from);
        }
        let text = format!("there is no segment {}, which contains {from}", self.name(from));
        Err(Failure::cannot_run(text).with_hint_if_any(self.range()))
    }

    /// A hint that lists which segments there are.
    fn range(&self) -> Option<String> {
        let (_, first) = self.files.first_key_value()?;
        let (_, last) = self.files.last_key_value()?;
        let (first, last) = (first.name, last.name);
        Some(format!("there are {} segments, from {first} to {last}", self.files.len()))
    }

    /// The name of the segment that contains a place.
    pub(super) fn name(&self, place: Lsn) -> SegmentName {
        let number = self.log.segment_size.segment_of(place);
        match self.files.get(&number) {
            Some(file) => file.name,
            // A missing one would be of the timeline of the last one before it.
            None => {
                let before = self.files.range(..number).next_back();
                let timeline = before.map_or(self.timeline, |(_, file)| file.name.timeline());
                SegmentName::of(timeline, number, self.log.segment_size)
            }
        }
    }

    /// Whether a place is the beginning of the first segment, which has no valid page before it.
    pub(super) fn is_first_page(&self, place: Lsn) -> bool {
        place == self.log.segment_size.start_of(self.first)
    }

    /// Reads the log from `place` on, into `buffer`, and returns the length of the file. `None` if
    /// there is no such file.
    pub(super) fn read(
        &mut self,
        place: Lsn,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<u64>, Failure> {
        let number = self.log.segment_size.segment_of(place);
        let Some(found) = self.files.get(&number) else { return Ok(None) };
        let failed = |what: &str, error: io::Error| {
            let path = found.path.display();
            Failure::cannot_run(format_args!("could not {what} \"{path}\": {error}"))
        };
        if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
            let file = File::open(&found.path).map_err(|error| failed("open file", error))?;
            self.open = Some((number, file));
        }
        let Some((_, file)) = &self.open else { return Ok(None) };
        let length = file.metadata().map_err(|error| failed("read", error))?.len();
        let size = u64::from(self.log.segment_size.bytes());
        let offset = u64::from(self.log.segment_size.offset(place));
        let count = length.min(size).saturating_sub(offset).min(CHUNK);
        buffer.resize(count as usize, 0);
        file.read_exact_at(buffer, offset).map_err(|error| failed("read", error))?;
        Ok(Some(length))
    }

    /// A later file that begins with a page of this log, which then can't end before it.
    pub(super) fn continues_after(&self, place: Lsn) -> Option<String> {
        let number = self.log.segment_size.segment_of(place);
        let mut later = self.files.range(number.saturating_add(1)..);
        let is_valid = |(number, file): &(&u64, &SegmentFile)| {
            let start = self.log.segment_size.start_of(**number);
            let mut header = [0; LONG_HEADER_SIZE];
            let read = File::open(&file.path).and_then(|file| file.read_exact_at(&mut header, 0));
            read.is_ok() && LogPageHeader::parse_at(&header, start, &self.log).is_ok()
        };
        let (_, file) = later.find(is_valid)?;
        Some(file.path.display().to_string())
    }
}

/// The header of a file's first page, which names the log that the file belongs to.
struct FirstHeader {
    header: LogPageHeader,
    segment_size: SegmentSize,
}

impl FirstHeader {
    fn address(&self) -> Lsn {
        self.header.address
    }

    fn timeline(&self) -> u32 {
        self.header.timeline
    }

    fn segment_size(&self) -> SegmentSize {
        self.segment_size
    }

    fn system(&self) -> Option<u64> {
        self.header.long.map(|long| long.system_identifier)
    }
}

fn first_header(path: &Path) -> Result<FirstHeader, Failure> {
    let shown = path.display();
    let cannot =
        |error: io::Error| Failure::cannot_run(format_args!("could not read \"{shown}\": {error}"));
    let mut bytes = [0; LONG_HEADER_SIZE];
    let file = File::open(path).map_err(cannot)?;
    if file.metadata().map_err(cannot)?.is_dir() {
        let text = format!("\"{shown}\" is a directory");
        return Err(Failure::usage(text).with_hint("name one directory, or segment files"));
    }
    let length = file.metadata().map_err(cannot)?.len();
    if length < LONG_HEADER_SIZE as u64 {
        let text = format!("\"{shown}\" has {length} bytes, too few for a log segment");
        return Err(Failure::findings(text));
    }
    file.read_exact_at(&mut bytes, 0).map_err(cannot)?;
    let invalid = |reason: &dyn std::fmt::Display| {
        Failure::findings(format_args!("\"{shown}\" is not a log segment: {reason}"))
    };
    let header = LogPageHeader::parse(&bytes).map_err(|error| invalid(&error))?;
    let size = header.long.and_then(|long| SegmentSize::new(long.segment_size));
    let segment_size = size.ok_or_else(|| invalid(&"the first page has no valid segment size"))?;
    Ok(FirstHeader { header, segment_size })
}

fn invalid_name(path: &Path, size: SegmentSize) -> Failure {
    let (path, bytes) = (path.display(), size.bytes());
    Failure::findings(format_args!("\"{path}\" is not a name of segments of {bytes} bytes"))
}

fn paths_shown(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    shown.join(", ")
}
