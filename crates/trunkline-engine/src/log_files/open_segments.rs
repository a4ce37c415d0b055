//! Segments that were read recently: open files, and what compressed files contain.
//!
//! Records of one page are anywhere in the log, so building pages needs the same segments
//! again and again. The one that was used least recently goes first. Files are limited by their number, and
//! unpacked segments by their bytes, since each takes as much memory as a segment has.

use std::collections::VecDeque;

use trunkline_aio::facade::Arc;

use super::segment_file::OpenSegment;

/// The most files that stay open. A process may have at least 1,024.
const FILES_MAX: usize = 128;
/// The most memory for unpacked segments, in bytes: eight of the usual size.
const UNPACKED_MAX: u64 = 128 << 20;

/// Open segments with their numbers; the last one is the newest.
#[derive(Debug, Default)]
pub(super) struct OpenSegments(VecDeque<(u64, Arc<OpenSegment>)>);

impl OpenSegments {
    /// A segment, if it is open. It is then the newest one.
    pub(super) fn find(&mut self, number: u64) -> Option<Arc<OpenSegment>> {
        let at = self.0.iter().rposition(|(other, _)| *other == number)?;
        let found = self.0.remove(at)?;
        let open = Arc::clone(&found.1);
        self.0.push_back(found);
        Some(open)
    }

    /// Keeps a segment, and closes those for which there is no room any more. A single one is kept
    /// whatever its size is. If another thread has opened it too, theirs is returned.
    pub(super) fn keep(&mut self, number: u64, opened: Arc<OpenSegment>) -> Arc<OpenSegment> {
        if let Some(theirs) = self.find(number) {
            return theirs;
        }
        self.0.push_back((number, Arc::clone(&opened)));
        let (mut files, mut bytes) = (0, 0);
        let mut has_room = |open: &OpenSegment| match open {
            OpenSegment::Plain(..) => {
                files += 1;
                files <= FILES_MAX
            }
            OpenSegment::Unpacked(_) => {
                bytes += open.length();
                bytes <= UNPACKED_MAX || bytes == open.length()
            }
        };
        // Newest first.
        let mut kept: VecDeque<_> =
            self.0.drain(..).rev().filter(|(_, open)| has_room(open)).collect();
        kept.make_contiguous().reverse();
        self.0 = kept;
        opened
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(bytes: u64) -> Arc<OpenSegment> {
        Arc::new(OpenSegment::Unpacked(vec![0; bytes as usize]))
    }

    fn plain() -> Arc<OpenSegment> {
        let file = tempfile::tempfile().expect("a file");
        Arc::new(OpenSegment::Plain(file, 0))
    }

    fn numbers(open: &OpenSegments) -> Vec<u64> {
        open.0.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn the_segment_that_was_not_used_for_longest_is_closed() {
        let mut open = OpenSegments::default();
        (1..=8).for_each(|number| _ = open.keep(number, unpacked(16 << 20)));
        open.keep(100, plain());
        assert_eq!(open.find(1).expect("kept").length(), 16 << 20);
        open.keep(9, unpacked(16 << 20));
        // 2 is gone; a file takes no room of the others.
        assert_eq!(numbers(&open), [3, 4, 5, 6, 7, 8, 100, 1, 9]);
        let last = 110 + FILES_MAX as u64;
        (101..=last).for_each(|number| _ = open.keep(number, plain()));
        assert_eq!((open.find(110).is_some(), open.find(111).is_some()), (false, true));
        assert!(open.find(3).is_some());
    }

    #[test]
    fn a_large_segment_is_kept_alone_and_none_is_kept_twice() {
        let mut open = OpenSegments::default();
        open.keep(1, unpacked(1 << 20));
        let first = open.keep(2, unpacked(UNPACKED_MAX + 1));
        assert_eq!(numbers(&open), [2]);
        let second = open.keep(2, unpacked(1));
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(numbers(&open), [2]);
    }
}
