//! **Timeline history**: the ancestors of a timeline, and the LSN at which each was left.
//!
//! ```text
//!   00000003.history     1   0/2000100   no recovery target specified
//!                        2   0/50000A0   before 2026-11-29 14:30:00+00
//! ```
//! A segment of timeline 3 may exist only on timeline 1 or 2. A file of a timeline that isn't in the
//! history belongs to an abandoned branch and is ignored. So are files of an older timeline past the
//! LSN at which it was left.

use std::path::{Path, PathBuf};

use trunkline_format::Lsn;
use trunkline_format::wal::SegmentSize;

use super::error::LogFilesError;
use super::segment_file::{Form, read_whole};

/// The most bytes of a history file that we read. A line has about 60 bytes.
const HISTORY_BYTES_MAX: usize = 1 << 20;

/// A timeline and its ancestors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// Timelines and where each ended, the oldest first. The last one has no end.
    lines: Vec<(u32, Option<Lsn>)>,
}

impl History {
    /// Reads the history file of `timeline` in one of the folders. The first timeline has none, and
    /// a missing file means that nothing is known about ancestors.
    ///
    /// # Errors
    /// [`LogFilesError::Io`], [`LogFilesError::History`].
    pub fn read(folders: &[PathBuf], timeline: u32) -> Result<History, LogFilesError> {
        let mut lines = Vec::new();
        if let Some((path, form)) = find(folders, timeline)? {
            let bytes = read_whole(&path, form, HISTORY_BYTES_MAX)?;
            lines = parse(&String::from_utf8_lossy(&bytes), &path)?;
            // A file that names a timeline above its own would lead back to it.
            if lines.last().is_some_and(|(last, _)| *last >= timeline) {
                let line = lines.last().map(|(last, _)| last.to_string()).unwrap_or_default();
                return Err(LogFilesError::History { path, line });
            }
        }
        lines.push((timeline, None));
        Ok(History { lines })
    }

    /// The newest timeline that begins at `from`: the last of those above it that have a history
    /// file, without a gap (`findNewestTimeLine`).
    ///
    /// # Errors
    /// [`LogFilesError::Io`].
    pub fn newest(folders: &[PathBuf], from: u32) -> Result<u32, LogFilesError> {
        let mut newest = from;
        while let Some(next) = newest.checked_add(1) {
            if find(folders, next)?.is_none() {
                break;
            }
            newest = next;
        }
        Ok(newest)
    }

    /// The timeline itself.
    pub fn timeline(&self) -> u32 {
        self.lines.last().map_or(0, |(timeline, _)| *timeline)
    }

    /// Whether the timeline has ancestors.
    pub fn has_ancestors(&self) -> bool {
        self.lines.len() > 1
    }

    /// Whether `timeline` is the timeline itself or an ancestor.
    pub fn contains(&self, timeline: u32) -> bool {
        self.lines.iter().any(|(known, _)| *known == timeline)
    }

    /// The timeline on which a position lies (`tliOfPointInHistory`).
    pub fn timeline_at(&self, place: Lsn) -> u32 {
        let found = self.lines.iter().find(|(_, end)| end.is_none_or(|end| place < end));
        found.map_or(0, |(timeline, _)| *timeline)
    }

    /// Where an ancestor was left. `None` for the timeline itself, and for one that isn't in the history.
    pub fn left_at(&self, timeline: u32) -> Option<Lsn> {
        self.lines.iter().find(|(known, _)| *known == timeline).and_then(|(_, end)| *end)
    }

    /// Timelines whose files may contain a segment, the best first.
    ///
    /// The segment in which a timeline began exists on the one before it too, so an older timeline
    /// is taken where the newer one has no file. A timeline has no segments before the one in which
    /// it began.
    pub fn candidates(&self, segment: u64, size: SegmentSize) -> impl Iterator<Item = u32> {
        let start = size.start_of(segment);
        let begins = std::iter::once(Lsn(0))
            .chain(self.lines.iter().map(|(_, end)| end.unwrap_or(Lsn(u64::MAX))));
        let lines = self.lines.iter().zip(begins);
        let mut found: Vec<u32> = lines
            .filter(|((_, end), begin)| {
                end.is_none_or(|end| start < end) && size.segment_of(*begin) <= segment
            })
            .map(|((timeline, _), _)| *timeline)
            .collect();
        found.reverse();
        found.into_iter()
    }
}

/// The history file of a timeline, which an archive may have compressed.
fn find(folders: &[PathBuf], timeline: u32) -> Result<Option<(PathBuf, Form)>, LogFilesError> {
    for folder in folders {
        for form in Form::COMPLETE {
            let path = folder.join(format!("{timeline:08X}.history{}", form.suffix()));
            match std::fs::metadata(&path) {
                Ok(_) => return Ok(Some((path, form))),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(LogFilesError::io("read", &path, error)),
            }
        }
    }
    Ok(None)
}

/// Lines of a history file; what follows the position is a comment.
fn parse(text: &str, path: &Path) -> Result<Vec<(u32, Option<Lsn>)>, LogFilesError> {
    let mut lines: Vec<(u32, Option<Lsn>)> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let timeline = words.next().and_then(|word| word.parse().ok());
        let end = words.next().and_then(Lsn::parse);
        match (timeline, end) {
            (Some(timeline), Some(end))
                if lines.last().is_none_or(|(last, _)| *last < timeline) =>
            {
                lines.push((timeline, Some(end)));
            }
            _ => {
                return Err(LogFilesError::History {
                    path: path.to_owned(),
                    line: line.to_owned(),
                });
            }
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> History {
        let text = "1\t0/2000100\tno recovery target specified\n\n# a comment\n2\t0/50000A0\tx\n";
        let mut lines = parse(text, Path::new("3.history")).expect("valid");
        lines.push((3, None));
        History { lines }
    }

    #[test]
    fn a_timeline_has_files_from_where_it_began_to_where_it_was_left() {
        let (history, size) = (history(), SegmentSize::new(16 << 20).expect("valid"));
        let at = |segment| history.candidates(segment, size).collect::<Vec<_>>();
        assert_eq!(at(1), [1]);
        assert_eq!(at(2), [2, 1]);
        assert_eq!(at(3), [2]);
        assert_eq!(at(5), [3, 2]);
        assert_eq!(at(6), [3]);
    }

    #[test]
    fn a_position_lies_on_one_timeline() {
        let history = history();
        for (place, timeline) in
            [(0, 1), (0x0200_00F8, 1), (0x0200_0100, 2), (0x0500_00A0, 3), (u64::MAX, 3)]
        {
            assert_eq!(history.timeline_at(Lsn(place)), timeline, "{place:X}");
        }
        assert!(history.contains(2) && !history.contains(4));
        let left = [1, 2, 3, 4].map(|timeline| history.left_at(timeline));
        assert_eq!(left, [Some(Lsn(0x0200_0100)), Some(Lsn(0x0500_00A0)), None, None]);
    }

    #[test]
    fn invalid_histories_are_refused() {
        for text in ["1", "x 0/1", "1 0:1", "2 0/1 a\n1 0/2 b", "1 0/1\n1 0/2"] {
            assert!(parse(text, Path::new("x")).is_err(), "{text}");
        }
    }

    #[test]
    fn the_newest_timeline_has_no_gap_below_it() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("00000002.history", "1 0/1"), ("00000003.history.gz", "")] {
            std::fs::write(folder.path().join(name), text).expect("written");
        }
        std::fs::write(folder.path().join("00000005.history"), "5 0/1").expect("written");
        let folders = [folder.path().to_owned()];
        assert_eq!(History::newest(&folders, 1).expect("read"), 3);
        assert_eq!(History::newest(&folders, 4).expect("read"), 5);
        let error = History::read(&folders, 5).expect_err("its own ancestor").to_string();
        assert!(error.ends_with("invalid line \"5\""), "{error}");
        assert_eq!(History::read(&folders, 1).expect("none").timeline(), 1);
    }
}
