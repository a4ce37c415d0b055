//! These tests decompress values that were compressed by a server, values that were compressed by
//! the tests' own simple compressor, and damaged values. The compressor is slow, but it always
//! finds the longest match that the format allows.

use super::*;
use crate::test_data::{XorShift, from_hex};

/// Compresses data in the pglz format. We use brute force to find the longest match at each
/// position, and emit a literal if there is no match.
pub(crate) fn pglz(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let control = out.len();
        out.push(0);
        for bit in 0..8 {
            if at == bytes.len() {
                break;
            }
            let (distance, length) = longest(bytes, at);
            if length < 3 {
                out.push(bytes[at]);
                at += 1;
                continue;
            }
            out[control] |= 1 << bit;
            let low = (length - 3).min(15) as u8;
            out.extend([(distance >> 4) as u8 & 0xF0 | low, distance as u8]);
            if low == 15 {
                out.push((length - 18) as u8);
            }
            at += length;
        }
    }
    out
}

fn longest(bytes: &[u8], at: usize) -> (usize, usize) {
    let most = (bytes.len() - at).min(pglz::MATCH_MAX);
    let length_at = |distance: usize| {
        (0..most).take_while(|n| bytes[at + n - distance] == bytes[at + n]).count()
    };
    (1..=at.min(4095))
        .map(|distance| (distance, length_at(distance)))
        .max_by_key(|&(distance, length)| (length, usize::MAX - distance))
        .unwrap_or_default()
}

fn raw(method: Method, bytes: &[u8], raw_size: usize) -> Option<Vec<u8>> {
    let mut out = b"before".to_vec();
    let made = decompress(method, bytes, raw_size, &mut out);
    assert!(out.starts_with(b"before"));
    match made {
        Ok(()) => Some(out.split_off(6)),
        Err(error) => {
            assert_eq!((error.method, error.raw_size, out.len()), (method, raw_size, 6));
            None
        }
    }
}

/// Random bytes with repetitions at short and long distances.
fn sample(random: &mut XorShift, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let far = random.below(bytes.len() + 1);
        let count = 1 + random.below(400);
        match random.below(3) {
            0 => bytes.extend((0..count).map(|_| random.next() as u8)),
            1 => bytes.resize(bytes.len() + count, random.next() as u8),
            _ => (0..count).for_each(|n| bytes.extend(bytes.get(far + n).copied())),
        }
    }
    bytes.truncate(length);
    bytes
}

#[test]
fn pglz_by_hand() {
    let made = |hex: &str, raw_size| raw(Method::Pglz, &from_hex(hex), raw_size);
    assert_eq!(made("", 0), Some(vec![]));
    assert_eq!(made("00 41", 1), Some(b"A".to_vec()));
    assert_eq!(made("02 41 07 01", 11), Some(b"AAAAAAAAAAA".to_vec()));
    assert_eq!(made("04 41 42 02 02", 7), Some(b"ABABABA".to_vec()));
    assert_eq!(made("02 41 0F 01 FF", 274), Some(vec![b'A'; 274]));
    // A match that extends past the end is truncated.
    assert_eq!(made("02 41 0F 01 FF", 100), Some(vec![b'A'; 100]));
    // Nine literals need two control bytes.
    assert_eq!(made("00 61 62 63 64 65 66 67 68 00 69", 9), Some(b"abcdefghi".to_vec()));
    for (hex, raw_size) in [
        ("00 41", 2),
        ("00 41 42", 1),
        ("00 41 00", 1),
        ("01 00 01", 3),
        ("02 41 00 00", 4),
        ("02 41 00 02", 4),
        ("02 41 10 01", 4),
        ("02 41 00", 4),
        ("02 41 0F 01", 30),
        ("00", 1),
        ("", 1),
    ] {
        assert_eq!(made(hex, raw_size), None, "{hex}");
    }
}

#[test]
fn both_ways() {
    let seed = 0x5EED;
    let mut random = XorShift(seed);
    for round in 0..60 {
        let length = random.below([20, 300, 5000][round % 3]);
        let bytes = sample(&mut random, length);
        for (method, compressed) in
            [(Method::Pglz, pglz(&bytes)), (Method::Lz4, lz4_flex::block::compress(&bytes))]
        {
            let made = raw(method, &compressed, bytes.len());
            assert_eq!(made.as_ref(), Some(&bytes), "seed {seed}, round {round}, {method}");
            if method == Method::Lz4 {
                assert_eq!(raw(method, &compressed, bytes.len() + 1), None);
            }
        }
    }
}

/// If a value is damaged, we must either detect that or return different data of the requested
/// size. We must never allocate more memory than the method's compression ratio allows.
#[test]
fn damaged() {
    let seed = 0xDA3A;
    let mut random = XorShift(seed);
    let bytes = sample(&mut random, 3000);
    for (method, compressed) in
        [(Method::Pglz, pglz(&bytes)), (Method::Lz4, lz4_flex::block::compress(&bytes))]
    {
        for _ in 0..20_000 {
            let mut flipped = compressed.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(flipped.len());
                flipped[at] ^= 1 << random.below(8);
            }
            flipped.truncate(1 + random.below(flipped.len()));
            let raw_size = random.below(6000);
            if let Some(made) = raw(method, &flipped, raw_size) {
                assert_eq!(made.len(), raw_size);
            }
        }
        let mut out = Vec::new();
        assert!(decompress(method, &compressed, 0x3FFF_FFFF, &mut out).is_err());
        assert_eq!(out.capacity(), 0, "nothing is taken for a size that cannot be");
    }
}
