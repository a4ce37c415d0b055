//! Writes integers as decimal digits directly into the output.
//!
//! We compute eight digits in parallel in a 64-bit register. For example, 12345678 is converted to
//! the bytes 1 to 8, and we then add `'0'` to every byte to get the text. To append the text, we
//! always copy a fixed-size array and then truncate the output, because copying is faster if the
//! compiler knows the length. This is worth optimising, because most columns in real tables are
//! integers or timestamps.

/// `'0'` in each byte.
const ZEROS: u64 = 0x3030_3030_3030_3030;
/// One more than the largest number of eight digits.
const EIGHT_END: u64 = 100_000_000;

/// Returns the eight digits of `n`, which must be less than [`EIGHT_END`]. Each byte of the result
/// contains one digit as a number, and the most significant digit is in the lowest byte.
#[inline]
pub(super) fn eight(n: u32) -> u64 {
    // Split the number into two four-digit numbers, then split those into four two-digit numbers,
    // and those into eight digits. We can divide values below 10000 by 100 using `* 10486 >> 20`,
    // and values below 100 by 10 using `* 103 >> 10`.
    let fours = u64::from(n / 10_000) | u64::from(n % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x7F_0000_007F;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000F_000F_000F_000F;
    tens | (twos - 10 * tens) << 8
}

/// Turns the digits computed by [`eight`] into ASCII.
#[inline]
pub(super) fn text(digits: u64) -> u64 {
    digits | ZEROS
}

/// `n` without leading zeros.
#[inline]
pub(super) fn unsigned(n: u64, out: &mut Vec<u8>) {
    if n < EIGHT_END {
        let digits = eight(n as u32);
        let leading = (digits.trailing_zeros() / 8).min(7);
        let end = out.len() + 8 - leading as usize;
        out.extend_from_slice(&(text(digits) >> (leading * 8)).to_le_bytes());
        out.truncate(end);
    } else {
        unsigned_long(n, out);
    }
}

/// Like [`unsigned`], for numbers of at least nine digits.
fn unsigned_long(n: u64, out: &mut Vec<u8>) {
    unsigned(n / EIGHT_END, out);
    out.extend_from_slice(&text(eight((n % EIGHT_END) as u32)).to_le_bytes());
}

/// `n` without leading zeros, preceded by `-` if it is negative.
#[inline]
pub(super) fn signed(n: i64, out: &mut Vec<u8>) {
    if n < 0 {
        out.push(b'-');
    }
    unsigned(n.unsigned_abs(), out);
}

/// The two digits of `n`, which must be below 100.
#[inline]
pub(super) fn two(n: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + (n / 10) as u8, b'0' + (n % 10) as u8]);
}

/// The four digits of `n`, which must be below 10 000.
#[inline]
pub(super) fn four(n: u32) -> [u8; 4] {
    ((text(eight(n)) >> 32) as u32).to_le_bytes()
}

/// `n`, zero-padded to at least `width` digits (at most 20).
pub(super) fn padded(n: u64, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    unsigned(n, out);
    let missing = width.saturating_sub(out.len() - start);
    out.splice(start..start, std::iter::repeat_n(b'0', missing));
}

/// Writes a decimal point and up to six digits, without trailing zeros. Writes nothing at all if
/// `micros` is 0. `micros` must be less than 1000000.
#[inline]
pub(super) fn fraction(micros: u32, out: &mut Vec<u8>) {
    if micros == 0 {
        return;
    }
    let digits = eight(micros);
    let end = out.len() + 7 - (digits.leading_zeros() / 8) as usize;
    // The first two of the eight digits are always 0, so we drop them and put the decimal point
    // there.
    out.extend_from_slice(&(text(digits) >> 16 << 8 | u64::from(b'.')).to_le_bytes());
    out.truncate(end);
}

/// Writes `mark` before item `at` (counted from 0) of a list, unless it is the first item.
#[inline]
pub(super) fn separate(at: usize, mark: &[u8], out: &mut Vec<u8>) {
    if at > 0 {
        out.extend_from_slice(mark);
    }
}

/// `00` to `ff`.
const HEX: [[u8; 2]; 256] = {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut n = 0;
    while n < 256 {
        pairs[n] = [DIGITS[n >> 4], DIGITS[n & 15]];
        n += 1;
    }
    pairs
};

/// The two hexadecimal digits of a byte, in lower case.
#[inline]
pub(super) fn hex_pair(byte: u8) -> [u8; 2] {
    HEX[usize::from(byte)]
}

/// Two lower-case hexadecimal digits for each byte.
pub(super) fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + bytes.len() * 2, 0);
    let room = out.get_mut(start..).unwrap_or_default();
    for (pair, &byte) in room.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = hex_pair(byte);
    }
}

/// Lower-case hexadecimal without leading zeros, but at least `width` digits.
pub(super) fn hex_trimmed(bytes: &[u8], width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    hex(bytes, out);
    let most = (bytes.len() * 2).saturating_sub(width);
    let shown = out.get(start..).unwrap_or_default();
    let zeros = shown.iter().take(most).take_while(|&&digit| digit == b'0').count();
    out.drain(start..start + zeros);
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
