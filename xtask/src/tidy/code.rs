//! **Lexical helpers** for Rust code. Without parsing the code, they blank out everything that
//! isn't code, find words, and find the end of an item.
//!
//! ```text
//! let a = "fn {"; // fn {      becomes      let a = "    ";
//! ```
//! Blanking doesn't change any byte offsets or line numbers, so a position in the blanked text is
//! also valid in the file.

/// A function and its length in lines.
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    /// Byte offset of `fn`.
    pub(super) at: usize,
    pub(super) lines: usize,
}

/// Blanks out comments and the contents of string and character literals. The number of bytes
/// doesn't change.
pub(super) fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let (end, keep) = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => (line_end(bytes, at), 0),
            b'/' if bytes[at..].starts_with(b"/*") => (comment_end(bytes, at), 0),
            b'"' => (string_end(bytes, at), 1),
            b'r' if !is_word_byte(bytes, at.wrapping_sub(1)) || is_prefix(bytes, at) => {
                raw_string_end(bytes, at).map_or((at + 1, 1), |end| (end, 0))
            }
            b'\'' => char_end(bytes, at).map_or((at + 1, 1), |end| (end, 1)),
            _ => (at + 1, 1),
        };
        for byte in out.iter_mut().take(end - keep.min(end - at)).skip(at + keep) {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    // We only replaced whole characters, so the result is valid UTF-8. If a bug makes it invalid,
    // we return the original text, because otherwise the rules would silently check nothing.
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |step| at + step)
}

/// Block comments nest.
fn comment_end(bytes: &[u8], at: usize) -> usize {
    let (mut end, mut depth) = (at, 0);
    while end < bytes.len() {
        if bytes[end..].starts_with(b"/*") {
            (end, depth) = (end + 2, depth + 1);
        } else if bytes[end..].starts_with(b"*/") {
            (end, depth) = (end + 2, depth - 1);
            if depth == 0 {
                return end;
            }
        } else {
            end += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() {
        match bytes[end] {
            b'\\' => end += 2,
            b'"' => return end + 1,
            _ => end += 1,
        }
    }
    bytes.len()
}

/// `r"…"`, `r#"…"#`; `at` is the `r`.
fn raw_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|&&byte| byte == b'#').count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let body = &bytes[open + 1..];
    let step = body.windows(close.len()).position(|window| window == close);
    Some(step.map_or(bytes.len(), |step| open + 1 + step + close.len()))
}

/// End of a character literal; `None` for a lifetime.
fn char_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at + 1)? {
        b'\\' => {
            let close = bytes.get(at + 3..)?.iter().position(|&byte| byte == b'\'')?;
            Some(at + 3 + close + 1)
        }
        _ => {
            // one character is at most four bytes of UTF-8
            let first = bytes[at + 1];
            let length = if first < 0x80 { 1 } else { first.leading_ones() as usize };
            (bytes.get(at + 1 + length) == Some(&b'\'')).then_some(at + length + 2)
        }
    }
}

/// In `br"…"` and `cr"…"`, the letter before `r` belongs to the literal and not to a longer
/// word.
fn is_prefix(bytes: &[u8], at: usize) -> bool {
    at > 0 && matches!(bytes[at - 1], b'b' | b'c') && !is_word_byte(bytes, at.wrapping_sub(2))
}

fn is_word_byte(bytes: &[u8], at: usize) -> bool {
    bytes.get(at).is_some_and(|&byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// Byte offsets of `pattern` as a whole word.
pub(super) fn words<'a>(text: &'a str, pattern: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    let begins = is_word_byte(pattern.as_bytes(), 0);
    let ends = is_word_byte(pattern.as_bytes(), pattern.len() - 1);
    text.match_indices(pattern).map(|(at, _)| at).filter(move |&at| {
        let glued_before = begins && is_word_byte(bytes, at.wrapping_sub(1));
        let glued_after = ends && is_word_byte(bytes, at + pattern.len());
        !glued_before && !glued_after
    })
}

/// The identifier at the start of `text`, or an empty string.
pub(super) fn name_at(text: &str) -> &str {
    let end = text.bytes().position(|byte| byte != b'_' && !byte.is_ascii_alphanumeric());
    &text[..end.unwrap_or(text.len())]
}

/// Returns the end of the item that begins at `at`, which is after its `;` or after its block.
pub(super) fn item_end(code: &str, at: usize) -> usize {
    let (mut depth, mut in_block) = (0_i32, false);
    for (step, byte) in code.as_bytes()[at..].iter().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' => {
                in_block |= depth == 0;
                depth += 1;
            }
            b'}' => {
                depth -= 1;
                if depth <= 0 && in_block {
                    return at + step + 1;
                }
            }
            b';' if depth == 0 => return at + step + 1,
            _ => {}
        }
    }
    code.len()
}

/// All named functions, with their length from `fn` to the closing brace.
pub(super) fn functions(code: &str) -> impl Iterator<Item = Function<'_>> {
    words(code, "fn").filter_map(|at| {
        let name = name_at(code[at + 2..].trim_start());
        let end = item_end(code, at);
        let lines = code[at..end].matches('\n').count() + 1;
        (!name.is_empty()).then_some(Function { name, at, lines })
    })
}

/// For each line: is it part of test code?
pub(super) fn test_lines(code: &str, whole: bool) -> Vec<bool> {
    let mut lines = vec![whole; code.lines().count()];
    for attribute in ["#[cfg(", "#[test]"] {
        for (at, _) in code.match_indices(attribute) {
            let line = &code[at..line_end(code.as_bytes(), at)];
            let condition = line.split(']').next().unwrap_or_default();
            if words(condition, "test").next().is_none() || condition.contains("not(test)") {
                continue;
            }
            let first = code[..at].matches('\n').count();
            let last = first + code[at..item_end(code, at)].matches('\n').count();
            lines.iter_mut().take(last + 1).skip(first).for_each(|line| *line = true);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_comments_and_literals_only() {
        let cases = [
            ("a // fn {\nb", "a        \nb"),
            ("a /* x /* y */ z */ b", "a                   b"),
            (r#"f("a\"b{", 1)"#, r#"f("     ", 1)"#),
            ("r#\"a\"b\"# c", "         c"),
            ("br\"\\\" c", "b     c"),
            ("'{' 'a '\\'' 'ä'", "' ' 'a '  ' '  '"),
            ("var\"x\"", "var\" \""),
        ];
        for (text, expected) in cases {
            assert_eq!(blank(text), expected, "{text}");
            assert_eq!(blank(text).len(), text.len(), "{text}");
        }
    }

    #[test]
    fn survives_any_text() {
        for text in ["\"", "'", "r#\"", "/*", "'\\", "r", "\"\\", "ä'ä", "'ä"] {
            blank(text);
        }
    }

    #[test]
    fn measures_functions() {
        let code =
            "fn a(x: [u8; 2]) -> [u8; 3] {\n  {\n  }\n}\nfn b();\ntype C = fn(u8);\nfn d() {}\n";
        let found: Vec<(&str, usize)> = functions(code).map(|f| (f.name, f.lines)).collect();
        assert_eq!(found, [("a", 4), ("b", 1), ("d", 1)]);
    }

    #[test]
    fn knows_test_code() {
        let code =
            "a\n#[cfg(test)]\nmod t {\n}\nb\n#[cfg(not(test))]\nfn c() {}\n#[test]\nfn d() {\n}\n";
        let lines = test_lines(code, false);
        assert_eq!(lines, [false, true, true, true, false, false, false, true, true, true]);
    }

    #[test]
    fn finds_whole_words() {
        assert_eq!(words("unsafe unsafe_code _unsafe", "unsafe").count(), 1);
        assert_eq!(words("x.unwrap(", ".unwrap(").count(), 1);
    }
}
