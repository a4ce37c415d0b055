//! Three logs of real servers (`testdata/redo.sql`). Each image in them is what the server's page was
//! after the record, and each is compared with what redo has made.

use std::collections::BTreeMap;

use crate::control::PgVersion;
use crate::ids::{BLOCK_SIZE, BlockNo, Fork, Lsn, PageBytes};
use crate::wal::locator::RelFileLocator;
use crate::wal::redo::{
    Change, Redone, derived_pages, first_difference, redo, redo_derived, requires_base, restore,
};
use crate::wal::resource_manager::{ResourceManager, number, operation_name};
use crate::wal::test_log::{megabyte, unpacked};
use crate::wal::{LogChunk, LogEvent, LogIdentity, LogReader, LogRecord};

/// A log, where it begins, and whether its cluster has checksums.
pub(super) struct Log {
    pub(super) version: PgVersion,
    start: Lsn,
    packed: &'static [u8],
    hints_are_logged: bool,
}

pub(super) const LOGS: [Log; 3] = [
    Log {
        version: PgVersion::V15,
        start: Lsn(0x70_0000),
        packed: include_bytes!("../../../testdata/redo-15.log.zst"),
        hints_are_logged: false,
    },
    Log {
        version: PgVersion::V18,
        start: Lsn(0x90_0000),
        packed: include_bytes!("../../../testdata/redo-18.log.zst"),
        hints_are_logged: true,
    },
    Log {
        version: PgVersion::V19,
        start: Lsn(0x60_0000),
        packed: include_bytes!("../../../testdata/redo-19.log.zst"),
        hints_are_logged: false,
    },
];

impl Log {
    /// The bytes of all its pages.
    pub(super) fn bytes(&self) -> Vec<u8> {
        unpacked(self.packed)
    }

    /// Passes on every record.
    pub(super) fn read(&self, mut consume: impl FnMut(&LogRecord<'_>)) {
        let bytes = self.bytes();
        let log = LogIdentity { segment_size: megabyte(), system_identifier: None };
        let mut reader = LogReader::new(log, self.start);
        let chunk = LogChunk { start: self.start, bytes: &bytes };
        loop {
            match reader.next(&chunk).expect("the log is there") {
                LogEvent::Record(found) => consume(&found),
                LogEvent::End(end) => {
                    assert!(end.reason.is_usual(), "{:?}", end.reason);
                    return;
                }
                overwritten => panic!("{overwritten:?}"),
            }
        }
    }
}

type Name = (RelFileLocator, Fork, BlockNo);

/// Applies a log to pages, and compares them.
#[derive(Default)]
pub(super) struct Replay {
    pages: BTreeMap<Name, Box<PageBytes>>,
    /// Compared pages by operation.
    compared: BTreeMap<(u8, &'static str), usize>,
    restored: usize,
}

impl Replay {
    pub(super) fn apply(&mut self, found: &LogRecord<'_>, hints_are_logged: bool) {
        let header = found.record.header();
        let manager = ResourceManager(header.manager);
        let change = Change::of(found, hints_are_logged);
        let operation = operation_name(header, found.version).expect("a known operation");
        for derived in derived_pages(&found.record, found.version) {
            let name = (derived.relation, derived.fork, derived.block);
            let page = self.pages.entry(name).or_insert_with(|| Box::new([0; BLOCK_SIZE]));
            assert_eq!(redo_derived(page, &change, derived.block), Redone::Applied);
        }
        for block in found.record.blocks() {
            let name = (block.relation, block.fork, block.block);
            let image = block.image.filter(|image| !image.applies()).map(|image| {
                let mut page = Box::new([0; BLOCK_SIZE]);
                restore(&mut page, &image, found.end).expect("sound");
                page
            });
            if requires_base(block) && !self.pages.contains_key(&name) {
                // The page begins here.
                self.pages.extend(image.map(|image| (name, image)));
                continue;
            }
            let page = self.pages.entry(name).or_insert_with(|| Box::new([0; BLOCK_SIZE]));
            let place = format!("{} {manager}/{operation} reference {}", found.start, block.id);
            let redone = redo(page, &change, block.id);
            match redone.unwrap_or_else(|error| panic!("{place}: {error}")) {
                Redone::Applied | Redone::Initialised => {}
                Redone::Restored => {
                    self.restored += 1;
                    continue;
                }
                other => panic!("{place}: {other:?}"),
            }
            let Some(image) = image else { continue };
            let offset = first_difference(page, &image, manager, block.fork, block.block);
            assert_eq!(offset, None, "{place}, {} block {}", block.relation, block.block);
            *self.compared.entry((header.manager, operation)).or_default() += 1;
        }
    }
}

const HEAP: [&str; 9] = [
    "DELETE",
    "HEAP_CONFIRM",
    "HOT_UPDATE",
    "INPLACE",
    "INSERT",
    "INSERT+INIT",
    "LOCK",
    "UPDATE",
    "UPDATE+INIT",
];
const HEAP2_15: [&str; 7] = [
    "FREEZE_PAGE",
    "LOCK_UPDATED",
    "MULTI_INSERT",
    "MULTI_INSERT+INIT",
    "PRUNE",
    "VACUUM",
    "VISIBLE",
];
const HEAP2_18: [&str; 7] = [
    "LOCK_UPDATED",
    "MULTI_INSERT",
    "MULTI_INSERT+INIT",
    "PRUNE_ON_ACCESS",
    "PRUNE_VACUUM_CLEANUP",
    "PRUNE_VACUUM_SCAN",
    "VISIBLE",
];
/// Without `REUSE_PAGE`, which changes no page.
const BTREE: [&str; 14] = [
    "DEDUP",
    "DELETE",
    "INSERT_LEAF",
    "INSERT_META",
    "INSERT_POST",
    "INSERT_UPPER",
    "MARK_PAGE_HALFDEAD",
    "META_CLEANUP",
    "NEWROOT",
    "SPLIT_L",
    "SPLIT_R",
    "UNLINK_PAGE",
    "UNLINK_PAGE_META",
    "VACUUM",
];

#[test]
fn redo_makes_the_pages_of_the_server() {
    for log in &LOGS {
        let mut replay = Replay::default();
        log.read(|found| replay.apply(found, log.hints_are_logged));
        let heap2: &[&str] = match log.version {
            PgVersion::V15 => &HEAP2_15,
            PgVersion::V18 => &HEAP2_18,
            // Gone: VISIBLE.
            _ => &HEAP2_18[..6],
        };
        let expected = [
            (number::HEAP2, heap2),
            (number::HEAP, &HEAP[..]),
            (number::BTREE, &BTREE[..]),
            (number::SEQUENCE, &["LOG"][..]),
        ];
        let expected = expected
            .into_iter()
            .flat_map(|(manager, names)| names.iter().map(move |name| (manager, *name)));
        let seen: Vec<_> = replay.compared.keys().copied().collect();
        assert_eq!(seen, expected.collect::<Vec<_>>(), "{:?}", log.version);
        let compared: usize = replay.compared.values().sum();
        assert!(compared > 3000 && replay.restored > 40, "{compared}, {}", replay.restored);
    }
}

/// The position of a page decides whether it has a change already.
#[test]
fn a_record_is_applied_once() {
    let log = &LOGS[1];
    let (mut replay, mut again) = (Replay::default(), 0);
    log.read(|found| {
        replay.apply(found, log.hints_are_logged);
        let change = Change::of(found, log.hints_are_logged);
        for block in found.record.blocks().iter().filter(|block| requires_base(block)) {
            let name = (block.relation, block.fork, block.block);
            let Some(page) = replay.pages.get(&name) else { continue };
            let mut second = **page;
            let redone = redo(&mut second, &change, block.id);
            // Map pages that had the bits already keep their position.
            let is_newer = redone == Ok(Redone::AlreadyNewer) || block.fork == Fork::Vm;
            assert!(is_newer && second == **page, "{} {redone:?}", found.start);
            again += 1;
        }
    });
    assert!(again > 3000, "{again}");
}
