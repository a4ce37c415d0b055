//! The formats of `COPY`: delimiters, nulls and escapes, as in PostgreSQL's `copyto.c`.
//!
//! ```text
//!   text   1 ⇥ two\nlines ⇥ \N        tab as delimiter, escapes with backslash
//!   csv    1 , "two, and ""more""" ,  comma as delimiter, special values in quotes
//! ```
//!
//! We first write each value to the output unchanged, and then search it there for special bytes.
//! Most values don't need any escaping, so this usually saves us an intermediate copy.

/// An output format of `COPY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// `FORMAT text`, the default of `COPY`.
    #[default]
    Text,
    /// `FORMAT csv`.
    Csv,
}

impl Format {
    /// The delimiter between values.
    pub(super) fn delimiter(self) -> u8 {
        match self {
            Self::Text => b'\t',
            Self::Csv => b',',
        }
    }

    /// The representation of null.
    pub(super) fn null(self) -> &'static [u8] {
        match self {
            Self::Text => b"\\N",
            Self::Csv => b"",
        }
    }

    /// Escapes the value that was written to `out` at `start`. `alone` means that this is the row's
    /// only value.
    pub(super) fn escape(self, start: usize, alone: bool, out: &mut Vec<u8>) {
        match self {
            Self::Text => escape_text(start, out),
            Self::Csv => quote_csv(start, alone, out),
        }
    }

    /// Appends `value` with escapes.
    #[inline]
    pub(super) fn append(self, value: &[u8], alone: bool, out: &mut Vec<u8>) {
        match self {
            Self::Text => append_text(value, out),
            Self::Csv => {
                let start = out.len();
                out.extend_from_slice(value);
                quote_csv(start, alone, out);
            }
        }
    }
}

/// Number of bytes compared at a time: one AVX2 register, or two SSE2 or NEON registers.
const LANES: usize = 32;

/// Whether the text format may have to escape the byte.
#[inline]
fn is_special(byte: u8) -> bool {
    (byte < b' ') | (byte == b'\\')
}

/// Whether any of the eight bytes in a word is special. This is the classic word-at-a-time ("SWAR")
/// test for a zero byte.
#[inline]
fn has_special(word: u64) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // The result is nonzero if and only if the word contains a zero byte. It doesn't tell us which
    // byte that is, because a borrow may propagate into the higher bytes, but all we need is a yes
    // or no.
    let has_zero = |word: u64| word.wrapping_sub(EACH) & !word & (EACH << 7);
    // A control character has none of the upper three bits.
    has_zero(word & (EACH * 0xE0)) | has_zero(word ^ (EACH * b'\\' as u64)) != 0
}

/// Returns the number of bytes before the first special byte. We search long values in chunks of
/// [`LANES`] bytes first, then word by word, and finally check the last few bytes one by one. Short
/// values skip the first step.
#[inline]
fn plain_prefix(bytes: &[u8]) -> usize {
    let (words, _) = bytes.as_chunks::<8>();
    let mut plain = 0;
    if words.len() >= 2 * LANES / 8 {
        let (chunks, _) = bytes.as_chunks::<LANES>();
        // Without a branch per byte, the compiler vectorizes the comparison.
        let special = |chunk: &[u8; LANES]| chunk.iter().fold(false, |any, &b| any | is_special(b));
        plain = LANES * chunks.iter().take_while(|chunk| !special(chunk)).count();
    }
    let words = words.get(plain / 8..).unwrap_or_default();
    plain += 8 * words.iter().take_while(|&&word| !has_special(u64::from_le_bytes(word))).count();
    let rest = bytes.get(plain..).unwrap_or_default();
    plain + rest.iter().position(|&byte| is_special(byte)).unwrap_or(rest.len())
}

/// The character that follows the backslash in this byte's escape. `None` if the byte is a control
/// character that doesn't need an escape.
fn letter(byte: u8) -> Option<u8> {
    Some(match byte {
        8 => b'b',
        9 => b't',
        10 => b'n',
        11 => b'v',
        12 => b'f',
        13 => b'r',
        b'\\' => b'\\',
        _ => return None,
    })
}

/// Appends a value in the text format.
#[inline]
fn append_text(value: &[u8], out: &mut Vec<u8>) {
    let plain = plain_prefix(value);
    out.extend_from_slice(value.get(..plain).unwrap_or_default());
    if plain < value.len() {
        append_special(value.get(plain..).unwrap_or_default(), out);
    }
}

/// Appends the rest of a value, which begins with a special byte.
fn append_special(mut value: &[u8], out: &mut Vec<u8>) {
    while let Some((&byte, rest)) = value.split_first() {
        match letter(byte) {
            Some(letter) => out.extend_from_slice(&[b'\\', letter]),
            None => out.push(byte),
        }
        let (plain, rest) = rest.split_at_checked(plain_prefix(rest)).unwrap_or_default();
        out.extend_from_slice(plain);
        value = rest;
    }
}

/// Escapes a value in place. Only the part that starts at the first special byte needs to be
/// copied.
fn escape_text(start: usize, out: &mut Vec<u8>) {
    let written = out.get(start..).unwrap_or_default();
    let plain = plain_prefix(written);
    if plain < written.len() {
        let rest = out.split_off(start + plain);
        append_special(&rest, out);
    }
}

/// If a value needs quotes, adds them in place and doubles any quotes within the value.
fn quote_csv(start: usize, alone: bool, out: &mut Vec<u8>) {
    let value = out.get(start..).unwrap_or_default();
    let special = |byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
    // If we didn't quote them, an empty value would be read back as null, and a line consisting of
    // just \. would be taken for the end of the data.
    let misread = value.is_empty() || alone && value == b"\\.";
    if !misread && !value.iter().any(special) {
        return;
    }
    let value = out.split_off(start);
    out.push(b'"');
    for byte in value {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::Format;

    fn check(format: Format, value: &[u8], alone: bool, expected: &[u8]) {
        let mut appended = b"x".to_vec();
        format.append(value, alone, &mut appended);
        assert_eq!(
            appended.escape_ascii().to_string(),
            [b"x", expected].concat().escape_ascii().to_string()
        );
        let mut escaped = [b"x", value].concat();
        format.escape(1, alone, &mut escaped);
        assert_eq!(escaped, appended);
    }

    #[test]
    fn text_escapes_what_would_be_misread() {
        check(Format::Text, b"", false, b"");
        check(
            Format::Text,
            b"plain, \"quoted\" \x7f\xc3\xa9",
            false,
            b"plain, \"quoted\" \x7f\xc3\xa9",
        );
        check(Format::Text, b"\x08\t\n\x0b\x0c\r\\", false, b"\\b\\t\\n\\v\\f\\r\\\\");
        check(Format::Text, b"\x01\x1f\\N", false, b"\x01\x1f\\\\N");
        let long = [&[b'a'; 40][..], b"\n", &[b'b'; 70], b"\t", &[b'c'; 31]].concat();
        let expected = [&[b'a'; 40][..], b"\\n", &[b'b'; 70], b"\\t", &[b'c'; 31]].concat();
        check(Format::Text, &long, false, &expected);
    }

    #[test]
    fn csv_quotes_what_would_be_misread() {
        check(Format::Csv, b"plain\ttab\\", false, b"plain\ttab\\");
        check(Format::Csv, b"", false, b"\"\"");
        check(Format::Csv, b"a,b", false, b"\"a,b\"");
        check(Format::Csv, b"say \"hi\"", false, b"\"say \"\"hi\"\"\"");
        check(Format::Csv, b"two\nlines", false, b"\"two\nlines\"");
        check(Format::Csv, b"\\.", false, b"\\.");
        check(Format::Csv, b"\\.", true, b"\"\\.\"");
    }
}
