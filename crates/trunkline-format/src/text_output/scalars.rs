//! Output of simple types: bytea, bit strings, uuid, "char", pg_lsn, snapshots, int2vector and
//! oidvector.

use super::digits;
use super::error::ValueError;
use super::options::ByteaOutput;
use super::reader::Reader;
use crate::ids::Lsn;

/// A `bytea`.
pub(super) fn bytea(value: &[u8], style: ByteaOutput, out: &mut Vec<u8>) {
    match style {
        ByteaOutput::Hex => {
            out.extend_from_slice(b"\\x");
            digits::hex(value, out);
        }
        ByteaOutput::Escape => {
            for &byte in value {
                match byte {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    b' '..=b'~' => out.push(byte),
                    _ => digits::octal(byte, out),
                }
            }
        }
    }
}

/// A `bit` or `varbit`. The first four bytes hold the bit count; bits are stored highest first.
pub(super) fn bits(
    type_name: &'static str,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let mut reader = Reader::new(type_name, value);
    let count =
        usize::try_from(reader.read::<i32>()?).map_err(|_| reader.error("a negative length"))?;
    let bytes = reader.take(count.div_ceil(8))?;
    reader.end()?;
    out.reserve(count);
    let all = bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| b'0' + (byte >> bit & 1)));
    out.extend(all.take(count));
    Ok(())
}

/// A `uuid`: 16 bytes in groups of 4, 2, 2, 2 and 6.
pub(super) fn uuid(bytes: &[u8; 16], out: &mut Vec<u8>) {
    /// The positions of each byte's digits.
    const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    let mut text = [b'-'; 36];
    for (&place, &byte) in PLACES.iter().zip(bytes) {
        if let Some(two) = text.get_mut(place..).and_then(<[u8]>::first_chunk_mut) {
            *two = digits::hex_pair(byte);
        }
    }
    out.extend_from_slice(&text);
}

/// A `"char"`: a single byte. A zero byte prints nothing, and bytes above ASCII print as `\` and
/// three octal digits.
pub(super) fn char(byte: u8, out: &mut Vec<u8>) {
    match byte {
        0 => {}
        1..=127 => out.push(byte),
        _ => digits::octal(byte, out),
    }
}

/// A `pg_lsn`. Since PostgreSQL 19 the lower half is zero-padded.
pub(super) fn lsn(position: Lsn, major: u32, out: &mut Vec<u8>) {
    let start = out.len();
    digits::hex_trimmed(&position.high().to_be_bytes(), 1, out);
    out.push(b'/');
    digits::hex_trimmed(&position.low().to_be_bytes(), if major >= 19 { 8 } else { 1 }, out);
    out.get_mut(start..).unwrap_or_default().make_ascii_uppercase();
}

/// A `pg_snapshot` or `txid_snapshot`: `xmin:xmax:` and the list of in-progress transactions.
pub(super) fn snapshot(value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut reader = Reader::new("pg_snapshot", value);
    let count = reader.read::<u32>()? as usize;
    for _ in 0..2 {
        digits::unsigned(reader.read::<u64>()?, out);
        out.push(b':');
    }
    if count != reader.rest().len() / 8 {
        return Err(reader.error("an impossible number of transactions"));
    }
    for at in 0..count {
        digits::separate(at, b",", out);
        digits::unsigned(reader.read::<u64>()?, out);
    }
    reader.end()
}

/// The elements of an `int2vector` or `oidvector`, separated by blanks.
pub(super) fn vector(
    type_name: &'static str,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let mut reader = Reader::new(type_name, value);
    if (reader.read::<i32>()?, reader.read::<i32>()?) != (1, 0) {
        return Err(reader.error("not a vector"));
    }
    let [_, count, _] = [reader.read::<i32>()?, reader.read()?, reader.read()?];
    for at in 0..usize::try_from(count).unwrap_or(0) {
        digits::separate(at, b" ", out);
        match type_name {
            "int2vector" => digits::signed(i64::from(reader.read::<i16>()?), out),
            _ => digits::unsigned(u64::from(reader.read::<u32>()?), out),
        }
    }
    reader.end()
}
