//! Decodes every header form and bytes of real rows, and rejects corrupt headers. The examples are
//! from PostgreSQL 18 pages.

use super::*;
use crate::test_data::{XorShift, from_hex};
use crate::toast_compression::tests::pglz;

#[track_caller]
fn plain(hex: &str, payload: &[u8]) {
    let bytes = from_hex(hex);
    assert_eq!(stored_length(&bytes), Ok(bytes.len()));
    assert_eq!(Varlena::parse(&bytes), Ok(Varlena::Plain(payload)));
}

#[track_caller]
fn refused(hex: &str, error: VarlenaError) {
    assert_eq!(Varlena::parse(&from_hex(hex)), Err(error));
}

#[test]
fn headers() {
    plain("03", b"");
    plain("07 61 62", b"ab");
    plain("18 00 00 00 61 62", b"ab");
    plain("10 00 00 00", b"");
    let longest = format!("FF {}", "78".repeat(126));
    plain(&longest, &[b'x'; 126]);
    refused("", VarlenaError::Short { wanted: 1, found: 0 });
    refused("07 61", VarlenaError::Short { wanted: 3, found: 2 });
    refused("07 61 62 63", VarlenaError::Trailing { length: 3, found: 4 });
    refused("18 00 00", VarlenaError::Short { wanted: 4, found: 3 });
    refused("18 00 00 00 61", VarlenaError::Short { wanted: 6, found: 5 });
    refused("0C 00 00 00", VarlenaError::Length { length: 3 });
    refused("00 00 00 00", VarlenaError::Length { length: 0 });
    refused("1E 00 00 00 00 00 00", VarlenaError::Length { length: 7 });
    refused("01 12", VarlenaError::Short { wanted: 18, found: 2 });
    refused("01", VarlenaError::Short { wanted: 18, found: 1 });
    refused("01 01", VarlenaError::Tag { tag: 1 });
    refused("FC FF FF FF", VarlenaError::Short { wanted: 0x3FFF_FFFF, found: 4 });
}

#[test]
fn compressed_in_place() {
    let text = b"abc".repeat(100);
    let compressed = pglz(&text);
    let mut datum = Vec::new();
    datum.extend((((compressed.len() + 8) as u32) << 2 | 2).to_le_bytes());
    datum.extend(300_u32.to_le_bytes());
    datum.extend(&compressed);
    let parsed = Varlena::parse(&datum).expect("sound");
    let expected = Compressed { method: Method::Pglz, raw_size: 300, bytes: &compressed };
    assert_eq!(parsed, Varlena::Compressed(expected));
    let mut room = vec![1, 2, 3];
    assert_eq!(parsed.payload(&mut room), Ok(&text[..]));
    datum[7] = 0x80;
    assert_eq!(Varlena::parse(&datum), Err(VarlenaError::Method { number: 2 }));
    datum[7] = 0x10;
    let lying = Varlena::parse(&datum).expect("a header");
    assert!(matches!(lying.payload(&mut room), Err(VarlenaError::Compress(_))));
}

#[test]
fn pointers() {
    let hex = |raw: u32, info: u32| {
        let words = [raw, info, 16_500, 16_490].map(u32::to_le_bytes).concat();
        [vec![1, 18], words].concat()
    };
    let parse = |raw, info| {
        Varlena::parse(&hex(raw, info)).map(|parsed| match parsed {
            Varlena::External(pointer) => pointer,
            other => panic!("{other:?}"),
        })
    };
    let pointer = ToastPointer {
        raw_size: 10_000,
        stored_size: 10_000,
        method: None,
        value_id: 16_500,
        toast_relation: Oid(16_490),
    };
    assert_eq!(parse(10_004, 10_000), Ok(pointer));
    let compressed = ToastPointer { stored_size: 200, method: Some(Method::Lz4), ..pointer };
    assert_eq!(parse(10_004, 200 | 1 << 30), Ok(compressed));
    assert_eq!(parse(10_004, 200 | 3 << 30), Err(VarlenaError::Method { number: 3 }));
    for (raw_size, stored_size) in [(3, 0), (10, 7), (1 << 30, 5), (u32::MAX, 5)] {
        assert_eq!(
            parse(raw_size, stored_size),
            Err(VarlenaError::Sizes { raw_size, stored_size })
        );
    }
    let mut room = Vec::new();
    assert_eq!(Varlena::External(pointer).payload(&mut room), Err(VarlenaError::External));
}

#[test]
fn any_bytes() {
    let mut random = XorShift(0x7A12);
    for _ in 0..100_000 {
        let mut bytes = vec![0; random.below(40)];
        random.fill(&mut bytes);
        if let Ok(length) = stored_length(&bytes) {
            assert!((1..=bytes.len()).contains(&length));
            let mut room = Vec::new();
            if let Ok(parsed) = Varlena::parse(&bytes[..length]) {
                let _ = parsed.payload(&mut room);
                assert!(room.capacity() <= 40 * 273);
            }
        }
    }
}
