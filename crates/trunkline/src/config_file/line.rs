//! Parses a line of a configuration file, with the rules of the server's `guc-file.l`.
//!
//! ```text
//!   TimeZone = 'Europe/Berlin'   # a comment
//!   extra_float_digits 0
//! ```
//! A server doesn't start if a line breaks these rules.

/// A line that a server refuses.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxError;

/// Parses a line. Returns the name of the setting in lower case and its value, or `None` if the line
/// is empty or a comment.
pub(super) fn assignment(line: &str) -> Result<Option<(String, String)>, SyntaxError> {
    let line = skip_blanks(line);
    if is_end(line) {
        return Ok(None);
    }
    let (name, rest) = word(line).filter(|(name, _)| is_name(name)).ok_or(SyntaxError)?;
    let rest = skip_blanks(rest);
    let rest = skip_blanks(rest.strip_prefix('=').unwrap_or(rest));
    let value = match rest.strip_prefix('\'') {
        Some(quoted) => unquote(quoted),
        None => {
            // Two names with a dot between them (`QUALIFIED_ID`) can't be a value without quotes.
            let word = word(rest).filter(|(value, _)| !(value.contains('.') && is_name(value)));
            word.or_else(|| number(rest)).map(|(value, rest)| (value.to_owned(), rest))
        }
    };
    match value {
        Some((value, rest)) if is_end(skip_blanks(rest)) => {
            Ok(Some((name.to_ascii_lowercase(), value)))
        }
        _ => Err(SyntaxError),
    }
}

fn skip_blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\r'])
}

/// Whether nothing but a comment is left of the line.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('#')
}

/// Like the server, we take all bytes above 127 for letters.
fn is_letter(char: char) -> bool {
    char.is_ascii_alphabetic() || char == '_' || !char.is_ascii()
}

/// Splits off a word: a name, or a value that needs no quotes (`UNQUOTED_STRING`).
fn word(text: &str) -> Option<(&str, &str)> {
    let is_part = |c: char| is_letter(c) || c.is_ascii_digit() || "-._:/".contains(c);
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    text.starts_with(is_letter).then(|| text.split_at_checked(end)).flatten()
}

/// Splits off a number: an integer, which may have a unit (`INTEGER`), or a number with a decimal
/// point, which can't have one (`REAL`).
fn number(text: &str) -> Option<(&str, &str)> {
    let unsigned = skip_sign(text);
    let behind_digits = skip_digits(unsigned);
    let rest = match behind_digits.strip_prefix('.') {
        Some(fraction) => skip_exponent(skip_digits(fraction)),
        None if behind_digits.len() == unsigned.len() => return None,
        None => {
            let digits = unsigned.strip_prefix("0x");
            let unit = digits.map(|it| it.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
            unit.unwrap_or(behind_digits).trim_start_matches(|c: char| c.is_ascii_alphabetic())
        }
    };
    text.split_at_checked(text.len() - rest.len())
}

fn skip_sign(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

fn skip_digits(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_digit())
}

fn skip_exponent(text: &str) -> &str {
    let digits = text.strip_prefix(['e', 'E']).map(skip_sign);
    let digits = digits.filter(|it| it.starts_with(|c: char| c.is_ascii_digit()));
    digits.map_or(text, skip_digits)
}

/// Whether a word is the name of a setting. That of an extension's setting has two parts.
fn is_name(word: &str) -> bool {
    let is_identifier = |part: &str| part.starts_with(is_letter) && !part.contains(['-', ':', '/']);
    word.split('.').count() <= 2 && word.split('.').all(is_identifier)
}

/// Returns the text up to the closing quote, and what follows it. A doubled quote represents a
/// single one, and a backslash escapes the next character.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' if !characters.as_str().starts_with('\'') => {
                return Some((value, characters.as_str()));
            }
            '\'' | '\\' => value.push(characters.next()?),
            _ => value.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_assigns_a_value_to_a_name() {
        for (line, name, value) in [
            ("TimeZone = 'Europe/Berlin' # here", "timezone", "Europe/Berlin"),
            ("timezone='UTC'#", "timezone", "UTC"),
            ("  extra_float_digits 0", "extra_float_digits", "0"),
            ("extra_float_digits=3#so", "extra_float_digits", "3"),
            ("datestyle = 'iso, ''dmy\\''", "datestyle", "iso, 'dmy'"),
            ("custom.name = x", "custom.name", "x"),
            ("timezone Asia/Tokyo\t", "timezone", "Asia/Tokyo"),
            ("name = a.b.c", "name", "a.b.c"),
            ("name = a-b.c", "name", "a-b.c"),
            ("empty = ''", "empty", ""),
            ("cost = -1.5e+3", "cost", "-1.5e+3"),
            ("cost = .5", "cost", ".5"),
            ("cost = 1.E-3", "cost", "1.E-3"),
            ("memory = 128MB", "memory", "128MB"),
            ("memory = +0x1fGB", "memory", "+0x1fGB"),
            ("memory = 0xkB", "memory", "0xkB"),
        ] {
            let expected = Some((name.to_owned(), value.to_owned()));
            assert_eq!(assignment(line), Ok(expected), "{line}");
        }
        for line in ["", " \t", "#timezone = 'GMT'", "  # x"] {
            assert_eq!(assignment(line), Ok(None), "{line}");
        }
    }

    #[test]
    fn other_lines_are_syntax_errors() {
        for line in [
            "timezone = 'open",
            "timezone",
            "timezone =",
            "timezone = # x",
            "garbage here foo",
            "a = 'x' y",
            "a == b",
            "a.b.c = d",
            "a-b = c",
            "1a = c",
            "= x",
            "a = $x",
            "a = b.c",
            "include site.conf",
            "memory = 1.5GB",
            "address = 192.168.0.1",
            "cost = 1e+5",
            "cost = 1e3",
            "cost = 1.5e",
            "cost = 3-4",
            "cost = 0x1.5",
            "cost = - 3",
            "cost = -",
        ] {
            assert_eq!(assignment(line), Err(SyntaxError), "{line}");
        }
    }
}
