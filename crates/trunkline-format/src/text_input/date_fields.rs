//! Splits the text of a date, time or interval into fields.
//!
//! The kind of a field follows from its first character and its punctuation: `2024-02-29 04:05 +01` is a
//! date, a time and a zone. What the fields mean is decided later, because `2.5` can be a part of a
//! date, of a time, or of an interval.
//!
//! Mirrors `ParseDateTime` of PostgreSQL's `utils/adt/datetime.c`.

use super::c_text::is_space;
use super::date_words::date_word;
use super::error::InputError;

/// `MAXDATEFIELDS`.
const FIELDS_MAX: usize = 25;

/// What a field looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// Digits and possibly a decimal point.
    Number,
    /// Digits and delimiters, or letters and delimiters. Also the name of a time zone.
    Date,
    /// Digits and colons.
    Time,
    /// Letters.
    Word,
    /// A sign and letters.
    SignedWord,
    /// A sign and digits: an offset from UTC, or a signed number.
    Signed,
}

/// A field in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) kind: FieldKind,
    pub(super) text: String,
}

/// Why a text is not a date, time or interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DateError {
    /// 22007.
    Format,
    /// 22008.
    FieldOverflow,
    /// 22008, with a hint at `DateStyle`.
    DateOrder,
    /// 22009: an offset from UTC that is too large.
    ZoneOverflow,
    /// 22023: the zone's name is not known.
    Zone(String),
    /// F0000: a zone that an abbreviation stands for is not known.
    Abbreviation { zone: &'static str, abbreviation: String },
}

impl DateError {
    /// As `DateTimeParseError`.
    pub(super) fn explain(self, type_name: &str, text: &str, major: u32) -> InputError {
        let overflow = || {
            let message = format!("date/time field value out of range: \"{text}\"");
            InputError::new("22008", message)
        };
        let unknown = |zone: &str| format!("time zone \"{zone}\" not recognized");
        match self {
            Self::Format => {
                let message = format!("invalid input syntax for type {type_name}: \"{text}\"");
                InputError::new("22007", message)
            }
            Self::FieldOverflow => overflow(),
            Self::DateOrder => {
                let setting = if major >= 17 { "DateStyle" } else { "datestyle" };
                let hint = format!("Perhaps you need a different \"{setting}\" setting.");
                overflow().with_hint(hint)
            }
            Self::ZoneOverflow => {
                let message = format!("time zone displacement out of range: \"{text}\"");
                InputError::new("22009", message)
            }
            Self::Zone(zone) => InputError::new("22023", unknown(&zone)),
            Self::Abbreviation { zone, abbreviation } => {
                let detail = format!(
                    "This time zone name appears in the configuration file for time zone \
                     abbreviation \"{abbreviation}\"."
                );
                InputError::new("F0000", unknown(zone)).with_detail(detail)
            }
        }
    }
}

/// The text not yet split, and the room left for fields.
struct Splitter<'a> {
    rest: &'a [u8],
    field: String,
    /// The bytes of all fields so far, each with its NUL.
    used: usize,
    /// The size of the server's buffer, which limits the length of a text.
    size: usize,
}

impl Splitter<'_> {
    fn peek(&self) -> u8 {
        self.rest.first().copied().unwrap_or(0)
    }

    fn skip(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    /// Appends the next byte, which must be ASCII, to the field.
    fn take(&mut self) -> Result<(), DateError> {
        if self.used + self.field.len() + 1 >= self.size {
            return Err(DateError::Format);
        }
        self.field.push(char::from(self.peek().to_ascii_lowercase()));
        self.skip();
        Ok(())
    }

    fn take_while(&mut self, test: impl Fn(u8) -> bool) -> Result<(), DateError> {
        while test(self.peek()) {
            self.take()?;
        }
        Ok(())
    }

    /// A field that starts with a digit.
    fn number(&mut self) -> Result<FieldKind, DateError> {
        self.take_while(|byte| byte.is_ascii_digit())?;
        let delimiter = self.peek();
        match delimiter {
            b':' => {
                self.take_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.'))?;
                Ok(FieldKind::Time)
            }
            b'-' | b'/' | b'.' => {
                self.take()?;
                if !self.peek().is_ascii_digit() {
                    self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == delimiter)?;
                    return Ok(FieldKind::Date);
                }
                self.take_while(|byte| byte.is_ascii_digit())?;
                // A date of three numbers has the same delimiter twice.
                if self.peek() == delimiter {
                    self.take_while(|byte| byte.is_ascii_digit() || byte == delimiter)?;
                    return Ok(FieldKind::Date);
                }
                Ok(if delimiter == b'.' { FieldKind::Number } else { FieldKind::Date })
            }
            _ => Ok(FieldKind::Number),
        }
    }

    /// A field that starts with a letter: a word, or a date or zone name with punctuation in it. If
    /// a digit or `+` follows, it is only a zone's name if the word has no other meaning.
    fn word(&mut self, major: u32) -> Result<FieldKind, DateError> {
        self.take_while(|byte| byte.is_ascii_alphabetic())?;
        let is_date = match self.peek() {
            b'-' | b'/' | b'.' => true,
            b'+' | b'0'..=b'9' => date_word(&self.field, major).is_none(),
            _ => false,
        };
        if !is_date {
            return Ok(FieldKind::Word);
        }
        let inside = |byte: u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'/' | b'_' | b'.' | b':')
        };
        self.take_while(inside)?;
        Ok(FieldKind::Date)
    }

    /// A field that starts with a sign.
    fn signed(&mut self) -> Result<FieldKind, DateError> {
        self.take()?;
        while is_space(self.peek()) {
            self.skip();
        }
        match self.peek() {
            b'0'..=b'9' => {
                self.take_while(|b| b.is_ascii_digit() || matches!(b, b':' | b'.' | b'-'))?;
                Ok(FieldKind::Signed)
            }
            byte if byte.is_ascii_alphabetic() => {
                self.take_while(|byte| byte.is_ascii_alphabetic())?;
                Ok(FieldKind::SignedWord)
            }
            _ => Err(DateError::Format),
        }
    }
}

/// Splits a text. `size` is the size of the buffer that the server's input function of the type has.
pub(super) fn split(text: &str, size: usize, major: u32) -> Result<Vec<Field>, DateError> {
    let rest = text.as_bytes();
    let mut splitter = Splitter { rest, field: String::new(), used: 0, size };
    let mut fields = Vec::new();
    while let Some(&byte) = splitter.rest.first() {
        if is_space(byte) {
            splitter.skip();
            continue;
        }
        if fields.len() >= FIELDS_MAX {
            return Err(DateError::Format);
        }
        let kind = match byte {
            b'0'..=b'9' => splitter.number()?,
            b'.' => {
                splitter.take()?;
                splitter.take_while(|byte| byte.is_ascii_digit())?;
                FieldKind::Number
            }
            b'+' | b'-' => splitter.signed()?,
            _ if byte.is_ascii_alphabetic() => splitter.word(major)?,
            // Any other punctuation only separates fields.
            _ if byte.is_ascii_punctuation() => {
                splitter.skip();
                continue;
            }
            _ => return Err(DateError::Format),
        };
        let text = std::mem::take(&mut splitter.field);
        splitter.used += text.len() + 1;
        fields.push(Field { kind, text });
    }
    Ok(fields)
}
