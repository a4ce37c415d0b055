//! `to_number`: reads a number with a picture.
//!
//! ```text
//!   to_number('12,454.8-', '99G999D9S')     -12454.8
//!   to_number('$1,234.56', 'L99,999.99')    1234.56
//!   to_number('XIV', 'RN')                  14, since version 18
//! ```
//!
//! Each digit of the picture takes the next character if that is a digit, and otherwise passes over it.
//! A literal of the picture passes over any character. Mirrors `NUM_numpart_from_char`,
//! `NUM_processor` and `roman_to_int` of PostgreSQL's `utils/adt/formatting.c`, in the locale C.

use trunkline_format::text_input::{InputOptions, read_text};
use trunkline_format::text_output::{Base, Type};

use super::super::call::{Call, Kernel};
use super::super::rows::binary;
use super::number_picture::{Key, Node, Picture, Shape, SignPlace};
use crate::error::{SqlError, SqlState};
use crate::numeric::{Numeric, NumericTypmod};

/// The kernels of this module.
pub(in crate::functions) const TO_NUMBER: &[(&str, Kernel)] = &[("numeric_to_number", |call| {
    binary(call, |text: &str, picture: &str| match picture.is_empty() {
        true => Ok(None),
        false => read(text, &Picture::parse(picture)?, call).map(Some),
    })
})];

/// The state of reading a number.
struct NumberReader<'a> {
    shape: Shape,
    input: &'a [u8],
    /// The next character of the input.
    at: usize,
    /// A blank if no sign has been read.
    sign: char,
    digits: String,
    /// The digits read before and after the decimal point.
    before: usize,
    after: usize,
    has_point: bool,
}

fn read(text: &str, picture: &Picture, call: &Call<'_>) -> Result<Vec<u8>, SqlError> {
    let shape = picture.shape;
    if shape.exponent {
        return Err(SqlError::unsupported("\"EEEE\" not supported for input"));
    }
    if shape.roman {
        return read_roman(text, picture, call);
    }
    let mut reader = NumberReader {
        shape,
        input: text.as_bytes(),
        at: 0,
        sign: ' ',
        digits: String::new(),
        before: 0,
        after: 0,
        has_point: false,
    };
    for node in &picture.nodes {
        if reader.at >= reader.input.len() {
            break;
        }
        match node {
            Node::Literal(_) => reader.skip_letter(),
            Node::Key(key) => reader.read_key(*key),
        }
    }
    let digits = reader.digits.strip_suffix('.').unwrap_or(&reader.digits);
    let number = format!("{}{digits}", reader.sign);
    let precision = shape.before + shape.multiplied + reader.after;
    let number = stored(&number, precision, reader.after, call)?;
    if !shape.multiplies {
        return number.to_payload();
    }
    let digits = i64::try_from(shape.multiplied).unwrap_or(i64::MAX);
    let power = Numeric::from(10_i64).power(&Numeric::from(-digits), call.settings.major)?;
    number.multiply(&power).to_payload()
}

/// A text as a numeric of this precision and scale.
fn stored(
    number: &str,
    precision: usize,
    scale: usize,
    call: &Call<'_>,
) -> Result<Numeric, SqlError> {
    let settings = call.settings;
    let options = InputOptions::new(settings.major, &*settings.catalog, 0);
    let mut payload = Vec::new();
    read_text(&Type::Base(Base::Numeric), number.as_bytes(), -1, &options, &mut payload)?;
    let value = Numeric::decode(&payload)?;
    // A picture has at most as many digits as its text has bytes.
    let modifier = ((precision << 16 | scale) + 4) as i32;
    NumericTypmod::decode(modifier).map_or(Ok(value.clone()), |modifier| modifier.apply(value))
}

impl NumberReader<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.input.get(at).copied()
    }

    fn is(&self, byte: u8) -> bool {
        self.byte(self.at) == Some(byte)
    }

    /// Goes to the next character, which may have several bytes.
    fn skip_letter(&mut self) {
        self.at += 1;
        while self.byte(self.at).is_some_and(|byte| byte & 0xC0 == 0x80) {
            self.at += 1;
        }
    }

    /// Passes over characters that can't be part of a number.
    fn skip_others(&mut self, count: usize) {
        for _ in 0..count {
            match self.byte(self.at) {
                Some(byte) if !b"0123456789.,+-".contains(&byte) => self.skip_letter(),
                _ => return,
            }
        }
    }

    fn read_key(&mut self, key: Key) {
        match key {
            Key::Nine | Key::Zero | Key::Point => {
                self.read_digit(key);
                self.at += 1;
            }
            // With `FM`, the server takes no separators.
            Key::Comma | Key::Group => {
                if !self.shape.fill && self.is(b',') {
                    self.at += 1;
                }
            }
            Key::Currency => self.skip_others(1),
            Key::Ordinal(_) => {
                if !self.shape.has_point {
                    self.skip_others(2);
                }
            }
            Key::Minus => self.read_sign(b"-"),
            Key::Plus => self.read_sign(b"+"),
            Key::PlusMinus => self.read_sign(b"-+"),
            Key::Blank
            | Key::Ignored
            | Key::Exponent
            | Key::Fill
            | Key::Brackets
            | Key::Roman(_)
            | Key::Sign
            | Key::Multiply => {}
        }
    }

    /// Takes one of these signs, or passes over a character.
    fn read_sign(&mut self, signs: &[u8]) {
        match self.byte(self.at) {
            Some(byte) if signs.contains(&byte) => {
                self.sign = char::from(byte);
                self.at += 1;
            }
            _ => self.skip_others(1),
        }
    }

    /// Takes a digit or a decimal point, with the signs around it. The caller goes to the next
    /// character.
    fn read_digit(&mut self, key: Key) {
        if self.is(b' ') {
            self.at += 1;
        }
        if self.at >= self.input.len() {
            return;
        }
        if self.sign == ' ' && key != Key::Point && self.before + self.after == 0 {
            self.read_sign_before();
        }
        let Some(byte) = self.byte(self.at) else { return };
        let mut is_read = false;
        if byte.is_ascii_digit() {
            if self.has_point && self.after == self.shape.after {
                return;
            }
            self.digits.push(char::from(byte));
            *(if self.has_point { &mut self.after } else { &mut self.before }) += 1;
            is_read = true;
        } else if self.shape.has_point && !self.has_point && byte == b'.' {
            self.digits.push('.');
            self.has_point = true;
            is_read = true;
        }
        if self.sign == ' ' && self.before + self.after > 0 {
            self.read_sign_after(is_read);
        }
    }

    fn read_sign_before(&mut self) {
        let brackets = self.shape.brackets && !self.is_sign_before();
        match self.byte(self.at) {
            Some(b'-') => self.sign = '-',
            Some(b'<') if brackets => self.sign = '-',
            Some(b'+') => self.sign = '+',
            _ => return,
        }
        self.at += 1;
    }

    fn is_sign_before(&self) -> bool {
        self.shape.has_sign && self.shape.sign == SignPlace::Before
    }

    /// The sign of `S` follows the last digit, so it is looked for after each of them. Those of `MI`,
    /// `PL` and `SG` are looked for where no digit is.
    fn read_sign_after(&mut self, is_read: bool) {
        if self.shape.has_sign && is_read {
            match self.byte(self.at + 1) {
                Some(b'-') => self.sign = '-',
                Some(b'+') => self.sign = '+',
                _ => return,
            }
            self.at += 1;
        } else if !is_read && !self.shape.has_sign && (self.shape.plus || self.shape.minus) {
            match self.byte(self.at) {
                Some(b'-') => self.sign = '-',
                Some(b'+') => self.sign = '+',
                _ => {}
            }
        }
    }
}

/// The most characters of a Roman numeral.
const ROMAN_LENGTH_MAX: usize = 15;

fn read_roman(text: &str, picture: &Picture, call: &Call<'_>) -> Result<Vec<u8>, SqlError> {
    if call.settings.major < 18 {
        return Err(SqlError::unsupported("\"RN\" not supported for input"));
    }
    let is_other =
        |node: &Node| !matches!(node, Node::Key(Key::Roman(_) | Key::Fill) | Node::Literal(_));
    let numerals = picture.nodes.iter().filter(|node| matches!(node, Node::Key(Key::Roman(_))));
    if picture.nodes.iter().any(is_other) || numerals.count() > 1 {
        let message = "\"RN\" with other patterns is not supported by trunkline";
        return Err(SqlError::unsupported(message));
    }
    let (mut rest, mut number) = (text, None);
    for node in &picture.nodes {
        if rest.is_empty() {
            break;
        }
        match node {
            Node::Key(Key::Roman(_)) => {
                rest = rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0B', '\x0C']);
                let length = rest.bytes().take(ROMAN_LENGTH_MAX);
                let length = length.take_while(|&byte| roman_digit(byte).is_some()).count();
                let (numeral, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
                number = Some(roman(numeral.as_bytes()).ok_or_else(|| {
                    let message = "invalid Roman numeral";
                    SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
                })?);
                rest = after;
            }
            Node::Literal(_) => {
                let mut letters = rest.chars();
                letters.next();
                rest = letters.as_str();
            }
            Node::Key(_) => {}
        }
    }
    let number = number.map_or_else(String::new, |number| number.to_string());
    stored(&format!(" {number}"), number.len(), 0, call)?.to_payload()
}

fn roman_digit(byte: u8) -> Option<u32> {
    Some(match byte.to_ascii_uppercase() {
        b'I' => 1,
        b'V' => 5,
        b'X' => 10,
        b'L' => 50,
        b'C' => 100,
        b'D' => 500,
        b'M' => 1000,
        _ => return None,
    })
}

/// The value of a Roman numeral; `None` if it isn't one.
fn roman(numeral: &[u8]) -> Option<u32> {
    let digits: Vec<u32> = numeral.iter().map(|&byte| roman_digit(byte)).collect::<Option<_>>()?;
    if digits.is_empty() {
        return None;
    }
    let (mut value, mut repeated, mut subtracted) = (0, 1, None);
    // V, L and D occur once, and nothing that is as large follows.
    let mut fives: Vec<u32> = Vec::new();
    let mut take = |digit: u32| {
        let fits = fives.iter().all(|&five| digit < five);
        if matches!(digit, 5 | 50 | 500) {
            fives.push(digit);
        }
        fits
    };
    let mut at = 0;
    while let Some(&digit) = digits.get(at) {
        if subtracted.is_some_and(|subtracted| digit >= subtracted) || !take(digit) {
            return None;
        }
        match digits.get(at + 1) {
            Some(&next) if digit < next => {
                let is_pair = matches!(digit, 1 | 10 | 100) && next <= digit * 10;
                if !is_pair || repeated > 1 || !take(next) {
                    return None;
                }
                (repeated, subtracted) = (1, Some(digit));
                value += next - digit;
                at += 1;
            }
            Some(&next) => {
                repeated = if next == digit { repeated + 1 } else { 1 };
                if repeated > 3 {
                    return None;
                }
                value += digit;
            }
            None => value += digit,
        }
        at += 1;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roman_numerals_are_those_that_are_written_in_one_way() {
        let cases = [("I", 1), ("iv", 4), ("XIV", 14), ("MCMXCIV", 1994), ("MMMCMXCIX", 3999)];
        for (numeral, value) in cases {
            assert_eq!(roman(numeral.as_bytes()), Some(value), "{numeral}");
        }
        for wrong in ["", "IIII", "VIV", "IC", "VX", "VV", "MCCM", "IXI", "DCCCD", "IIX"] {
            assert_eq!(roman(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
