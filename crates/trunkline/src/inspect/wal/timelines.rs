//! The history of a timeline: from which older timelines it descends, and where it left them.
//!
//! ```text
//!   00000003.history     1   0/2000100   no recovery target specified
//!                        2   0/50000A0   before 2026-11-29 14:30:00+00
//! ```
//! A segment of timeline 3 may exist only on timeline 1 or 2. A file of a timeline that isn't in the
//! history belongs to a branch that was given up, whatever it contains.

use std::path::Path;

use trunkline_format::Lsn;

use super::lsn::parse_lsn;
use crate::exit::Failure;

/// A timeline and its ancestors.
#[derive(Debug)]
pub(super) struct History {
    /// Timelines and where each ended, the oldest first. The last one has no end.
    lines: Vec<(u32, Option<Lsn>)>,
}

impl History {
    /// Reads the history file of `timeline` in the folder of the segments. The first timeline has
    /// none, and a missing file means that nothing is known about ancestors.
    pub(super) fn read(folder: &Path, timeline: u32) -> Result<History, Failure> {
        let path = folder.join(format!("{timeline:08X}.history"));
        let mut lines = Vec::new();
        match std::fs::read(&path) {
            Ok(bytes) => lines = parse(&String::from_utf8_lossy(&bytes), &path)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let path = path.display();
                return Err(Failure::cannot_run(format_args!(
                    "could not read \"{path}\": {error}"
                )));
            }
        }
        lines.push((timeline, None));
        Ok(History { lines })
    }

    /// Timelines whose files may contain a segment that begins at `start`, the best first.
    pub(super) fn candidates(&self, start: Lsn) -> impl Iterator<Item = u32> {
        let mut began = None;
        let began_before = self.lines.iter().map(|(timeline, end)| {
            let known = (*timeline, began);
            began = *end;
            known
        });
        // A segment in which a timeline began may be only on the one before it, so an older
        // timeline is taken where the newer has no file.
        let candidates: Vec<(u32, Option<Lsn>)> = began_before.collect();
        candidates.into_iter().rev().map(|(timeline, _)| timeline).filter(move |timeline| {
            let end =
                self.lines.iter().find(|(known, _)| known == timeline).and_then(|(_, end)| *end);
            end.is_none_or(|end| start < end)
        })
    }
}

/// Lines of a history file; what follows the position is a comment.
fn parse(text: &str, path: &Path) -> Result<Vec<(u32, Option<Lsn>)>, Failure> {
    let mut lines: Vec<(u32, Option<Lsn>)> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with('#') {
            continue;
        }
        let mut words = line.split_whitespace();
        let timeline = words.next().and_then(|word| word.parse().ok());
        let end = words.next().and_then(|word| parse_lsn(word).ok());
        match (timeline, end) {
            (Some(timeline), Some(end))
                if lines.last().is_none_or(|(last, _)| *last < timeline) =>
            {
                lines.push((timeline, Some(end)));
            }
            _ => {
                let path = path.display();
                return Err(Failure::findings(format_args!("\"{path}\": invalid line {line:?}")));
            }
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_timelines_are_taken_only_before_they_were_left() {
        let text = "1\t0/2000100\tno recovery target specified\n\n# a comment\n2\t0/50000A0\tx\n";
        let mut lines = parse(text, Path::new("3.history")).expect("valid");
        lines.push((3, None));
        let history = History { lines };
        let at = |start| history.candidates(Lsn(start)).collect::<Vec<_>>();
        assert_eq!(at(0x0100_0000), [3, 2, 1]);
        assert_eq!(at(0x0200_0000), [3, 2, 1]);
        assert_eq!(at(0x0300_0000), [3, 2]);
        assert_eq!(at(0x0500_0000), [3, 2]);
        assert_eq!(at(0x0600_0000), [3]);
    }

    #[test]
    fn invalid_histories_are_refused() {
        for text in ["1", "x 0/1", "1 0:1", "2 0/1 a\n1 0/2 b", "1 0/1\n1 0/2"] {
            assert!(parse(text, Path::new("x")).is_err(), "{text}");
        }
    }
}
