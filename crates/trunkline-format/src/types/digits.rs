//! Numbers as decimal digits, straight into the output.
//!
//! Two digits are looked up at a time, and nothing is allocated beyond the output itself: integers
//! and timestamps are most of what tables hold.

/// `00` to `99`.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// The two digits of `n`, which is below 100.
#[inline]
fn pair(n: u32) -> [u8; 2] {
    PAIRS.get(n as usize).copied().unwrap_or([b'?'; 2])
}

/// `n` without leading zeros.
#[inline]
pub(super) fn unsigned(mut n: u64, out: &mut Vec<u8>) {
    let mut room = [0_u8; 20];
    let mut at = room.len();
    while n >= 100 {
        at -= 2;
        if let Some(two) = room.get_mut(at..at + 2) {
            two.copy_from_slice(&pair((n % 100) as u32));
        }
        n /= 100;
    }
    let [tens, ones] = pair(n as u32);
    at -= 1;
    if let Some(one) = room.get_mut(at) {
        *one = ones;
    }
    if n >= 10 {
        at -= 1;
        if let Some(one) = room.get_mut(at) {
            *one = tens;
        }
    }
    out.extend_from_slice(room.get(at..).unwrap_or_default());
}

/// `n` without leading zeros, `-` before it if it is negative.
#[inline]
pub(super) fn signed(n: i64, out: &mut Vec<u8>) {
    if n < 0 {
        out.push(b'-');
    }
    unsigned(n.unsigned_abs(), out);
}

/// The last two digits of `n`.
#[inline]
pub(super) fn two(n: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&pair(n % 100));
}

/// The four digits of `n`, which is below 10 000.
#[inline]
pub(super) fn four(n: u32) -> [u8; 4] {
    let ([a, b], [c, d]) = (pair(n / 100 % 100), pair(n % 100));
    [a, b, c, d]
}

/// `n` with at least `width` digits, up to 20.
pub(super) fn padded(n: u64, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    unsigned(n, out);
    let missing = width.saturating_sub(out.len() - start);
    out.splice(start..start, std::iter::repeat_n(b'0', missing));
}

/// A point and up to six digits without trailing zeros; nothing for 0. `micros` is below 1 000 000.
pub(super) fn fraction(micros: u32, out: &mut Vec<u8>) {
    if micros == 0 {
        return;
    }
    let [a, b, c, d] = four(micros / 100);
    let [e, f] = pair(micros % 100);
    out.extend_from_slice(&[b'.', a, b, c, d, e, f]);
    while out.last() == Some(&b'0') {
        out.pop();
    }
}

/// Two hexadecimal digits, in lower case, for each byte.
pub(super) fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() * 2);
    let digit = |n: u8| DIGITS.get(usize::from(n & 15)).copied().unwrap_or(b'?');
    out.extend(bytes.iter().flat_map(|&byte| [digit(byte >> 4), digit(byte)]));
}

/// `\` and three octal digits.
pub(super) fn octal(byte: u8, out: &mut Vec<u8>) {
    let digit = |shift: u8| b'0' + (byte >> shift & 7);
    out.extend_from_slice(&[b'\\', digit(6), digit(3), digit(0)]);
}

#[cfg(test)]
mod tests {
    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_are_written_as_the_standard_library_does() {
        let mut n = 1_u64;
        let edges = [0, 9, 10, 99, 100, u64::MAX, i64::MAX as u64, i64::MIN as u64];
        let random = (0..10_000).map(|i| {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            n >> (i % 64)
        });
        for n in random.chain(edges) {
            assert_eq!(text(|out| super::unsigned(n, out)), n.to_string());
            assert_eq!(text(|out| super::signed(n as i64, out)), (n as i64).to_string());
        }
    }

    #[test]
    fn widths_fractions_and_codes() {
        assert_eq!(text(|out| super::padded(7, 4, out)), "0007");
        assert_eq!(text(|out| super::padded(12345, 4, out)), "12345");
        assert_eq!(text(|out| super::fraction(0, out)), "");
        assert_eq!(text(|out| super::fraction(500_000, out)), ".5");
        assert_eq!(text(|out| super::fraction(1, out)), ".000001");
        assert_eq!(text(|out| super::hex(&[0, 0xa5, 0xff], out)), "00a5ff");
        assert_eq!(text(|out| super::octal(200, out)), "\\310");
    }
}
