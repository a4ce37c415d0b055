//! Records that a server never writes for a page, or never at all. Redo refuses them, since it would otherwise lose items
//! without a word, or claim that a row is visible to all.

use super::redo_rules::{RELATION, change, delete, empty_page, record};
use crate::btree::{ALTERNATIVE, IS_POSTING};
use crate::control::PgVersion;
use crate::ids::{BLOCK_SIZE, Fork, Oid, PageBytes, Tid};
use crate::page::{LinePointer, LinePointerFlags, PageHeader};
use crate::test_data::put;
use crate::visibility_map::bits;
use crate::wal::heap_flags::prune_flags::{CLEANUP_LOCK, HAS_DEAD, HAS_REDIRECTED, HAS_UNUSED};
use crate::wal::redo::{
    RedoError, Redone, cleared_map_bits, derived_pages, redo, redo_derived, requires_base,
};
use crate::wal::resource_manager::{btree_operation, heap_operation, heap2_operation, number};
use crate::wal::test_log::{RecordBytes, Reference};
use crate::wal::{Record, RelFileLocator};

/// A line pointer: its state, the target of a redirection, and its item.
type Item<'a> = (LinePointerFlags, u16, &'a [u8]);

/// A page with these line pointers.
fn page_of(special: u16, items: &[Item<'_>]) -> PageBytes {
    let (mut page, mut upper) = ([0; BLOCK_SIZE], special);
    for (at, &(flags, target, bytes)) in (24..).step_by(4).zip(items) {
        upper -= (bytes.len() as u16).next_multiple_of(8);
        let offset = if bytes.is_empty() { target } else { upper };
        let pointer = LinePointer { offset, flags, length: bytes.len() as u16 };
        put(&mut page, at, &pointer.to_bits().to_le_bytes());
        put(&mut page, upper.into(), bytes);
    }
    let lower = 24 + 4 * items.len() as u16;
    for (at, word) in [(12, lower), (14, upper), (16, special), (18, 0x2004)] {
        put(&mut page, at, &u16::to_le_bytes(word));
    }
    page
}

/// A leaf of a B-tree with these items, and its right sibling.
fn leaf(items: &[[u8; 48]], right: u32) -> PageBytes {
    let items: Vec<_> = items.iter().map(|item| (LinePointerFlags::Normal, 0, &item[..])).collect();
    let mut page = page_of(8176, &items);
    put(&mut page, 8176 + 4, &right.to_le_bytes());
    page
}

/// An index tuple of 48 bytes: block and number of its row pointer, and the flag that gives them another meaning.
fn tuple(block: u32, item: u16, flag: u16) -> [u8; 48] {
    let mut bytes = [7; 48];
    bytes[..6].copy_from_slice(&Tid { block, item }.to_bytes());
    bytes[6..8].copy_from_slice(&(flag | 48).to_le_bytes());
    bytes
}

/// A posting list of 4 rows, behind a key of 8 bytes.
fn list() -> [u8; 48] {
    tuple(16, IS_POSTING | 4, ALTERNATIVE)
}

/// Applies a record to the page of block reference 0, and returns the result and the number of line pointers.
fn apply(
    bytes: &[u8],
    mut page: PageBytes,
    version: PgVersion,
) -> (Result<Redone, RedoError>, u16) {
    let parsed = Record::parse(bytes).expect("sound");
    let redone = redo(&mut page, &change(&parsed, version), 0);
    (redone, PageHeader::parse(&page).line_pointer_count())
}

#[test]
fn a_split_keeps_the_new_item_and_its_posting_list() {
    let items = [list(), list(), list(), list()];
    let split = |info: u8, right: u32, [first_right, new_item, place]: [u16; 3]| {
        let main = [&[0; 4][..], &[first_right, new_item, place].map(u16::to_le_bytes).concat()];
        let has_new = info == btree_operation::SPLIT_LEFT || place != 0;
        let data = if has_new {
            [tuple(9, 9, 0), tuple(8, 8, 0)].concat()
        } else {
            tuple(8, 8, 0).to_vec()
        };
        let blocks = [(0, 0, 5, &data[..]), (1, 0x40, 9, &tuple(8, 8, 0)[..])];
        let bytes = record(number::BTREE, info, &blocks, &main.concat());
        apply(&bytes, leaf(&items, right), PgVersion::V18)
    };
    let (left, right) = (btree_operation::SPLIT_LEFT, btree_operation::SPLIT_RIGHT);
    let refused = |item, first, last| Err(RedoError::SplitItem { item, first, last });
    let applied = Ok(Redone::Applied);
    // A page without a right sibling has no high key, so its items begin with 1.
    for (sibling, first) in [(0, 1), (3, 2)] {
        // High key, old items, new item.
        for new_item in first..=3 {
            assert_eq!(split(left, sibling, [3, new_item, 0]), (applied, 2 + 3 - first));
        }
        for new_item in [0, first - 1, 4, u16::MAX] {
            let found = split(left, sibling, [3, new_item, 0]).0;
            assert_eq!(found, refused(new_item, first, 3), "{sibling}");
        }
        // All old items go to the right page, or to one that is before the first.
        assert_eq!(split(left, sibling, [first, first, 0]), (applied, 2));
        assert_eq!(split(left, sibling, [0, first, 0]).0, refused(first, first, 0));
        // The posting list before the new item.
        for info in [left, right] {
            let count = if info == left { 2 } else { 1 } + 3 - first;
            assert_eq!(split(info, sibling, [3, 3, 1]), (applied, count));
            assert_eq!(split(info, sibling, [3, first, 1]).0, refused(first - 1, first, 2));
        }
        assert_eq!(split(right, sibling, [3, 4, 1]).0, refused(3, first, 2));
        // Without a new item on the left page, its number is not looked at.
        assert_eq!(split(right, sibling, [3, 4, 0]), (applied, 1 + 3 - first));
    }
}

/// The lists of a prune record. Those that are empty are left out if `since_17`.
fn lists(redirected: &[u16], dead: &[u16], unused: &[u16], since_17: bool) -> (u8, Vec<u8>) {
    let (mut flags, mut data) = (0, Vec::new());
    let all = [(HAS_REDIRECTED, redirected, 2), (HAS_DEAD, dead, 1), (HAS_UNUSED, unused, 1)];
    for (flag, list, numbers) in all {
        if since_17 && !list.is_empty() {
            flags |= flag as u8;
            data.extend((list.len() as u16 / numbers).to_le_bytes());
        }
        data.extend(list.iter().flat_map(|item| item.to_le_bytes()));
    }
    (flags, data)
}

/// Line pointers of every kind: 1 and 5 are rows, 2 is dead, 3 is not used, 4 is redirected, and 6 is dead with its row.
fn heap_page() -> PageBytes {
    let row = &[1; 32][..];
    page_of(
        8192,
        &[
            (LinePointerFlags::Normal, 0, row),
            (LinePointerFlags::Dead, 0, &[]),
            (LinePointerFlags::Unused, 0, &[]),
            (LinePointerFlags::Redirect, 1, &[]),
            (LinePointerFlags::Normal, 0, row),
            (LinePointerFlags::Dead, 0, row),
        ],
    )
}

fn state(
    item: u16,
    found: LinePointerFlags,
    expected: LinePointerFlags,
) -> Result<Redone, RedoError> {
    Err(RedoError::LinePointerState { item, found, expected })
}

#[test]
fn without_the_cleanup_lock_only_dead_line_pointers_go() {
    let vacuum_15 = |unused: &[u16]| {
        let (_, data) = lists(&[], &[], unused, false);
        let count = (unused.len() as u16).to_le_bytes();
        let bytes = record(number::HEAP2, heap2_operation::VACUUM, &[(0, 0, 5, &data)], &count);
        apply(&bytes, heap_page(), PgVersion::V15).0
    };
    let cleanup = |redirected: &[u16], dead: &[u16], unused: &[u16], version| {
        let (flags, data) = lists(redirected, dead, unused, true);
        let main = if version == PgVersion::V19 { [flags, 0] } else { [2, flags] };
        let info = heap2_operation::PRUNE_VACUUM_CLEANUP;
        let bytes = record(number::HEAP2, info, &[(0, 0, 5, &data)], &main);
        apply(&bytes, heap_page(), version).0
    };
    use LinePointerFlags::{Dead, Normal, Redirect, Unused};
    for (items, expected) in [
        (&[2][..], Ok(Redone::Applied)),
        (&[1], state(1, Normal, Dead)),
        (&[3], state(3, Unused, Dead)),
        (&[2, 4], state(4, Redirect, Dead)),
        (&[2, 2], state(2, Unused, Dead)),
        (&[6], Err(RedoError::ItemLength { item: 6, found: 32, expected: 0 })),
        (&[7], Err(RedoError::NoLinePointer { item: 7, count: 6 })),
    ] {
        assert_eq!(vacuum_15(items), expected, "{items:?}");
        for version in [PgVersion::V17, PgVersion::V18, PgVersion::V19] {
            assert_eq!(cleanup(&[], &[], items, version), expected, "{items:?}");
        }
    }
    for version in [PgVersion::V17, PgVersion::V19] {
        for (redirected, dead) in [(&[4, 5][..], &[][..]), (&[], &[1])] {
            let found = cleanup(redirected, dead, &[2], version);
            assert!(matches!(found, Err(RedoError::Flags { .. })), "{found:?}");
        }
    }
}

#[test]
fn a_prune_changes_only_line_pointers_in_use() {
    use LinePointerFlags::{Dead, Normal, Unused};
    let prune = |redirected: &[u16], dead: &[u16], unused: &[u16], version| {
        let since_17 = version >= PgVersion::V17;
        let (flags, data) = lists(redirected, dead, unused, since_17);
        let flags = flags | CLEANUP_LOCK as u8;
        let main = match (version, since_17) {
            (PgVersion::V19, _) => vec![flags, 0],
            (_, true) => vec![0, flags],
            (_, false) => {
                let counts = [redirected.len() as u16 / 2, dead.len() as u16];
                [&[0; 4][..], &counts.map(u16::to_le_bytes).concat()].concat()
            }
        };
        let bytes = record(number::HEAP2, heap2_operation::PRUNE, &[(0, 0, 5, &data)], &main);
        apply(&bytes, heap_page(), version).0
    };
    let applied = Ok(Redone::Applied);
    for version in PgVersion::ALL {
        assert_eq!(prune(&[4, 5], &[], &[1], version), applied);
        assert_eq!(prune(&[], &[4], &[1, 2, 5], version), applied);
        let unused = |item| state(item, Unused, Normal);
        assert_eq!(prune(&[3, 5], &[], &[], version), unused(3));
        assert_eq!(prune(&[], &[3], &[], version), unused(3));
        assert_eq!(prune(&[], &[], &[3], version), unused(3));
        assert_eq!(prune(&[], &[], &[1, 1], version), unused(1));
        // A redirection leads to a row, even after the other lists.
        assert_eq!(prune(&[4, 2], &[], &[], version), state(2, Dead, Normal));
        assert_eq!(prune(&[4, 5], &[], &[5], version), unused(5));
        assert_eq!(prune(&[4, 5], &[5], &[], version), state(5, Dead, Normal));
        let none = Err(RedoError::NoLinePointer { item: 7, count: 6 });
        assert_eq!(prune(&[4, 7], &[], &[], version), none);
    }
}

fn deduplicate(page: PageBytes, runs: &[u16]) -> (Result<Redone, RedoError>, u16) {
    let count = (runs.len() as u16 / 2).to_le_bytes();
    let data: Vec<u8> = runs.iter().flat_map(|number| number.to_le_bytes()).collect();
    let bytes = record(number::BTREE, btree_operation::DEDUP, &[(0, 0, 5, &data)], &count);
    apply(&bytes, page, PgVersion::V18)
}

#[test]
fn deduplication_merges_at_least_two_items_that_are_there() {
    let items = [tuple(1, 1, 0), tuple(1, 2, 0), list(), tuple(1, 3, 0)];
    let merge = |runs: &[u16]| deduplicate(leaf(&items, 0), runs);
    let applied = Ok(Redone::Applied);
    assert_eq!(merge(&[1, 2]), (applied, 3));
    assert_eq!(merge(&[1, 4]), (applied, 1));
    assert_eq!(merge(&[1, 2, 3, 2]), (applied, 2));
    let missing = |item| Err(RedoError::NoLinePointer { item, count: 4 });
    assert_eq!(merge(&[1, 5]).0, missing(5));
    assert_eq!(merge(&[1, 2, 3, 3]).0, missing(5));
    assert_eq!(merge(&[4, 2]).0, missing(5));
    assert_eq!(merge(&[4, u16::MAX]).0, missing(u16::MAX));
    for length in [0, 1] {
        let short = Err(RedoError::PostingList { item: 2, expected: 1 });
        assert_eq!(merge(&[2, length]).0, short);
    }
}

#[test]
fn deduplication_refuses_damaged_posting_lists() {
    for damaged in [
        // Its rows end behind it, its key is shorter than its header, and it has no rows.
        tuple(16, IS_POSTING | 6, ALTERNATIVE),
        tuple(7, IS_POSTING | 4, ALTERNATIVE),
        tuple(16, IS_POSTING, ALTERNATIVE),
        // It isn't marked as a list.
        tuple(16, 4, ALTERNATIVE),
    ] {
        let page = leaf(&[tuple(1, 1, 0), damaged, tuple(1, 2, 0), tuple(1, 3, 0)], 0);
        let refused = Err(RedoError::PostingList { item: 2, expected: 0 });
        // As part of a run, as its start, and as an item that stays.
        for runs in [[1, 2], [2, 2], [3, 2]] {
            assert_eq!(deduplicate(page, &runs).0, refused, "{runs:?}");
        }
    }
    // A high key may have the flag, which means there that it has fewer columns.
    let page = leaf(&[tuple(16, 1, ALTERNATIVE), tuple(1, 2, 0), tuple(1, 3, 0)], 3);
    assert_eq!(deduplicate(page, &[2, 2]), (Ok(Redone::Applied), 2));
}

#[test]
fn a_list_is_not_shortened_by_fewer_rows_than_announced() {
    // Item 1 loses two rows, but the record names one of them twice.
    let numbers = |removed: [u16; 2]| [1, 2, removed[0], removed[1]].map(u16::to_le_bytes).concat();
    for (removed, expected) in [
        ([0, 3], Ok(Redone::Applied)),
        ([0, 0], Err(RedoError::PostingList { item: 1, expected: 2 })),
        ([3, 0], Err(RedoError::PostingList { item: 1, expected: 2 })),
    ] {
        let blocks = [(0, 0, 5, &numbers(removed)[..])];
        let bytes = record(number::BTREE, btree_operation::VACUUM, &blocks, &[0, 0, 1, 0]);
        assert_eq!(apply(&bytes, leaf(&[list()], 0), PgVersion::V18).0, expected);
    }
}

#[test]
fn only_inserts_and_updates_make_a_heap_page_from_scratch() {
    use heap_operation::{CONFIRM, DELETE, HOT_UPDATE, INITIALISE, INSERT, LOCK, TRUNCATE, UPDATE};
    use heap2_operation::{
        FREEZE_PAGE, LOCK_UPDATED, MULTI_INSERT, NEW_CID, PRUNE, REWRITE, VACUUM,
    };
    const IN_PLACE: u8 = 0x70;
    const WILL_INIT: u8 = 0x40;
    let row = [1, 0, 0, 8, 24, 0, 5, 5, 5, 5];
    let allowed = [(number::HEAP, INSERT), (number::HEAP, UPDATE), (number::HEAP, HOT_UPDATE)];
    for (manager, operation) in allowed {
        let main = if operation == INSERT {
            vec![1, 0, 0]
        } else {
            vec![0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0]
        };
        let old: &[(u8, u8, u32, &[u8])] = &[(0, WILL_INIT, 5, &row), (1, 0, 6, &[])];
        let blocks = if operation == INSERT { &old[..1] } else { old };
        let bytes = record(manager, INITIALISE | operation, blocks, &main);
        let parsed = Record::parse(&bytes).expect("sound");
        assert!(!requires_base(&parsed.blocks()[0]));
        assert_eq!(apply(&bytes, [9; BLOCK_SIZE], PgVersion::V18), (Ok(Redone::Initialised), 1));
    }
    let data = [5, 0, 1, 0, 0, 8, 24, 0, 5, 5, 5, 5];
    let blocks = [(0, WILL_INIT, 5, &data[..])];
    let bytes = record(number::HEAP2, INITIALISE | MULTI_INSERT, &blocks, &[0, 0, 1, 0]);
    assert_eq!(apply(&bytes, [9; BLOCK_SIZE], PgVersion::V18), (Ok(Redone::Initialised), 1));

    let heap = [DELETE, TRUNCATE, CONFIRM, LOCK, IN_PLACE].map(|info| (number::HEAP, info));
    let heap2 = [REWRITE, PRUNE, VACUUM, FREEZE_PAGE, LOCK_UPDATED, NEW_CID];
    let heap2 = heap2.map(|info| (number::HEAP2, info));
    let refused = Err(RedoError::Initialisation { id: 0 });
    let page = page_of(8192, &[(LinePointerFlags::Normal, 0, &[1; 32])]);
    for (manager, operation) in heap.into_iter().chain(heap2) {
        for version in PgVersion::ALL {
            for (info, flags) in [(INITIALISE, WILL_INIT), (INITIALISE, 0), (0, WILL_INIT)] {
                let bytes = record(manager, info | operation, &[(0, flags, 5, &[1])], &[0; 16]);
                let found = apply(&bytes, page, version).0;
                assert_eq!(found, refused, "{manager}, {operation:x}, {flags:x}");
            }
        }
    }
    // Map pages, and records of other managers that leave the page as it is.
    for (manager, info, flags) in [
        (number::HEAP, DELETE, WILL_INIT | 2),
        (number::BTREE, btree_operation::REUSE_PAGE, WILL_INIT),
        (number::XLOG, 0xA0, WILL_INIT),
    ] {
        let bytes = record(manager, info, &[(0, flags, 0, &[])], &delete(1));
        assert_eq!(apply(&bytes, page, PgVersion::V18).0, refused, "{manager}");
    }
}

/// The relation of a map page, and the page.
fn named(other: RelFileLocator, map: u32, main: &[u8], manager: u8, info: u8) -> Vec<u8> {
    let heap = Reference { id: 0, flags: 0, relation: RELATION, block: 70_000, data: &[] };
    let map = Reference { id: 1, flags: 2, relation: other, block: map, data: &[] };
    RecordBytes::with_blocks((manager, info, 700), [heap, map], main).build(crate::Lsn(8))
}

#[test]
fn a_map_page_without_bits_of_the_record_is_refused() {
    let other = RelFileLocator { number: 16385, database: Oid(5), ..RELATION };
    let unexpected = Err(RedoError::UnexpectedBlock { id: 1 });
    for (relation, map, expected, derives) in [
        (RELATION, 2, Ok(Redone::Applied), false),
        (RELATION, 1, unexpected, true),
        (RELATION, 3, unexpected, true),
        (other, 2, unexpected, true),
    ] {
        let bytes = named(relation, map, &delete(1), number::HEAP, heap_operation::DELETE);
        let parsed = Record::parse(&bytes).expect("sound");
        for version in PgVersion::ALL {
            let found = redo(&mut empty_page(), &change(&parsed, version), 1);
            assert_eq!(found, expected, "{relation}, {map}");
            let derived: Vec<_> = derived_pages(&parsed, version).collect();
            let derived = derived.iter().map(|page| (page.relation, page.fork, page.block));
            let page = (RELATION, Fork::Vm, 2);
            assert_eq!(derived.collect::<Vec<_>>(), if derives { vec![page] } else { vec![] });
        }
    }
}

#[test]
fn map_bits_are_set_only_as_a_server_sets_them() {
    let (cleared, frozen) = (0x01, 0x20);
    let insert = |flags: u8| [1, 0, flags].to_vec();
    let multi_insert = |flags: u8| [flags, 0, 0, 0].to_vec();
    let apply = |manager: u8, info: u8, main: &[u8], version| {
        let bytes = named(RELATION, 2, main, manager, info);
        let parsed = Record::parse(&bytes).expect("sound");
        let mut map = empty_page();
        let redone = redo(&mut map, &change(&parsed, version), 1);
        let heap = redo(&mut empty_page(), &change(&parsed, version), 0);
        // If the record didn't name the page, it would not set a bit there either.
        let mut derived = empty_page();
        if cleared_map_bits(&parsed, version).count() > 0 {
            redo_derived(&mut derived, &change(&parsed, version), 2);
        }
        assert!(!bits(&derived, 70_000).all_visible);
        (redone, heap, bits(&map, 70_000).all_visible && bits(&map, 70_000).all_frozen)
    };
    let (heap, heap2) = (number::HEAP, number::HEAP2);
    let flags = |flags: u16| Err(RedoError::Flags { flags });
    let v19 = PgVersion::V19;
    let set = apply(heap2, heap2_operation::MULTI_INSERT, &multi_insert(frozen), v19);
    assert_eq!((set.0, set.2), (Ok(Redone::Applied), true));
    // An insert sets none, and no record sets and clears them.
    let both = cleared | frozen;
    let refused = |found: u8| (flags(found.into()), flags(found.into()), false);
    for wrong in [frozen, both] {
        assert_eq!(apply(heap, heap_operation::INSERT, &insert(wrong), v19), refused(wrong));
    }
    for version in PgVersion::ALL {
        let found = apply(heap2, heap2_operation::MULTI_INSERT, &multi_insert(both), version);
        assert_eq!(found, refused(both));
        assert_eq!(apply(heap, heap_operation::INSERT, &insert(both), version), refused(both));
    }
    // Since 19, prune records set them: all-visible, or all-frozen too, but not that alone.
    for operation in [heap2_operation::PRUNE, heap2_operation::PRUNE_VACUUM_SCAN] {
        let prune = |map_bits: u8| apply(heap2, operation, &[0, map_bits], v19);
        assert_eq!(prune(1), (Ok(Redone::Applied), Ok(Redone::Applied), false));
        assert_eq!(prune(3), (Ok(Redone::Applied), Ok(Redone::Applied), true));
        let unexpected = Err(RedoError::UnexpectedBlock { id: 1 });
        assert_eq!(prune(2), (unexpected, flags(0x200), false));
    }
}
