//! Rules that no image can judge: positions, bases, and map pages that no record names.

use crate::control::PgVersion;
use crate::ids::{BLOCK_SIZE, Fork, Lsn, Oid, PageBytes};
use crate::page::{FLAG_ALL_VISIBLE, PageHeader};
use crate::page_builder::HeapPageBuilder;
use crate::test_data::put;
use crate::visibility_map::{BLOCKS_PER_PAGE, bits, covered, map_block};
use crate::wal::redo::{
    Change, DerivedPage, RedoError, Redone, cleared_map_bits, derived_pages, redo, redo_derived,
    requires_base,
};
use crate::wal::resource_manager::number;
use crate::wal::test_log::{RecordBytes, Reference};
use crate::wal::{Record, RelFileLocator};

pub(super) const END: Lsn = Lsn(0x1_0000_0200);

pub(super) const RELATION: RelFileLocator =
    RelFileLocator { tablespace: Oid(1663), database: Oid(5), number: 16384 };

/// A record of this relation. A block reference is its number, fork and flags, block, and data.
pub(super) fn record(
    manager: u8,
    info: u8,
    blocks: &[(u8, u8, u32, &[u8])],
    main: &[u8],
) -> Vec<u8> {
    let references = blocks.iter().map(|&(id, flags, block, data)| {
        let relation = RELATION;
        Reference { id, flags, relation, block, data }
    });
    RecordBytes::with_blocks((manager, info, 700), references, main).build(Lsn(8))
}

pub(super) fn change<'r>(record: &'r Record<'r>, version: PgVersion) -> Change<'r> {
    Change { record, end: END, version, hints_are_logged: false }
}

/// A page without items and special space.
pub(super) fn empty_page() -> PageBytes {
    empty_page_at(Lsn(0))
}

/// The same with a position.
fn empty_page_at(lsn: Lsn) -> PageBytes {
    let mut page = HeapPageBuilder::new(0);
    page.lsn(lsn);
    page.finish(false)
}

/// Main data of a delete: xmax 700, line pointer 1, no bits, flags.
pub(super) fn delete(flags: u8) -> [u8; 8] {
    [0xBC, 2, 0, 0, 1, 0, 0, flags]
}

#[test]
fn map_pages_are_derived_if_the_record_does_not_name_them() {
    let derived = |bytes: &[u8]| {
        let record = Record::parse(bytes).expect("sound");
        let pages = derived_pages(&record, PgVersion::V17);
        pages.map(|page| (page.fork, page.block)).collect::<Vec<_>>()
    };
    let vm = |block| (Fork::Vm, block);
    let deleted = record(number::HEAP, 0x10, &[(0, 0, 70_000, &[])], &delete(1));
    assert_eq!(derived(&deleted), [vm(2)]);
    let unflagged = record(number::HEAP, 0x10, &[(0, 0, 70_000, &[])], &delete(0));
    assert_eq!(derived(&unflagged), []);
    // Newer minor releases name it.
    let named = record(number::HEAP, 0x10, &[(0, 0, 70_000, &[]), (1, 2, 2, &[])], &delete(1));
    assert_eq!(derived(&named), []);
    // An update of two pages, both of which were all-visible.
    let main = [0xBC, 2, 0, 0, 1, 0, 0, 3, 0, 0, 0, 0, 1, 0];
    let update = record(number::HEAP, 0x20, &[(0, 0, 70_000, &[1]), (1, 0, 5, &[])], &main);
    assert_eq!(derived(&update), [vm(0), vm(2)]);
    let update = record(number::HEAP, 0x20, &[(0, 0, 6, &[1]), (1, 0, 5, &[])], &main);
    assert_eq!(derived(&update), [vm(0)]);
    let parsed = Record::parse(&update).expect("sound");
    assert_eq!(cleared_map_bits(&parsed, PgVersion::V17).collect::<Vec<_>>(), [5, 6]);
}

#[test]
fn derived_map_pages_lose_the_bits_and_keep_their_position() {
    let deleted = record(number::HEAP, 0x10, &[(0, 0, 70_000, &[])], &delete(1));
    let locked = record(number::HEAP, 0x60, &[(0, 0, 70_000, &[])], &delete(1));
    for (bytes, expected) in [(deleted, (false, false)), (locked, (true, false))] {
        let parsed = Record::parse(&bytes).expect("sound");
        let change = change(&parsed, PgVersion::V17);
        // Even a page that is newer loses them.
        let mut page = empty_page_at(Lsn(u64::MAX / 2));
        page[24..].fill(0xFF);
        assert_eq!(redo_derived(&mut page, &change, 2), Redone::Applied);
        let found = bits(&page, 70_000);
        assert_eq!((found.all_visible, found.all_frozen), expected);
        assert!(bits(&page, 69_999).all_frozen && bits(&page, 70_001).all_frozen);
        assert_eq!(PageHeader::parse(&page).lsn, Lsn(u64::MAX / 2));
        // On a map page that doesn't exist, no bit is set.
        let mut page = [0; BLOCK_SIZE];
        redo_derived(&mut page, &change, 2);
        assert_eq!(page, empty_page());
    }
}

#[test]
fn a_named_map_page_loses_only_the_bits_of_the_record() {
    let bytes = record(number::HEAP, 0x10, &[(0, 0, 70_000, &[]), (1, 2, 2, &[])], &delete(1));
    let parsed = Record::parse(&bytes).expect("sound");
    let mut page = empty_page();
    page[24..].fill(0xFF);
    assert_eq!(redo(&mut page, &change(&parsed, PgVersion::V18), 1), Ok(Redone::Applied));
    assert!(!bits(&page, 70_000).all_visible && !bits(&page, 70_000).all_frozen);
    assert!(bits(&page, 69_999).all_frozen && bits(&page, 70_001).all_frozen);
    assert_eq!(PageHeader::parse(&page).lsn, END);
    // The next time, it is newer.
    let again = redo(&mut page, &change(&parsed, PgVersion::V18), 1);
    assert_eq!(again, Ok(Redone::AlreadyNewer));
}

/// A truncation to `blocks` blocks.
fn truncation(blocks: u32, flags: u32) -> Vec<u8> {
    let main = [blocks, 1663, 5, 16384, flags].map(u32::to_le_bytes).concat();
    record(number::STORAGE, 0x20, &[], &main)
}

/// A map page whose bits are all set.
fn full_map() -> PageBytes {
    let mut page = empty_page_at(Lsn(u64::MAX / 2));
    page[24..].fill(0xFF);
    page
}

#[test]
fn a_truncation_clears_the_bits_of_lost_blocks() {
    const PAGE: u32 = BLOCKS_PER_PAGE;
    let (near_start, near_border) = ([1, 2, 3, 4, 5, 1000], [PAGE - 1, PAGE + 1, PAGE + 4]);
    let far = [70_001, 2 * PAGE - 1, u32::MAX - 1];
    for blocks in [&near_start[..], &near_border, &far].concat() {
        let (bytes, map) = (truncation(blocks, 3), map_block(blocks));
        let parsed = Record::parse(&bytes).expect("sound");
        for version in PgVersion::ALL {
            let derived: Vec<_> = derived_pages(&parsed, version).collect();
            assert_eq!(derived, [DerivedPage { relation: RELATION, fork: Fork::Vm, block: map }]);
            let mut page = full_map();
            redo_derived(&mut page, &change(&parsed, version), map);
            for (block, bits) in covered(&page, map) {
                let expected = block < blocks;
                let found = (bits.all_visible, bits.all_frozen);
                assert_eq!(found, (expected, expected), "{block} of {blocks}");
            }
            // The position stays as well.
            assert_eq!(page[..24], full_map()[..24]);
            // Pages before keep all bits.
            let mut before = full_map();
            redo_derived(&mut before, &change(&parsed, version), map.wrapping_sub(1));
            assert_eq!(before, full_map());
        }
    }
}

#[test]
fn only_truncations_that_cut_a_map_page_derive_it() {
    // At the border of two map pages, the later one is removed.
    for (blocks, flags, expected) in [
        (0, 7, false),
        (BLOCKS_PER_PAGE, 7, false),
        (2 * BLOCKS_PER_PAGE, 7, false),
        // The main fork and the free space map.
        (7, 0, false),
        (7, 1, false),
        (7, 4, false),
        (7, 5, false),
        (7, 2, true),
        (7, 3, true),
        (7, 6, true),
        (7, 7, true),
    ] {
        let bytes = truncation(blocks, flags);
        let parsed = Record::parse(&bytes).expect("sound");
        for version in PgVersion::ALL {
            let count = derived_pages(&parsed, version).count();
            assert_eq!(count, usize::from(expected), "{blocks}, {flags}");
        }
        if !expected && flags != 7 {
            let mut page = full_map();
            redo_derived(&mut page, &change(&parsed, PgVersion::V17), map_block(blocks));
            assert_eq!(page, full_map(), "{blocks}, {flags}");
        }
    }
    // A record that is too short.
    let short = record(number::STORAGE, 0x20, &[], &[7; 12]);
    let parsed = Record::parse(&short).expect("sound");
    assert_eq!(derived_pages(&parsed, PgVersion::V17).count(), 0);
    // Storage/CREATE.
    let created = [16384_u32, 5, 7, 2, 7].map(u32::to_le_bytes).concat();
    let bytes = record(number::STORAGE, 0x10, &[], &created);
    let parsed = Record::parse(&bytes).expect("sound");
    assert_eq!(derived_pages(&parsed, PgVersion::V17).count(), 0);
}

#[test]
fn all_visible_moves_the_position_only_if_hints_are_logged() {
    let main = [0, 0, 0, 0, 3];
    let blocks = [(0, 2, 0, &[][..]), (1, 0, 7, &[][..])];
    let bytes = record(number::HEAP2, 0x40, &blocks, &main);
    let parsed = Record::parse(&bytes).expect("sound");
    for (hints_are_logged, position) in [(false, Lsn(5)), (true, END)] {
        let change = Change { hints_are_logged, ..change(&parsed, PgVersion::V17) };
        let mut page = empty_page_at(Lsn(5));
        assert_eq!(redo(&mut page, &change, 1), Ok(Redone::Applied));
        let header = PageHeader::parse(&page);
        assert_eq!((header.flags & FLAG_ALL_VISIBLE, header.lsn), (FLAG_ALL_VISIBLE, position));
    }
    // 19 has no such record.
    let mut page = empty_page();
    let unknown = redo(&mut page, &change(&parsed, PgVersion::V19), 1);
    assert!(
        matches!(unknown, Ok(Redone::NotSupported { operation: "VISIBLE", .. })),
        "{unknown:?}"
    );
}

#[test]
fn pages_without_a_base_and_managers_without_rules_are_named() {
    let bytes = record(number::HEAP, 0x10, &[(0, 0, 7, &[])], &delete(0));
    let parsed = Record::parse(&bytes).expect("sound");
    let (mut page, change_17) = ([0; BLOCK_SIZE], change(&parsed, PgVersion::V17));
    assert!(requires_base(&parsed.blocks()[0]));
    assert_eq!(redo(&mut page, &change_17, 0), Ok(Redone::MissingBase));
    assert_eq!(redo(&mut page, &change_17, 3), Err(RedoError::NoBlock { id: 3 }));
    let mut page = empty_page();
    let none = RedoError::NoLinePointer { item: 1, count: 0 };
    assert_eq!(redo(&mut page, &change_17, 0), Err(none));
    put(&mut page, 16, &8100_u16.to_le_bytes());
    let text = "page has lower 24, upper 8192, special 8100, expected special 8192";
    assert_eq!(redo(&mut page, &change_17, 0).expect_err("damaged").to_string(), text);
    // Gin.
    let bytes = record(13, 0x20, &[(0, 0x40, 7, &[1])], &[]);
    let parsed = Record::parse(&bytes).expect("sound");
    let refused = redo(&mut page, &change(&parsed, PgVersion::V17), 0).expect("no error");
    let Redone::NotSupported { manager, operation } = refused else { panic!("{refused:?}") };
    assert_eq!((manager.to_string().as_str(), operation), ("Gin", "INSERT"));
    assert!(!requires_base(&parsed.blocks()[0]));
    // An operation of XLOG must have its image, a hint may lack it.
    for (info, expected) in
        [(0xA0, Ok(Redone::Unchanged)), (0xB0, Err(RedoError::NoImage { id: 0 }))]
    {
        let bytes = record(number::XLOG, info, &[(0, 0, 7, &[])], &[]);
        let parsed = Record::parse(&bytes).expect("sound");
        assert_eq!(redo(&mut page, &change(&parsed, PgVersion::V17), 0), expected);
    }
}
