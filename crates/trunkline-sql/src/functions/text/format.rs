//! `format`: a template with `%s`, `%I` and `%L`.
//!
//! ```text
//!   %[position$][-][width]type      width: a number, * or *position$
//! ```
//! For example, `format('%2$s is %1$-5s|', 'a', 'b')` is `b is a    |`.

use arrow_array::ArrayRef;

use super::quoting::{quoted_identifier, quoted_literal};
use crate::error::{SqlError, SqlState};
use crate::functions::call::{Call, Kernel};
use crate::functions::printing::Printer;
use crate::functions::rows::{Reader, each_row};

/// The kernels of this module.
pub(in crate::functions) const FORMAT: &[(&str, Kernel)] =
    &[("text_format", format), ("text_format_nv", format)];

fn format(call: &Call<'_>) -> Result<ArrayRef, SqlError> {
    let template = Reader::<&str>::new(call, 0)?;
    let arguments = 1..call.arguments.len();
    let mut printers =
        arguments.map(|number| Printer::new(call, number)).collect::<Result<Vec<_>, SqlError>>()?;
    each_row(call.rows, |row| {
        let Some(template) = template.get(row) else { return Ok(None) };
        let mut argument = |number: usize| match printers.get_mut(number - 1) {
            Some(printer) => printer.text(row),
            None => Err(invalid("too few arguments for format()")),
        };
        formatted(template, &mut argument, call.settings.major).map(Some)
    })
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn unterminated() -> SqlError {
    invalid("unterminated format() type specifier").with_hint("For a single \"%\" use \"%%\".")
}

/// One `%` of a template, without its type.
#[derive(Default)]
struct Specifier {
    position: Option<usize>,
    left: bool,
    width: Width,
}

#[derive(Default)]
enum Width {
    #[default]
    None,
    Fixed(i32),
    /// The next argument, or the one with this number.
    Argument(Option<usize>),
}

/// The rest of a template.
struct Cursor<'a>(&'a str);

impl Cursor<'_> {
    fn peek(&self) -> Result<char, SqlError> {
        self.0.chars().next().ok_or_else(unterminated)
    }

    fn skip(&mut self) {
        let mut rest = self.0.chars();
        rest.next();
        self.0 = rest.as_str();
    }

    /// A number, if there is one. It must be followed by something.
    fn number(&mut self) -> Result<Option<i32>, SqlError> {
        let mut number: Option<i32> = None;
        while let Some(digit) = self.0.chars().next().and_then(|letter| letter.to_digit(10)) {
            let next = number.unwrap_or(0).checked_mul(10);
            let next = next.and_then(|next| next.checked_add(digit.cast_signed()));
            let range = SqlState::NUMERIC_VALUE_OUT_OF_RANGE;
            number = Some(next.ok_or_else(|| SqlError::new(range, "number is out of range"))?);
            self.skip();
        }
        self.peek()?;
        Ok(number)
    }

    /// What follows a `%`.
    fn specifier(&mut self) -> Result<Specifier, SqlError> {
        let mut found = Specifier::default();
        if let Some(number) = self.number()? {
            if self.peek()? != '$' {
                found.width = Width::Fixed(number);
                return Ok(found);
            }
            found.position = Some(argument_number(number)?);
            self.skip();
        }
        while self.peek()? == '-' {
            found.left = true;
            self.skip();
        }
        if self.peek()? != '*' {
            found.width = self.number()?.map_or(Width::None, Width::Fixed);
            return Ok(found);
        }
        self.skip();
        let number = self.number()?;
        if number.is_some() {
            if self.peek()? != '$' {
                return Err(invalid("width argument position must be ended by \"$\""));
            }
            self.skip();
            self.peek()?;
        }
        found.width = Width::Argument(number.map(argument_number).transpose()?);
        Ok(found)
    }
}

fn argument_number(number: i32) -> Result<usize, SqlError> {
    match usize::try_from(number) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(invalid("format specifies argument 0, but arguments are numbered from 1")),
    }
}

fn formatted(
    template: &str,
    argument: &mut dyn FnMut(usize) -> Result<Option<String>, SqlError>,
    major: u32,
) -> Result<String, SqlError> {
    let (mut out, mut rest, mut last) = (String::new(), Cursor(template), 0);
    while let Some((before, after)) = rest.0.split_once('%') {
        out.push_str(before);
        rest.0 = after;
        if rest.peek()? == '%' {
            rest.skip();
            out.push('%');
            continue;
        }
        let specifier = rest.specifier()?;
        let letter = rest.peek()?;
        rest.skip();
        if !matches!(letter, 's' | 'I' | 'L') {
            let message = format!("unrecognized format() type specifier \"{letter}\"");
            return Err(invalid(message).with_hint("For a single \"%\" use \"%%\"."));
        }
        let width = match specifier.width {
            Width::None => 0,
            Width::Fixed(width) => width,
            Width::Argument(number) => {
                last = number.unwrap_or(last + 1);
                width_argument(argument(last)?)?
            }
        };
        last = specifier.position.unwrap_or(last + 1);
        let value = convert(letter, argument(last)?, major)?;
        pad(&value, width, specifier.left, &mut out)?;
    }
    out.push_str(rest.0);
    Ok(out)
}

/// A width that is an argument. A null is no width.
fn width_argument(text: Option<String>) -> Result<i32, SqlError> {
    let Some(text) = text else { return Ok(0) };
    text.trim().parse().map_err(|_| {
        let message = format!("invalid input syntax for type integer: \"{text}\"");
        SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
    })
}

fn convert(letter: char, value: Option<String>, major: u32) -> Result<String, SqlError> {
    match (letter, value) {
        ('s', value) => Ok(value.unwrap_or_default()),
        ('L', None) => Ok("NULL".to_owned()),
        ('L', Some(value)) => Ok(quoted_literal(&value)),
        (_, Some(value)) => quoted_identifier(&value, major),
        (_, None) => {
            let message = "null values cannot be formatted as an SQL identifier";
            Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
        }
    }
}

/// Appends a value with blanks. A negative width pads on the right.
fn pad(value: &str, width: i32, left: bool, out: &mut String) -> Result<(), SqlError> {
    let left = left || width < 0;
    let range = SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range");
    let width = width.checked_abs().ok_or(range)? as usize;
    let blanks = " ".repeat(width.saturating_sub(value.chars().count()));
    if left {
        out.push_str(value);
        out.push_str(&blanks);
    } else {
        out.push_str(&blanks);
        out.push_str(value);
    }
    Ok(())
}
