//! Pages of the commit log and of multixacts, with the log applied.
//!
//! These pages have no LSN, so a record is applied even if the page already contains the change. The
//! first record that changes a page reads it from its file. A missing page is read as zeros, as a
//! server does during recovery: its file may have been removed later. But a page that was written before the
//! checkpoint at which replay starts, and not removed, must exist. If it doesn't, all its transactions would look as if
//! they had not committed, so it is left to the reader of statuses to report that it is missing.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use trunkline_aio::facade::Arc;
use trunkline_aio::facade::hash::Map;
use trunkline_format::control::Checkpoint;
use trunkline_format::transam::multixact::{MultixactLayout, member_place, next_multi, set_member};
use trunkline_format::transam::{Slru, SlruPosition, XidStatus, commit_log};
use trunkline_format::wal::Multixact;
use trunkline_format::{BLOCK_SIZE, PageBytes, PgVersion};

use super::error::ReplayError;
use crate::small_file;

/// The pages that the log has changed.
#[derive(Debug)]
pub(super) struct StatusPages {
    root: PathBuf,
    layout: MultixactLayout,
    /// The checkpoint at which replay starts: pages with entries of its time have been written.
    start: Checkpoint,
    pages: Map<(Slru, u64), Arc<PageBytes>>,
    /// Pages that must be in their files, but are not. What the log says about them is not enough.
    missing: BTreeSet<(Slru, u64)>,
    /// The page of offsets that a multixact on the page before has begun. The record that fills it
    /// with zeros comes later, and must not wipe the entry.
    begun: Option<u64>,
    /// The newest page of offsets that was filled with zeros or begun. Multixacts are not logged in the order
    /// of their numbers, so the page after that of a multixact may already be in use.
    initialised: Option<u64>,
}

impl StatusPages {
    pub(super) fn new(root: &Path, version: PgVersion, start: Checkpoint) -> Self {
        Self {
            root: root.to_owned(),
            layout: MultixactLayout::of(version),
            start,
            pages: Map::default(),
            missing: BTreeSet::new(),
            begun: None,
            initialised: None,
        }
    }

    /// The memory that the pages take, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.pages.len() as u64 * (BLOCK_SIZE as u64 + 64)
    }

    /// A page, if the log has changed it, and the rest of it is known.
    pub(super) fn get(&self, file: Slru, page: u64) -> Option<Arc<PageBytes>> {
        let page = self.pages.get(&(file, page)).filter(|_| !self.missing.contains(&(file, page)));
        page.cloned()
    }

    /// The path of the first page that must be in its file, but is not.
    pub(super) fn first_missing(&self) -> Option<PathBuf> {
        self.missing.first().map(|&(file, page)| self.place(file, page).0)
    }

    /// The pages that the log has changed.
    pub(super) fn all(&self) -> impl Iterator<Item = ((Slru, u64), &Arc<PageBytes>)> {
        self.pages.iter().map(|(key, page)| (*key, page))
    }

    /// The path of a page's file, and its offset there.
    pub(super) fn place(&self, file: Slru, page: u64) -> (PathBuf, u64) {
        let place = SlruPosition { page, byte: 0 };
        (self.root.join(file.path(self.layout, place.segment())), place.offset())
    }

    /// A page is filled with zeros.
    pub(super) fn zero(&mut self, file: Slru, page: u64) {
        if file == Slru::Offsets {
            self.initialised = Some(page);
            if self.begun.take() == Some(page) {
                return;
            }
        }
        self.pages.insert((file, page), Arc::new([0; BLOCK_SIZE]));
        self.missing.remove(&(file, page));
    }

    /// Sets the status of a transaction.
    pub(super) fn set_status(&mut self, xid: u32, status: XidStatus) -> Result<(), ReplayError> {
        let place = commit_log::place(xid);
        let page = self.page(Slru::CommitLog, place.page)?;
        if let Some(byte) = page.get_mut(place.byte) {
            *byte = status.set_in_byte(*byte, xid);
        }
        Ok(())
    }

    /// The status of a transaction.
    pub(super) fn status(&self, xid: u32) -> Result<XidStatus, ReplayError> {
        let place = commit_log::place(xid);
        let byte = match self.get(Slru::CommitLog, place.page) {
            Some(page) => page.get(place.byte).copied(),
            None => {
                let (path, offset) = self.place(Slru::CommitLog, place.page);
                read(&path, offset)?.and_then(|page| page.get(place.byte).copied())
            }
        };
        Ok(XidStatus::in_byte(byte.unwrap_or_default(), xid))
    }

    /// Creates a multixact.
    pub(super) fn create(&mut self, multixact: &Multixact) -> Result<(), ReplayError> {
        let Multixact { multi, first_member, members } = multixact;
        let place = self.layout.offset_place(*multi);
        self.set_offset(place, *first_member)?;
        // The next one begins where this one ends. Servers write that since 2025; for logs of older
        // ones it is what their next record says.
        let next = self.layout.offset_place(next_multi(*multi));
        if next.page != place.page && self.is_missing(place.page, next.page)? {
            (self.begun, self.initialised) = (Some(next.page), Some(next.page));
            self.pages.insert((Slru::Offsets, next.page), Arc::new([0; BLOCK_SIZE]));
        }
        // Member 0 is never used, since 0 says that there is no multixact.
        let end = self.layout.member(*first_member, members.len() as u64).max(1);
        self.set_offset(next, end)?;
        for ((xid, status), index) in members.iter().zip(0..) {
            let number = self.layout.member(*first_member, index);
            let place = member_place(number);
            let page = self.page(Slru::Members, place.page)?;
            set_member(&mut page[..], place.byte, number, (*xid, *status as u8));
        }
        Ok(())
    }

    /// Whether nothing has initialised the page of offsets after `page` yet. Mirrors `RecordNewMultiXact` in
    /// PostgreSQL's `access/transam/multixact.c`.
    fn is_missing(&self, page: u64, next: u64) -> Result<bool, ReplayError> {
        if let Some(initialised) = self.initialised {
            return Ok(initialised == page);
        }
        let is_known = self.pages.contains_key(&(Slru::Offsets, next));
        let (path, offset) = self.place(Slru::Offsets, next);
        Ok(!is_known && read(&path, offset)?.is_none())
    }

    /// Whether a page has entries that are older than the checkpoint at which replay starts, and were not removed
    /// before it. Of the members, only the newest of them is known.
    fn must_exist(&self, file: Slru, page: u64) -> bool {
        let start = &self.start;
        let is_in = |first: u64, last: u64, pages: u64| {
            // Numbers wrap around.
            let from_first = |page: u64| (page + pages - first) % pages;
            page < pages && from_first(page) <= from_first(last)
        };
        match file {
            Slru::CommitLog => {
                let (oldest, next) = (start.oldest_xid, start.next_xid as u32);
                let place = |xid| commit_log::place(xid).page;
                let last = place(next.wrapping_sub(1));
                oldest != next && is_in(place(oldest), last, place(u32::MAX) + 1)
            }
            Slru::Offsets => {
                let (oldest, next) = (start.oldest_multi, start.next_multi);
                let place = |multi| self.layout.offset_place(multi).page;
                let last = place(next.wrapping_sub(1));
                oldest != next && is_in(place(oldest), last, place(u32::MAX) + 1)
            }
            Slru::Members => {
                let newest = start.next_multi_offset.checked_sub(1);
                start.oldest_multi != start.next_multi
                    && newest.is_some_and(|newest| member_place(newest).page == page)
            }
        }
    }

    fn set_offset(&mut self, place: SlruPosition, offset: u64) -> Result<(), ReplayError> {
        let layout = self.layout;
        let page = self.page(Slru::Offsets, place.page)?;
        layout.set_offset(&mut page[..], place.byte, offset);
        Ok(())
    }

    /// A page that is to be changed, read from its file the first time.
    fn page(&mut self, file: Slru, page: u64) -> Result<&mut PageBytes, ReplayError> {
        if !self.pages.contains_key(&(file, page)) {
            let (path, offset) = self.place(file, page);
            let bytes = read(&path, offset)?;
            if bytes.is_none() && self.must_exist(file, page) {
                self.missing.insert((file, page));
            }
            self.pages.insert((file, page), Arc::new(bytes.unwrap_or([0; BLOCK_SIZE])));
        }
        let found = self.pages.entry((file, page)).or_insert_with(|| Arc::new([0; BLOCK_SIZE]));
        // No other thread has the page yet: they are handed out after the scan.
        Ok(Arc::make_mut(found))
    }
}

/// Reads a page. `None` if it doesn't exist as a whole.
fn read(path: &Path, offset: u64) -> Result<Option<PageBytes>, ReplayError> {
    let mut page = [0; BLOCK_SIZE];
    let Some(file) = small_file::open(path)? else { return Ok(None) };
    match file.read_exact_at(&mut page, offset) {
        Ok(()) => Ok(Some(page)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(ReplayError::io(path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_format::transam::multixact::member_at;

    /// A checkpoint with these transactions.
    fn start(oldest_xid: u32, next_xid: u64) -> Checkpoint {
        let zeros = Checkpoint::of_record(&[0; 88], PgVersion::V18).expect("long enough");
        Checkpoint { oldest_xid, next_xid, ..zeros }
    }

    fn offset(pages: &StatusPages, multi: u32) -> u64 {
        let place = pages.layout.offset_place(multi);
        let page = pages.get(Slru::Offsets, place.page).expect("changed");
        pages.layout.offset_at(&page[..], place.byte).expect("inside")
    }

    #[test]
    fn statuses_are_set_in_the_pages_of_the_files() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("pg_xact")).expect("made");
        // Everything was committed in the file; the page behind it doesn't exist.
        std::fs::write(root.path().join("pg_xact/0000"), [0x55; BLOCK_SIZE]).expect("written");
        let mut pages = StatusPages::new(root.path(), PgVersion::V18, start(0, 0));
        pages.set_status(1001, XidStatus::Aborted).expect("set");
        pages.set_status(40_000, XidStatus::Committed).expect("set");
        let status = |pages: &StatusPages, xid| pages.status(xid).expect("read");
        let found = [1000, 1001, 1002, 40_000, 40_001, 70_000].map(|xid| status(&pages, xid));
        use XidStatus::*;
        assert_eq!(found, [Committed, Aborted, Committed, Committed, InProgress, InProgress]);
        // Without changes, they are those of the file.
        let pages = StatusPages::new(root.path(), PgVersion::V18, start(0, 0));
        assert_eq!([1001, 40_000].map(|xid| status(&pages, xid)), [Committed, InProgress]);
    }

    /// 32,768 transactions are on a page.
    #[test]
    fn a_page_that_was_lost_is_not_made_of_zeros() {
        let root = tempfile::tempdir().expect("a folder");
        let cases = [
            (3, 100_000, [true, true, true, true, false], 131_071),
            (40_000, 98_304, [false, true, true, false, false], 131_071),
            // They have wrapped around.
            (u32::MAX - 5, (1 << 32) + 40_000, [true, true, false, false, false], 2),
        ];
        for (oldest, next, expected, absent) in cases {
            let mut pages = StatusPages::new(root.path(), PgVersion::V18, start(oldest, next));
            for (page, is_missing) in (0..).zip(expected) {
                pages.set_status(page * 32_768 + 7, XidStatus::Committed).expect("set");
                let found = pages.get(Slru::CommitLog, page.into());
                assert_eq!(found.is_none(), is_missing, "{oldest} {next}: {page}");
            }
            pages.set_status(absent * 32_768, XidStatus::Committed).expect("set");
            assert!(pages.get(Slru::CommitLog, absent.into()).is_some());
            assert!(pages.first_missing().expect("one").ends_with("pg_xact/0000"));
        }
        let mut pages = StatusPages::new(root.path(), PgVersion::V18, start(3, 100));
        pages.set_status(7, XidStatus::Committed).expect("set");
        pages.zero(Slru::CommitLog, 0);
        assert!(pages.get(Slru::CommitLog, 0).is_some() && pages.first_missing().is_none());
    }

    #[test]
    fn multixacts_that_were_lost_are_not_made_of_zeros() {
        for (version, per_page) in [(PgVersion::V15, 2048), (PgVersion::V19, 1024)] {
            let root = tempfile::tempdir().expect("a folder");
            let (oldest_multi, next_multi, next_multi_offset) = (per_page, per_page + 9, 1700);
            let start = Checkpoint { oldest_multi, next_multi, next_multi_offset, ..start(0, 0) };
            let mut pages = StatusPages::new(root.path(), version, start);
            let members = vec![(700, 1), (701, 5)];
            let multixact = Multixact { multi: next_multi, first_member: 1700, members };
            pages.create(&multixact).expect("created");
            assert!(pages.get(Slru::Offsets, 1).is_none());
            assert!(pages.get(Slru::Members, 1).is_none());
            let later = Multixact { multi: 3 * per_page, first_member: 5000, ..multixact };
            pages.create(&later).expect("created");
            assert!(pages.get(Slru::Offsets, 3).is_some());
            assert!(pages.get(Slru::Members, 3).is_some());
        }
    }

    /// Numbers are given out before the records are written.
    #[test]
    fn a_multixact_that_is_logged_late_does_not_wipe_the_page_after_it() {
        let create = |multi, first_member, xid| Multixact {
            multi,
            first_member,
            members: vec![(xid, 1), (xid + 1, 1)],
        };
        for (version, per_page) in [(PgVersion::V15, 2048), (PgVersion::V19, 1024)] {
            let last = per_page - 1;
            // With the record that initialises the page, without it but with a file, and with neither.
            for (is_logged, has_file) in [(true, false), (false, true), (false, false)] {
                let root = tempfile::tempdir().expect("a folder");
                let mut pages = StatusPages::new(root.path(), version, start(0, 0));
                if has_file {
                    let (path, _) = pages.place(Slru::Offsets, 1);
                    std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
                    std::fs::write(path, [0; 2 * BLOCK_SIZE]).expect("written");
                }
                if is_logged {
                    pages.zero(Slru::Offsets, 1);
                }
                for multixact in
                    [create(last + 1, 102, 710), create(last + 2, 104, 720), create(last, 100, 700)]
                {
                    pages.create(&multixact).expect("created");
                }
                let found = [last, last + 1, last + 2, last + 3].map(|it| offset(&pages, it));
                assert_eq!(found, [100, 102, 104, 106], "{is_logged} {has_file}");
            }
        }
    }

    #[test]
    fn a_pipe_in_place_of_a_file_is_refused() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("pg_xact")).expect("made");
        let path = root.path().join("pg_xact/0000");
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("runs");
        assert!(made.success());
        let mut pages = StatusPages::new(root.path(), PgVersion::V18, start(0, 0));
        let error = pages.set_status(1001, XidStatus::Aborted).expect_err("a pipe").to_string();
        assert!(error.ends_with("pg_xact/0000\": not a regular file"), "{error}");
    }

    #[test]
    fn multixacts_have_members_and_the_next_one_begins_behind_them() {
        for (version, per_page) in [(PgVersion::V15, 2048), (PgVersion::V19, 1024)] {
            let root = tempfile::tempdir().expect("a folder");
            let mut pages = StatusPages::new(root.path(), version, start(0, 0));
            let members = vec![(700, 1), (701, 5)];
            let multi = per_page - 1;
            let multixact = Multixact { multi, first_member: 1636, members };
            pages.create(&multixact).expect("created");
            assert_eq!((offset(&pages, multi), offset(&pages, multi + 1)), (1636, 1638));
            // The next page has begun, so the record that fills it with zeros comes too late.
            pages.zero(Slru::Offsets, 1);
            assert_eq!(offset(&pages, multi + 1), 1638);
            pages.zero(Slru::Offsets, 1);
            assert_eq!(offset(&pages, multi + 1), 0);
            // It was the last page that was initialised, so a multixact on the page before begins nothing.
            pages.create(&multixact).expect("created");
            pages.zero(Slru::Offsets, 1);
            assert_eq!(offset(&pages, multi + 1), 0);
            for (number, xid) in [(1636, 700), (1637, 701)] {
                let place = member_place(number);
                let page = pages.get(Slru::Members, place.page).expect("changed");
                let member = member_at(&page[..], place.byte, number).expect("inside");
                assert_eq!(member.xid, xid);
            }
        }
    }
}
