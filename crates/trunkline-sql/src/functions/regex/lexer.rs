//! Splits a pattern into tokens: what an escape, a bracket or a brace means at its place.
//!
//! For example, `a{2}\d` has four tokens: the characters `a`, a quantifier, and a class. A brace that
//! no digit follows is an ordinary character.

use regex_syntax::hir::{ClassUnicode, Look};

use super::characters::{self, named, range, single};
use super::flags::{
    BAD_BRACES, BAD_BRACKETS, BAD_CLASS, BAD_COLLATING_ELEMENT, BAD_COUNT, BAD_ESCAPE, BAD_OPTION,
    BAD_PARENTHESES, BAD_QUANTIFIER, BAD_RANGE, Flags, Syntax, invalid,
};
use crate::error::SqlError;

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// One of these characters.
    Class(ClassUnicode),
    /// A place, such as the start of the text.
    Place(Look),
    /// `(`, and whether it captures.
    Open(bool),
    Close,
    Alternative,
    Quantifier(Quantifier),
    /// `\1`.
    BackReference(u32),
    End,
}

/// How often something repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quantifier {
    pub(super) min: u32,
    /// `None` is unlimited.
    pub(super) max: Option<u32>,
    /// Whether a long match is preferred. `{m}` has no preference of its own.
    pub(super) greedy: Option<bool>,
}

/// `DUPMAX`: the largest number in a quantifier.
const COUNT_MAX: u32 = 255;

/// Reads tokens from a pattern.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
    flags: Flags,
    /// The number of groups that capture so far, on which the meaning of `\10` depends.
    pub(super) groups: u32,
    /// Whether the pattern has anything that depends on the locale, so that the meaning is only
    /// known for ASCII texts.
    pub(super) needs_ascii_text: bool,
    /// Whether it ignores the case of characters beyond ASCII.
    pub(super) needs_other_cases: bool,
}

impl<'a> Lexer<'a> {
    /// Starts reading, and handles the options at the start of the pattern.
    pub(super) fn new(pattern: &'a str, flags: Flags) -> Result<Self, SqlError> {
        let (needs_ascii_text, needs_other_cases) = (false, false);
        let mut lexer =
            Self { rest: pattern, flags, groups: 0, needs_ascii_text, needs_other_cases };
        lexer.prefix()?;
        match lexer.flags.syntax {
            Syntax::Basic => Err(SqlError::unsupported(
                "basic regular expressions are not supported by trunkline",
            )),
            _ => Ok(lexer),
        }
    }

    /// `***:`, `***=` and `(?options)`.
    fn prefix(&mut self) -> Result<(), SqlError> {
        if self.flags.syntax != Syntax::Advanced {
            return Ok(());
        }
        if let Some(rest) = self.rest.strip_prefix("***") {
            match rest.chars().next() {
                Some('?') => return Err(invalid("invalid argument to regex function")),
                Some('=') => self.flags.syntax = Syntax::Literal,
                Some(':') => {}
                _ => return Err(invalid(BAD_QUANTIFIER)),
            }
            self.rest = rest.get(1..).unwrap_or_default();
            if self.flags.syntax == Syntax::Literal {
                return Ok(());
            }
        }
        let Some(options) = self.rest.strip_prefix("(?") else { return Ok(()) };
        if !options.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            return Ok(());
        }
        let end = options.find(|letter: char| !letter.is_ascii_alphabetic());
        let (letters, rest) = options.split_at(end.unwrap_or(options.len()));
        for letter in letters.chars() {
            if !self.flags.set(letter) {
                return Err(invalid(BAD_OPTION));
            }
        }
        self.rest = rest.strip_prefix(')').ok_or_else(|| invalid(BAD_OPTION))?;
        Ok(())
    }

    fn advanced(&self) -> bool {
        self.flags.syntax == Syntax::Advanced
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let mut letters = self.rest.chars();
        let letter = letters.next();
        self.rest = letters.as_str();
        letter
    }

    fn eat(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Skips white space and comments of the expanded syntax, and `(?#…)`.
    fn skip(&mut self) {
        loop {
            if self.flags.expanded {
                let space = |letter: char| matches!(letter, ' ' | '\t'..='\r');
                self.rest = self.rest.trim_start_matches(space);
                if self.rest.starts_with('#') {
                    self.rest =
                        self.rest.find('\n').and_then(|at| self.rest.get(at..)).unwrap_or("");
                    continue;
                }
            }
            if !(self.advanced() && self.rest.starts_with("(?#")) {
                return;
            }
            let end = self.rest.find(')').and_then(|at| self.rest.get(at + 1..));
            self.rest = end.unwrap_or_default();
        }
    }

    /// The error for a parenthesis without a partner.
    pub(super) fn unbalanced(&self) -> SqlError {
        if self.advanced() {
            return invalid(BAD_PARENTHESES);
        }
        // In POSIX syntax, a closing parenthesis may stand for itself.
        SqlError::unsupported(
            "an unbalanced parenthesis in an extended regular expression is not \
                               supported by trunkline",
        )
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Result<Token, SqlError> {
        if self.flags.syntax == Syntax::Literal {
            return Ok(self.bump().map_or(Token::End, |letter| self.letter(letter)));
        }
        self.skip();
        let Some(letter) = self.bump() else { return Ok(Token::End) };
        Ok(match letter {
            '|' => Token::Alternative,
            '*' => self.quantifier(0, None),
            '+' => self.quantifier(1, None),
            '?' => self.quantifier(0, Some(1)),
            '{' if self.peek().is_some_and(|letter| letter.is_ascii_digit()) => self.braces()?,
            '(' => self.parenthesis()?,
            ')' => Token::Close,
            '[' => self.bracket()?,
            '.' => Token::Class(characters::any(!self.flags.newline_stops)),
            '^' => {
                Token::Place(if self.flags.newline_anchors { Look::StartLF } else { Look::Start })
            }
            '$' => Token::Place(if self.flags.newline_anchors { Look::EndLF } else { Look::End }),
            '\\' => self.escape()?,
            _ => self.letter(letter),
        })
    }

    /// A character that stands for itself, in both cases if case is ignored.
    fn letter(&mut self, letter: char) -> Token {
        let mut class = single(letter);
        self.fold(&mut class);
        Token::Class(class)
    }

    fn fold(&mut self, class: &mut ClassUnicode) {
        if self.flags.ignore_case {
            self.needs_other_cases |= !characters::is_ascii(class);
            characters::with_both_cases(class);
        }
    }

    /// Reads the `?` after a quantifier that prefers a short match.
    fn is_greedy(&mut self) -> bool {
        !(self.advanced() && self.eat("?"))
    }

    fn quantifier(&mut self, min: u32, max: Option<u32>) -> Token {
        let greedy = Some(self.is_greedy());
        Token::Quantifier(Quantifier { min, max, greedy })
    }

    /// What follows a `{`.
    fn braces(&mut self) -> Result<Token, SqlError> {
        let min = self.count()?;
        let (max, has_preference) = match self.eat(",") {
            false => (Some(min), false),
            true if self.rest.starts_with('}') => (None, true),
            true => (Some(self.count()?), true),
        };
        if self.rest.is_empty() {
            return Err(invalid(BAD_BRACES));
        }
        if !self.eat("}") || max.is_some_and(|max| max < min) {
            return Err(invalid(BAD_COUNT));
        }
        let greedy = self.is_greedy();
        let greedy = has_preference.then_some(greedy);
        Ok(Token::Quantifier(Quantifier { min, max, greedy }))
    }

    fn count(&mut self) -> Result<u32, SqlError> {
        let digits =
            self.rest.len() - self.rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (digits, rest) = self.rest.split_at(digits);
        self.rest = rest;
        let count = digits.parse().ok().filter(|&count| count <= COUNT_MAX);
        let at_end = self.rest.is_empty() && digits.is_empty();
        count.ok_or_else(|| invalid(if at_end { BAD_BRACES } else { BAD_COUNT }))
    }

    /// What follows a `(`.
    fn parenthesis(&mut self) -> Result<Token, SqlError> {
        if !self.advanced() || !self.eat("?") {
            return Ok(Token::Open(true));
        }
        match self.bump() {
            Some(':') => Ok(Token::Open(false)),
            Some('=' | '!') => Err(look_around("lookahead")),
            Some('<') if matches!(self.peek(), Some('=' | '!')) => Err(look_around("lookbehind")),
            _ => Err(invalid(BAD_QUANTIFIER)),
        }
    }

    /// What follows a backslash outside brackets.
    fn escape(&mut self) -> Result<Token, SqlError> {
        let letter = self.bump().ok_or_else(|| invalid(BAD_ESCAPE))?;
        if !self.advanced() {
            return Ok(self.letter(letter));
        }
        let place = |lexer: &mut Self, look| {
            lexer.needs_ascii_text = true;
            Ok(Token::Place(look))
        };
        match letter {
            'A' => Ok(Token::Place(Look::Start)),
            'Z' => Ok(Token::Place(Look::End)),
            'm' => place(self, Look::WordStartAscii),
            'M' => place(self, Look::WordEndAscii),
            'y' => place(self, Look::WordAscii),
            'Y' => place(self, Look::WordAsciiNegate),
            '1'..='9' => self.back_reference(letter),
            _ => match self.class_escape(letter) {
                Some(class) => Ok(Token::Class(class)),
                None => match self.character_escape(letter)? {
                    Some(letter) => Ok(self.letter(letter)),
                    // A number that is no character matches nothing.
                    None => Ok(Token::Class(ClassUnicode::empty())),
                },
            },
        }
    }

    /// `\d` and the like, which are allowed in brackets, too.
    fn class_escape(&mut self, letter: char) -> Option<ClassUnicode> {
        let name = match letter.to_ascii_lowercase() {
            'd' => "digit",
            's' => "space",
            'w' => "word",
            _ => return None,
        };
        self.needs_ascii_text = true;
        let class = named(name, false).ok()?;
        Some(if letter.is_ascii_uppercase() { characters::complement(&class) } else { class })
    }

    /// `\1`, or an octal number.
    fn back_reference(&mut self, first: char) -> Result<Token, SqlError> {
        let after_first = self.rest;
        let mut number = first.to_digit(10).unwrap_or_default();
        let mut is_single = true;
        while let Some(digit) = self.peek().and_then(|letter| letter.to_digit(10)) {
            number = number.saturating_mul(10).saturating_add(digit);
            is_single = false;
            self.bump();
        }
        if is_single || number <= self.groups {
            return Ok(Token::BackReference(number));
        }
        self.rest = after_first;
        let letter = self.octal(first)?;
        Ok(self.letter(letter))
    }

    /// An octal number of up to three digits, and at most 255.
    fn octal(&mut self, first: char) -> Result<char, SqlError> {
        let mut number = first.to_digit(8).ok_or_else(|| invalid(BAD_ESCAPE))?;
        for _ in 0..2 {
            let Some(digit) = self.peek().and_then(|letter| letter.to_digit(8)) else { break };
            if number * 8 + digit > 0xFF {
                break;
            }
            number = number * 8 + digit;
            self.bump();
        }
        char::from_u32(number).ok_or_else(|| invalid(BAD_ESCAPE))
    }

    /// The character that an escape stands for; `None` for a number that isn't one.
    fn character_escape(&mut self, letter: char) -> Result<Option<char>, SqlError> {
        Ok(Some(match letter {
            'a' => '\x07',
            'b' => '\x08',
            'B' => '\\',
            'c' => {
                let letter = self.bump().ok_or_else(|| invalid(BAD_ESCAPE))?;
                return Ok(char::from_u32(u32::from(letter) & 0o37));
            }
            'e' => '\x1B',
            'f' => '\x0C',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0B',
            'u' => return self.hexadecimal(4, 4),
            'U' => return self.hexadecimal(8, 8),
            'x' => return self.hexadecimal(1, 255),
            '0' => self.octal('0')?,
            _ if letter.is_ascii_alphanumeric() => return Err(invalid(BAD_ESCAPE)),
            _ => letter,
        }))
    }

    fn hexadecimal(&mut self, min: usize, max: usize) -> Result<Option<char>, SqlError> {
        let (mut number, mut count) = (0_u32, 0);
        while let Some(digit) = self.peek().and_then(|letter| letter.to_digit(16)) {
            if count == max {
                break;
            }
            // The largest number that the server takes has 31 bits.
            number = number
                .checked_mul(16)
                .and_then(|number| number.checked_add(digit))
                .filter(|&number| number <= 0x7FFF_FFFE)
                .ok_or_else(|| invalid(BAD_ESCAPE))?;
            count += 1;
            self.bump();
        }
        if count < min {
            return Err(invalid(BAD_ESCAPE));
        }
        Ok(char::from_u32(number))
    }
}

fn look_around(what: &str) -> SqlError {
    SqlError::unsupported(format!(
        "{what} constraints in regular expressions are not supported by trunkline"
    ))
}

/// What is in brackets.
impl Lexer<'_> {
    /// What follows a `[`.
    fn bracket(&mut self) -> Result<Token, SqlError> {
        for (text, place) in [("[:<:]]", Look::WordStartAscii), ("[:>:]]", Look::WordEndAscii)] {
            if self.eat(text) {
                self.needs_ascii_text = true;
                return Ok(Token::Place(place));
            }
        }
        let complemented = self.eat("^");
        let mut class = ClassUnicode::empty();
        let mut is_first = true;
        while is_first || !self.eat("]") {
            self.bracket_part(&mut class, is_first)?;
            is_first = false;
        }
        self.fold(&mut class);
        if complemented {
            class = characters::complement(&class);
            if self.flags.newline_stops {
                class.difference(&single('\n'));
            }
        }
        Ok(Token::Class(class))
    }

    /// One character, range or class.
    fn bracket_part(&mut self, class: &mut ClassUnicode, is_first: bool) -> Result<(), SqlError> {
        let first = match self.bracket_item(is_first)? {
            Item::Class(found) => {
                class.union(&found);
                // A class can't begin a range.
                return match self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                    true => Err(invalid(BAD_RANGE)),
                    false => Ok(()),
                };
            }
            Item::Letter(letter) => letter,
        };
        let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
        if !is_range {
            class.union(&single(first));
            return Ok(());
        }
        self.bump();
        let last = match self.range_end()? {
            Item::Letter(last) if first <= last => last,
            _ => return Err(invalid(BAD_RANGE)),
        };
        class.union(&range(first, last));
        Ok(())
    }

    /// The end of a range, which may be a `-`.
    fn range_end(&mut self) -> Result<Item, SqlError> {
        if self.eat("-") {
            return Ok(Item::Letter('-'));
        }
        self.bracket_item(false)
    }

    fn bracket_item(&mut self, is_first: bool) -> Result<Item, SqlError> {
        let letter = self.bump().ok_or_else(|| invalid(BAD_BRACKETS))?;
        match (letter, self.peek()) {
            // A `-` is an ordinary character at the start or the end only.
            ('-', Some(next)) if !is_first && next != ']' => Err(invalid(BAD_RANGE)),
            ('[', Some('.')) => {
                let letter = characters::collating_element(self.delimited('.')?);
                letter.map(Item::Letter).ok_or_else(|| invalid(BAD_COLLATING_ELEMENT))
            }
            ('[', Some('=')) => {
                let letter = characters::collating_element(self.delimited('=')?);
                let letter = letter.ok_or_else(|| invalid(BAD_COLLATING_ELEMENT))?;
                Ok(Item::Class(single(letter)))
            }
            ('[', Some(':')) => {
                self.needs_ascii_text = true;
                let ignore_case = self.flags.ignore_case;
                Ok(Item::Class(named(self.delimited(':')?, ignore_case)?))
            }
            ('\\', _) if self.advanced() => {
                let letter = self.bump().ok_or_else(|| invalid(BAD_ESCAPE))?;
                if let Some(class) = self.class_escape(letter) {
                    return Ok(Item::Class(class));
                }
                if matches!(letter, '1'..='9') {
                    return Ok(Item::Letter(self.octal_in_bracket(letter)?));
                }
                if matches!(letter, 'A' | 'Z' | 'm' | 'M' | 'y' | 'Y') {
                    return Err(invalid(BAD_ESCAPE));
                }
                let letter = self.character_escape(letter)?;
                letter.map(Item::Letter).ok_or_else(|| {
                    SqlError::unsupported("a number in brackets of a regular expression that is not a character is not supported by trunkline")
                })
            }
            _ => Ok(Item::Letter(letter)),
        }
    }

    /// A number after a backslash in brackets, which can't refer to a group.
    fn octal_in_bracket(&mut self, first: char) -> Result<char, SqlError> {
        match self.back_reference(first)? {
            Token::BackReference(_) => Err(invalid(BAD_ESCAPE)),
            Token::Class(class) => {
                let letter = class.iter().next().map(|range| range.start());
                letter.ok_or_else(|| invalid(BAD_ESCAPE))
            }
            _ => Err(invalid(BAD_ESCAPE)),
        }
    }

    /// The name in `[:name:]` and the like.
    fn delimited(&mut self, delimiter: char) -> Result<&str, SqlError> {
        self.bump();
        let end = format!("{delimiter}]");
        let Some((name, rest)) = self.rest.split_once(&end) else {
            return Err(invalid(BAD_BRACKETS));
        };
        self.rest = rest;
        match (name.is_empty(), delimiter) {
            (true, ':') => Err(invalid(BAD_CLASS)),
            (true, _) => Err(invalid(BAD_COLLATING_ELEMENT)),
            _ => Ok(name),
        }
    }
}

/// A part of a bracket expression.
enum Item {
    Letter(char),
    Class(ClassUnicode),
}
