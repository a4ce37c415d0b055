//! `inet`, `cidr`, `macaddr` and `macaddr8`.
//!
//! An `inet` without a length is a host; a `cidr` may leave out octets, and gets its length from the
//! class of its network: `10` is `10.0.0.0/8`.
//!
//! Mirrors PostgreSQL's `utils/adt/network.c`, `utils/adt/inet_net_pton.c`, `utils/adt/mac.c` and
//! `utils/adt/mac8.c`.

use super::c_text::{first, is_space, skip_space, split_while};
use super::error::InputError;
use std::net::Ipv6Addr;

/// The families as they are stored.
pub(crate) const V4: u8 = 2;
pub(crate) const V6: u8 = 3;

/// A number without a sign.
fn decimal(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = split_while(text, |byte| byte.is_ascii_digit());
    Some((digits.parse().ok()?, rest))
}

/// The octets of an IPv4 address, the text from the length on.
fn octets(text: &str) -> Option<(Vec<u8>, &str)> {
    let mut octets = Vec::new();
    let mut rest = text;
    loop {
        let (octet, after) = decimal(rest)?;
        octets.push(u8::try_from(octet).ok()?);
        match after.strip_prefix('.') {
            Some(after) if octets.len() < 4 => rest = after,
            Some(_) => return None,
            None => return Some((octets, after)),
        }
    }
}

/// The octets of a `cidr` in hexadecimal: `0xff0a`.
fn hex_octets(text: &str) -> Option<(Vec<u8>, &str)> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let (digits, rest) = split_while(digits, |byte| byte.is_ascii_hexdigit());
    let digits: Vec<u8> =
        digits.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    let octets: Vec<u8> = digits
        .chunks(2)
        .map(|pair| pair.first().unwrap_or(&0) << 4 | pair.get(1).unwrap_or(&0))
        .collect();
    (1..=4).contains(&octets.len()).then_some((octets, rest))
}

/// The length of a network in bits, after a slash.
fn bits(text: &str, most: u32) -> Option<u32> {
    let (bits, rest) = decimal(text)?;
    (rest.is_empty() && bits <= most).then_some(bits)
}

/// An IPv4 address and its length.
fn v4(text: &str, cidr: bool) -> Option<(Vec<u8>, u32)> {
    let hex = if cidr { hex_octets(text) } else { None };
    let (mut octets, rest) = hex.or_else(|| octets(text))?;
    let given = match rest.strip_prefix('/') {
        Some(length) => Some(bits(length, 32)?),
        None if rest.is_empty() => None,
        None => return None,
    };
    let count = octets.len() as u32;
    let length = match given {
        Some(length) if cidr => length,
        Some(length) => (length / 8 <= count).then_some(length)?,
        None if !cidr => (count == 4).then_some(32)?,
        None => {
            let start = octets.first().copied().unwrap_or(0);
            let class = match start {
                240.. => 32,
                224.. => 8,
                192.. => 24,
                128.. => 16,
                _ => 8,
            };
            let length = if class >= 8 { class.max(count * 8) } else { class };
            if length == 8 && start == 224 { 4 } else { length }
        }
    };
    octets.resize(4, 0);
    Some((octets, length))
}

/// An IPv6 address and its length.
fn v6(text: &str) -> Option<(Vec<u8>, u32)> {
    let (address, length) = match text.split_once('/') {
        Some((_, length)) if length.len() > 1 && length.starts_with('0') => return None,
        Some((address, length)) => (address, bits(length, 128)?),
        None => (text, 128),
    };
    Some((address.parse::<Ipv6Addr>().ok()?.octets().to_vec(), length))
}

/// Whether no bits are set after the first `length` ones.
pub(crate) fn host_is_zero(octets: &[u8], length: u32) -> bool {
    octets.iter().zip(0..).all(|(&octet, at)| {
        let kept = length.saturating_sub(at * 8).min(8);
        u32::from(octet) << kept & 0xFF == 0
    })
}

/// An `inet` or `cidr`.
pub(super) fn address(text: &str, cidr: bool, out: &mut Vec<u8>) -> Result<(), InputError> {
    let is_v6 = text.contains(':');
    let parsed = if is_v6 { v6(text) } else { v4(text, cidr) };
    let name = if cidr { "cidr" } else { "inet" };
    let (octets, length) = parsed.ok_or_else(|| InputError::syntax(name, text))?;
    if cidr && !host_is_zero(&octets, length) {
        let message = format!("invalid cidr value: \"{text}\"");
        let detail = "Value has bits set to right of mask.";
        return Err(InputError::new("22P02", message).with_detail(detail));
    }
    out.extend_from_slice(&[if is_v6 { V6 } else { V4 }, length as u8]);
    out.extend_from_slice(&octets);
    Ok(())
}

/// A hexadecimal number, as `scanf` reads it.
fn hex_number(text: &str, width: usize) -> Option<(u32, &str)> {
    let text = skip_space(text);
    let (digits, _) = split_while(text, |byte| byte.is_ascii_hexdigit());
    let digits = digits.get(..width).unwrap_or(digits);
    let number = u32::from_str_radix(digits, 16).ok()?;
    Some((number, text.get(digits.len()..).unwrap_or_default()))
}

/// A `macaddr`: six octets, with a separator after each of them, or after groups of them.
pub(super) fn macaddr(text: &str) -> Result<[u8; 6], InputError> {
    /// The separators that may follow each octet, and the width of an octet.
    const FORMATS: [([&str; 5], usize); 7] = [
        ([":", ":", ":", ":", ":"], 8),
        (["-", "-", "-", "-", "-"], 8),
        (["", "", ":", "", ""], 2),
        (["", "", "-", "", ""], 2),
        (["", ".", "", ".", ""], 2),
        (["", "-", "", "-", ""], 2),
        (["", "", "", "", ""], 2),
    ];
    let parse = |separators: &[&str; 5], width: usize| {
        let mut octets = [0; 6];
        let mut rest = text;
        for (at, octet) in octets.iter_mut().enumerate() {
            (*octet, rest) = hex_number(rest, width)?;
            if let Some(separator) = separators.get(at) {
                rest = rest.strip_prefix(separator)?;
            }
        }
        skip_space(rest).is_empty().then_some(octets)
    };
    let octets = FORMATS.iter().find_map(|(separators, width)| parse(separators, *width));
    let octets = octets.ok_or_else(|| InputError::syntax("macaddr", text))?;
    if octets.iter().any(|&octet| octet > 255) {
        let message = format!("invalid octet value in \"macaddr\" value: \"{text}\"");
        return Err(InputError::new("22003", message));
    }
    Ok(octets.map(|octet| octet as u8))
}

/// A `macaddr8`: six or eight octets, with the same separator wherever there is one. Six octets get
/// `ff:fe` in the middle.
pub(super) fn macaddr8(text: &str) -> Result<[u8; 8], InputError> {
    let parse = || {
        let mut octets: Vec<u8> = Vec::new();
        let mut rest = skip_space(text);
        let mut spacer = None;
        while octets.len() < 8 {
            let (digits, after) = rest.split_at_checked(2)?;
            let valid = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            octets.push(u8::from_str_radix(digits, 16).ok().filter(|_| valid)?);
            rest = after;
            if let byte @ (b':' | b'-' | b'.') = first(rest) {
                if *spacer.get_or_insert(byte) != byte {
                    return None;
                }
                rest = rest.get(1..).unwrap_or_default();
            }
            if matches!(octets.len(), 6 | 8) && (rest.is_empty() || is_space(first(rest))) {
                break;
            }
        }
        if !skip_space(rest).is_empty() {
            return None;
        }
        match octets[..] {
            [a, b, c, d, e, f] => Some([a, b, c, 0xFF, 0xFE, d, e, f]),
            _ => octets.try_into().ok(),
        }
    };
    parse().ok_or_else(|| InputError::syntax("macaddr8", text))
}
