//! Payloads of one-dimensional arrays in catalogs: `oid[]`, `int2[]`, `float4[]`, `"char"[]` and `text[]`.
//!
//! The elements of a catalog's array are never null, and those of a `text[]` always have a four-byte
//! header. The payload of `'{IN,OUT}'::text[]` is
//!
//! ```text
//!   1 dimension, 0: no nulls, 25: text, 2 elements, lower bound 1, 24 "IN" ··, 28 "OUT"
//! ```

use crate::ids::Oid;
use crate::little_endian::{read_at, words};

/// The elements of an array of OIDs. `None` unless it is such an array without nulls.
pub fn array_oids(payload: &[u8]) -> Option<Vec<Oid>> {
    let (count, rest) = elements(payload, 26)?;
    let (words, _) = rest.as_chunks::<4>();
    let words = words.get(..count)?;
    Some(words.iter().map(|&bytes| Oid(u32::from_le_bytes(bytes))).collect())
}

/// The elements of an array of type `int2[]`. `None` unless it is such an array without nulls.
pub fn array_shorts(payload: &[u8]) -> Option<Vec<i16>> {
    let (count, rest) = elements(payload, 21)?;
    let (words, _) = rest.as_chunks::<2>();
    Some(words.get(..count)?.iter().map(|&bytes| i16::from_le_bytes(bytes)).collect())
}

/// The elements of an array of type `float4[]`. `None` unless it is such an array without nulls.
pub fn array_floats(payload: &[u8]) -> Option<Vec<f32>> {
    let (count, rest) = elements(payload, 700)?;
    let (words, _) = rest.as_chunks::<4>();
    Some(words.get(..count)?.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
}

/// The elements of an array of type `"char"[]`. `None` unless it is such an array without nulls.
pub fn array_chars(payload: &[u8]) -> Option<&[u8]> {
    let (count, rest) = elements(payload, 18)?;
    rest.get(..count)
}

/// The elements of an array of type `text[]`. `None` unless it is such an array without nulls.
pub fn array_texts(payload: &[u8]) -> Option<Vec<&[u8]>> {
    let (count, mut rest) = elements(payload, 25)?;
    let mut texts = Vec::new();
    for _ in 0..count {
        let header = read_at::<u32>(rest, 0)?;
        let length = usize::try_from(header >> 2).ok()?;
        texts.push(rest.get(4..length).filter(|_| header & 3 == 0)?);
        // All elements except the last are padded to a multiple of 4.
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(texts)
}

/// The number of elements, and the bytes of an array whose elements have this type.
fn elements(payload: &[u8], element: u32) -> Option<(usize, &[u8])> {
    if words(payload, 0)? == [0] {
        return Some((0, &[]));
    }
    let [1, 0, found, count] = words(payload, 0)? else { return None };
    let count = usize::try_from(count).ok()?;
    (found == element).then_some((count, payload.get(20..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(element: u32, count: u32, elements: &[u8]) -> Vec<u8> {
        let header = [1, 0, element, count, 1];
        let header = header.iter().flat_map(|number: &u32| number.to_le_bytes());
        header.chain(elements.iter().copied()).collect()
    }

    #[test]
    fn arrays_are_read_whole_or_not_at_all() {
        let oids = array(26, 2, &[23, 0, 0, 0, 25, 0, 0, 0]);
        let chars = array(18, 3, b"iov");
        let texts = array(25, 2, b"\x18\0\0\0IN\0\0\x1C\0\0\0OUT");
        assert_eq!(array_oids(&oids), Some(vec![Oid(23), Oid(25)]));
        let floats = array(700, 2, &[0, 0, 0, 0x3F, 0, 0, 0x80, 0x3F]);
        assert_eq!(array_floats(&floats), Some(vec![0.5, 1.0]));
        assert_eq!(array_chars(&chars), Some(&b"iov"[..]));
        assert_eq!(array_texts(&texts), Some(vec![&b"IN"[..], b"OUT"]));
        let empty = [0; 12];
        assert_eq!(array_oids(&empty), Some(Vec::new()));
        for length in 0..oids.len() {
            assert_eq!(array_oids(&oids[..length]), None, "{length}");
        }
        for length in 0..texts.len() {
            assert_eq!(array_texts(&texts[..length]), None, "{length}");
        }
        for wrong in [&chars, &texts, &array(26, u32::MAX, &[1; 8])] {
            assert_eq!(array_oids(wrong), None);
        }
    }
}
