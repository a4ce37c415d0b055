//! **The scanner**: from text to tokens, by the rules of PostgreSQL's.
//!
//! `select E'a\tb' -- comment` becomes the keyword SELECT and a string of three characters. Strings
//! are in `literal.rs`, numbers in `number.rs`.

use super::keyword::keyword;
use super::literal;
use super::number;
use super::source::Source;
use super::span::Span;
use super::token::{Token, TokenKind};
use super::unicode_literal;
use crate::error::SqlError;

/// The bytes that fit into a name of the catalog.
const NAME_BYTES_MAX: usize = 63;
/// Characters of operators.
const OPERATOR_CHARACTERS: &[u8] = b"~!@#^&|`?+-*/%<>=";
/// Only an operator with one of these may end in a plus or a minus.
const SPECIAL_CHARACTERS: &[u8] = b"~!@#^&|`?%";

/// All tokens of a text. The last one is [`TokenKind::End`], or [`TokenKind::Malformed`] at a literal or
/// comment that is not terminated or malformed.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { source: Source::new(text) };
    let mut tokens = Vec::new();
    loop {
        let blanks = lexer.skip_blanks();
        let start = lexer.source.at;
        let kind = blanks
            .and_then(|()| lexer.token(start))
            .unwrap_or_else(|error| TokenKind::Malformed(Box::new(error)));
        let last = matches!(kind, TokenKind::End | TokenKind::Malformed(_));
        let span = Span::new(offset(start), offset(lexer.source.at));
        tokens.push(Token { kind, span });
        if last {
            return tokens;
        }
    }
}

/// Truncates a name to what fits into the catalog, at a character's boundary.
pub(super) fn truncated(mut name: String) -> String {
    if name.len() > NAME_BYTES_MAX {
        let end = (0..=NAME_BYTES_MAX).rev().find(|&end| name.is_char_boundary(end));
        name.truncate(end.unwrap_or(0));
    }
    name
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

struct Lexer<'s> {
    source: Source<'s>,
}

impl Lexer<'_> {
    /// Skips white space and comments.
    fn skip_blanks(&mut self) -> Result<(), SqlError> {
        loop {
            match (self.source.peek(0), self.source.peek(1)) {
                (Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0c | 0x0b), _) => self.source.at += 1,
                (Some(b'-'), Some(b'-')) => self.source.skip_line(),
                (Some(b'/'), Some(b'*')) => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    /// Skips a comment in which others may be nested.
    fn skip_comment(&mut self) -> Result<(), SqlError> {
        let start = self.source.at;
        let mut depth = 0_usize;
        loop {
            match (self.source.peek(0), self.source.peek(1)) {
                (Some(b'/'), Some(b'*')) => {
                    depth += 1;
                    self.source.at += 2;
                }
                (Some(b'*'), Some(b'/')) => {
                    depth -= 1;
                    self.source.at += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                (Some(_), _) => self.source.at += 1,
                (None, _) => return Err(self.source.error("unterminated /* comment", start)),
            }
        }
    }

    fn token(&mut self, start: usize) -> Result<TokenKind, SqlError> {
        let Some(byte) = self.source.peek(0) else { return Ok(TokenKind::End) };
        match (byte, self.source.peek(1), self.source.peek(2)) {
            (b'\'', ..) => literal::quoted(&mut self.source, start).map(TokenKind::String),
            (b'e' | b'E', Some(b'\''), _) => {
                self.source.at += 1;
                literal::escaped(&mut self.source, start).map(TokenKind::String)
            }
            (b'b' | b'B', Some(b'\''), _) => self.bit_string(start, "b"),
            (b'x' | b'X', Some(b'\''), _) => self.bit_string(start, "x"),
            (b'n' | b'N', Some(b'\''), _) => {
                // The string that follows is a constant of the type that this keyword names.
                self.source.at += 1;
                Ok(keyword("nchar").map_or(TokenKind::Stray, TokenKind::Keyword))
            }
            (b'u' | b'U', Some(b'&'), Some(b'\'' | b'"')) => self.unicode(start),
            (b'"', ..) => {
                let name = literal::quoted_identifier(&mut self.source, start)?;
                Ok(TokenKind::Identifier(truncated(name)))
            }
            (b'$', Some(b'0'..=b'9'), _) => number::parameter(&mut self.source),
            (b'$', ..) => match literal::dollar_quoted(&mut self.source)? {
                Some(text) => Ok(TokenKind::String(text)),
                None => {
                    self.source.at += 1;
                    Ok(TokenKind::Stray)
                }
            },
            (b'0'..=b'9', ..) | (b'.', Some(b'0'..=b'9'), _) => number::number(&mut self.source),
            (b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.., ..) => Ok(self.word()),
            _ if OPERATOR_CHARACTERS.contains(&byte) => self.operator(start),
            _ => Ok(self.punctuation(byte)),
        }
    }

    fn word(&mut self) -> TokenKind {
        let start = self.source.at;
        self.source.skip_identifier();
        // PostgreSQL folds no other letters in a multi-byte encoding.
        let folded = self.source.text(start..self.source.at).to_ascii_lowercase();
        match keyword(&folded) {
            Some(found) => TokenKind::Keyword(found),
            None => TokenKind::Identifier(truncated(folded)),
        }
    }

    fn bit_string(&mut self, start: usize, prefix: &str) -> Result<TokenKind, SqlError> {
        self.source.at += 1;
        let message = match prefix {
            "b" => "unterminated bit string literal",
            _ => "unterminated hexadecimal string literal",
        };
        let digits = literal::plain(&mut self.source, start, message)?;
        Ok(TokenKind::BitString(format!("{prefix}{digits}")))
    }

    /// `U&'…'` or `U&"…"`, with the UESCAPE that may follow it.
    fn unicode(&mut self, start: usize) -> Result<TokenKind, SqlError> {
        self.source.at += 2;
        let identifier = self.source.peek(0) == Some(b'"');
        let raw = if identifier {
            literal::quoted_identifier(&mut self.source, start)?
        } else {
            literal::quoted(&mut self.source, start)?
        };
        let end = self.source.at;
        let escape = self.unicode_escape()?;
        if escape.is_none() {
            self.source.at = end;
        }
        let text = unicode_literal::decoded(&raw, escape.unwrap_or('\\'), start)?;
        Ok(if identifier {
            TokenKind::Identifier(truncated(text))
        } else {
            TokenKind::String(text)
        })
    }

    /// The character of a UESCAPE clause, if one follows.
    fn unicode_escape(&mut self) -> Result<Option<char>, SqlError> {
        self.skip_blanks()?;
        let start = self.source.at;
        self.source.skip_identifier();
        if !self.source.text(start..self.source.at).eq_ignore_ascii_case("uescape") {
            return Ok(None);
        }
        self.skip_blanks()?;
        let start = self.source.at;
        let text = match self.source.peek(0) {
            Some(b'\'') => literal::quoted(&mut self.source, start)?,
            _ => {
                self.token(start)?;
                let message = "UESCAPE must be followed by a simple string literal";
                return Err(self.source.error(message, start));
            }
        };
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(escape), None) if unicode_literal::is_escape_character(escape) => {
                Ok(Some(escape))
            }
            _ => Err(self.source.error("invalid Unicode escape character", start)),
        }
    }

    fn operator(&mut self, start: usize) -> Result<TokenKind, SqlError> {
        let rest = self.source.bytes(start);
        let run = rest.iter().take_while(|byte| OPERATOR_CHARACTERS.contains(byte)).count();
        let run = rest.get(..run).unwrap_or(rest);
        // A comment ends the operator before it.
        let comment = run.windows(2).position(|pair| pair == b"--" || pair == b"/*");
        let mut text = run.get(..comment.unwrap_or(run.len())).unwrap_or(run);
        while let [head @ .., b'+' | b'-'] = text {
            if head.is_empty() || head.iter().any(|byte| SPECIAL_CHARACTERS.contains(byte)) {
                break;
            }
            text = head;
        }
        self.source.at = start + text.len();
        let text = self.source.text(start..self.source.at);
        if text.len() > NAME_BYTES_MAX {
            return Err(self.source.error("operator too long", start));
        }
        let symbol = match text {
            "+" | "-" | "*" | "/" | "%" | "^" | "<" | ">" | "=" | "<=" | ">=" | "<>" | "=>" => {
                symbol(text)
            }
            "!=" => Some("<>"),
            _ => None,
        };
        Ok(symbol.map_or_else(|| TokenKind::Operator(text.to_owned()), TokenKind::Symbol))
    }

    fn punctuation(&mut self, byte: u8) -> TokenKind {
        let next = self.source.peek(1);
        let text = match (byte, next) {
            (b':', Some(b':')) => "::",
            (b':', Some(b'=')) => ":=",
            (b'.', Some(b'.')) => "..",
            _ => {
                let at = self.source.at;
                self.source.at += 1;
                return symbol(self.source.text(at..at + 1))
                    .map_or(TokenKind::Stray, TokenKind::Symbol);
            }
        };
        self.source.at += 2;
        TokenKind::Symbol(text)
    }
}

/// The constant that equals a symbol's text.
fn symbol(text: &str) -> Option<&'static str> {
    const SYMBOLS: &[&str] = &[
        ",", "(", ")", "[", "]", ".", ";", ":", "+", "-", "*", "/", "%", "^", "<", ">", "=", "<=",
        ">=", "<>", "=>",
    ];
    SYMBOLS.iter().find(|&&known| known == text).copied()
}
