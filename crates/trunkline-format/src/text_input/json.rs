//! Parses JSON (RFC 8259), for `json` and `jsonb`.
//!
//! We keep a stack of our own rather than using recursion, because a text may nest a million levels
//! deep. A [`Sink`] gets the values in the order of the text: for `[1, {"a": null}]`, it is `open`,
//! `number`, `open`, `key`, `null`, `close`, `close`.
//!
//! Mirrors PostgreSQL's `common/jsonapi.c`.

use std::ops::Range;

use super::c_text::{first, split_while};
use super::error::InputError;

/// What becomes of the values.
pub(crate) trait Sink {
    /// Whether escapes in strings are replaced. Otherwise, strings are passed as they are written.
    const UNESCAPE: bool;

    /// The bytes of the text that the call that follows is about. Not called before a key.
    fn at(&mut self, _token: Range<usize>) {}
    /// `{` if `object`, otherwise `[`.
    fn open(&mut self, object: bool);
    /// `}` or `]`.
    fn close(&mut self);
    /// The key of the value that follows.
    fn key(&mut self, key: String) -> Result<(), InputError>;
    /// A string.
    fn string(&mut self, text: String) -> Result<(), InputError>;
    /// A number.
    fn number(&mut self, text: &str) -> Result<(), InputError>;
    /// `true` or `false`.
    fn boolean(&mut self, value: bool);
    /// `null`.
    fn null(&mut self);
}

/// Only checks the syntax.
pub(crate) struct Check;

impl Sink for Check {
    const UNESCAPE: bool = false;

    fn open(&mut self, _object: bool) {}
    fn close(&mut self) {}
    fn key(&mut self, _key: String) -> Result<(), InputError> {
        Ok(())
    }
    fn string(&mut self, _text: String) -> Result<(), InputError> {
        Ok(())
    }
    fn number(&mut self, _text: &str) -> Result<(), InputError> {
        Ok(())
    }
    fn boolean(&mut self, _value: bool) {}
    fn null(&mut self) {}
}

fn syntax(detail: impl Into<String>) -> InputError {
    InputError::new("22P02", "invalid input syntax for type json").with_detail(detail)
}

fn invalid_token(token: &str) -> InputError {
    syntax(format!("Token \"{token}\" is invalid."))
}

fn expected(what: &str, token: &Token<'_>) -> InputError {
    if token.kind == TokenKind::End {
        return syntax("The input string ended unexpectedly.");
    }
    syntax(format!("Expected {what}, but found \"{}\".", token.text))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenKind {
    /// One of `{}[],:`.
    Punctuation(u8),
    String,
    Number,
    Boolean(bool),
    Null,
    End,
}

struct Token<'a> {
    kind: TokenKind,
    text: &'a str,
    /// The characters of a string.
    string: String,
}

/// A character of a word or number.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

struct Lexer<'a> {
    rest: &'a str,
    unescape: bool,
}

impl<'a> Lexer<'a> {
    fn cut(&mut self, kind: TokenKind, length: usize) -> Token<'a> {
        let (text, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        Token { kind, text, string: String::new() }
    }

    /// Where in the text the token is that was read last.
    fn place(&self, text: &str, token: &Token<'_>) -> Range<usize> {
        let end = text.len() - self.rest.len();
        end - token.text.len()..end
    }

    fn next(&mut self) -> Result<Token<'a>, InputError> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        Ok(match first(self.rest) {
            _ if self.rest.is_empty() => self.cut(TokenKind::End, 0),
            byte @ (b'{' | b'}' | b'[' | b']' | b',' | b':') => {
                self.cut(TokenKind::Punctuation(byte), 1)
            }
            b'"' => self.string()?,
            b'-' | b'0'..=b'9' => self.number()?,
            _ => {
                let is_word = |c: char| !c.is_ascii() || is_word(c as u8);
                let end = self.rest.find(|c: char| !is_word(c)).unwrap_or(self.rest.len());
                let word = self.rest.get(..end).unwrap_or_default();
                let kind = match word {
                    "true" => TokenKind::Boolean(true),
                    "false" => TokenKind::Boolean(false),
                    "null" => TokenKind::Null,
                    "" => return Err(invalid_token(self.rest.get(..1).unwrap_or_default())),
                    _ => return Err(invalid_token(word)),
                };
                self.cut(kind, end)
            }
        })
    }

    fn number(&mut self) -> Result<Token<'a>, InputError> {
        let digit = |byte: u8| byte.is_ascii_digit();
        let mut valid = true;
        let mut rest = self.rest.strip_prefix('-').unwrap_or(self.rest);
        if let Some(after) = rest.strip_prefix('0') {
            rest = after;
        } else {
            let (digits, after) = split_while(rest, digit);
            (valid, rest) = (!digits.is_empty(), after);
        }
        if let Some(after) = rest.strip_prefix('.').filter(|_| valid) {
            let (digits, after) = split_while(after, digit);
            (valid, rest) = (!digits.is_empty(), after);
        }
        if let Some(after) = rest.strip_prefix(['e', 'E']).filter(|_| valid) {
            let (digits, after) =
                split_while(after.strip_prefix(['+', '-']).unwrap_or(after), digit);
            (valid, rest) = (!digits.is_empty(), after);
        }
        let junk = rest.find(|c: char| c.is_ascii() && !is_word(c as u8)).unwrap_or(rest.len());
        let end = self.rest.len() - rest.len() + junk;
        if !valid || junk > 0 {
            return Err(invalid_token(self.rest.get(..end).unwrap_or_default()));
        }
        Ok(self.cut(TokenKind::Number, end))
    }

    fn string(&mut self) -> Result<Token<'a>, InputError> {
        let mut string = String::new();
        // The first half of a character in two `\u` escapes.
        let mut high: Option<u32> = None;
        let lone = || syntax("Unicode low surrogate must follow a high surrogate.");
        let mut characters = self.rest.char_indices().skip(1);
        loop {
            let Some((at, c)) = characters.next() else { return Err(invalid_token(self.rest)) };
            if c == '\\' {
                let Some((at, escape)) = characters.next() else {
                    return Err(invalid_token(self.rest));
                };
                if escape == 'u' {
                    let hex = |c: char| c.is_ascii_hexdigit();
                    let after = self.rest.get(at + 1..).unwrap_or_default();
                    if after.len() < 4 && after.chars().all(hex) {
                        return Err(invalid_token(self.rest));
                    }
                    let digits = self
                        .rest
                        .get(at + 1..at + 5)
                        .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
                    let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                    let format = "\"\\u\" must be followed by four hexadecimal digits.";
                    let code = code.ok_or_else(|| syntax(format))?;
                    characters.nth(3);
                    if self.unescape {
                        high = unicode(code, high, &mut string)?;
                    }
                    continue;
                }
                let plain = match escape {
                    '"' | '\\' | '/' => escape,
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    _ => return Err(syntax(format!("Escape sequence \"\\{escape}\" is invalid."))),
                };
                if high.is_some() {
                    return Err(lone());
                }
                if self.unescape {
                    string.push(plain);
                }
                continue;
            }
            if high.is_some() {
                return Err(lone());
            }
            match c {
                '"' => {
                    let mut token = self.cut(TokenKind::String, at + 1);
                    token.string = string;
                    return Ok(token);
                }
                '\0'..' ' => {
                    let code = c as u32;
                    return Err(syntax(format!(
                        "Character with value 0x{code:02x} must be escaped."
                    )));
                }
                _ if self.unescape => string.push(c),
                _ => {}
            }
        }
    }
}

/// Appends the character of a `\u` escape. Returns it if it is the first half of a character.
fn unicode(code: u32, high: Option<u32>, out: &mut String) -> Result<Option<u32>, InputError> {
    let code = match (code, high) {
        (0xD800..0xDC00, Some(_)) => {
            return Err(syntax("Unicode high surrogate must not follow a high surrogate."));
        }
        (0xD800..0xDC00, None) => return Ok(Some(code)),
        (0xDC00..0xE000, Some(high)) => 0x1_0000 + (high - 0xD800) * 0x400 + code - 0xDC00,
        (0xDC00..0xE000, None) | (_, Some(_)) => {
            return Err(syntax("Unicode low surrogate must follow a high surrogate."));
        }
        (0, None) => {
            let message = "unsupported Unicode escape sequence";
            let detail = "\\u0000 cannot be converted to text.";
            return Err(InputError::new("22P05", message).with_detail(detail));
        }
        (code, None) => code,
    };
    out.extend(char::from_u32(code));
    Ok(None)
}

/// Parses one JSON value.
pub(crate) fn parse<S: Sink>(text: &str, sink: &mut S) -> Result<(), InputError> {
    use TokenKind::{Boolean, End, Null, Number, Punctuation, String};
    let mut lexer = Lexer { rest: text, unescape: S::UNESCAPE };
    // For each open container, whether it is an object.
    let mut open: Vec<bool> = Vec::new();
    let mut token = lexer.next()?;
    loop {
        // Here a value must begin, or a container that has just been opened ends.
        sink.at(lexer.place(text, &token));
        match token.kind {
            Punctuation(byte @ (b'{' | b'[')) => {
                let object = byte == b'{';
                sink.open(object);
                open.push(object);
                token = lexer.next()?;
                match (object, token.kind) {
                    (true, Punctuation(b'}')) | (false, Punctuation(b']')) => {
                        sink.at(lexer.place(text, &token));
                        sink.close();
                        open.pop();
                    }
                    (true, String) => {
                        token = key(&mut lexer, token, sink)?;
                        continue;
                    }
                    (true, _) => return Err(expected("string or \"}\"", &token)),
                    (false, _) => continue,
                }
            }
            String => sink.string(std::mem::take(&mut token.string))?,
            Number => sink.number(token.text)?,
            Boolean(value) => sink.boolean(value),
            Null => sink.null(),
            _ => return Err(expected("JSON value", &token)),
        }
        // A value has ended. Containers may end after it, or another value follows.
        token = lexer.next()?;
        loop {
            match (open.last(), token.kind) {
                (None, End) => return Ok(()),
                (None, _) => return Err(expected("end of input", &token)),
                (Some(true), Punctuation(b'}')) | (Some(false), Punctuation(b']')) => {
                    sink.at(lexer.place(text, &token));
                    sink.close();
                    open.pop();
                    token = lexer.next()?;
                }
                (Some(true), Punctuation(b',')) => {
                    token = lexer.next()?;
                    if token.kind != String {
                        return Err(expected("string", &token));
                    }
                    token = key(&mut lexer, token, sink)?;
                    break;
                }
                (Some(false), Punctuation(b',')) => {
                    token = lexer.next()?;
                    break;
                }
                (Some(true), _) => return Err(expected("\",\" or \"}\"", &token)),
                (Some(false), _) => return Err(expected("\",\" or \"]\"", &token)),
            }
        }
    }
}

/// Passes on a key, and returns the token after its colon.
fn key<'a, S: Sink>(
    lexer: &mut Lexer<'a>,
    token: Token<'a>,
    sink: &mut S,
) -> Result<Token<'a>, InputError> {
    sink.key(token.string)?;
    let colon = lexer.next()?;
    match colon.kind {
        TokenKind::Punctuation(b':') => lexer.next(),
        _ => Err(expected("\":\"", &colon)),
    }
}
