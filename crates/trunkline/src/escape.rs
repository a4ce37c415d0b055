//! Escapes control characters in text for a terminal.
//!
//! Names in a database may contain any character. If we printed a table's name unchanged, it could
//! contain terminal escape sequences that move the cursor or change colours. We therefore pass all
//! text output through [`escape_control_characters`], except for the rows that `copy` prints.

use std::borrow::Cow;

/// Replaces control characters with escapes such as `\n`, `\t` or `\u{1b}`. The characters in
/// `kept` are left alone.
pub(crate) fn escape_control_characters<'t>(text: &'t str, kept: &[char]) -> Cow<'t, str> {
    let is_escaped = |char: char| char.is_control() && !kept.contains(&char);
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match is_escaped(char) {
            true => shown.extend(char.escape_default()),
            false => shown.push(char),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_unless_kept() {
        assert_eq!(escape_control_characters("a\n\tb\r", &['\n', '\t']), "a\n\tb\\r");
        assert_eq!(escape_control_characters("\u{1b}[31mred\u{9b}", &[]), "\\u{1b}[31mred\\u{9b}");
        assert!(matches!(escape_control_characters("ä b", &[]), Cow::Borrowed("ä b")));
    }
}
