//! `boolean`, `uuid`, `tid`, `pg_lsn`, `pg_snapshot`, bit strings, `int2vector` and `oidvector`.

use super::c_text::{self, first, is_space, skip_space, split_while, trim_space};
use super::error::InputError;
use super::integer;

/// A `boolean`: `true`, `yes`, `on`, `1` and their opposites, or any unambiguous prefix of these, in
/// any case.
pub(super) fn boolean(text: &str) -> Result<bool, InputError> {
    // The shortest prefix of `on` and `off` that says which of them it is has two letters.
    const WORDS: [(&str, usize, bool); 8] = [
        ("true", 1, true),
        ("false", 1, false),
        ("yes", 1, true),
        ("no", 1, false),
        ("on", 2, true),
        ("off", 2, false),
        ("1", 1, true),
        ("0", 1, false),
    ];
    let word = trim_space(text);
    let matches = |name: &str, least: usize| {
        word.len() >= least
            && name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    let found = WORDS.iter().find(|(name, least, _)| matches(name, *least));
    found.map(|&(_, _, value)| value).ok_or_else(|| InputError::syntax("boolean", text))
}

/// A `uuid`: 32 hexadecimal digits, with optional hyphens after groups of four, and optional braces.
pub(super) fn uuid(text: &str) -> Result<[u8; 16], InputError> {
    let parse = || {
        let mut rest = text.as_bytes();
        let braces = rest.first() == Some(&b'{');
        rest = rest.get(usize::from(braces)..)?;
        let mut bytes = [0; 16];
        for (at, byte) in bytes.iter_mut().enumerate() {
            let [high, low, after @ ..] = rest else { return None };
            let digit = |digit: &u8| char::from(*digit).to_digit(16);
            *byte = (digit(high)? << 4 | digit(low)?) as u8;
            rest = after;
            if at % 2 == 1 && at < 15 {
                rest = rest.strip_prefix(b"-").unwrap_or(rest);
            }
        }
        if braces {
            rest = rest.strip_prefix(b"}")?;
        }
        rest.is_empty().then_some(bytes)
    };
    parse().ok_or_else(|| InputError::syntax("uuid", text))
}

/// A `tid`: `(block,item)`, as it is stored.
pub(super) fn tid(text: &str, out: &mut Vec<u8>) -> Result<(), InputError> {
    let parse = || {
        // A number may be missing, and is 0 then.
        let number = |text| {
            let none = c_text::Unsigned { value: 0, overflow: false, rest: text };
            c_text::unsigned(text, 10).unwrap_or(none)
        };
        let block = number(text.split_once('(')?.1);
        let fits = |value: u64| value <= u64::from(u32::MAX) || value >= i32::MIN as i64 as u64;
        if block.overflow || !fits(block.value) {
            return None;
        }
        let item = number(block.rest.strip_prefix(',')?);
        let number = u16::try_from(item.value).ok().filter(|_| !item.overflow)?;
        item.rest.starts_with(')').then_some((block.value as u32, number))
    };
    let (block, item) = parse().ok_or_else(|| InputError::syntax("tid", text))?;
    for half in [(block >> 16) as u16, block as u16, item] {
        out.extend_from_slice(&half.to_le_bytes());
    }
    Ok(())
}

/// A `pg_lsn`: two hexadecimal numbers of one to eight digits, with a slash between them.
pub(super) fn lsn(text: &str) -> Result<u64, InputError> {
    let half = |digits: &str| {
        let valid =
            (1..=8).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
        u64::from_str_radix(digits, 16).ok().filter(|_| valid)
    };
    let parse = || {
        let (high, low) = text.split_once('/')?;
        Some(half(high)? << 32 | half(low)?)
    };
    parse().ok_or_else(|| InputError::syntax("pg_lsn", text))
}

/// A `pg_snapshot`: `xmin:xmax:` and the transactions that were in progress, in order.
pub(super) fn snapshot(text: &str, out: &mut Vec<u8>) -> Result<(), InputError> {
    let parse = || {
        let xmin = c_text::unsigned(text, 10)?;
        let xmax = c_text::unsigned(xmin.rest.strip_prefix(':')?, 10)?;
        let mut rest = xmax.rest.strip_prefix(':')?;
        let (xmin, xmax) = (xmin.value, xmax.value);
        let mut running: Vec<u64> = Vec::new();
        while !rest.is_empty() {
            let next = c_text::unsigned(rest, 10)?;
            let last = running.last().copied().unwrap_or(0);
            if next.value < xmin || next.value >= xmax || next.value < last {
                return None;
            }
            if next.value != last {
                running.push(next.value);
            }
            rest = match next.rest.strip_prefix(',') {
                Some(rest) => rest,
                None if next.rest.is_empty() => next.rest,
                None => return None,
            };
        }
        (xmin as u32 != 0 && xmax as u32 != 0 && xmax >= xmin).then_some((xmin, xmax, running))
    };
    let syntax = || InputError::syntax("pg_snapshot", text);
    let (xmin, xmax, running) = parse().ok_or_else(syntax)?;
    let count = u32::try_from(running.len()).map_err(|_| syntax())?;
    out.extend_from_slice(&count.to_le_bytes());
    for xid in [xmin, xmax].into_iter().chain(running) {
        out.extend_from_slice(&xid.to_le_bytes());
    }
    Ok(())
}

/// A `bit` (if `fixed`) or `varbit`: binary digits, with an optional `b` before them, or hexadecimal
/// digits after `x`. The type modifier is the length in bits.
pub(super) fn bits(
    text: &str,
    fixed: bool,
    typmod: i32,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let (width, digits) = match first(text) {
        b'b' | b'B' => (1, text.get(1..).unwrap_or_default()),
        b'x' | b'X' => (4, text.get(1..).unwrap_or_default()),
        _ => (1, text),
    };
    let invalid = |c: char| {
        let name = if width == 1 { "binary" } else { "hexadecimal" };
        InputError::new("22P02", format!("\"{c}\" is not a valid {name} digit"))
    };
    let mut length = digits.len() * width;
    let mut packed = Vec::with_capacity(length.div_ceil(8));
    let mut used = 0;
    // A digit that is not ASCII is an error, so every digit is one byte. The length is checked
    // first, and counts bytes.
    check_length(length, fixed, typmod)?;
    for c in digits.chars() {
        let digit = c.to_digit(1 << width).ok_or_else(|| invalid(c))? as u8;
        if used % 8 == 0 {
            packed.push(0);
        }
        if let Some(last) = packed.last_mut() {
            *last |= digit << (8 - width - used % 8);
        }
        used += width;
    }
    length = used;
    write_bits(length, &packed, out)
}

/// Checks a length in bits against a type modifier.
pub(crate) fn check_length(length: usize, fixed: bool, typmod: i32) -> Result<(), InputError> {
    let Some(most) = usize::try_from(typmod).ok().filter(|&most| most > 0) else { return Ok(()) };
    if fixed && length != most {
        let message = format!("bit string length {length} does not match type bit({most})");
        return Err(InputError::new("22026", message));
    }
    if !fixed && length > most {
        let message = format!("bit string too long for type bit varying({most})");
        return Err(InputError::new("22001", message));
    }
    Ok(())
}

fn write_bits(length: usize, packed: &[u8], out: &mut Vec<u8>) -> Result<(), InputError> {
    let message = "bit string length exceeds the maximum allowed (2147483640)";
    let length = i32::try_from(length).map_err(|_| InputError::new("54000", message))?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(packed);
    Ok(())
}

/// Appends the fields before the elements of an `int2vector` or `oidvector`.
pub(crate) fn vector_header(element: u32, count: usize, out: &mut Vec<u8>) {
    for word in [1, 0, element, count as u32, 0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

/// An `int2vector`: numbers separated by blanks.
pub(super) fn int2_vector(text: &str, out: &mut Vec<u8>) -> Result<(), InputError> {
    let (mut rest, mut elements) = (skip_space(text), Vec::new());
    while !rest.is_empty() {
        let (digits, after) =
            split_while(rest.strip_prefix(['+', '-']).unwrap_or(rest), |b| b.is_ascii_digit());
        let (number, _) = c_text::signed(rest);
        if digits.is_empty() {
            return Err(InputError::syntax("smallint", rest));
        }
        let number = number.and_then(|number| i16::try_from(number).ok());
        elements.push(number.ok_or_else(|| InputError::out_of_range("smallint", rest))?);
        if !after.is_empty() && !after.starts_with(' ') {
            return Err(InputError::syntax("smallint", rest));
        }
        rest = skip_space(after);
    }
    vector_header(21, elements.len(), out);
    out.extend(elements.iter().flat_map(|element| element.to_le_bytes()));
    Ok(())
}

/// An `oidvector`: numbers separated by blanks.
pub(super) fn oid_vector(text: &str, major: u32, out: &mut Vec<u8>) -> Result<(), InputError> {
    let (mut rest, mut elements) = (skip_space(text), Vec::new());
    while !rest.is_empty() {
        let (number, after) = integer::oid_prefix(rest, "oid", major)?;
        elements.push(number);
        rest = after.trim_start_matches(|c: char| c.is_ascii() && is_space(c as u8));
    }
    vector_header(26, elements.len(), out);
    out.extend(elements.iter().flat_map(|element| element.to_le_bytes()));
    Ok(())
}
