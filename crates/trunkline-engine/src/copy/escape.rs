//! The formats of `COPY`: delimiters, nulls and escapes, as in PostgreSQL's `copyto.c`.
//!
//! ```text
//!   text   1 ⇥ two\nlines ⇥ \N        tab as delimiter, escapes with backslash
//!   csv    1 , "two, and ""more""" ,  comma as delimiter, special values in quotes
//! ```
//!
//! We first write each value to the output unchanged, and then search it there for special bytes.
//! Most values don't need any escaping, so this usually saves us an intermediate copy.

use thiserror::Error;

/// An output format of `COPY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// `FORMAT text`, the default of `COPY`.
    #[default]
    Text,
    /// `FORMAT csv`.
    Csv,
}

/// Why a delimiter and a null string can't be used, in the words of `COPY` if it refuses them, too.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FormatError {
    /// The delimiter is empty, or longer than a byte.
    #[error("COPY delimiter must be a single one-byte character")]
    DelimiterLength,
    /// The delimiter ends lines.
    #[error("COPY delimiter cannot be newline or carriage return")]
    DelimiterEndsLine,
    /// The text format could not tell the delimiter from an escape, or from `\.`. In CSV, `COPY` takes
    /// a dot and a backslash, but then a line of `COPY ... TO` can be `\.`, which `COPY ... FROM` reads
    /// as the end of the data.
    #[error("COPY delimiter cannot be \"{0}\"")]
    Delimiter(char),
    /// The delimiter is the quote of CSV.
    #[error("COPY delimiter and quote must be different")]
    DelimiterIsQuote,
    /// The null string would end a line.
    #[error("COPY null representation cannot use newline or carriage return")]
    NullEndsLine,
    /// The null string would be read as two values.
    #[error("COPY delimiter must not appear in the NULL specification")]
    DelimiterInNull,
    /// A part of the null string would be read as the end of the data, or as an escape of the
    /// delimiter that follows. `COPY ... TO` writes such a null string, but `COPY ... FROM` then loses
    /// rows without an error.
    #[error("null string must not contain \"\\.\" or end with a backslash")]
    NullIsEscape,
    /// The null string would be read as a quoted value.
    #[error("CSV quote character must not appear in the NULL specification")]
    QuoteInNull,
}

/// The quote of CSV.
const QUOTE: u8 = b'"';

/// A format with its `DELIMITER` and `NULL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineFormat {
    format: Format,
    delimiter: u8,
    null: Box<[u8]>,
    /// Whether delimiter or null string are not the defaults of the format. Then even the text of
    /// a number may need an escape.
    is_custom: bool,
}

impl From<Format> for LineFormat {
    fn from(format: Format) -> Self {
        let (delimiter, null): (u8, &[u8]) = match format {
            Format::Text => (b'\t', b"\\N"),
            Format::Csv => (b',', b""),
        };
        Self { format, delimiter, null: null.into(), is_custom: false }
    }
}

impl LineFormat {
    /// A format with another delimiter or null string than its defaults.
    ///
    /// # Errors
    /// [`FormatError`]: `COPY` refuses them, too, or could not read the lines.
    pub fn new(
        format: Format,
        delimiter: Option<&[u8]>,
        null: Option<&[u8]>,
    ) -> Result<Self, FormatError> {
        let default = Self::from(format);
        let delimiter = match delimiter {
            None => default.delimiter,
            // A byte beyond ASCII is only a part of a character, at least in UTF-8.
            Some(&[byte]) if byte.is_ascii() => byte,
            Some(_) => return Err(FormatError::DelimiterLength),
        };
        let null: Box<[u8]> = null.unwrap_or(&default.null).into();
        let ends_line = |byte: &u8| matches!(byte, b'\n' | b'\r');
        if ends_line(&delimiter) {
            return Err(FormatError::DelimiterEndsLine);
        }
        if null.iter().any(ends_line) {
            return Err(FormatError::NullEndsLine);
        }
        match (format, delimiter) {
            (_, b'\\' | b'.') | (Format::Text, b'a'..=b'z' | b'0'..=b'9') => {
                return Err(FormatError::Delimiter(char::from(delimiter)));
            }
            (Format::Csv, QUOTE) => return Err(FormatError::DelimiterIsQuote),
            _ => {}
        }
        if null.contains(&delimiter) {
            return Err(FormatError::DelimiterInNull);
        }
        match format {
            Format::Text if has_misread_escape(&null) => return Err(FormatError::NullIsEscape),
            // The line of a single column.
            Format::Csv if *null == *b"\\." => return Err(FormatError::NullIsEscape),
            Format::Csv if null.contains(&QUOTE) => return Err(FormatError::QuoteInNull),
            _ => {}
        }
        let is_custom = delimiter != default.delimiter || null != default.null;
        Ok(Self { format, delimiter, null, is_custom })
    }

    /// The kind of format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether a value can be the same as the null string, so that a server would read it as null.
    /// In CSV, quotes tell them apart. In the text format, every backslash of a value belongs to an
    /// escape, so a null string with any other backslash at its start is safe.
    pub fn has_ambiguous_null(&self) -> bool {
        let is_escape = |byte: u8| (0..b' ').chain([b'\\']).any(|it| letter(it) == Some(byte));
        match (self.format, &*self.null) {
            (Format::Csv, _) => false,
            (Format::Text, [b'\\', behind @ ..]) => behind.first().is_some_and(|it| is_escape(*it)),
            (Format::Text, _) => true,
        }
    }

    /// The options of `COPY ... FROM` that read lines of this format.
    pub(super) fn sql_options(&self, header: bool) -> Vec<u8> {
        let mut options = match self.format {
            Format::Text => b"format text".to_vec(),
            Format::Csv => b"format csv".to_vec(),
        };
        if header {
            options.extend_from_slice(b", header");
        }
        if self.is_custom {
            options.extend_from_slice(b", delimiter ");
            escaped_literal(&[self.delimiter], &mut options);
            options.extend_from_slice(b", null ");
            escaped_literal(&self.null, &mut options);
        }
        options
    }

    /// The delimiter between values.
    #[inline]
    pub(super) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// The representation of null.
    #[inline]
    pub(super) fn null(&self) -> &[u8] {
        &self.null
    }

    /// Whether delimiter or null string are not the defaults of the format.
    #[inline]
    pub(super) fn is_custom(&self) -> bool {
        self.is_custom
    }

    /// Escapes the value that was written to `out` at `start`. `alone` means that this is the row's
    /// only value.
    pub(super) fn escape(&self, start: usize, alone: bool, out: &mut Vec<u8>) {
        match self.format {
            Format::Text => escape_text(start, self.delimiter, out),
            Format::Csv => self.quote(start, alone, out),
        }
    }

    /// Appends `value` with escapes.
    #[inline]
    pub(super) fn append(&self, value: &[u8], alone: bool, out: &mut Vec<u8>) {
        match self.format {
            Format::Text if self.is_custom => append_with_delimiter(value, self.delimiter, out),
            Format::Text => append_text(value, out),
            Format::Csv => {
                let start = out.len();
                out.extend_from_slice(value);
                self.quote(start, alone, out);
            }
        }
    }

    /// Quotes a CSV value in place if it needs quotes, and doubles the quotes in it.
    fn quote(&self, start: usize, alone: bool, out: &mut Vec<u8>) {
        let value = out.get(start..).unwrap_or_default();
        // If we didn't quote them, such a value would be read back as null, and a line consisting
        // of just \. would be taken for the end of the data.
        let misread = *value == *self.null || alone && value == b"\\.";
        let quotes = CsvQuotes { delimiter: self.delimiter, quote: QUOTE, escape: QUOTE };
        quotes.quote(start, misread, out);
    }
}

/// The special characters of CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvQuotes {
    /// `DELIMITER`.
    pub delimiter: u8,
    /// `QUOTE`.
    pub quote: u8,
    /// `ESCAPE`, which precedes quotes and itself in a quoted value.
    pub escape: u8,
}

impl CsvQuotes {
    /// Quotes the value that was written to `out` at `start`, if it needs quotes or they are forced.
    pub fn quote(self, start: usize, forced: bool, out: &mut Vec<u8>) {
        let Self { delimiter, quote, escape } = self;
        let value = out.get(start..).unwrap_or_default();
        let special =
            |&byte: &u8| byte == delimiter || byte == quote || matches!(byte, b'\n' | b'\r');
        if !forced && !value.iter().any(special) {
            return;
        }
        let value = out.split_off(start);
        out.push(quote);
        for byte in value {
            if byte == quote || byte == escape {
                out.push(escape);
            }
            out.push(byte);
        }
        out.push(quote);
    }
}

/// Number of bytes compared at a time: one AVX2 register, or two SSE2 or NEON registers.
const LANES: usize = 32;

/// Whether the text format may have to escape the byte.
#[inline]
fn is_special(byte: u8) -> bool {
    (byte < b' ') | (byte == b'\\')
}

/// Whether a null string of the text format contains `\.` or ends with a backslash, where two
/// backslashes stand for one.
fn has_misread_escape(null: &[u8]) -> bool {
    let mut bytes = null.iter();
    while let Some(byte) = bytes.next() {
        if *byte == b'\\' && matches!(bytes.next(), None | Some(b'.')) {
            return true;
        }
    }
    false
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

/// Escapes the value that was written to `out` at `start` for the text format, whose default
/// delimiter is a tab. Only the part that starts at the first special byte needs to be copied.
pub fn escape_text(start: usize, delimiter: u8, out: &mut Vec<u8>) {
    let written = out.get(start..).unwrap_or_default();
    if delimiter == b'\t' {
        let plain = plain_prefix(written);
        if plain < written.len() {
            let rest = out.split_off(start + plain);
            append_special(&rest, out);
        }
        return;
    }
    let special = |&byte: &u8| byte == delimiter || letter(byte).is_some();
    if let Some(plain) = written.iter().position(special) {
        let rest = out.split_off(start + plain);
        append_with_delimiter(&rest, delimiter, out);
    }
}

/// Appends a string constant with C-style escapes, which keep it on one line.
fn escaped_literal(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"E'");
    for &byte in text {
        match byte {
            b'\'' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            _ if byte < b' ' => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'\'');
}

/// Appends a value in the text format with a delimiter of the user's choice. Unlike a tab, it may be
/// in the text of any type, so we look at each byte.
fn append_with_delimiter(value: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    for &byte in value {
        match letter(byte) {
            Some(letter) => out.extend_from_slice(&[b'\\', letter]),
            None if byte == delimiter => out.extend_from_slice(&[b'\\', byte]),
            None => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Format, FormatError, LineFormat};

    fn check(format: impl Into<LineFormat>, value: &[u8], alone: bool, expected: &[u8]) {
        let format = format.into();
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

    #[test]
    fn other_delimiters_and_nulls_are_escaped_in_values() {
        let custom = |format, delimiter: &[u8], null: &[u8]| {
            LineFormat::new(format, Some(delimiter), Some(null)).expect("valid")
        };
        check(custom(Format::Text, b"-", b"x"), b"-1\t2\\", false, b"\\-1\\t2\\\\");
        check(custom(Format::Text, b"\x01", b""), b"a\x01\x02", false, b"a\\\x01\x02");
        check(custom(Format::Text, b"\x08", b""), b"\x08", false, b"\\b");
        check(custom(Format::Csv, b";", b"7"), b"7", false, b"\"7\"");
        check(custom(Format::Csv, b";", b"7"), b"", false, b"");
        check(custom(Format::Csv, b";", b"7"), b"a,b;c", false, b"\"a,b;c\"");
        check(custom(Format::Csv, b";", b"7"), b"a,b", false, b"a,b");
    }

    #[test]
    fn null_strings_that_a_value_can_equal_are_reported() {
        for (format, null, expected) in [
            (Format::Text, "", true),
            (Format::Text, "NULL", true),
            (Format::Text, "\\N", false),
            (Format::Text, "\\n", true),
            (Format::Text, "\\\\", true),
            (Format::Csv, "", false),
            (Format::Csv, "NULL", false),
        ] {
            let lines = LineFormat::new(format, None, Some(null.as_bytes())).expect("valid");
            assert_eq!(lines.has_ambiguous_null(), expected, "{null}");
        }
    }

    #[test]
    fn what_copy_refuses() {
        use FormatError::{
            Delimiter, DelimiterEndsLine, DelimiterInNull, DelimiterIsQuote, DelimiterLength,
            NullEndsLine, NullIsEscape, QuoteInNull,
        };
        for (format, delimiter, null, expected) in [
            (Format::Text, "ab", "", DelimiterLength),
            (Format::Text, "", "", DelimiterLength),
            (Format::Csv, "\u{a7}", "", DelimiterLength),
            (Format::Text, "\n", "", DelimiterEndsLine),
            (Format::Text, "a", "", Delimiter('a')),
            (Format::Text, "7", "", Delimiter('7')),
            (Format::Text, ".", "", Delimiter('.')),
            (Format::Csv, ".", "", Delimiter('.')),
            (Format::Csv, "\\", "", Delimiter('\\')),
            (Format::Csv, "\"", "", DelimiterIsQuote),
            (Format::Csv, ";", "a\r", NullEndsLine),
            (Format::Text, "|", "a|", DelimiterInNull),
            (Format::Text, "|", "\\.", NullIsEscape),
            (Format::Text, "|", "a\\\\\\.b", NullIsEscape),
            (Format::Text, "|", "\\", NullIsEscape),
            (Format::Csv, ";", "\\.", NullIsEscape),
            (Format::Csv, ";", "\"", QuoteInNull),
        ] {
            let made = LineFormat::new(format, Some(delimiter.as_bytes()), Some(null.as_bytes()));
            assert_eq!(made, Err(expected));
        }
        for (format, null) in [(Format::Text, "a\\\\.b"), (Format::Csv, "a\\.")] {
            assert!(LineFormat::new(format, None, Some(null.as_bytes())).is_ok(), "{null}");
        }
        let part = LineFormat::new(Format::Csv, Some(b"\xa7"), None);
        assert_eq!(part, Err(DelimiterLength));
        let csv = LineFormat::new(Format::Csv, Some(b"a"), None);
        assert!(csv.is_ok_and(|format| format.is_custom()));
        let same = LineFormat::new(Format::Text, Some(b"\t"), Some(b"\\N"));
        assert_eq!(same, Ok(Format::Text.into()));
    }
}
