//! Arrays: `{1,2,NULL}`, `{{a,"b c"},{d,e}}`, and with bounds `[2:3]={x,y}`.
//!
//! Elements are read one after another, and the shape is what their braces say. All sub-arrays of a
//! level must have the same number of elements.
//!
//! Mirrors `array_in` of PostgreSQL's `utils/adt/arrayfuncs.c`, in the words of version 17.

use super::c_text::{first, is_space, signed, skip_space};
use super::error::InputError;
use crate::align::Align;
use crate::deform::Attribute;
use crate::ids::Oid;
use crate::stored_parts::PartWriter;

/// `MAXDIM`: the most dimensions.
const DIMENSIONS_MAX: usize = 6;
/// `MaxArraySize`: the most elements.
const ELEMENTS_MAX: usize = 134_217_727;

/// One dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dimension {
    pub(crate) size: i32,
    /// The index of the first element.
    pub(crate) lower: i32,
}

/// An array before it is stored: its elements in storage form, `None` for nulls.
#[derive(Debug, Default)]
pub(crate) struct ArrayValue {
    pub(crate) dimensions: Vec<Dimension>,
    pub(crate) elements: Vec<Option<Vec<u8>>>,
}

impl ArrayValue {
    /// Appends the payload.
    pub(crate) fn store(&self, element: Oid, attribute: Attribute, out: &mut Vec<u8>) {
        let count = self.elements.len();
        let mut writer = PartWriter::new(out);
        if count == 0 {
            for word in [0, 0, element.0] {
                writer.word(word);
            }
            return;
        }
        let has_nulls = self.elements.iter().any(Option::is_none);
        let header = 16 + 8 * self.dimensions.len();
        let bitmap = if has_nulls { count.div_ceil(8) } else { 0 };
        let data = Align::Double.up(header + bitmap);
        writer.word(self.dimensions.len() as u32);
        writer.word(if has_nulls { data as u32 } else { 0 });
        writer.word(element.0);
        for dimension in &self.dimensions {
            writer.word(dimension.size as u32);
        }
        for dimension in &self.dimensions {
            writer.word(dimension.lower as u32);
        }
        if has_nulls {
            let bit = |(at, element): (usize, &Option<_>)| u8::from(element.is_some()) << at;
            let byte = |eight: &[_]| eight.iter().enumerate().map(bit).sum();
            let bits: Vec<u8> = self.elements.chunks(8).map(byte).collect();
            writer.bytes(&bits);
        }
        writer.align(Align::Double);
        for element in self.elements.iter().flatten() {
            writer.part(attribute, false, element);
            writer.align(attribute.align);
        }
    }
}

/// Checks that the last index of each dimension is a number (`ArrayCheckBounds`).
pub(crate) fn check_bounds(dimensions: &[Dimension]) -> Result<(), InputError> {
    for dimension in dimensions {
        if dimension.lower.checked_add(dimension.size).is_none() {
            let message = format!("array lower bound is too large: {}", dimension.lower);
            return Err(InputError::new("54000", message));
        }
    }
    Ok(())
}

fn too_many_dimensions() -> InputError {
    let message =
        format!("number of array dimensions exceeds the maximum allowed ({DIMENSIONS_MAX})");
    InputError::new("54000", message)
}

fn too_many_elements() -> InputError {
    let message = format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})");
    InputError::new("54000", message)
}

/// A part of an array's text.
enum Token {
    Open,
    Close,
    Delimiter,
    Element(String),
    Null,
}

struct Parser<'a> {
    all: &'a str,
    rest: &'a str,
    delimiter: char,
}

impl Parser<'_> {
    fn malformed(&self, detail: impl Into<String>) -> InputError {
        let message = format!("malformed array literal: \"{}\"", self.all);
        InputError::new("22P02", message).with_detail(detail)
    }

    fn unexpected(&self, c: char) -> InputError {
        self.malformed(format!("Unexpected \"{c}\" character."))
    }

    fn end(&self) -> InputError {
        self.malformed("Unexpected end of input.")
    }

    fn skip(&mut self, length: usize) {
        self.rest = self.rest.get(length..).unwrap_or_default();
    }

    /// A number in the dimensions; `None` if there is none.
    fn bound(&mut self) -> Result<Option<i32>, InputError> {
        if !matches!(first(self.rest), b'0'..=b'9' | b'+' | b'-') {
            return Ok(None);
        }
        let (number, rest) = signed(self.rest);
        if rest.len() == self.rest.len() {
            return Ok(None);
        }
        self.rest = rest;
        let number = number.and_then(|number| i32::try_from(number).ok());
        let range = || InputError::new("54000", "array bound is out of integer range");
        number.map(Some).ok_or_else(range)
    }

    /// The dimensions before `=`; none if there are none.
    fn dimensions(&mut self) -> Result<Vec<Dimension>, InputError> {
        let mut dimensions = Vec::new();
        loop {
            self.rest = skip_space(self.rest);
            let Some(rest) = self.rest.strip_prefix('[') else { return Ok(dimensions) };
            self.rest = rest;
            if dimensions.len() >= DIMENSIONS_MAX {
                return Err(too_many_dimensions());
            }
            let detail = "\"[\" must introduce explicitly-specified array dimensions.";
            let mut upper = self.bound()?.ok_or_else(|| self.malformed(detail))?;
            let mut lower = 1;
            if let Some(rest) = self.rest.strip_prefix(':') {
                self.rest = rest;
                lower = upper;
                let missing = "Missing array dimension value.";
                upper = self.bound()?.ok_or_else(|| self.malformed(missing))?;
            }
            if first(self.rest) != b']' {
                return Err(self.malformed("Missing \"]\" after array dimensions."));
            }
            self.skip(1);
            if upper < lower {
                let message = "upper bound cannot be less than lower bound";
                return Err(InputError::new("2202E", message));
            }
            if upper == i32::MAX {
                let message = format!("array upper bound is too large: {upper}");
                return Err(InputError::new("54000", message));
            }
            let size = upper.checked_sub(lower).and_then(|size| size.checked_add(1));
            let size = size.ok_or_else(too_many_elements)?;
            dimensions.push(Dimension { size, lower });
        }
    }

    fn token(&mut self) -> Result<Token, InputError> {
        self.rest = skip_space(self.rest);
        let c = self.rest.chars().next().ok_or_else(|| self.end())?;
        let token = match c {
            '"' => return self.quoted(),
            '{' => Token::Open,
            '}' => Token::Close,
            _ if c == self.delimiter => Token::Delimiter,
            _ => return self.unquoted(),
        };
        self.skip(c.len_utf8());
        Ok(token)
    }

    fn quoted(&mut self) -> Result<Token, InputError> {
        let mut element = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        loop {
            match characters.next().ok_or_else(|| self.end())? {
                (_, '\\') => element.push(characters.next().ok_or_else(|| self.end())?.1),
                (at, '"') => {
                    self.rest = skip_space(self.rest.get(at + 1..).unwrap_or_default());
                    let next = self.rest.chars().next();
                    return match next {
                        Some(c) if c == self.delimiter || matches!(c, '{' | '}') => {
                            Ok(Token::Element(element))
                        }
                        _ => Err(self.malformed("Incorrectly quoted array element.")),
                    };
                }
                (_, c) => element.push(c),
            }
        }
    }

    /// An element without quotes. White space at its end is dropped.
    fn unquoted(&mut self) -> Result<Token, InputError> {
        let (mut element, mut kept, mut escapes) = (String::new(), 0, false);
        let mut characters = self.rest.char_indices();
        loop {
            let (at, c) = characters.next().ok_or_else(|| self.end())?;
            match c {
                '{' => return Err(self.unexpected(c)),
                '"' => return Err(self.malformed("Incorrectly quoted array element.")),
                '\\' => {
                    element.push(characters.next().ok_or_else(|| self.end())?.1);
                    (kept, escapes) = (element.len(), true);
                }
                _ if c == self.delimiter || c == '}' => {
                    self.skip(at);
                    element.truncate(kept);
                    let null = !escapes && element.eq_ignore_ascii_case("null");
                    return Ok(if null { Token::Null } else { Token::Element(element) });
                }
                _ => {
                    element.push(c);
                    if !c.is_ascii() || !is_space(c as u8) {
                        kept = element.len();
                    }
                }
            }
        }
    }
}

/// Reads an array. `read` reads an element.
pub(super) fn array(
    text: &str,
    delimiter: u8,
    mut read: impl FnMut(&str, &mut Vec<u8>) -> Result<(), InputError>,
) -> Result<ArrayValue, InputError> {
    let mut parser = Parser { all: text, rest: text, delimiter: char::from(delimiter) };
    let given = parser.dimensions()?;
    if given.is_empty() {
        if first(parser.rest) != b'{' {
            let detail = "Array value must start with \"{\" or dimension information.";
            return Err(parser.malformed(detail));
        }
    } else {
        let Some(rest) = parser.rest.strip_prefix('=') else {
            return Err(parser.malformed("Missing \"=\" after array dimensions."));
        };
        parser.rest = skip_space(rest);
        if first(parser.rest) != b'{' {
            return Err(parser.malformed("Array contents must start with \"{\"."));
        }
    }
    let mut value = ArrayValue::default();
    let sizes = contents(&mut parser, &given, &mut value.elements, &mut read)?;
    if !skip_space(parser.rest).is_empty() {
        return Err(parser.malformed("Junk after closing right brace."));
    }
    if value.elements.is_empty() {
        return Ok(value);
    }
    value.dimensions = match given.is_empty() {
        true => sizes.into_iter().map(|size| Dimension { size, lower: 1 }).collect(),
        false => given,
    };
    check_bounds(&value.dimensions)?;
    Ok(value)
}

/// Reads what is in braces, and returns the size of each dimension.
fn contents(
    parser: &mut Parser<'_>,
    given: &[Dimension],
    elements: &mut Vec<Option<Vec<u8>>>,
    read: &mut impl FnMut(&str, &mut Vec<u8>) -> Result<(), InputError>,
) -> Result<Vec<i32>, InputError> {
    // For each level, its size if it is known. For each open level, the elements so far.
    let mut sizes: Vec<Option<i32>> = given.iter().map(|dimension| Some(dimension.size)).collect();
    let mut counts: Vec<i32> = Vec::new();
    let mut frozen = !given.is_empty();
    let mut expect_delimiter = false;
    let mismatch = |parser: &Parser<'_>| {
        parser.malformed(match given.is_empty() {
            true => "Multidimensional arrays must have sub-arrays with matching dimensions.",
            false => "Specified array dimensions do not match array contents.",
        })
    };
    loop {
        let token = parser.token()?;
        match token {
            Token::Open if expect_delimiter => return Err(parser.unexpected('{')),
            Token::Open => {
                if counts.len() >= DIMENSIONS_MAX {
                    return Err(too_many_dimensions());
                }
                counts.push(0);
                if counts.len() > sizes.len() {
                    if frozen {
                        return Err(mismatch(parser));
                    }
                    sizes.push(None);
                }
            }
            Token::Close => {
                let count = counts.pop().unwrap_or(0);
                if count > 0 && !expect_delimiter {
                    return Err(parser.unexpected('}'));
                }
                match sizes.get_mut(counts.len()) {
                    Some(Some(size)) if *size != count => return Err(mismatch(parser)),
                    Some(size) => *size = Some(count),
                    None => {}
                }
                let Some(outer) = counts.last_mut() else { break };
                *outer += 1;
                expect_delimiter = true;
            }
            Token::Delimiter if !expect_delimiter => {
                return Err(parser.unexpected(parser.delimiter));
            }
            Token::Delimiter => expect_delimiter = false,
            Token::Element(_) | Token::Null if expect_delimiter => {
                return Err(parser.malformed("Unexpected array element."));
            }
            Token::Element(_) | Token::Null => {
                frozen = true;
                if counts.len() != sizes.len() {
                    return Err(mismatch(parser));
                }
                let element = match token {
                    Token::Element(text) => {
                        let mut element = Vec::new();
                        read(&text, &mut element)?;
                        Some(element)
                    }
                    _ => None,
                };
                if elements.len() >= ELEMENTS_MAX {
                    return Err(too_many_elements());
                }
                elements.push(element);
                if let Some(count) = counts.last_mut() {
                    *count += 1;
                }
                expect_delimiter = true;
            }
        }
    }
    Ok(sizes.into_iter().map(|size| size.unwrap_or(0)).collect())
}
