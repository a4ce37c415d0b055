//! `inet`, `cidr`, `macaddr` and `macaddr8`.
//!
//! An address is stored as its family, its prefix length, and 4 or 16 bytes in network byte order.
//! We print IPv6 addresses in the same format as PostgreSQL, which uses a copy of BIND's
//! `inet_net_ntop`. The longest run of zero words is replaced with `::` (the first one, if there
//! are several), and an embedded IPv4 address is printed in dotted form.
//!
//! Mirrors PostgreSQL's `utils/adt/network.c`, `utils/adt/mac.c` and `utils/adt/mac8.c`.

use super::digits;
use super::error::ValueError;
use super::reader::Reader;

/// `inet` if `always_bits` is false, else `cidr`.
pub(super) fn address(
    value: &[u8],
    always_bits: bool,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let mut reader = Reader::new(if always_bits { "cidr" } else { "inet" }, value);
    let (family, bits) = (reader.read::<u8>()?, reader.read::<u8>()?);
    let most = match family {
        2 => 32,
        3 => 128,
        _ => return Err(reader.error("neither IPv4 nor IPv6")),
    };
    let bytes = reader.take(most / 8)?;
    reader.end()?;
    if usize::from(bits) > most {
        return Err(reader.error("more bits than the address has"));
    }
    match bytes.as_chunks::<2>().0 {
        words if words.len() == 8 => write_v6(words, out),
        _ => write_v4(bytes, out),
    }
    if always_bits || usize::from(bits) != most {
        out.push(b'/');
        digits::unsigned(u64::from(bits), out);
    }
    Ok(())
}

fn write_v4(bytes: &[u8], out: &mut Vec<u8>) {
    for (at, &byte) in bytes.iter().enumerate() {
        digits::separate(at, b".", out);
        digits::unsigned(u64::from(byte), out);
    }
}

/// Position and length of the longest run of at least two zero words.
fn zeros(words: &[u16]) -> (usize, usize) {
    let (mut best, mut from) = ((0, 0), 0);
    for (at, &word) in words.iter().enumerate() {
        if word != 0 {
            from = at + 1;
        } else if at + 1 - from > best.1 {
            best = (from, at + 1 - from);
        }
    }
    if best.1 < 2 { (0, 0) } else { best }
}

fn write_v6(bytes: &[[u8; 2]], out: &mut Vec<u8>) {
    let words: Vec<u16> = bytes.iter().map(|&word| u16::from_be_bytes(word)).collect();
    let (from, count) = zeros(&words);
    let mut at = 0;
    while at < words.len() {
        if count > 0 && at == from {
            out.push(b':');
            at += count;
            continue;
        }
        digits::separate(at, b":", out);
        let mapped = match count {
            6 => true,
            7 => words.get(7) != Some(&1),
            5 => words.get(5) == Some(&0xFFFF),
            _ => false,
        };
        if at == 6 && from == 0 && mapped {
            return write_v4(bytes.get(6..).unwrap_or_default().as_flattened(), out);
        }
        digits::hex_trimmed(&words.get(at).copied().unwrap_or(0).to_be_bytes(), 1, out);
        at += 1;
    }
    if count > 0 && from + count == words.len() {
        out.push(b':');
    }
}

/// `macaddr` and `macaddr8`: two digits per byte, separated by colons.
pub(super) fn mac(bytes: &[u8], out: &mut Vec<u8>) {
    for (at, byte) in bytes.iter().enumerate() {
        digits::separate(at, b":", out);
        digits::hex(std::slice::from_ref(byte), out);
    }
}
