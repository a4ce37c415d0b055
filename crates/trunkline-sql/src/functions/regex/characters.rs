//! Sets of characters: brackets, class names and escapes.
//!
//! Classes are those of the locale C, in which only ASCII characters belong to any. A pattern that
//! uses one therefore says that it depends on the locale.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::flags::{BAD_CLASS, invalid};
use crate::error::SqlError;

/// One character.
pub(super) fn single(letter: char) -> ClassUnicode {
    range(letter, letter)
}

/// All characters from `first` to `last`.
pub(super) fn range(first: char, last: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(first, last)])
}

/// All characters, or all but the newline.
pub(super) fn any(with_newline: bool) -> ClassUnicode {
    let mut class = range('\0', char::MAX);
    if !with_newline {
        class.difference(&single('\n'));
    }
    class
}

/// All characters that are not in a class.
pub(super) fn complement(class: &ClassUnicode) -> ClassUnicode {
    let mut all = range('\0', char::MAX);
    all.difference(class);
    all
}

/// The class with the given name, such as `alpha`.
pub(super) fn named(name: &str, ignore_case: bool) -> Result<ClassUnicode, SqlError> {
    let test: fn(&char) -> bool = match name {
        "alnum" => char::is_ascii_alphanumeric,
        "alpha" => char::is_ascii_alphabetic,
        "ascii" => char::is_ascii,
        "blank" => |letter| matches!(letter, ' ' | '\t'),
        "cntrl" => char::is_ascii_control,
        "digit" => char::is_ascii_digit,
        "graph" => char::is_ascii_graphic,
        // A class of one case has both if case is ignored.
        "lower" | "upper" if ignore_case => char::is_ascii_alphabetic,
        "lower" => char::is_ascii_lowercase,
        "print" => |letter| letter.is_ascii_graphic() || *letter == ' ',
        "punct" => char::is_ascii_punctuation,
        "space" => |letter| matches!(letter, ' ' | '\t'..='\r'),
        "upper" => char::is_ascii_uppercase,
        "word" => |letter| letter.is_ascii_alphanumeric() || *letter == '_',
        "xdigit" => char::is_ascii_hexdigit,
        _ => return Err(invalid(BAD_CLASS)),
    };
    let found = ('\0'..='\x7F').filter(test);
    Ok(ClassUnicode::new(found.map(|letter| ClassUnicodeRange::new(letter, letter))))
}

/// Adds the other case of every ASCII letter.
pub(super) fn with_both_cases(class: &mut ClassUnicode) {
    let has = |class: &ClassUnicode, letter: char| {
        class.iter().any(|range| (range.start()..=range.end()).contains(&letter))
    };
    for letter in 'a'..='z' {
        let upper = letter.to_ascii_uppercase();
        match (has(class, letter), has(class, upper)) {
            (true, false) => class.push(ClassUnicodeRange::new(upper, upper)),
            (false, true) => class.push(ClassUnicodeRange::new(letter, letter)),
            _ => {}
        }
    }
}

/// Whether a class that was written in a pattern has characters beyond ASCII.
pub(super) fn is_ascii(class: &ClassUnicode) -> bool {
    class.iter().all(|range| range.end().is_ascii())
}

/// The character with the given name in `[.name.]`: a name of POSIX, or the character itself.
pub(super) fn collating_element(name: &str) -> Option<char> {
    const NAMES: [(&str, char); 27] = [
        ("NUL", '\0'),
        ("alert", '\x07'),
        ("backspace", '\x08'),
        ("tab", '\t'),
        ("newline", '\n'),
        ("vertical-tab", '\x0B'),
        ("form-feed", '\x0C'),
        ("carriage-return", '\r'),
        ("ESC", '\x1B'),
        ("space", ' '),
        ("hyphen", '-'),
        ("hyphen-minus", '-'),
        ("period", '.'),
        ("full-stop", '.'),
        ("slash", '/'),
        ("backslash", '\\'),
        ("underscore", '_'),
        ("comma", ','),
        ("colon", ':'),
        ("semicolon", ';'),
        ("asterisk", '*'),
        ("plus-sign", '+'),
        ("left-square-bracket", '['),
        ("right-square-bracket", ']'),
        ("circumflex", '^'),
        ("tilde", '~'),
        ("DEL", '\x7F'),
    ];
    let mut letters = name.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) => Some(letter),
        _ => NAMES.iter().find(|(found, _)| *found == name).map(|(_, letter)| *letter),
    }
}
