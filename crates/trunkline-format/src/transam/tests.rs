//! These tests compare SLRU positions with those used by servers, and check both multixact layouts
//! and the states of tuples. To find out which tuples should be visible, we tried the same cases on
//! PostgreSQL 15, 18 and 19.

use super::multixact::{
    Member, MemberStatus, MultixactLayout, member_at, member_place, next_multi,
};
use super::*;
use crate::control::PgVersion;
use crate::heap_tuple::HeapTuple;
use crate::test_data::XorShift;

#[test]
fn the_circle_of_ids() {
    assert!(precedes(3, 4) && !precedes(4, 3) && !precedes(4, 4));
    assert!(precedes(u32::MAX, 3) && !precedes(3, u32::MAX));
    assert!(precedes(2, u32::MAX) && precedes(0, 1) && !precedes(3, 2));
    assert!(precedes(1_000, 1_000 + (1 << 31) - 1) && !precedes(1_000, 1_001 + (1 << 31)));
    assert_eq!(full_xid(995, 1_000), 995);
    assert_eq!(full_xid(u32::MAX, 0x1_0000_001B), u64::from(u32::MAX));
    assert_eq!(full_xid(5, 0x1_0000_001B), 0x1_0000_0005);
    assert_eq!(full_xid(2, 0x7_0000_001B), 2);
    assert_eq!(full_xid(77, 5), 77, "from before the beginning");
}

#[test]
fn places_in_the_commit_log() {
    let check = |xid, segment: u64, offset| {
        let place = commit_log::place(xid);
        assert_eq!((place.segment(), place.offset()), (segment, offset), "{xid}");
    };
    check(0, 0, 0);
    check(744, 0, 186);
    check(1_048_575, 0, 262_143);
    check(1_048_576, 1, 0);
    check(1_050_000, 1, 356);
    check(u32::MAX, 0xFFF, 262_143);
    assert_eq!(commit_log::segment_name(0xFFF), "0FFF");
    assert_eq!(commit_log::place(1_050_000).page, 32);
    let fates =
        [XidStatus::Aborted, XidStatus::Committed, XidStatus::SubCommitted, XidStatus::InProgress];
    for (xid, fate) in (8..).zip(fates) {
        assert_eq!(XidStatus::in_byte(0b00_11_01_10, xid), fate);
    }
}

#[test]
fn places_of_multixacts() {
    let old = MultixactLayout::of(PgVersion::V18);
    let new = MultixactLayout::of(PgVersion::V19);
    assert_eq!(MultixactLayout::of(PgVersion::V15), old);
    assert_eq!(old.offset_place(1), SlruPosition { page: 0, byte: 4 });
    assert_eq!(new.offset_place(1), SlruPosition { page: 0, byte: 8 });
    assert_eq!(old.offset_place(2048 * 32 + 3), SlruPosition { page: 32, byte: 12 });
    assert_eq!(new.offset_place(2048 * 32 + 3), SlruPosition { page: 64, byte: 24 });
    assert_eq!(old.offset_place(u32::MAX), SlruPosition { page: 0x1F_FFFF, byte: 8188 });
    assert_eq!((old.offsets_name(31), new.offsets_name(31)), ("001F".into(), "001F".into()));
    assert_eq!((old.members_name(31), new.members_name(31).len()), ("001F".into(), 15));
    assert_eq!(member_place(0), SlruPosition { page: 0, byte: 0 });
    assert_eq!(member_place(7), SlruPosition { page: 0, byte: 20 });
    assert_eq!(member_place(1635), SlruPosition { page: 0, byte: 8160 });
    assert_eq!(member_place(1636 * 32).segment(), 1);
    assert_eq!(old.count(u64::from(u32::MAX), 2), 3);
    assert_eq!(old.member(u64::from(u32::MAX), 1), 0);
    assert_eq!(new.member(u64::from(u32::MAX), 1), 1 << 32);
    assert_eq!((next_multi(1), next_multi(u32::MAX)), (2, 1));
    assert_eq!(old.offset_at(&[0, 0, 0, 0, 9, 0, 0, 0], 4), Some(9));
    assert_eq!(new.offset_at(&[9, 0, 0, 0, 1, 0, 0, 0], 0), Some(9 | 1 << 32));
    assert_eq!(new.offset_at(&[9, 0, 0, 0, 1, 0, 0, 0], 1), None);
}

#[test]
fn members() {
    let mut page = [0; 40];
    page[20..24].copy_from_slice(&[0, 5, 4, 77]);
    for (slot, xid) in [800_u32, 801, 802, 803].into_iter().enumerate() {
        page[24 + slot * 4..28 + slot * 4].copy_from_slice(&xid.to_le_bytes());
    }
    let member = |number| member_at(&page, member_place(number).byte, number);
    let status = Ok(MemberStatus::KeyShare);
    assert_eq!(member(4), Some(Member { xid: 800, status }));
    assert_eq!(member(5), Some(Member { xid: 801, status: Ok(MemberStatus::Update) }));
    assert_eq!(member(7), Some(Member { xid: 803, status: Err(77) }));
    assert_eq!(member(8), None);
    let updates: Vec<u8> = (0..=255)
        .filter(|&byte| MemberStatus::from_byte(byte).is_some_and(MemberStatus::is_update))
        .collect();
    assert_eq!(updates, [4, 5]);
}

/// A commit log in which transactions 100 to 199 have committed, 200 to 299 have aborted, 300 to
/// 399 are sub-committed, and all others are in progress, except that looking up 666 fails. The
/// updater in multixact n is transaction n, but multixacts above 1000 have no updater. The field
/// counts how many lookups were made.
struct Answers(u32);

impl XidStatusLookup for Answers {
    type Error = u32;

    fn fate(&mut self, xid: u32) -> Result<XidStatus, u32> {
        self.0 += 1;
        assert!(xid >= FIRST_NORMAL_XID);
        match xid {
            100..200 => Ok(XidStatus::Committed),
            200..300 => Ok(XidStatus::Aborted),
            300..400 => Ok(XidStatus::SubCommitted),
            666 => Err(xid),
            _ => Ok(XidStatus::InProgress),
        }
    }

    fn updater(&mut self, multi: u32) -> Result<Option<u32>, u32> {
        self.0 += 1;
        Ok((multi <= 1000).then_some(multi))
    }
}

fn header(infomask: u16, [xmin, xmax, xvac]: [u32; 3]) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..12].copy_from_slice(&[xmin, xmax, xvac].map(u32::to_le_bytes).concat());
    bytes[20..22].copy_from_slice(&infomask.to_le_bytes());
    bytes[22] = 24;
    bytes
}

#[test]
fn states() {
    use RowState::{Aborted, Dead, InDoubt, Live};
    for (infomask, xmin, xmax, state, questions) in [
        (0x0900, 100, 0, Live, 0),
        (0x0B00, 200, 0, Live, 0),
        (0x0A00, 100, 0, Aborted, 0),
        (0x0500, 100, 101, Dead, 0),
        (0x0700, 100, 101, Dead, 0),
        (0x0600, 2, 101, Dead, 0),
        // Look up the inserting transaction, the deleting transaction, or both.
        (0x0800, 100, 0, Live, 1),
        (0x0800, 200, 0, Aborted, 1),
        (0x0800, 300, 0, InDoubt, 1),
        (0x0800, 500, 0, InDoubt, 1),
        (0x0800, 0, 0, InDoubt, 0),
        (0x0100, 100, 101, Dead, 1),
        (0x0100, 100, 201, Live, 1),
        (0x0100, 100, 501, Live, 1),
        (0x0100, 100, 2, Dead, 0),
        (0x0000, 100, 101, Dead, 2),
        (0x0000, 200, 101, Aborted, 1),
        (0x0400, 100, 501, Dead, 1),
        (0x0400, 500, 101, InDoubt, 1),
        (0x0000, 100, 0, Live, 1),
        (0x0000, 1, 101, Dead, 1),
        // A lock needs no look-up.
        (0x0080, 100, 101, Live, 1),
        (0x0190, 100, 101, Live, 0),
        (0x1190, 100, 101, Live, 0),
        // For a multixact, the updating member decides.
        (0x1100, 100, 101, Dead, 2),
        (0x1100, 100, 201, Live, 2),
        (0x1100, 100, 2000, Live, 1),
        (0x1500, 100, 201, Live, 2),
    ] {
        let bytes = header(infomask, [xmin, xmax, 0]);
        let mut answers = Answers(0);
        let found = HeapTuple::parse(1, &bytes).map(|tuple| row_state(&tuple, &mut answers));
        let expected = (Ok(Ok(state)), questions);
        assert_eq!((found, answers.0), expected, "{infomask:#06X} {xmin} {xmax}");
    }
    let bytes = header(0, [666, 0, 0]);
    let unknown = HeapTuple::parse(1, &bytes).map(|tuple| row_state(&tuple, &mut Answers(0)));
    assert_eq!(unknown, Ok(Err(666)));
}

/// Tuples moved by `VACUUM FULL` before 9.0.
#[test]
fn moved_rows() {
    use RowState::{Aborted, Live};
    for (infomask, xvac, state) in [
        (0x4800, 100, Aborted),
        (0x4800, 200, Live),
        (0x4800, 500, Live),
        (0x8800, 100, Live),
        (0x8800, 200, Aborted),
        (0x4900, 100, Live),
    ] {
        let bytes = header(infomask, [150, 0, xvac]);
        let found = HeapTuple::parse(1, &bytes).map(|tuple| row_state(&tuple, &mut Answers(0)));
        assert_eq!(found, Ok(Ok(state)), "{infomask:#06X} {xvac}");
    }
}

/// Every header yields a state, and that state agrees with the hint bits.
#[test]
fn any_header() {
    let mut random = XorShift(0xF1A6);
    for _ in 0..200_000 {
        let xids = [random.below(700) as u32, random.below(700) as u32, random.below(700) as u32];
        let bytes = header(random.next() as u16 & !1, xids);
        let Ok(tuple) = HeapTuple::parse(1, &bytes) else { panic!("{bytes:?}") };
        let state = row_state(&tuple, &mut Answers(0));
        match tuple.visible() {
            crate::Visible::Yes => assert_eq!(state, Ok(RowState::Live)),
            crate::Visible::No => assert!(matches!(state, Ok(RowState::Dead | RowState::Aborted))),
            crate::Visible::InDoubt => {}
        }
    }
}
