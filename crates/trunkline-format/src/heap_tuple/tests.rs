//! These tests use a table of cases to check which tuples are visible according to their hint bits.
//! They also check that corrupt tuple headers are rejected. The expected results were taken from a
//! PostgreSQL 15 server, using tuples with the same bits.

use super::*;
use crate::page_builder::HeapPageBuilder;
use crate::test_data::put;
use crate::tuple_builder::TupleBuilder;

#[test]
fn visibility_by_hints() {
    use Visible::{InDoubt, No, Yes};
    for (infomask, xmin, xmax, expected) in [
        // Tuples that were inserted by a committed transaction, frozen, or inserted by initdb, and
        // have not been updated since.
        (0x0900, 800, 0, Yes),
        (0x0B00, 800, 0, Yes),
        (0x0800, FROZEN_XID, 0, Yes),
        (0x0800, BOOTSTRAP_XID, 0, Yes),
        (0x0800, 800, 0, InDoubt),
        (0x0A00, 800, 0, No),
        (0x0A00, BOOTSTRAP_XID, 0, No),
        // Deleted, delete in progress, or delete aborted.
        (0x0500, 800, 801, No),
        (0x0700, 800, 801, No),
        (0x0100, 800, 801, InDoubt),
        (0x0300, 800, 801, InDoubt),
        (0x0100, 800, 0, Yes),
        (0x0900, 800, 801, Yes),
        // While xmin is in doubt, xmax does not matter.
        (0x0400, 800, 801, InDoubt),
        (0x0600, 800, 801, No),
        // Locks: by one transaction, by several transactions, and in the format used before 9.3.
        (0x0190, 800, 801, Yes),
        (0x0180, 800, 801, Yes),
        (0x01C0, 800, 801, Yes),
        (0x1190, 800, 5, Yes),
        (0x0140, 800, 801, Yes),
        (0x0150, 800, 801, InDoubt),
        // A multixact with a member that may have deleted the tuple.
        (0x1100, 800, 5, InDoubt),
        (0x1150, 800, 5, InDoubt),
        (0x1500, 800, 5, InDoubt),
        (0x1200, 800, 5, No),
        // The other bits do not affect visibility.
        (0x292F, 800, 0, Yes),
    ] {
        let found = Visible::by_hints(infomask, xmin, xmax);
        assert_eq!(found, expected, "{infomask:#06X} {xmin} {xmax}");
    }
}

#[test]
fn fields() {
    let mut builder = HeapPageBuilder::new(0x0012_3456);
    let mut row = TupleBuilder::new();
    row.null().int4(7).text("x").xmin(700);
    builder.push(&row.tuple()).expect("room");
    let mut page = builder.finish(false);
    put(&mut page, 8160 + 4, &900_u32.to_le_bytes());
    let tuple = heap_rows(&page).next().expect("one").expect("sound");
    assert_eq!((tuple.item(), tuple.xmin(), tuple.xmax()), (1, 700, 900));
    assert_eq!(tuple.infomask(), HAS_NULL | HAS_VAR_WIDTH | XMAX_INVALID);
    assert_eq!((tuple.infomask2(), tuple.natts(), tuple.hoff()), (3, 3, 24));
    assert_eq!(tuple.nulls(), [0b110]);
    assert_eq!(tuple.data(), [7, 0, 0, 0, 5, b'x']);
    assert_eq!(tuple.next_version().to_string(), "(1193046,1)");
    assert!(!tuple.is_heap_only() && !tuple.is_hot_updated() && tuple.xvac() == 0);
    assert!(!is_all_visible(&page));
    page[10] = 4;
    assert!(is_all_visible(&page));
}

#[test]
fn headers_that_lead_astray() {
    let parse = |length: usize, natts: u16, infomask: u16, hoff: u8| {
        let mut bytes = [0; 64];
        bytes[18..20].copy_from_slice(&natts.to_le_bytes());
        bytes[20..22].copy_from_slice(&infomask.to_le_bytes());
        bytes[22] = hoff;
        HeapTuple::parse(9, &bytes[..length]).map(|tuple| tuple.data().len())
    };
    let corrupt = Err(CorruptTuple { item: 9 });
    assert_eq!(parse(64, 1, 0, 24), Ok(40));
    assert_eq!(parse(24, 0, 0, 24), Ok(0));
    assert_eq!(parse(64, 0xF800, 0, 24), Ok(40), "flags beside the number of attributes");
    assert_eq!(parse(64, 8, HAS_NULL, 24), Ok(40));
    assert_eq!(parse(64, 9, HAS_NULL, 32), Ok(32));
    assert_eq!(parse(64, 9, HAS_NULL, 24), corrupt);
    assert_eq!(parse(64, 2047, HAS_NULL, 64), corrupt);
    for (length, hoff) in [(23, 24), (0, 24), (64, 16), (64, 0), (64, 28), (64, 72), (31, 32)] {
        assert_eq!(parse(length, 1, 0, hoff), corrupt, "{length} {hoff}");
    }
    assert_eq!(CorruptTuple { item: 9 }.to_string(), "tuple 9: does not fit into its item or page");
}
