//! How wide text is on a screen, and how psql shows characters that have no width.
//!
//! A tab becomes blanks up to the next multiple of eight, and other control characters an escape such
//! as `\r`, `\x1B` or `\u0085`. Wide characters of East Asia take two columns, combining ones none.
//! Bytes that aren't UTF-8 count as one column each, so text in another encoding of one byte per
//! character is aligned too.

use unicode_width::UnicodeWidthChar;

/// A line of a cell, as it is printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// Its bytes.
    pub(super) bytes: Vec<u8>,
    /// Its width in columns.
    pub(super) width: usize,
}

/// The lines of a text. There is always at least one.
pub(super) fn lines(text: &[u8]) -> Vec<Line> {
    // The usual case is a short text of printable ASCII.
    if text.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return vec![Line { bytes: text.to_vec(), width: text.len() }];
    }
    let mut lines = Vec::new();
    let mut line = Line::default();
    for chunk in text.utf8_chunks() {
        for char in chunk.valid().chars() {
            if char == '\n' {
                lines.push(std::mem::take(&mut line));
            } else {
                line.push(char);
            }
        }
        line.bytes.extend_from_slice(chunk.invalid());
        line.width += chunk.invalid().len();
    }
    lines.push(line);
    lines
}

/// The width of a character in a line of a statement, where every character takes a column.
pub(super) fn width_in_statement(char: char) -> usize {
    char.width().filter(|width| *width > 0).unwrap_or(1)
}

impl Line {
    fn push(&mut self, char: char) {
        let escape = match (char, char.width()) {
            ('\t', _) => " ".repeat(8 - self.width % 8),
            ('\r', _) => "\\r".to_owned(),
            (char, None) if char.is_ascii() => format!("\\x{:02X}", u32::from(char)),
            (char, None) => format!("\\u{:04X}", u32::from(char)),
            (char, Some(width)) => {
                let mut bytes = [0; 4];
                self.bytes.extend_from_slice(char.encode_utf8(&mut bytes).as_bytes());
                self.width += width;
                return;
            }
        };
        self.width += escape.len();
        self.bytes.extend_from_slice(escape.as_bytes());
    }
}

/// Appends a byte several times.
pub(super) fn fill(byte: u8, count: usize, out: &mut Vec<u8>) {
    out.resize(out.len() + count, byte);
}
