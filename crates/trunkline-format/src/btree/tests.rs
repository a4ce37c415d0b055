//! These tests decode entries and pages that were written by real servers, search pages that were
//! built by the tests themselves, and check that damage is detected. The hexadecimal examples come
//! from PostgreSQL 18.

use super::entry::Role;
use super::*;
use crate::Align;
use crate::deform::Attribute;
use crate::ids::{BLOCK_SIZE, Oid, PageBytes, Tid};
use crate::page::{LinePointer, LinePointerFlags};
use crate::test_data::{XorShift, from_hex, header, put};
use std::cmp::Ordering;

fn int4() -> KeyColumn {
    let attribute = Attribute { len: 4, align: Align::Int };
    KeyColumn { attribute, order: Order::Int4, descending: false, nulls_first: false }
}

fn text() -> KeyColumn {
    let attribute = Attribute { len: -1, align: Align::Int };
    KeyColumn { attribute, order: Order::Bytes, descending: false, nulls_first: false }
}

pub(super) fn tid(block: u32, item: u16) -> Tid {
    Tid { block, item }
}

#[test]
fn entries_of_a_server() {
    let layout = [int4()];
    let parse = |text: &str, role| {
        let bytes = from_hex(text);
        let entry = Entry::parse(1, &bytes, role).expect("sound");
        let mut columns = entry.attributes(&layout).map(|column| column.expect("sound"));
        let key = columns.next().map(|value| value.map(<[u8]>::to_vec));
        let child = entry.child();
        (entry.columns(1), key, child, entry.first_row(), entry.last_row(), entry.rows().count())
    };
    let value = |number: i32| Some(Some(number.to_le_bytes().to_vec()));
    let one = Some(tid(68, 18));
    let got = parse("0000 0100 0000 0820", Role::First);
    assert_eq!(got, (0, None, Some(1), None, None, 0));
    let got = parse("0000 0200 0100 1020 6e010000 00000000", Role::Pivot);
    assert_eq!(got, (1, value(366), Some(2), None, None, 0));
    let text = "0000 0200 0110 1820 03000000 00000000 0000 0000 3b00 4700";
    let row = Some(tid(0x3B, 0x47));
    assert_eq!(parse(text, Role::Pivot), (1, value(3), Some(2), row, row, 0));
    let got = parse("0000 4400 1200 1000 fbffffff 00000000", Role::Leaf);
    assert_eq!(got, (1, value(-5), None, one, one, 1));
    let got = parse("0000 4400 1100 1080 00000000 00000000", Role::Leaf);
    assert_eq!(got, (1, Some(None), None, Some(tid(68, 17)), Some(tid(68, 17)), 1));
    let text = "0000 1000 0220 20a0 00000000 00000000 0000 4400 1100 0000 4400 1200 00000000";
    assert_eq!(parse(text, Role::Leaf), (1, Some(None), None, Some(tid(68, 17)), one, 2));
}

#[test]
fn entries_that_lead_astray() {
    let fault = |text: &str, role| {
        let bytes = from_hex(text);
        Entry::parse(3, &bytes, role).expect_err("damaged")
    };
    let item = Fault::Item { item: 3 };
    assert_eq!(fault("0000 4400 12", Role::Leaf), item);
    let size = Fault::Size { item: 3, found: 24, expected: 16 };
    assert_eq!(fault("0000 4400 1200 1800 fbffffff 00000000", Role::Leaf), size);
    let kind = Fault::Kind { item: 3 };
    assert_eq!(fault("0000 0200 0100 1020 6e010000 00000000", Role::Leaf), kind);
    let list = "0000 1000 0220 2020 00000000 00000000 0000 4400 1100 0000 4400 1200 00000000";
    assert_eq!(fault(list, Role::Pivot), kind);
    // Posting lists that are invalid because they overlap the header, are not aligned, extend past
    // the end of the tuple, contain only one TID, or contain too many TIDs.
    for (start, rows) in [(0, 2), (4, 2), (20, 2), (32, 2), (0x1_0000, 2), (16, 1), (16, 3)] {
        let mut bytes = from_hex(list);
        bytes[0..2].copy_from_slice(&((start >> 16) as u16).to_le_bytes());
        bytes[2..4].copy_from_slice(&(start as u16).to_le_bytes());
        bytes[4..6].copy_from_slice(&(0x2000_u16 | rows).to_le_bytes());
        let posting = Fault::Posting { item: 3, start, rows, size: 32 };
        assert_eq!(Entry::parse(3, &bytes, Role::Leaf), Err(posting), "{start} {rows}");
    }
    // According to the flags there is a heap TID, but the tuple is too short to contain one.
    assert_eq!(fault("0000 0200 0110 0820", Role::Pivot), item);
    // According to the flags there is a null bitmap, but the tuple is too short to contain one.
    assert_eq!(fault("0000 4400 1200 0880", Role::Leaf), item);
    let bytes = from_hex("0000 4400 1200 1000 fbffffff 00000000");
    let entry = Entry::parse(3, &bytes, Role::Leaf).expect("sound");
    let overrun = Fault::Overrun { item: 3, column: 3 };
    let columns: Vec<_> = entry.attributes(&[int4(), int4(), int4(), int4()]).collect();
    assert_eq!(columns.last(), Some(&Err(overrun)), "and nothing after it");
    assert_eq!(columns.len(), 3);
}

/// A leaf tuple with a single heap TID.
fn leaf_entry(key: i32, row: Tid) -> Vec<u8> {
    entry(row, 0x10, &key.to_le_bytes())
}

/// A separator, with or without a key.
fn separator(child: u32, key: Option<i32>) -> Vec<u8> {
    match key {
        Some(key) => entry(tid(child, 1), 0x2010, &key.to_le_bytes()),
        None => entry(tid(child, 0), 0x2008, &[]),
    }
}

pub(super) fn entry(tid: Tid, info: u16, key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(((tid.block >> 16) as u16).to_le_bytes());
    bytes.extend((tid.block as u16).to_le_bytes());
    bytes.extend(tid.item.to_le_bytes());
    bytes.extend(info.to_le_bytes());
    bytes.extend(key);
    bytes.resize(usize::from(info & 0x1FFF), 0);
    bytes
}

/// Builds a page that contains these items.
pub(super) fn page(left: u32, right: u32, level: u32, flags: u16, items: &[Vec<u8>]) -> PageBytes {
    let mut upper = 8176;
    let mut page = header(0, 24 + 4 * items.len() as u16, 0, 8176);
    for (item, at) in items.iter().zip((24..).step_by(4)) {
        upper -= item.len();
        put(&mut page, upper, item);
        let length = item.len() as u16;
        let flags = LinePointerFlags::Normal;
        let pointer = LinePointer { offset: upper as u16, flags, length };
        put(&mut page, at, &pointer.to_bits().to_le_bytes());
    }
    put(&mut page, 14, &(upper as u16).to_le_bytes());
    put(&mut page, 8176, &left.to_le_bytes());
    put(&mut page, 8180, &right.to_le_bytes());
    put(&mut page, 8184, &level.to_le_bytes());
    put(&mut page, 8188, &flags.to_le_bytes());
    page
}

/// A leaf with keys 10, 20, 20 and 30, high key 40, and right sibling 9.
fn leaf() -> PageBytes {
    let entries = [(10, 1), (20, 2), (20, 3), (30, 1)];
    let mut items = vec![separator(0, Some(40))];
    items.extend(entries.map(|(key, item)| leaf_entry(key, tid(5, item))));
    page(0, 9, 0, 1, &items)
}

#[test]
fn a_search_finds_its_way() {
    let layout = KeyLayout::new(vec![int4()], 1);
    let leaf = leaf();
    let leaf = BtreePage::parse(&leaf).expect("sound");
    leaf.check(true).expect("sound");
    layout.check(&leaf, true).expect("in order");
    let step = |page: &BtreePage<'_>, key: i32| layout.step(page, &[Some(&key.to_le_bytes())]);
    for (key, expected) in [
        (i32::MIN, Step::Here(2)),
        (10, Step::Here(2)),
        (11, Step::Here(3)),
        (20, Step::Here(3)),
        (21, Step::Here(5)),
        (31, Step::Here(6)),
        (40, Step::Here(6)),
        (41, Step::Right(9)),
    ] {
        assert_eq!(step(&leaf, key), Ok(expected), "{key}");
    }
    assert_eq!(layout.step(&leaf, &[None]), Ok(Step::Right(9)), "NULLs come last");
    assert_eq!(layout.step(&leaf, &[]), Ok(Step::Here(2)));

    let items = [separator(11, None), separator(12, Some(20)), separator(13, Some(30))];
    let inner = page(0, 0, 1, 2, &items);
    let inner = BtreePage::parse(&inner).expect("sound");
    inner.check(true).expect("sound");
    layout.check(&inner, true).expect("in order");
    for (key, child) in [(-1, 11), (20, 11), (21, 12), (30, 12), (31, 13), (i32::MAX, 13)] {
        assert_eq!(step(&inner, key), Ok(Step::Down(child)), "{key}");
    }
}

#[test]
fn pages_that_are_going_are_stepped_over() {
    let layout = KeyLayout::new(vec![int4()], 1);
    let step = |flags, right| {
        let page = page(3, right, 0, flags, &[separator(0, Some(1))]);
        let page = BtreePage::parse(&page).expect("sound");
        assert!(page.is_ignored());
        layout.step(&page, &[Some(&0_i32.to_le_bytes())])
    };
    assert_eq!(step(0x105, 8), Ok(Step::Right(8)));
    assert_eq!(step(0x11, 8), Ok(Step::Right(8)));
    assert_eq!(step(0x05, 0), Ok(Step::Here(1)));
}

#[test]
fn separators_that_are_cut_are_below_what_they_stand_for() {
    let layout = KeyLayout::new(vec![int4(), text()], 2);
    let pair = [&7_i32.to_le_bytes()[..], b"\x07ab"].concat();
    let whole = entry(tid(1, 1), 0x10, &pair);
    let cut = entry(tid(0, 1), 0x2010, &7_i32.to_le_bytes());
    let (whole, cut) = (
        Entry::parse(1, &whole, Role::Leaf).expect("sound"),
        Entry::parse(1, &cut, Role::Pivot).expect("sound"),
    );
    assert_eq!(layout.compare_entries(&whole, &cut, true), Ok(Ordering::Greater));
    assert_eq!(layout.compare_entries(&cut, &whole, true), Ok(Ordering::Less));
    let seven = 7_i32.to_le_bytes();
    let prefix: [Key<'_>; 1] = [Some(&seven)];
    assert_eq!(layout.compare(&cut, &prefix), Ok(Ordering::Equal));
    assert_eq!(layout.compare(&cut, &[Some(&seven), Some(b"")]), Ok(Ordering::Less));
    assert_eq!(layout.compare(&whole, &[Some(&seven), Some(b"ab")]), Ok(Ordering::Equal));
    assert_eq!(layout.compare(&whole, &[Some(&seven), Some(b"aa")]), Ok(Ordering::Greater));
    let mut unknown = text();
    unknown.order = Order::Unknown;
    let layout = KeyLayout::new(vec![int4(), unknown], 2);
    let fault = Err(Fault::UnknownOrder { column: 2 });
    assert_eq!(layout.compare(&whole, &[Some(&seven), Some(b"aa")]), fault);
    assert_eq!(layout.compare(&whole, &[Some(&seven), Some(b"ab")]), Ok(Ordering::Equal));
}

#[test]
fn disorder_is_seen() {
    let layout = KeyLayout::new(vec![int4()], 1);
    let check = |items: &[(i32, u16)], high: i32| {
        let mut all = vec![separator(0, Some(high))];
        all.extend(items.iter().map(|&(key, item)| leaf_entry(key, tid(1, item))));
        let page = page(0, 9, 0, 1, &all);
        layout.check(&BtreePage::parse(&page).expect("sound"), true)
    };
    assert_eq!(check(&[(1, 1), (1, 2), (2, 1)], 3), Ok(()));
    assert_eq!(check(&[(1, 1), (3, 2), (2, 1)], 4), Err(Fault::Order { item: 4 }));
    assert_eq!(check(&[(1, 2), (1, 1)], 3), Err(Fault::Order { item: 3 }));
    assert_eq!(check(&[(1, 2), (1, 2)], 3), Err(Fault::Order { item: 3 }));
    assert_eq!(check(&[(1, 1), (4, 1)], 3), Err(Fault::AboveHighKey { item: 3 }));
    // The high key has no heap TID, so it sorts before every entry with the same key.
    assert_eq!(check(&[(1, 1), (3, 1)], 3), Err(Fault::AboveHighKey { item: 3 }));
}

#[test]
fn what_a_page_alone_shows() {
    let fault = |page: PageBytes| match BtreePage::parse(&page) {
        Ok(page) => page.check(true).expect_err("damaged"),
        Err(fault) => fault,
    };
    let entry = || leaf_entry(1, tid(1, 1));
    assert_eq!(fault(page(0, 0, 0, 1, &[leaf_entry(1, tid(1, 0))])), Fault::NoRow { item: 1 });
    assert_eq!(fault(page(0, 4, 0, 1, &[])), Fault::NoHighKey);
    assert_eq!(fault(page(0, 0, 1, 0, &[])), Fault::NoDownlink);
    assert_eq!(fault(page(0, 0, 1, 1, &[entry()])), Fault::LeafLevel { found: 1 });
    assert_eq!(fault(page(0, 0, 0, 0, &[entry()])), Fault::LeafLevel { found: 0 });
    assert_eq!(fault(page(0, 0, 40, 0, &[entry()])), Fault::LeafLevel { found: 40 });
    assert_eq!(fault(page(0, 0, 0, 9, &[entry()])), Fault::Flags { found: 9 });
    assert_eq!(fault(page(0, 0, 0, 0x201, &[entry()])), Fault::Flags { found: 0x201 });
    let no_key = Fault::Columns { item: 2, found: 0, expected: 1 };
    let items = [separator(3, None), separator(4, None)];
    assert_eq!(fault(page(0, 0, 1, 0, &items)), no_key);
    assert_eq!(fault(page(0, 0, 1, 0, &[separator(0, None)])), Fault::Kind { item: 1 });
    let mut list = from_hex("0000 1000 0220 2020 00000000 00000000");
    list.extend(from_hex("0000 4400 1200 0000 4400 1100 00000000"));
    assert_eq!(fault(page(0, 0, 0, 1, &[list])), Fault::PostingOrder { item: 1 });
    let mut odd = leaf();
    put(&mut odd, 16, &8184_u16.to_le_bytes());
    assert_eq!(fault(odd), Fault::Special { found: 8184 });
    let mut odd = leaf();
    put(&mut odd, 12, &8180_u16.to_le_bytes());
    assert_eq!(fault(odd), Fault::LinePointers { count: 2039 });
}

#[test]
fn metapages() {
    let mut page = header(0, 72, 8176, 8176);
    assert_eq!(Meta::parse(&page), Err(Fault::Magic { found: 0 }));
    for (at, word) in [(24, 0x053162_u32), (28, 4), (32, 3), (36, 1), (40, 3), (44, 1)] {
        put(&mut page, at, &word.to_le_bytes());
    }
    page[64] = 1;
    let meta = Meta::parse(&page).expect("sound");
    let expected = Meta { root: 3, level: 1, fast_root: 3, fast_level: 1, ..Meta::of_empty(true) };
    assert_eq!(meta, expected);
    put(&mut page, 44, &32_u32.to_le_bytes());
    assert_eq!(Meta::parse(&page), Err(Fault::Levels { found: 32 }));
    put(&mut page, 28, &5_u32.to_le_bytes());
    assert_eq!(Meta::parse(&page), Err(Fault::Version { found: 5 }));
}

#[test]
fn values_are_ordered_as_their_types_are() {
    use Order::*;
    let hex = from_hex;
    let bits = |count: i32, bytes: &[u8]| [&count.to_le_bytes()[..], bytes].concat();
    let vector = |oids: &[u32]| {
        let mut bytes = hex("01000000 00000000 1a000000");
        bytes.extend((oids.len() as u32).to_le_bytes());
        bytes.extend(0_u32.to_le_bytes());
        oids.iter().for_each(|oid| bytes.extend(oid.to_le_bytes()));
        bytes
    };
    let span = |time: i64, days: i32, months: i32| {
        [&time.to_le_bytes()[..], &days.to_le_bytes(), &months.to_le_bytes()].concat()
    };
    let cases: Vec<(Order, Vec<Vec<u8>>)> = vec![
        (Byte, vec![vec![0], vec![1], vec![200]]),
        (Int2, vec![hex("0080"), hex("FFFF"), hex("0000"), hex("FF7F")]),
        (Int4, vec![hex("00000080"), hex("FFFFFFFF"), hex("01000000")]),
        (Int8, vec![hex("0000000000000080"), hex("0100000000000000")]),
        (Oid, vec![hex("01000000"), hex("00000080")]),
        (Unsigned8, vec![hex("0100000000000000"), hex("0000000000000080")]),
        (
            Float4,
            [f32::NEG_INFINITY, -1.0, 0.0, 1.5, f32::INFINITY, f32::NAN]
                .map(|float| float.to_le_bytes().to_vec())
                .into(),
        ),
        (Float8, [-1.0, 1e300, f64::NAN].map(|float| float.to_le_bytes().to_vec()).into()),
        (Bytes, vec![vec![], vec![0], vec![0, 0], vec![1], vec![255]]),
        (Name, vec![b"a\0z".to_vec(), b"ab\0".to_vec(), b"b".to_vec()]),
        (Padded, vec![b"   ".to_vec(), b"a ".to_vec(), b"ab".to_vec()]),
        (
            TimeTz,
            // 10:00+02, 09:00+00, 10:00+00
            [(36_000, -7200), (32_400, 0), (36_000, 0)]
                .map(|(time, zone): (i64, i32)| {
                    [&(time * 1_000_000).to_le_bytes()[..], &zone.to_le_bytes()].concat()
                })
                .into(),
        ),
        (Interval, vec![span(0, -1, 0), span(86_399_999_999, 0, 0), span(0, 1, 0), span(1, 0, 1)]),
        (Tid, vec![hex("0000 0100 0500"), hex("0000 0200 0100"), hex("0100 0000 0100")]),
        (
            Network,
            vec![
                hex("02 00 00000000"),
                hex("02 08 0A000000"),
                hex("02 08 0A000001"),
                hex("02 09 0A000000"),
                hex("02 20 0A010000"),
                hex("02 09 0A800000"),
                hex("03 00 00000000000000000000000000000000"),
            ],
        ),
        (Bits, vec![bits(0, &[]), bits(3, &[0x40]), bits(4, &[0x40]), bits(1, &[0x80])]),
        (OidVector, vec![vector(&[]), vector(&[u32::MAX]), vector(&[1, 2]), vector(&[1, 3])]),
        (Enum, vec![hex("02000000"), hex("04000000")]),
    ];
    for (order, ascending) in cases {
        for (left, one) in ascending.iter().enumerate() {
            for (right, other) in ascending.iter().enumerate() {
                let expected = Some(left.cmp(&right));
                assert_eq!(order.compare(one, other), expected, "{order:?} {left} {right}");
            }
        }
    }
    assert_eq!(
        Float8.compare(&0.0_f64.to_le_bytes(), &(-0.0_f64).to_le_bytes()).unwrap(),
        Ordering::Equal
    );
    assert_eq!(Interval.compare(&span(0, 30, 0), &span(0, 0, 1)), Some(Ordering::Equal));
    assert_eq!(Enum.compare(&hex("03000000"), &hex("04000000")), None);
    assert_eq!(Enum.compare(&hex("03000000"), &hex("03000000")), Some(Ordering::Equal));
    assert_eq!(Unknown.compare(b"a", b"b"), None);
}

#[test]
fn operator_classes_by_family() {
    let of = |family, input, bytewise| Order::of(Oid(family), Oid(input), bytewise);
    assert_eq!(of(1976, 23, false), Order::Int4);
    assert_eq!(of(1994, 25, false), Order::Unknown);
    assert_eq!(of(1994, 25, true), Order::Bytes);
    assert_eq!(of(2095, 25, false), Order::Bytes);
    assert_eq!(of(434, 1184, false), Order::Int8);
    assert_eq!(of(16_999, 23, true), Order::Unknown);
}

#[test]
fn descending_and_nulls() {
    let one = 1_i32.to_le_bytes();
    let two = 2_i32.to_le_bytes();
    let (one, two): (Key<'_>, Key<'_>) = (Some(&one), Some(&two));
    let mut column = int4();
    assert_eq!(column.compare(one, two), Some(Ordering::Less));
    assert_eq!(column.compare(two, None), Some(Ordering::Less));
    column.nulls_first = true;
    assert_eq!(column.compare(None, one), Some(Ordering::Less));
    column.descending = true;
    assert_eq!(column.compare(two, one), Some(Ordering::Less));
    assert_eq!(column.compare(None, two), Some(Ordering::Less));
    assert_eq!(column.compare(None, None), Some(Ordering::Equal));
}

/// Arbitrary bytes never cause an endless loop or an access outside the page.
#[test]
fn damaged_pages_do_no_harm() {
    let layout = KeyLayout::new(vec![int4(), text()], 1);
    let mut pair = 7_i32.to_le_bytes().to_vec();
    pair.extend(b"\x07ab");
    let inner = page(0, 0, 1, 2, &[separator(11, None), separator(12, Some(20))]);
    let list =
        from_hex("0000 1000 0220 2020 07000000 07616200 0000 4400 1100 0000 4400 1200 00000000");
    let items = [separator(0, Some(40)), entry(tid(1, 1), 0x10, &pair), list];
    let sound = [leaf(), inner, page(0, 3, 0, 1, &items)];
    let mut random = XorShift(0xB7EE);
    for round in 0..60_000 {
        let mut page = sound[round % 3];
        for _ in 0..=random.below(4) {
            let at = match random.below(3) {
                0 => random.below(BLOCK_SIZE),
                1 => random.below(48),
                _ => 8000 + random.below(192),
            };
            page[at] = random.next() as u8;
        }
        if round % 1000 == 0 {
            random.fill(&mut page);
            put(&mut page, 16, &8176_u16.to_le_bytes());
        }
        let _ = Meta::parse(&page);
        let Ok(page) = BtreePage::parse(&page) else { continue };
        let sound = page.check(true).and_then(|()| layout.check(&page, true));
        let step = layout.step(&page, &[Some(&20_i32.to_le_bytes())]);
        if sound.is_ok() && !page.is_deleted() {
            assert!(step.is_ok(), "{step:?}");
        }
        for entry in page.entries().flatten() {
            entry.rows().for_each(drop);
            layout.attributes(&entry).for_each(drop);
        }
    }
}
