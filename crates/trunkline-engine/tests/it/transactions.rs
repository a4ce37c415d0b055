//! Tests with hand-made commit logs and multixacts (valid, missing and damaged), and with rows
//! whose visibility depends on them.

use std::fs;

use trunkline_aio::MethodKind;
use trunkline_aio::facade::Arc;
use trunkline_engine::heap::{HeapScan, RowFilter, ScanOptions};
use trunkline_engine::pool::{Backend, BackendType, Pool};
use trunkline_engine::storage::{OpenFiles, Relation, RelationLocator, Storage};
use trunkline_engine::transactions::{StatusPages, Transactions};
use trunkline_format::transam::multixact::{MemberStatus, member_place};
use trunkline_format::transam::{RowState, XidStatus, commit_log};
use trunkline_format::{Fork, Oid};

use crate::crafted::{Crafted, page_of};
use crate::fake::Fake;
use crate::jobs::{METHODS, instance};

/// Offsets in the control file of PostgreSQL 18.
const NEXT_XID: usize = 64;
const NEXT_MULTI: usize = 76;
const NEXT_MEMBER: usize = 80;
const OLDEST_XID: usize = 84;
const OLDEST_MULTI: usize = 92;

/// The error for a transaction so old that VACUUM has removed its file.
const GONE: &str = "could not access status of transaction 3000000000: could not open file \
                    \"DIR/pg_xact/0B2D\": No such file or directory; the oldest transaction is 700";

struct Cluster {
    fake: Fake,
    backend: Backend,
    storage: Storage,
    transactions: Arc<Transactions>,
}

impl Cluster {
    /// Transactions 700 to 799 have committed, transactions 800 to 899 have aborted, and
    /// transactions 900 to 1999 are in progress. The next one is 2000. Multixacts 10 to 19 exist.
    fn new(method: MethodKind) -> Self {
        Self::with(method, |_| {})
    }

    fn with(method: MethodKind, change: impl Fn(&Fake)) -> Self {
        let fake = Fake::new();
        for name in ["pg_xact", "pg_multixact/offsets", "pg_multixact/members"] {
            fs::create_dir_all(fake.at(name)).expect("made");
        }
        let mut log = vec![0; 8192];
        for xid in 700..900 {
            log[xid / 4] |= if xid < 800 { 1 } else { 2 } << (xid % 4 * 2);
        }
        fake.write("pg_xact/0000", &log);
        for (at, value) in
            [(NEXT_MULTI, 20), (NEXT_MEMBER, 3300), (OLDEST_XID, 700), (OLDEST_MULTI, 10)]
        {
            fake.control(at, value);
        }
        fake.control(NEXT_XID, 2000);
        change(&fake);
        let aio = instance(method);
        let dir = fake.open().expect("opened");
        let files = OpenFiles::kernel(&aio, 8);
        let storage = Storage::of_datadir(&dir, &files, false);
        let transactions = Arc::new(Transactions::of_datadir(&dir, &storage));
        let pool = Pool::new(&aio, 64).expect("a pool");
        let backend = pool.backend(BackendType::Client).expect("a session");
        Self { fake, backend, storage, transactions }
    }

    fn fate(&mut self, xid: u32) -> Result<XidStatus, String> {
        let pages = &mut StatusPages::default();
        let found = self.transactions.fate(self.backend.session(), pages, xid);
        found.map_err(|error| self.text(&error))
    }

    fn updater(&mut self, multi: u32) -> Result<Option<u32>, String> {
        let found = self.transactions.updater(self.backend.session(), multi);
        found.map_err(|error| self.text(&error))
    }

    fn text(&self, error: &dyn std::error::Error) -> String {
        error.to_string().replace(&*self.fake.path.to_string_lossy(), "DIR")
    }

    fn table(&self, pages: &[u8]) -> Relation {
        self.fake.write("base/5/16384", pages);
        let locator =
            RelationLocator { tablespace: Oid(1663), database: Oid(5), relfilenode: 16_384 };
        self.storage.relation(locator, Fork::Main)
    }

    /// Returns the values and states of all rows in a table, or their errors.
    fn rows(
        &mut self,
        relation: &Relation,
        rows: RowFilter,
    ) -> Vec<Result<(i32, RowState), String>> {
        let options = ScanOptions { rows, ..ScanOptions::default() };
        let scan = HeapScan::of_table(&self.backend, relation, &self.transactions, options);
        let (mut scan, mut found) = (scan.expect("a table"), Vec::new());
        while let Some(page) = scan.next_page(&mut self.backend).expect("reads") {
            found.extend(page.rows().map(|row| match row {
                Ok(row) => {
                    let value = row.tuple.data().first_chunk().copied().expect("an int4");
                    Ok((i32::from_le_bytes(value), row.state))
                }
                Err(error) => Err(self.text(&error)),
            }));
        }
        found
    }
}

/// Writes multixacts, numbered from 10, with their members. The files have the layout used up to
/// version 18.
fn multixacts(fake: &Fake, multis: &[&[(u32, u8)]], first: u32) {
    let (mut offsets, mut members) = (vec![0; 8192], vec![0; 8192 * 4]);
    let mut next = first;
    for (multi, these) in (10_usize..).zip(multis) {
        offsets[multi * 4..multi * 4 + 4].copy_from_slice(&next.to_le_bytes());
        for (xid, status) in *these {
            let place = member_place(u64::from(next));
            let (group, slot) = (place.offset() as usize, (next % 4) as usize);
            members[group + slot] = *status;
            let at = group + 4 + slot * 4;
            members[at..at + 4].copy_from_slice(&xid.to_le_bytes());
            next += 1;
        }
    }
    let end = (10 + multis.len()) * 4;
    offsets[end..end + 4].copy_from_slice(&next.to_le_bytes());
    fake.write("pg_multixact/offsets/0000", &offsets);
    fake.write("pg_multixact/members/0000", &members);
}

#[test]
fn fates() {
    for method in METHODS {
        let mut cluster = Cluster::new(method);
        for (xid, fate) in [
            (700, XidStatus::Committed),
            (799, XidStatus::Committed),
            (800, XidStatus::Aborted),
            (900, XidStatus::InProgress),
            // Transactions that haven't been assigned yet: one beyond the end of the file, and one
            // whose file doesn't exist.
            (40_000, XidStatus::InProgress),
            (5_000_000, XidStatus::InProgress),
        ] {
            assert_eq!(cluster.fate(xid), Ok(fate), "{method} {xid}");
            assert_eq!(cluster.fate(xid), Ok(fate), "{method} {xid}, known by now");
        }
        // Modulo 2^32, this id is in the past. It is so old that its commit log file has been
        // removed.
        let gone = cluster.fate(3_000_000_000);
        assert_eq!(gone, Err(GONE.into()));
        // Look up many more pages than the cache can hold.
        for xid in (1_048_576..=2_147_000_000).step_by(1_048_576) {
            assert_eq!(cluster.fate(xid), Ok(XidStatus::InProgress));
        }
        assert_eq!(cluster.fate(750), Ok(XidStatus::Committed));
    }
}

/// Lookups after wraparound, when the commit log consists of its last file and its first file.
#[test]
fn logs_that_wrap_around() {
    let mut cluster = Cluster::with(MethodKind::Worker, |fake| {
        fake.control(OLDEST_XID, u32::MAX - 1000);
        fake.control(NEXT_XID, 20);
        fake.write("pg_xact/0FFF", &vec![0b01_01_01_01; 262_144]);
        fake.write("pg_xact/0000", &[0b10_10_10_10; 8192]);
    });
    assert_eq!(cluster.fate(u32::MAX), Ok(XidStatus::Committed));
    assert_eq!(commit_log::place(u32::MAX).segment(), 0xFFF);
    assert_eq!(cluster.fate(19), Ok(XidStatus::Aborted));
    assert_eq!(cluster.fate(40_000), Ok(XidStatus::InProgress), "not assigned");
}

/// Removes a file, or cuts it to this many bytes.
fn damage(fake: &Fake, name: &str, left: Option<u64>) {
    let path = fake.at(name);
    match left {
        None => fs::remove_file(path).expect("removed"),
        Some(bytes) => {
            let file = fs::File::options().write(true).open(path).expect("opened");
            file.set_len(bytes).expect("cut");
        }
    }
}

/// Every assigned transaction must have a whole page. If the page is missing, the status is unknown,
/// rather than in progress.
#[test]
fn a_commit_log_that_is_missing_or_short_is_an_error() {
    let status = "could not access status of transaction";
    for (left, text) in [
        (None, "could not open file \"DIR/pg_xact/0000\": No such file or directory"),
        (
            Some(0),
            "could not read from file \"DIR/pg_xact/0000\" at offset 0: read 0 of 8192 bytes",
        ),
        // The status of transaction 750 is still there, but a server refuses it too.
        (
            Some(8191),
            "could not read from file \"DIR/pg_xact/0000\" at offset 0: read 8191 of 8192 bytes",
        ),
    ] {
        for method in METHODS {
            let mut cluster = Cluster::with(method, |fake| damage(fake, "pg_xact/0000", left));
            for xid in [700, 750, 1999, 750] {
                assert_eq!(cluster.fate(xid), Err(format!("{status} {xid}: {text}")));
            }
            // VACUUM may have removed the page of an older transaction.
            let oldest = "; the oldest transaction is 700";
            assert_eq!(cluster.fate(699), Err(format!("{status} 699: {text}{oldest}")));
            // After a crash, later transactions may be on the same page, but the pages after that
            // need not exist.
            for xid in [2000, 32_767] {
                assert_eq!(cluster.fate(xid), Err(format!("{status} {xid}: {text}")));
            }
            assert_eq!(cluster.fate(32_768), Ok(XidStatus::InProgress));
            assert_eq!(cluster.fate(100_000), Ok(XidStatus::InProgress));
        }
    }
    // The next transaction is the first one on the second page, which need not exist yet.
    let mut cluster = Cluster::with(MethodKind::Worker, |fake| fake.control(NEXT_XID, 32_768));
    assert_eq!(cluster.fate(32_768), Ok(XidStatus::InProgress));
    // Transaction 40,000 is on the second page.
    let mut cluster = Cluster::with(MethodKind::Worker, |fake| fake.control(NEXT_XID, 40_001));
    assert_eq!(cluster.fate(750), Ok(XidStatus::Committed));
    let text = "could not read from file \"DIR/pg_xact/0000\" at offset 8192: read 0 of 8192 bytes";
    assert_eq!(cluster.fate(40_000), Err(format!("{status} 40000: {text}")));
}

/// To look up multixact 10, we need its offset, the offset of multixact 11, and its members.
#[test]
fn multixacts_in_files_that_are_missing_or_short_are_errors() {
    for directory in ["offsets", "members"] {
        let file = format!("pg_multixact/{directory}/0000");
        for (left, problem) in [
            (None, format!("could not open file \"DIR/{file}\": No such file or directory")),
            (
                Some(64),
                format!(
                    "could not read from file \"DIR/{file}\" at offset 0: read 64 of 8192 bytes"
                ),
            ),
        ] {
            let mut cluster = Cluster::with(MethodKind::Worker, |fake| {
                multixacts(fake, &[&[(750, 1), (751, 5)]], 1);
                damage(fake, &file, left);
            });
            let expected = format!("could not access status of multixact 10: {problem}");
            assert_eq!(cluster.updater(10), Err(expected));
        }
    }
}

/// Writes the last file of members. The only member in it is the one with the highest number, which
/// transaction `xid` updates.
fn last_member(fake: &Fake, xid: u32) {
    let place = member_place(u64::from(u32::MAX));
    let (mut last, group) = (vec![0; 8192 * 32], place.offset() as usize);
    last[group + 3] = MemberStatus::NoKeyUpdate as u8;
    last[group + 16..group + 20].copy_from_slice(&xid.to_le_bytes());
    fake.write(&format!("pg_multixact/members/{:04X}", place.segment()), &last);
}

/// Up to version 18, member numbers wrap around, and member 0 remains unused.
#[test]
fn members_that_wrap_around() {
    let mut cluster = Cluster::with(MethodKind::Worker, |fake| {
        multixacts(fake, &[&[], &[(751, 5)]], 1);
        let mut offsets = vec![0; 8192];
        for (at, first) in [(40, u32::MAX), (44, 1), (48, 2)] {
            offsets[at..at + 4].copy_from_slice(&first.to_le_bytes());
        }
        fake.write("pg_multixact/offsets/0000", &offsets);
        last_member(fake, 760);
    });
    assert_eq!(cluster.updater(10), Ok(Some(760)));
    assert_eq!(cluster.updater(11), Ok(Some(751)));
}

/// The last multixact has used the last member number, so that the next one is 0.
#[test]
fn the_last_member_may_have_the_highest_number() {
    let mut cluster = Cluster::with(MethodKind::Worker, |fake| {
        multixacts(fake, &[&[][..]; 10], 1);
        let mut offsets = vec![0; 8192];
        offsets[19 * 4..20 * 4].copy_from_slice(&u32::MAX.to_le_bytes());
        fake.write("pg_multixact/offsets/0000", &offsets);
        last_member(fake, 760);
        fake.control(NEXT_MEMBER, 0);
    });
    assert_eq!(cluster.updater(19), Ok(Some(760)));
}

#[test]
fn directories_in_place_of_files_are_errors() {
    let expect = |name: &str, change: &dyn Fn(&Fake), text: &str| {
        let mut cluster = Cluster::with(MethodKind::Worker, |fake| {
            fs::remove_file(fake.at("pg_xact/0000")).expect("removed");
            change(fake);
        });
        let error = cluster.fate(750).expect_err(name);
        let start = "could not access status of transaction 750: could not ";
        assert!(error.starts_with(start), "{error}");
        assert!(error.contains("\"DIR/pg_xact/0000\"") && error.contains(text), "{error}");
    };
    expect("a link", &|fake| fake.link("/etc/passwd", "pg_xact/0000"), "symbolic link");
    expect("a directory", &|fake| fs::create_dir(fake.at("pg_xact/0000")).expect("made"), "");
    expect("a pipe", &|fake| fake.pipe("pg_xact/0000"), "");
}

#[test]
fn multixacts_and_their_updaters() {
    const SHARE: u8 = MemberStatus::Share as u8;
    const UPDATE: u8 = MemberStatus::Update as u8;
    const NO_KEY_UPDATE: u8 = MemberStatus::NoKeyUpdate as u8;
    let many = vec![(750, SHARE); 1640];
    for method in METHODS {
        let mut cluster = Cluster::with(method, |fake| {
            let multis: [&[(u32, u8)]; 7] = [
                &[(750, SHARE), (901, SHARE)],
                &[(750, SHARE), (751, UPDATE), (752, SHARE)],
                &[(801, NO_KEY_UPDATE)],
                // Members that cross a page boundary.
                &many,
                &[(0, UPDATE), (760, NO_KEY_UPDATE)],
                &[(750, 6)],
                &[],
            ];
            multixacts(fake, &multis, 1);
        });
        assert_eq!(cluster.updater(10), Ok(None));
        assert_eq!(cluster.updater(11), Ok(Some(751)));
        assert_eq!(cluster.updater(12), Ok(Some(801)));
        assert_eq!(cluster.updater(13), Ok(None));
        let members = cluster.transactions.members(cluster.backend.session(), 13).expect("read");
        assert_eq!(members.len(), 1640);
        let refused = |text: &str, multi: u32| {
            let path = "DIR/pg_multixact/offsets/0000";
            Err(format!("multixact {multi} (in \"{path}\"): {text}"))
        };
        // The lost member may be the one that deleted the row.
        assert_eq!(cluster.updater(14), refused("its member 1647 was never written", 14));
        let status = "a member with status 6, expected 0 to 5";
        assert_eq!(cluster.updater(15), refused(status, 15));
        assert_eq!(cluster.updater(9), refused("no longer exists, the oldest is 10", 9));
        assert_eq!(cluster.updater(0), refused("no longer exists, the oldest is 10", 0));
        assert_eq!(cluster.updater(20), refused("does not exist yet, the next is 20", 20));
        // The last multixact's end was never written.
        let text = "its members are from 0 up to 3300";
        assert_eq!(cluster.updater(19), refused(text, 19));
    }
}

/// Multixacts whose offset was never written, or that seem to have billions of members.
#[test]
fn invalid_multixacts_are_errors() {
    let mut cluster = Cluster::with(MethodKind::Worker, |fake| {
        let mut offsets = vec![0; 8192];
        for (multi, first) in [(10_usize, 5_u32), (11, 0), (13, 90), (14, 80), (15, 95), (16, 95)] {
            offsets[multi * 4..multi * 4 + 4].copy_from_slice(&first.to_le_bytes());
        }
        fake.write("pg_multixact/offsets/0000", &offsets);
    });
    let mut text = |multi| cluster.updater(multi).expect_err("refused");
    assert!(text(10).ends_with("its members are from 5 up to 0"));
    assert!(text(11).ends_with("its members are from 0 up to 0"));
    assert!(text(13).ends_with("its members are from 90 up to 80"));
    assert!(text(15).ends_with("its members are from 95 up to 95"));
}

/// Rows in every state, whether it's determined by hint bits, by the commit log or by multixacts.
#[test]
fn row_states_follow_from_transactions() {
    use RowState::{Aborted, Dead, InDoubt, Live};
    let cases = [
        (0x0900, 750, 0, Live),
        (0x0800, 750, 0, Live),
        (0x0800, 850, 0, Aborted),
        (0x0A00, 750, 0, Aborted),
        (0x0800, 950, 0, InDoubt),
        (0x0100, 750, 751, Dead),
        (0x0100, 750, 851, Live),
        (0x0100, 750, 951, Live),
        (0x0500, 750, 951, Dead),
        (0x0190, 750, 751, Live),
        (0x0300, 3, 751, Dead),
        // Multixacts that have only lockers, a committed updater, or an aborted updater.
        (0x1190, 750, 77, Live),
        (0x1100, 750, 10, Live),
        (0x1100, 750, 11, Dead),
        (0x1100, 750, 12, Live),
    ];
    for method in METHODS {
        let mut cluster = Cluster::with(method, |fake| {
            multixacts(fake, &[&[(750, 1)], &[(750, 1), (751, 5)], &[(801, 4)], &[]], 1);
        });
        let rows: Vec<Crafted> = (0..)
            .zip(cases)
            .map(|(value, (infomask, xmin, xmax, _))| Crafted { xmin, xmax, infomask, value })
            .collect();
        let pages: Vec<u8> = (0..50).flat_map(|block| page_of(block, &rows)).collect();
        let relation = cluster.table(&pages);
        let one: Vec<_> = (0..).zip(cases).map(|(value, case)| Ok((value, case.3))).collect();
        let all: Vec<_> = (0..50).flat_map(|_| one.clone()).collect();
        assert_eq!(cluster.rows(&relation, RowFilter::All), all);
        let live: Vec<_> =
            all.into_iter().filter(|row| matches!(row, Ok((_, RowState::Live)))).collect();
        assert_eq!(cluster.rows(&relation, RowFilter::Visible), live);
    }
}

/// On a page that is marked all-visible, the scan must not look up any transactions. If it finds an
/// invalid row, or a row whose transaction can't be looked up, it must return an error for that row
/// and continue.
#[test]
fn rows_without_known_state_are_errors() {
    let mut cluster = Cluster::new(MethodKind::Worker);
    let row = |xmin, value| Crafted { xmin, xmax: 0, infomask: 0x0800, value };
    let rows = [row(750, 0), row(3_000_000_000, 1), row(751, 2), row(752, 3)];
    let mut pages = [page_of(0, &rows), page_of(1, &rows), page_of(2, &rows)];
    pages[1][10] |= 4;
    // On the last page, make the third line pointer point past the end of the page.
    let pointer = u32::from_le_bytes(pages[2][32..36].try_into().expect("four bytes"));
    pages[2][32..36].copy_from_slice(&(pointer & !0x7FFF | 0x7FF8).to_le_bytes());
    (0..).zip(&mut pages).for_each(|(block, page)| crate::crafted::seal(page, block));
    let relation = cluster.table(&pages.concat());
    let live = |value| Ok((value, RowState::Live));
    let error = |block, item, text: &str| {
        let file = "DIR/base/5/16384";
        let place = format!("block {block}, line pointer {item} of file \"{file}\"");
        Err(format!("invalid row in {place}: {text}"))
    };
    let outside = "it does not fit into its item or page";
    let expected = vec![
        live(0),
        error(0, 2, GONE),
        live(2),
        live(3),
        live(0),
        live(1),
        live(2),
        live(3),
        live(0),
        error(2, 2, GONE),
        error(2, 3, outside),
        live(3),
    ];
    assert_eq!(cluster.rows(&relation, RowFilter::Visible), expected);
    assert_eq!(cluster.rows(&relation, RowFilter::All), expected);
}
