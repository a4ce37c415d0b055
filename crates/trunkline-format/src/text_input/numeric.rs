//! `numeric` and `money`.
//!
//! A numeric is parsed into decimal digits, then rounded to the scale of its type modifier, and then
//! packed into digits of base 10,000. For example, `numeric(5,2)` turns `1.005` into `1.01` (halves
//! are rounded away from zero) and rejects `1000`.
//!
//! Mirrors `numeric_in` and `apply_typmod` of PostgreSQL's `utils/adt/numeric.c`, and `cash_in` of
//! `utils/adt/cash.c`.

use super::c_text::{first, is_space, skip_space, split_while, trim_space};
use super::error::InputError;
use crate::numeric::{self, INFINITY, MINUS_INFINITY, NAN};

/// The first version with hexadecimal integers and underscores.
const PREFIXES_SINCE: u32 = 16;
/// Exponents beyond this are errors, before they can overflow anything.
const EXPONENT_MAX: i64 = (i32::MAX / 2) as i64;
/// Decimal digits per stored digit.
const BASE_DIGITS: i32 = 4;

fn overflow() -> InputError {
    InputError::new("22003", "value overflows numeric format")
}

/// The precision and scale of a type modifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Modifier {
    precision: i32,
    scale: i32,
}

impl Modifier {
    /// `None` if the type has no modifier.
    pub(crate) fn new(typmod: i32) -> Option<Self> {
        let packed = typmod.checked_sub(4).filter(|&packed| packed >= 0)?;
        // The scale is a signed number of 11 bits.
        let scale = ((packed & 0x7FF) ^ 1024) - 1024;
        Some(Self { precision: packed >> 16 & 0xFFFF, scale })
    }

    fn overflow(self, detail: &str) -> InputError {
        let Self { precision, scale } = self;
        let detail = format!("A field with precision {precision}, scale {scale} {detail}.");
        InputError::new("22003", "numeric field overflow").with_detail(detail)
    }
}

/// A finite number as decimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Decimal {
    pub(crate) negative: bool,
    /// Values from 0 to 9.
    pub(crate) digits: Vec<u8>,
    /// The number of digits before the decimal point. It may be negative, or greater than the
    /// number of digits.
    pub(crate) point: i32,
    /// The number of decimals to print.
    pub(crate) scale: i32,
}

impl Decimal {
    /// Parses digits with an optional point and exponent, and returns them with the text after
    /// them. Underscores are allowed between digits if `underscores`.
    fn prefix(text: &str, underscores: bool) -> Option<Result<(Self, &str), InputError>> {
        let mut decimal = Self::default();
        let mut rest = text;
        let mut have_point = false;
        loop {
            let byte = first(rest);
            match byte {
                b'0'..=b'9' => {
                    decimal.digits.push(byte - b'0');
                    decimal.point += i32::from(!have_point);
                    decimal.scale += i32::from(have_point);
                }
                b'.' if !have_point => {
                    have_point = true;
                    if rest.get(1..).is_some_and(|rest| rest.starts_with('_')) {
                        return None;
                    }
                }
                b'.' => return None,
                b'_' if underscores && !decimal.digits.is_empty() => {
                    rest.as_bytes().get(1).filter(|byte| byte.is_ascii_digit())?;
                }
                _ => break,
            }
            rest = rest.get(1..).unwrap_or_default();
        }
        if decimal.digits.is_empty() {
            return None;
        }
        let Some(exponent) = rest.strip_prefix(['e', 'E']) else {
            return Some(Ok((decimal, rest)));
        };
        let negative = exponent.starts_with('-');
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let allowed = |byte: u8| byte.is_ascii_digit() || byte == b'_' && underscores;
        let (digits, rest) = split_while(digits, allowed);
        if !digits.starts_with(|c: char| c.is_ascii_digit())
            || digits.ends_with('_')
            || digits.contains("__")
        {
            return None;
        }
        let digits = digits.replace('_', "");
        let size = digits.parse::<i64>().ok().filter(|&size| size <= EXPONENT_MAX);
        let Some(size) = size else { return Some(Err(overflow())) };
        let exponent = if negative { -size as i32 } else { size as i32 };
        // A text is shorter than 1 GiB, so none of these overflows.
        decimal.point = decimal.point.saturating_add(exponent);
        decimal.scale = decimal.scale.saturating_sub(exponent).max(0);
        Some(Ok((decimal, rest)))
    }

    /// Rounds to `scale` decimals, halves away from zero, as `round_var`. A negative scale rounds
    /// before the decimal point.
    pub(crate) fn round(&mut self, scale: i32) {
        let keep = self.point.saturating_add(scale);
        self.scale = scale.max(0);
        let Ok(keep) = usize::try_from(keep) else {
            self.digits.clear();
            return;
        };
        let Some(&next) = self.digits.get(keep) else { return };
        self.digits.truncate(keep);
        if next < 5 {
            return;
        }
        for digit in self.digits.iter_mut().rev() {
            *digit = (*digit + 1) % 10;
            if *digit != 0 {
                return;
            }
        }
        self.digits.insert(0, 1);
        self.point += 1;
    }

    /// Rounds to a type modifier's scale, and checks that the number fits its precision.
    fn fit(&mut self, modifier: Modifier) -> Result<(), InputError> {
        self.round(modifier.scale);
        let most = modifier.precision - modifier.scale;
        let zeros = self.digits.iter().take_while(|&&digit| digit == 0).count();
        let before = self.point.saturating_sub(i32::try_from(zeros).unwrap_or(i32::MAX));
        if zeros == self.digits.len() || before <= most {
            return Ok(());
        }
        let limit = if most == 0 { "1".to_owned() } else { format!("10^{most}") };
        let detail = format!("must round to an absolute value less than {limit}");
        Err(modifier.overflow(&detail))
    }

    /// Appends the payload.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<(), InputError> {
        // The first stored digit ends at a multiple of four digits before or after the point.
        let weight = (self.point + BASE_DIGITS - 1).div_euclid(BASE_DIGITS) - 1;
        let missing = (weight + 1) * BASE_DIGITS - self.point;
        let padding = std::iter::repeat_n(0_u8, usize::try_from(missing).unwrap_or(0));
        let mut digits = Vec::with_capacity(self.digits.len() / 4 + 2);
        let mut all = padding.chain(self.digits.iter().copied());
        while let Some(first) = all.next() {
            let mut digit = u16::from(first);
            for _ in 1..BASE_DIGITS {
                digit = digit * 10 + u16::from(all.next().unwrap_or(0));
            }
            digits.push(digit);
        }
        numeric::encode(self.negative, weight, self.scale, &digits, out).map_err(|_| overflow())
    }
}

/// The digits of an integer in base 16, 8 or 2, as decimal digits. `None` if it is not one.
fn integer(text: &str) -> Option<Result<(Decimal, &str), InputError>> {
    let (prefix, digits) = text.split_at_checked(2)?;
    let bits = match prefix {
        "0x" | "0X" => 4_u32,
        "0o" | "0O" => 3,
        "0b" | "0B" => 1,
        _ => return None,
    };
    let is_digit = |byte: u8| char::from(byte).is_digit(1 << bits);
    let (digits, rest) = split_while(digits, |byte| is_digit(byte) || byte == b'_');
    if digits.is_empty() || digits.ends_with('_') || digits.contains("__") {
        return None;
    }
    // Little-endian digits of base 10,000. The largest number has 131,072 decimal digits.
    let mut number: Vec<u16> = Vec::new();
    for byte in digits.bytes().filter(|&byte| byte != b'_') {
        let mut carry = char::from(byte).to_digit(1 << bits).unwrap_or(0);
        for digit in &mut number {
            let sum = (u32::from(*digit) << bits) + carry;
            (*digit, carry) = ((sum % 10_000) as u16, sum / 10_000);
        }
        if carry > 0 {
            number.push(carry as u16);
        }
        if number.len() > 32_768 {
            return Some(Err(overflow()));
        }
    }
    let four = |digit: &u16| [digit / 1000, digit / 100 % 10, digit / 10 % 10, digit % 10];
    let digits: Vec<u8> = number.iter().rev().flat_map(four).map(|digit| digit as u8).collect();
    let point = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    Some(Ok((Decimal { digits, point, ..Decimal::default() }, rest)))
}

/// The header of NaN or an infinity, and the text after it. `text` includes the sign.
fn special(text: &str) -> Option<(u16, &str)> {
    let split = |text: &'_ str, word: &str| -> Option<usize> {
        let start = text.get(..word.len())?;
        start.eq_ignore_ascii_case(word).then_some(word.len())
    };
    if let Some(length) = split(text, "nan") {
        return Some((NAN, text.get(length..)?));
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let length = split(unsigned, "infinity").or_else(|| split(unsigned, "inf"))?;
    let header = if text.starts_with('-') { MINUS_INFINITY } else { INFINITY };
    Some((header, unsigned.get(length..)?))
}

/// A `numeric`.
pub(super) fn numeric(
    text: &str,
    typmod: i32,
    major: u32,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let syntax = || InputError::syntax("numeric", text);
    let start = skip_space(text);
    let modifier = Modifier::new(typmod);
    let unsigned = start.strip_prefix(['+', '-']).unwrap_or(start);
    if !matches!(first(unsigned), b'0'..=b'9' | b'.') {
        let (header, rest) = special(start).ok_or_else(syntax)?;
        if !trim_space(rest).is_empty() {
            return Err(syntax());
        }
        return write_special(header, modifier, out);
    }
    let prefixed = if major >= PREFIXES_SINCE { integer(unsigned) } else { None };
    let parsed = prefixed.or_else(|| Decimal::prefix(unsigned, major >= PREFIXES_SINCE));
    let (mut decimal, rest) = parsed.ok_or_else(syntax)??;
    if !trim_space(rest).is_empty() {
        return Err(syntax());
    }
    decimal.negative = start.starts_with('-');
    write_fitted(decimal, typmod, out)
}

/// NaN fits every modifier, an infinity none.
pub(crate) fn write_special(
    header: u16,
    modifier: Option<Modifier>,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    if let Some(modifier) = modifier.filter(|_| header != NAN) {
        return Err(modifier.overflow("cannot hold an infinite value"));
    }
    out.extend_from_slice(&header.to_le_bytes());
    Ok(())
}

/// Writes a number with a type modifier applied.
pub(crate) fn write_fitted(
    mut decimal: Decimal,
    typmod: i32,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    if let Some(modifier) = Modifier::new(typmod) {
        decimal.fit(modifier)?;
    }
    decimal.write(out)
}

/// A `money`, in cents, in the locales C and en_US: `$1,234.56`, `-1`, `(5)`.
pub(super) fn money(text: &str) -> Result<i64, InputError> {
    let syntax = || InputError::syntax("money", text);
    let mut rest = skip_space(text);
    rest = rest.strip_prefix('$').unwrap_or(rest);
    rest = skip_space(rest);
    let mut negative = false;
    if let Some(after) = rest.strip_prefix(['-', '(']) {
        (negative, rest) = (true, after);
    } else if let Some(after) = rest.strip_prefix('+') {
        rest = after;
    }
    rest = skip_space(rest);
    rest = skip_space(rest.strip_prefix('$').unwrap_or(rest));
    // We add up negative amounts, because there is one more of them.
    let (mut cents, mut decimals) = (0_i64, None::<u32>);
    let range = || InputError::out_of_range("money", text);
    let add = |cents: i64, digit: u8| {
        cents.checked_mul(10).and_then(|cents| cents.checked_sub(i64::from(digit)))
    };
    loop {
        let byte = first(rest);
        match byte {
            b'0'..=b'9' if decimals.is_none_or(|count| count < 2) => {
                cents = add(cents, byte - b'0').ok_or_else(range)?;
                decimals = decimals.map(|count| count + 1);
            }
            b'.' if decimals.is_none() => decimals = Some(0),
            b',' => {}
            _ => break,
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    if matches!(first(rest), b'5'..=b'9') {
        cents = cents.checked_sub(1).ok_or_else(range)?;
    }
    for _ in decimals.unwrap_or(0)..2 {
        cents = add(cents, 0).ok_or_else(range)?;
    }
    rest = split_while(rest, |byte| byte.is_ascii_digit()).1;
    while !rest.is_empty() {
        match first(rest) {
            byte if is_space(byte) || byte == b')' => {}
            b'-' => negative = true,
            b'+' | b'$' => {}
            _ => return Err(syntax()),
        }
        rest = rest.get(1..).unwrap_or_default();
    }
    if negative { Ok(cents) } else { cents.checked_neg().ok_or_else(range) }
}
