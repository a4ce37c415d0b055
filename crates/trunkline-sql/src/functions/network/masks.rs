//! What a mask makes of an address: `network`, `netmask`, `broadcast`, `set_masklen`, `abbrev`.
//!
//! For example, `broadcast('10.1.2.3/8')` is `10.255.255.255/8`, and `abbrev('10.1.0.0/16'::cidr)` is
//! `10.1/16`. Mirrors PostgreSQL's `utils/adt/network.c` and `port/inet_net_ntop.c`.

use arrow_array::ArrayRef;

use super::address::Address;
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::printing::Printer;
use crate::functions::rows::{binary, each_row, unary};

/// The kernels of this module.
pub(in crate::functions) const MASKS: &[(&str, Kernel)] = &[
    ("network_network", |call| {
        unary(call, |value: &[u8]| {
            let address = Address::parse(value)?;
            Ok(address.network(address.bits).store())
        })
    }),
    ("network_broadcast", |call| {
        unary(call, |value: &[u8]| {
            Ok(Address::parse(value)?.masked(|byte, mask| byte | !mask).store())
        })
    }),
    ("network_netmask", |call| whole(call, |_, mask| mask)),
    ("network_hostmask", |call| whole(call, |_, mask| !mask)),
    ("inet_to_cidr", |call| {
        unary(call, |value: &[u8]| {
            let address = Address::parse(value)?;
            Ok(address.network(address.bits).store())
        })
    }),
    ("inet_set_masklen", |call| {
        binary(call, |value: &[u8], bits: i32| {
            let address = Address::parse(value)?;
            Ok(Address { bits: mask_length(&address, bits)?, ..address }.store())
        })
    }),
    ("cidr_set_masklen", |call| {
        binary(call, |value: &[u8], bits: i32| {
            let address = Address::parse(value)?;
            Ok(address.network(mask_length(&address, bits)?).store())
        })
    }),
    ("inet_abbrev", |call| {
        let mut texts = Printer::new(call, 0)?;
        each_row(call.rows, |row| texts.text(row))
    }),
    ("cidr_abbrev", |call| unary(call, |value: &[u8]| Ok(abbreviated(&Address::parse(value)?)))),
    ("inet_same_family", |call| {
        binary(call, |left: &[u8], right: &[u8]| {
            Ok(Address::parse(left)?.family() == Address::parse(right)?.family())
        })
    }),
    ("inet_merge", |call| {
        binary(call, |left: &[u8], right: &[u8]| {
            let (left, right) = (Address::parse(left)?, Address::parse(right)?);
            if left.family() != right.family() {
                let message = "cannot merge addresses from different families";
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
            let common = left.common_bits(&right, left.bits.min(right.bits));
            Ok(left.network(common).store())
        })
    }),
];

/// A mask as an address, all of whose bits count.
fn whole(call: &Call<'_>, compute: fn(u8, u8) -> u8) -> Result<ArrayRef, SqlError> {
    unary(call, |value: &[u8]| {
        let address = Address::parse(value)?.masked(compute);
        Ok(Address { bits: address.bits_max(), ..address }.store())
    })
}

/// The length of a mask; -1 stands for all bits.
fn mask_length(address: &Address, bits: i32) -> Result<u8, SqlError> {
    let most = address.bits_max();
    let bits_u8 = if bits == -1 { Some(most) } else { u8::try_from(bits).ok() };
    bits_u8.filter(|&bits| bits <= most).ok_or_else(|| {
        let message = format!("invalid mask length: {bits}");
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
    })
}

/// A network without the bytes that its mask doesn't cover (`pg_inet_cidr_ntop`).
fn abbreviated(address: &Address) -> String {
    let bits = address.bits;
    let network = address.network(bits);
    let text = match address.is_v6 {
        true => abbreviated_v6(&network.bytes, usize::from(bits)),
        false => {
            let shown = usize::from(bits).div_ceil(8).max(1);
            let bytes: Vec<String> = network.bytes.iter().take(shown).map(u8::to_string).collect();
            bytes.join(".")
        }
    };
    format!("{text}/{bits}")
}

/// The words that a mask covers, of which the longest run of zeros is left out.
fn abbreviated_v6(bytes: &[u8], bits: usize) -> String {
    if bits == 0 {
        return "::".to_owned();
    }
    let words: Vec<u16> =
        bytes.as_chunks().0.iter().map(|&pair| u16::from_be_bytes(pair)).collect();
    let count = bits.div_ceil(16).max(2);
    let (start, zeros) = zero_run(words.get(..count).unwrap_or(&words));
    let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
    let is_mapped = zeros == 6
        || (zeros == 5 && byte(10) == 0xFF && byte(11) == 0xFF)
        || (zeros == 7 && byte(14) != 0 && byte(15) != 1);
    let is_v4 = zeros != count && start == 0 && is_mapped;
    let mut out = String::new();
    for (at, word) in words.iter().enumerate().take(count) {
        if zeros > 0 && (start..start + zeros).contains(&at) {
            if at == start {
                out.push(':');
            }
            if at == count - 1 {
                out.push(':');
            }
        } else if is_v4 && at > 5 {
            out.push(if at == 6 { ':' } else { '.' });
            let [high, low] = word.to_be_bytes();
            out.push_str(&high.to_string());
            if at != 7 || bits > 120 {
                out.push_str(&format!(".{low}"));
            }
        } else {
            if !out.is_empty() {
                out.push(':');
            }
            out.push_str(&format!("{word:x}"));
        }
    }
    out
}

/// The place and length of the run of zeros that is left out. As in the server, a run that is not the
/// longest so far is continued by the zeros after it.
fn zero_run(words: &[u16]) -> (usize, usize) {
    let (mut best, mut start, mut length) = ((0, 0), 0, 0);
    for (at, &word) in words.iter().enumerate() {
        if word == 0 {
            if length == 0 {
                start = at;
            }
            length += 1;
        } else if length > best.1 {
            best = (start, length);
            length = 0;
        }
    }
    if length > best.1 { (start, length) } else { best }
}
