//! `to_char` of numbers.
//!
//! ```text
//!   to_char(1234.5, '9,999.99')     " 1,234.50"
//!   to_char(-485, '999PR')          "<485>"
//!   to_char(485, 'FMRN')            "CDLXXXV"
//! ```
//!
//! The number is first written with as many decimals as the picture has. Its digits are then put into
//! the picture from left to right. If it has more digits than the picture, `#` are shown instead.
//!
//! Mirrors `NUM_processor` and the functions after it in PostgreSQL's `utils/adt/formatting.c`, in the
//! locale C.

use trunkline_format::text_output::{Base, Type, write_text};

use super::super::call::{Call, Kernel};
use super::super::rows::binary;
use super::date_picture::Ordinal;
use super::decimal_text::DecimalText;
use super::number_picture::{Key, Node, Picture, Shape, SignPlace};
use crate::error::{SqlError, SqlState};

/// A number that is prepared for a picture.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Prepared {
    /// Digits with a decimal point, `#`, or a finished text.
    digits: String,
    negative: bool,
    /// Digits of the picture before the first one of the number.
    spaces: usize,
}

impl Prepared {
    /// Digits for a picture that has `before` digits before the decimal point.
    fn new(digits: String, negative: bool, before: usize, after: usize) -> Self {
        let length = digits.find('.').unwrap_or(digits.len());
        if length > before {
            let digits = format!("{}.{}", "#".repeat(before), "#".repeat(after));
            return Self { digits, negative, spaces: 0 };
        }
        Self { digits, negative, spaces: before - length }
    }
}

/// The state of putting digits into a picture.
struct Writer<'a> {
    shape: Shape,
    number: &'a Prepared,
    out: String,
    /// The next character of the number.
    at: usize,
    /// The last character that `FM` leaves.
    last_relevant: Option<usize>,
    /// Positions of the picture so far.
    position: usize,
    /// The position of the picture's last digit.
    count: isize,
    sign_written: bool,
    in_number: bool,
    /// Where the picture has a digit and the number has none left. The server writes a NUL there,
    /// which ends the result.
    end: Option<usize>,
}

impl<'a> Writer<'a> {
    fn new(shape: Shape, number: &'a Prepared) -> Self {
        let mut shape = shape;
        shape.zero_start = shape.zero_start.saturating_sub(1);
        let plus_or_minus = shape.plus || shape.minus;
        if !plus_or_minus && !number.negative && shape.fill {
            shape.brackets = false;
        }
        let sign_written = match plus_or_minus {
            true => !shape.plus || shape.minus,
            false => !number.negative && shape.fill && !shape.has_sign,
        };
        if !plus_or_minus && shape.sign == SignPlace::Before && shape.before == shape.before_sign {
            shape.sign = SignPlace::After;
        }
        let mut count = (shape.before + shape.after) as isize - 1;
        if !sign_written && number.spaces == 0 {
            count += 1;
        }
        let last_relevant = (shape.fill && shape.has_point)
            .then(|| last_relevant(&number.digits, &shape, number.spaces))
            .flatten();
        Self {
            shape,
            number,
            out: String::new(),
            at: 0,
            last_relevant,
            position: 0,
            count,
            sign_written,
            in_number: false,
            end: None,
        }
    }

    fn digit(&self, at: usize) -> Option<u8> {
        self.number.digits.as_bytes().get(at).copied()
    }

    /// Whether `FM` leaves nothing after the decimal point.
    fn ends_with_point(&self) -> bool {
        self.last_relevant.is_some_and(|last| self.digit(last) == Some(b'.'))
    }

    /// Whether the next character is the zero before the decimal point, which is not shown.
    fn is_hidden_zero(&self) -> bool {
        !self.shape.has_zero && self.at == 0 && self.digit(0) == Some(b'0') && self.shape.after != 0
    }

    fn write_sign(&mut self) {
        let reached = self.position >= self.number.spaces
            || self.shape.has_zero && self.shape.zero_start == self.position;
        if self.sign_written || !reached || (self.is_hidden_zero() && !self.ends_with_point()) {
            return;
        }
        let negative = self.number.negative;
        if self.shape.has_sign {
            if self.shape.sign == SignPlace::Before {
                self.out.push(if negative { '-' } else { '+' });
                self.sign_written = true;
            }
            return;
        }
        self.sign_written = true;
        if self.shape.brackets {
            self.out.push(if negative { '<' } else { ' ' });
        } else if negative {
            self.out.push('-');
        } else if !self.shape.fill {
            self.out.push(' ');
        }
    }

    /// Writes what belongs to a `9`, a `0` or a decimal point of the picture.
    fn write_digit(&mut self, key: Key) {
        self.in_number = false;
        self.write_sign();
        let (position, spaces) = (self.position, self.number.spaces);
        let before_zero = !self.shape.has_zero || self.shape.zero_start > position;
        if position < spaces && before_zero {
            if !self.shape.fill {
                self.out.push(' ');
            }
        } else if position < spaces {
            self.out.push('0');
            self.in_number = true;
        } else {
            self.write_character(key);
            if self.at < self.number.digits.len() {
                self.at += 1;
            }
        }
        let mut end = self.count + isize::from(spaces > 0) + isize::from(self.shape.has_point);
        if self.last_relevant == Some(self.at) {
            end = position as isize;
        }
        if position as isize + 1 == end {
            let negative = self.number.negative;
            if self.sign_written && self.shape.brackets {
                self.out.push(if negative { '>' } else { ' ' });
            } else if self.shape.has_sign && self.shape.sign == SignPlace::After {
                self.out.push(if negative { '-' } else { '+' });
            }
        }
        self.position += 1;
    }

    /// Writes the next character of the number.
    fn write_character(&mut self, key: Key) {
        match self.digit(self.at) {
            Some(b'.') => {
                if !self.ends_with_point() || self.shape.fill {
                    self.out.push('.');
                }
            }
            _ if self.last_relevant.is_some_and(|last| self.at > last) && key != Key::Zero => {}
            _ if self.is_hidden_zero() => {
                if !self.shape.fill {
                    self.out.push(' ');
                } else if self.ends_with_point() {
                    self.out.push('0');
                }
            }
            Some(digit) => {
                self.out.push(char::from(digit));
                self.in_number = true;
            }
            None => {
                self.end.get_or_insert(self.out.len());
                self.in_number = true;
            }
        }
    }

    /// Writes a character between groups of digits.
    fn write_group(&mut self) {
        if self.in_number {
            self.out.push(',');
        } else if !self.shape.fill {
            self.out.push(' ');
        }
    }

    /// Writes an ordinal suffix.
    ///
    /// # Errors
    /// 22P02: the number is NaN or infinity.
    fn write_ordinal(&mut self, ordinal: Ordinal) -> Result<(), SqlError> {
        let digits = &self.number.digits;
        if digits.starts_with('#') || self.number.negative || self.shape.has_point {
            return Ok(());
        }
        if !digits.ends_with(|c: char| c.is_ascii_digit()) {
            let what = format!("\"{digits}\" is not a number");
            return Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, what));
        }
        self.out.push_str(ordinal.suffix(digits));
        Ok(())
    }

    /// Writes a sign where the picture has it.
    fn write_fixed_sign(&mut self, shown: Option<char>) {
        match shown {
            Some(sign) => self.out.push(sign),
            None if self.shape.fill => {}
            None => self.out.push(' '),
        }
    }

    fn write(mut self, nodes: &[Node]) -> Result<String, SqlError> {
        let negative = self.number.negative;
        for node in nodes {
            match *node {
                Node::Literal(c) => self.out.push(c),
                Node::Key(key) => match key {
                    Key::Nine | Key::Zero | Key::Point => self.write_digit(key),
                    Key::Comma | Key::Group => self.write_group(),
                    // The locale C has no symbol.
                    Key::Currency => self.out.push(' '),
                    Key::Ordinal(ordinal) => self.write_ordinal(ordinal)?,
                    Key::Minus => self.write_fixed_sign(negative.then_some('-')),
                    Key::Plus => self.write_fixed_sign((!negative).then_some('+')),
                    Key::PlusMinus => self.out.push(if negative { '-' } else { '+' }),
                    _ => {}
                },
            }
        }
        self.out.truncate(self.end.unwrap_or(self.out.len()));
        Ok(self.out)
    }
}

/// The last character of a number that `FM` leaves: the last decimal that is not zero, or the decimal
/// point, or the digit of the last `0` of the picture.
fn last_relevant(digits: &str, shape: &Shape, spaces: usize) -> Option<usize> {
    let point = digits.find('.')?;
    let nonzero = digits.bytes().rposition(|digit| digit != b'0').unwrap_or(point);
    let mut last = nonzero.max(point);
    if shape.zero_end > spaces {
        last = last.max((digits.len() - 1).min(shape.zero_end - spaces));
    }
    Some(last)
}

/// A number from 1 to 3999 in Roman numerals, or `#`.
fn roman(number: Option<i64>) -> String {
    const NUMERALS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let Some(mut rest) = number.filter(|number| (1..=3999).contains(number)) else {
        return "#".repeat(15);
    };
    let mut text = String::new();
    for (value, numeral) in NUMERALS {
        while rest >= value {
            text.push_str(numeral);
            rest -= value;
        }
    }
    text
}

/// Roman numerals in a picture, of which digits and signs are not shown.
fn write_roman(number: Option<i64>, picture: &Picture) -> String {
    let numeral = roman(number);
    let mut out = String::new();
    for node in &picture.nodes {
        match *node {
            Node::Literal(c) => out.push(c),
            Node::Key(Key::Roman(case)) => {
                let numeral = match case {
                    Ordinal::Upper => numeral.clone(),
                    Ordinal::Lower => numeral.to_ascii_lowercase(),
                };
                let width = if picture.shape.fill { 0 } else { 15 };
                out.push_str(&format!("{numeral:>width$}"));
            }
            Node::Key(Key::Comma | Key::Group) if !picture.shape.fill => out.push(' '),
            Node::Key(Key::Currency) => out.push(' '),
            Node::Key(_) => {}
        }
    }
    out
}

/// Keeps the last picture, because it is usually the same in all rows.
#[derive(Default)]
struct Pictures(Option<(String, Picture)>);

impl Pictures {
    fn of(&mut self, text: &str) -> Result<&Picture, SqlError> {
        let is_known = self.0.as_ref().is_some_and(|(known, _)| known == text);
        let kept = match self.0.take() {
            Some(kept) if is_known => kept,
            _ => (text.to_owned(), Picture::parse(text)?),
        };
        Ok(&self.0.insert(kept).1)
    }
}

/// `%+.*e`, with a space for a plus.
fn float_exponent(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent = exponent.parse::<i32>().unwrap_or_default();
    let sign = if exponent < 0 { '-' } else { '+' };
    let space = if value.is_sign_negative() { "" } else { " " };
    format!("{space}{mantissa}e{sign}{:02}", exponent.abs())
}

/// What is shown for infinity and NaN with an exponent.
fn no_exponent(shape: &Shape) -> String {
    format!(" {}.{}", "#".repeat(shape.before), "#".repeat(shape.after + 4))
}

/// Formats a number, given in every way that a picture may ask for.
fn format(
    text: &str,
    pictures: &mut Pictures,
    number: &impl Number,
    major: u32,
) -> Result<String, SqlError> {
    if text.is_empty() {
        return Ok(String::new());
    }
    let picture = pictures.of(text)?;
    let shape = picture.shape;
    if shape.exponent {
        return Ok(number.exponent(&shape));
    }
    if shape.roman {
        let rounded = number.rounded();
        if major < ROMAN_WITHOUT_ERRORS_SINCE {
            rounded.as_ref().map_err(SqlError::clone)?;
        }
        return Ok(write_roman(rounded.ok(), picture));
    }
    let (digits, negative, after) = number.digits(&shape)?;
    let before = shape.before + if shape.multiplies { shape.multiplied } else { 0 };
    let prepared = Prepared::new(digits, negative, before, after);
    let shape = Shape { before, after, ..shape };
    Writer::new(shape, &prepared).write(&picture.nodes)
}

/// 22003.
fn integer_out_of_range() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range")
}

/// The first version in which numbers that are too large for an integer have no Roman numerals, rather
/// than being an error.
const ROMAN_WITHOUT_ERRORS_SINCE: u32 = 18;

/// A type of numbers.
trait Number {
    /// The digits with the picture's decimals, whether the number is negative, and the decimals.
    fn digits(&self, shape: &Shape) -> Result<(String, bool, usize), SqlError>;

    /// The number with an exponent.
    fn exponent(&self, shape: &Shape) -> String;

    /// The number rounded to an `integer`, for Roman numerals.
    ///
    /// # Errors
    /// What the cast to `integer` raises.
    fn rounded(&self) -> Result<i64, SqlError>;
}

/// An integer; `true` if it is an int8, whose multiplication is checked.
struct Integer(i64, bool);

impl Number for Integer {
    fn digits(&self, shape: &Shape) -> Result<(String, bool, usize), SqlError> {
        let mut value = self.0;
        if shape.multiplies {
            value = self.multiplied(shape.multiplied)?;
        }
        let mut digits = value.unsigned_abs().to_string();
        if shape.after > 0 {
            digits = format!("{digits}.{}", "0".repeat(shape.after));
        }
        Ok((digits, value < 0, shape.after))
    }

    fn exponent(&self, shape: &Shape) -> String {
        if self.1 {
            let text = DecimalText::parse(&self.0.to_string()).scientific(shape.after);
            return if self.0 < 0 { text } else { format!(" {text}") };
        }
        float_exponent(self.0 as f64, shape.after)
    }

    fn rounded(&self) -> Result<i64, SqlError> {
        i32::try_from(self.0).map(i64::from).map_err(|_| integer_out_of_range())
    }
}

impl Integer {
    fn multiplied(&self, places: usize) -> Result<i64, SqlError> {
        let factor = 10_f64.powi(places as i32);
        let range = |what: &str| {
            let what = format!("{what} out of range");
            SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, what)
        };
        if !self.1 {
            // The server multiplies int4 without a check, by what the processor makes of the factor.
            let factor = if factor < 2_147_483_648.0 { factor as i32 } else { i32::MIN };
            return Ok(i64::from((self.0 as i32).wrapping_mul(factor)));
        }
        if factor >= 9_223_372_036_854_775_808.0 {
            return Err(range("bigint"));
        }
        self.0.checked_mul(factor as i64).ok_or_else(|| range("bigint"))
    }
}

/// A float, and the decimal digits of its type that are exact.
struct Float(f64, bool);

impl Number for Float {
    fn digits(&self, shape: &Shape) -> Result<(String, bool, usize), SqlError> {
        let Self(mut value, is_double) = *self;
        let exact = if is_double { 15 } else { 6 };
        if shape.multiplies {
            let factor = 10_f64.powi(shape.multiplied as i32);
            value = match is_double {
                true => value * factor,
                false => f64::from(value as f32 * factor as f32),
            };
        }
        let plain = |value: f64, places: usize| match value {
            _ if value.is_nan() => "NaN".to_owned(),
            _ if value.is_infinite() => "Infinity".to_owned(),
            _ => format!("{:.places$}", value.abs()),
        };
        let length = plain(value, 0).len();
        let after = if length >= exact { 0 } else { shape.after.min(exact - length) };
        Ok((plain(value, after), value.is_sign_negative() && !value.is_nan(), after))
    }

    fn exponent(&self, shape: &Shape) -> String {
        match self.0.is_finite() {
            true => float_exponent(self.0, shape.after),
            false => no_exponent(shape),
        }
    }

    fn rounded(&self) -> Result<i64, SqlError> {
        let rounded = self.0.round_ties_even();
        let fits = (f64::from(i32::MIN)..-f64::from(i32::MIN)).contains(&rounded);
        // Floats have never been an error here.
        Ok(if fits { rounded as i64 } else { 0 })
    }
}

/// A numeric as text.
struct Numeric(String);

impl Number for Numeric {
    fn digits(&self, shape: &Shape) -> Result<(String, bool, usize), SqlError> {
        if let Some(special) = self.special() {
            return Ok((special.to_owned(), self.0.starts_with('-'), shape.after));
        }
        let shift = if shape.multiplies { shape.multiplied } else { 0 };
        let rounded = DecimalText::parse(&self.0).shifted(shift).rounded(shape.after);
        Ok((rounded.digits(), rounded.is_negative(), shape.after))
    }

    fn exponent(&self, shape: &Shape) -> String {
        if self.special().is_some() {
            return no_exponent(shape);
        }
        let text = DecimalText::parse(&self.0).scientific(shape.after);
        if text.starts_with('-') { text } else { format!(" {text}") }
    }

    fn rounded(&self) -> Result<i64, SqlError> {
        if let Some(special) = self.special() {
            let name = if special == "NaN" { "NaN" } else { "infinity" };
            return Err(SqlError::unsupported(format!("cannot convert {name} to integer")));
        }
        let rounded = DecimalText::parse(&self.0).rounded(0);
        let number = rounded.digits().parse::<i64>().ok();
        let number = number.map(|number| if rounded.is_negative() { -number } else { number });
        let fits = number.filter(|number| i32::try_from(*number).is_ok());
        fits.ok_or_else(integer_out_of_range)
    }
}

impl Numeric {
    /// The text of infinity or NaN, without a sign.
    fn special(&self) -> Option<&str> {
        let text = self.0.trim_start_matches('-');
        (!text.starts_with(|c: char| c.is_ascii_digit())).then_some(text)
    }

    fn new(call: &Call<'_>, payload: &[u8]) -> Result<Self, SqlError> {
        let mut text = Vec::new();
        let ty = Type::Base(Base::Numeric);
        write_text(&ty, payload, &call.settings.text_options(), &mut text)
            .map_err(|error| SqlError::new(SqlState::DATA_CORRUPTED, error.to_string()))?;
        Ok(Self(String::from_utf8_lossy(&text).into_owned()))
    }
}

/// `to_char` of numbers.
pub(in super::super) const KERNELS: &[(&str, Kernel)] = &[
    ("int4_to_char", |call| {
        let mut pictures = Pictures::default();
        binary(call, |a: i32, picture: &str| {
            format(picture, &mut pictures, &Integer(a.into(), false), call.settings.major)
        })
    }),
    ("int8_to_char", |call| {
        let mut pictures = Pictures::default();
        binary(call, |a: i64, picture: &str| {
            format(picture, &mut pictures, &Integer(a, true), call.settings.major)
        })
    }),
    ("float4_to_char", |call| {
        let mut pictures = Pictures::default();
        binary(call, |a: f32, picture: &str| {
            format(picture, &mut pictures, &Float(a.into(), false), call.settings.major)
        })
    }),
    ("float8_to_char", |call| {
        let mut pictures = Pictures::default();
        binary(call, |a: f64, picture: &str| {
            format(picture, &mut pictures, &Float(a, true), call.settings.major)
        })
    }),
    ("numeric_to_char", |call| {
        let mut pictures = Pictures::default();
        binary(call, |a: &[u8], picture: &str| {
            format(picture, &mut pictures, &Numeric::new(call, a)?, call.settings.major)
        })
    }),
];
