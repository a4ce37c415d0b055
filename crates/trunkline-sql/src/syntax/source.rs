//! **The text that the scanner reads**, with the scanner's place in it.
//!
//! In `select 'abc`, the scanner fails at byte 7 with `unterminated quoted string at or near "'abc"`:
//! [`Source::error`] quotes everything from the start of the token to the scanner's place.

use std::ops::Range;

use crate::error::{SqlError, SqlState};

/// A text and a place in it.
pub(super) struct Source<'s> {
    text: &'s str,
    /// The offset of the next byte.
    pub(super) at: usize,
}

impl<'s> Source<'s> {
    pub(super) fn new(text: &'s str) -> Source<'s> {
        Source { text, at: 0 }
    }

    /// The byte `ahead` of the next one.
    pub(super) fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// The bytes from an offset on.
    pub(super) fn bytes(&self, from: usize) -> &'s [u8] {
        self.text.as_bytes().get(from..).unwrap_or_default()
    }

    /// A part of the text. It is empty if the range does not begin and end at characters.
    pub(super) fn text(&self, range: Range<usize>) -> &'s str {
        self.text.get(range).unwrap_or("")
    }

    /// Steps over the next character and returns it.
    pub(super) fn character(&mut self) -> Option<char> {
        let character = self.text.get(self.at..)?.chars().next()?;
        self.at += character.len_utf8();
        Some(character)
    }

    /// Skips the bytes that satisfy a condition.
    pub(super) fn skip_while(&mut self, condition: impl Fn(u8) -> bool) {
        while self.peek(0).is_some_and(&condition) {
            self.at += 1;
        }
    }

    /// Skips to the end of the line.
    pub(super) fn skip_line(&mut self) {
        self.skip_while(|byte| byte != b'\n' && byte != b'\r');
    }

    /// Skips an identifier, if one starts here.
    pub(super) fn skip_identifier(&mut self) {
        if self.peek(0).is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_' || byte > 127)
        {
            self.skip_while(|byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 128..)
            });
        }
    }

    /// A syntax error that quotes the text from `start` to the scanner's place.
    pub(super) fn error(&self, message: &str, start: usize) -> SqlError {
        let near = self.text(start..self.at);
        let place = if start == self.text.len() {
            "at end of input".to_owned()
        } else {
            format!("at or near \"{near}\"")
        };
        SqlError::new(SqlState::SYNTAX_ERROR, format!("{message} {place}"))
            .at(u32::try_from(start).unwrap_or(u32::MAX))
    }
}
