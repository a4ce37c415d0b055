//! We verified the test vectors with PostgreSQL's own code, either by calling pageinspect on a
//! server (15 and 18) or by compiling the server's header file on its own. The portable version and
//! the vectorised version chosen at run time must produce the same result for all of them.

use super::*;
use crate::test_data::{XorShift, header, put};

fn check(page: &PageBytes, block: BlockNo, expected: u16) {
    assert_eq!(page_checksum(page, block), expected, "block {block}");
    assert_eq!(page_checksum_portable(page, block), expected, "portable, block {block}");
}

#[test]
fn header_only() {
    let mut page = header(0, 24, 8192, 8192);
    check(&page, 0, 25952);
    check(&page, 1, 25951);
    check(&page, 2, 25954);
    check(&page, 131_072, 25950);
    check(&page, 4_294_967_294, 39586);
    put(&mut page, 8, &[0xFF, 0xFF]);
    check(&page, 0, 25952);
}

#[test]
fn one_tuple() {
    let mut page = header(4, 28, 8160, 8192);
    put(&mut page, 0, &1_u32.to_le_bytes());
    put(&mut page, 4, &0x2345_6789_u32.to_le_bytes());
    put(&mut page, 24, &(8160_u32 | 1 << 15 | 28 << 17).to_le_bytes());
    for byte in 0..32 {
        page[8160 + byte] = byte as u8;
    }
    check(&page, 0, 37844);
    check(&page, 7, 37837);
}

#[test]
fn empty_btree_metapage() {
    let mut page = header(0, 72, 8176, 8176);
    put(&mut page, 24, &0x0005_3162_u32.to_le_bytes());
    put(&mut page, 28, &4_u32.to_le_bytes());
    put(&mut page, 56, &(-1.0_f64).to_le_bytes());
    page[64] = 1;
    page[8188] = 8;
    check(&page, 0, 52597);
}

#[test]
fn patterns() {
    let page = std::array::from_fn(|i| (7 * i + 3) as u8);
    check(&page, 0, 43596);
    check(&page, 123_456, 35854);
    check(&[0xFF; BLOCK_SIZE], 0, 3612);

    let mut page = [0; BLOCK_SIZE];
    check(&page, 0, 50858);
    check(&page, 65535, 58037);
    assert_eq!(sum(&page), 0x54AF_71FA);
    page[BLOCK_SIZE - 1] = 1;
    check(&page, 0, 53517);
}

#[test]
fn dispatched_equals_portable() {
    let mut random = XorShift(0x7275_6E6B);
    let mut page = [0; BLOCK_SIZE];
    for _ in 0..500 {
        random.fill(&mut page);
        let block = random.next() as u32;
        assert_eq!(page_checksum(&page, block), page_checksum_portable(&page, block));
    }
}
