//! The words of a path, and where in the text they are.
//!
//! For example, `$.a[1]` has the words `$`, `.`, `a`, `[`, `1` and `]`.

use crate::text_input::error::InputError;

/// A word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name without quotes, which may be a keyword.
    Name(String),
    /// A text in quotes.
    Text(String),
    /// `$name`.
    Variable(String),
    /// A whole number in decimal notation, or any other number: its digits as `numeric` reads them.
    Integer(String),
    Number(String),
    /// An operator or a separator.
    Symbol(&'static str),
    End,
}

/// A word, and its text for messages.
pub(super) type Word = (Token, String);

/// The operators, of which longer ones are tried first.
const SYMBOLS: [&str; 29] = [
    "&&", "||", "==", "<>", "!=", "<=", ">=", "**", "?", "%", "$", ".", "[", "]", "{", "}", "(",
    ")", "|", "&", "!", "=", "<", ">", "@", ",", "*", "+", "-",
];

const SPECIAL: &str = "?%$.[]{}()|&!=<>@#,*:-+/";

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | '\r' | '\x0C')
}

pub(super) fn syntax(message: &str) -> InputError {
    InputError::new("42601", message)
}

/// Splits a text into words, of which the last one is [`Token::End`].
pub(super) fn words(text: &str) -> Result<Vec<Word>, InputError> {
    let mut rest = text;
    let mut words = Vec::new();
    loop {
        rest = rest.trim_start_matches(is_blank);
        if let Some(comment) = rest.strip_prefix("/*") {
            let Some((_, after)) = comment.split_once("*/") else {
                return Err(syntax("unexpected end of comment at end of jsonpath input"));
            };
            rest = after;
            continue;
        }
        let Some(first) = rest.chars().next() else {
            words.push((Token::End, String::new()));
            return Ok(words);
        };
        let (token, after) = match first {
            '"' => {
                let (text, after) = quoted(rest.get(1..).unwrap_or_default())?;
                (Token::Text(text), after)
            }
            '$' => variable(rest)?,
            '0'..='9' => number(rest)?,
            '.' if rest
                .get(1..)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) =>
            {
                number(rest)?
            }
            '/' => (Token::Symbol("/"), rest.get(1..).unwrap_or_default()),
            _ => match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
                Some(symbol) => {
                    (Token::Symbol(symbol), rest.get(symbol.len()..).unwrap_or_default())
                }
                None => {
                    let (name, after) = name(rest)?;
                    (Token::Name(name), after)
                }
            },
        };
        let length = rest.len() - after.len();
        words.push((token, rest.get(..length).unwrap_or_default().to_owned()));
        rest = after;
    }
}

/// The text up to the closing quote, and what is behind it.
fn quoted(text: &str) -> Result<(String, &str), InputError> {
    let mut found = String::new();
    let mut rest = text;
    loop {
        let mut letters = rest.chars();
        match letters.next() {
            None => return Err(syntax("unterminated quoted string at end of jsonpath input")),
            Some('"') => return Ok((found, letters.as_str())),
            Some('\\') => rest = escape(letters.as_str(), &mut found)?,
            Some(letter) => {
                found.push(letter);
                rest = letters.as_str();
            }
        }
    }
}

/// Reads what is behind a backslash, and returns what follows it.
fn escape<'a>(text: &'a str, out: &mut String) -> Result<&'a str, InputError> {
    let mut letters = text.chars();
    let Some(letter) = letters.next() else {
        return Err(syntax("unexpected end after backslash at end of jsonpath input"));
    };
    let rest = letters.as_str();
    let (code, rest) = match letter {
        'b' => (8, rest),
        'f' => (12, rest),
        'n' => (10, rest),
        'r' => (13, rest),
        't' => (9, rest),
        'v' => (11, rest),
        'x' => hex(rest, 2).ok_or_else(|| {
            syntax("invalid hexadecimal character sequence at or near \"\\x\" of jsonpath input")
        })?,
        'u' => unicode(rest)?,
        other => (u32::from(other), rest),
    };
    if code == 0 {
        let error = InputError::new("22P05", "unsupported Unicode escape sequence");
        return Err(error.with_detail("\\u0000 cannot be converted to text."));
    }
    let Some(found) = char::from_u32(code) else {
        return Err(syntax("invalid Unicode escape sequence of jsonpath input"));
    };
    out.push(found);
    Ok(rest)
}

fn hex(text: &str, digits: usize) -> Option<(u32, &str)> {
    let (number, rest) = text.split_at_checked(digits)?;
    let is_hex = number.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(number, 16).ok()).flatten().map(|number| (number, rest))
}

/// `\u0041`, `\u{41}`, or two surrogates.
fn unicode(text: &str) -> Result<(u32, &str), InputError> {
    let wrong = || syntax("invalid Unicode escape sequence at or near \"\\u\" of jsonpath input");
    if let Some(inside) = text.strip_prefix('{') {
        let (digits, rest) = inside.split_once('}').ok_or_else(wrong)?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u32::from_str_radix(digits, 16).ok();
        let number = number.filter(|_| is_hex && digits.len() <= 6).ok_or_else(wrong)?;
        return Ok((number, rest));
    }
    let (first, rest) = hex(text, 4).ok_or_else(wrong)?;
    if !(0xD800..0xDC00).contains(&first) {
        if (0xDC00..0xE000).contains(&first) {
            let error = InputError::new("22P02", "invalid input syntax for type jsonpath");
            return Err(error.with_detail("Unicode low surrogate must follow a high surrogate."));
        }
        return Ok((first, rest));
    }
    let second = rest.strip_prefix("\\u").and_then(|rest| hex(rest, 4));
    match second {
        Some((second, rest)) if (0xDC00..0xE000).contains(&second) => {
            Ok((0x10000 + ((first & 0x3FF) << 10) + (second & 0x3FF), rest))
        }
        _ => {
            let error = InputError::new("22P02", "invalid input syntax for type jsonpath");
            Err(error.with_detail("Unicode low surrogate must follow a high surrogate."))
        }
    }
}

fn variable(text: &str) -> Result<(Token, &str), InputError> {
    let rest = text.get(1..).unwrap_or_default();
    if let Some(inside) = rest.strip_prefix('"') {
        let (name, after) = quoted(inside)?;
        return Ok((Token::Variable(name), after));
    }
    let is_end =
        |letter: char| is_blank(letter) || SPECIAL.contains(letter) || matches!(letter, '"' | '\\');
    if rest.chars().next().is_none_or(is_end) {
        return Ok((Token::Symbol("$"), rest));
    }
    let (name, after) = name(rest)?;
    Ok((Token::Variable(name), after))
}

/// A name without quotes, in which escapes may occur.
fn name(text: &str) -> Result<(String, &str), InputError> {
    let mut found = String::new();
    let mut rest = text;
    loop {
        let mut letters = rest.chars();
        match letters.next() {
            Some('\\') => rest = escape(letters.as_str(), &mut found)?,
            Some(letter) if !is_blank(letter) && letter != '"' && !SPECIAL.contains(letter) => {
                found.push(letter);
                rest = letters.as_str();
            }
            Some(letter) if found.is_empty() => {
                let message = format!("syntax error at or near \"{letter}\" of jsonpath input");
                return Err(syntax(&message));
            }
            _ => return Ok((found, rest)),
        }
    }
}

/// The digits at the start of a text, between which underscores may be.
fn digits(text: &str, radix: u32) -> &str {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(|&byte| char::from(byte).is_digit(radix));
    let mut at = 0;
    while is_digit(at) || (at > 0 && bytes.get(at) == Some(&b'_') && is_digit(at + 1)) {
        at += 1;
    }
    text.get(..at).unwrap_or_default()
}

fn number(text: &str) -> Result<(Token, &str), InputError> {
    let after = |length: usize| text.get(length..).unwrap_or_default();
    let prefix = text.get(..2).unwrap_or_default().to_ascii_lowercase();
    let radix = match prefix.as_str() {
        "0x" => Some(16),
        "0o" => Some(8),
        "0b" => Some(2),
        _ => None,
    };
    let (length, is_integer, value) = match radix {
        Some(radix) => {
            let found = digits(after(2), radix);
            let plain = found.replace('_', "");
            let value = u128::from_str_radix(&plain, radix);
            let value = value.map_or_else(|_| String::new(), |value| value.to_string());
            (2 + found.len(), true, value)
        }
        None => {
            let whole = digits(text, 10);
            let is_padded = whole.len() > 1 && whole.starts_with('0');
            let mut length = if is_padded { 1 } else { whole.len() };
            let mut is_integer = true;
            if !is_padded && after(length).starts_with('.') {
                let fraction = digits(after(length + 1), 10);
                if !(whole.is_empty() && fraction.is_empty()) {
                    // `1..a` is a number with a point, and then a key.
                    length += 1 + fraction.len();
                    is_integer = false;
                }
            }
            if !is_padded && after(length).starts_with(['e', 'E']) {
                let sign = usize::from(after(length + 1).starts_with(['+', '-']));
                let exponent = digits(after(length + 1 + sign), 10);
                if !exponent.is_empty() {
                    length += 1 + sign + exponent.len();
                    is_integer = false;
                }
            }
            (length, is_integer, text.get(..length).unwrap_or_default().replace('_', ""))
        }
    };
    let is_end =
        |letter: char| is_blank(letter) || SPECIAL.contains(letter) || matches!(letter, '"' | '\\');
    let junk = after(length).chars().take_while(|letter| !is_end(*letter)).collect::<String>();
    if !junk.is_empty() || value.is_empty() {
        // The scanner stops after the first letter that can't belong to the number.
        let shown: String = text.chars().take(length + 1).collect();
        let message =
            format!("trailing junk after numeric literal at or near \"{shown}\" of jsonpath input");
        return Err(syntax(&message));
    }
    let token = if is_integer { Token::Integer(value) } else { Token::Number(value) };
    Ok((token, after(length)))
}
