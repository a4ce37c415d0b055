//! Segments that were read recently: open files, and what compressed files contain.
//!
//! Records of one page are anywhere in the log, so building pages needs the same segments
//! again and again. The one that was used least recently goes first. Files are limited by their number, and
//! unpacked segments by their bytes, since each takes as much memory as a segment has.

use std::collections::BTreeMap;

use rustix::process::{Resource, getrlimit};
use trunkline_aio::facade::Arc;

use super::segment_file::OpenSegment;

/// The minimum and the maximum of the number of open segments, whatever the process may open: 2 and 64 GB of log.
const FILES_RANGE: (u64, u64) = (128, 4096);
/// The most memory for unpacked segments, in bytes: eight of the usual size.
const UNPACKED_MAX: u64 = 128 << 20;

/// Open segments, by number.
#[derive(Debug)]
pub(super) struct OpenSegments {
    open: BTreeMap<u64, Kept>,
    /// Grows with each use.
    uses: u64,
    files_max: usize,
}

#[derive(Debug)]
struct Kept {
    segment: Arc<OpenSegment>,
    /// The number of its last use.
    used: u64,
}

impl Default for OpenSegments {
    /// At most a quarter of the files that the process may open. Some file systems forget what they have cached of a file
    /// when it is opened again, so that a segment that is closed too early is read from storage once more.
    fn default() -> Self {
        let (least, most) = FILES_RANGE;
        let allowed = getrlimit(Resource::Nofile).current.map_or(most, |files| files / 4);
        Self::new(allowed.clamp(least, most) as usize)
    }
}

impl OpenSegments {
    fn new(files_max: usize) -> Self {
        Self { open: BTreeMap::new(), uses: 0, files_max }
    }

    /// A segment, if it is open. It is then the newest one.
    pub(super) fn find(&mut self, number: u64) -> Option<Arc<OpenSegment>> {
        let kept = self.open.get_mut(&number)?;
        self.uses += 1;
        kept.used = self.uses;
        Some(Arc::clone(&kept.segment))
    }

    /// Keeps a segment, and closes those for which there is no room any more. A single one is kept
    /// whatever its size is. If another thread has opened it too, theirs is returned.
    pub(super) fn keep(&mut self, number: u64, opened: Arc<OpenSegment>) -> Arc<OpenSegment> {
        if let Some(theirs) = self.find(number) {
            return theirs;
        }
        self.uses += 1;
        let kept = Kept { segment: Arc::clone(&opened), used: self.uses };
        let is_plain = kept.is_plain();
        self.open.insert(number, kept);
        while !self.has_room(is_plain) {
            let of_its_kind = self.open.iter().filter(|(_, kept)| kept.is_plain() == is_plain);
            let oldest = of_its_kind.min_by_key(|(_, kept)| kept.used).map(|(number, _)| *number);
            if oldest.and_then(|oldest| self.open.remove(&oldest)).is_none() {
                break;
            }
        }
        opened
    }

    /// Whether as many files, or as many bytes of unpacked segments, may be kept as there are.
    fn has_room(&self, plain: bool) -> bool {
        let of_kind = self.open.values().filter(|kept| kept.is_plain() == plain);
        let (mut files, mut bytes) = (0, 0);
        of_kind.for_each(|kept| (files, bytes) = (files + 1, bytes + kept.segment.length()));
        if plain { files <= self.files_max } else { files == 1 || bytes <= UNPACKED_MAX }
    }
}

impl Kept {
    fn is_plain(&self) -> bool {
        matches!(*self.segment, OpenSegment::Plain(..))
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

    /// The oldest first.
    fn numbers(open: &OpenSegments) -> Vec<u64> {
        let mut numbers: Vec<_> =
            open.open.iter().map(|(number, kept)| (kept.used, *number)).collect();
        numbers.sort_unstable();
        numbers.into_iter().map(|(_, number)| number).collect()
    }

    #[test]
    fn the_segment_that_was_not_used_for_longest_is_closed() {
        let mut open = OpenSegments::new(3);
        (1..=8).for_each(|number| _ = open.keep(number, unpacked(16 << 20)));
        open.keep(100, plain());
        assert_eq!(open.find(1).expect("kept").length(), 16 << 20);
        open.keep(9, unpacked(16 << 20));
        // 2 is gone; a file takes no room of the others.
        assert_eq!(numbers(&open), [3, 4, 5, 6, 7, 8, 100, 1, 9]);
        (101..=104).for_each(|number| _ = open.keep(number, plain()));
        assert_eq!((open.find(101).is_some(), open.find(102).is_some()), (false, true));
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
