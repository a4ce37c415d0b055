//! `point`, `lseg`, `box`, `path`, `polygon`, `line` and `circle`.
//!
//! Brackets are mostly optional: a box is `((1,2),(3,4))`, `(1,2),(3,4)` or `1,2,3,4`.
//!
//! Mirrors PostgreSQL's `utils/adt/geo_ops.c`.

use super::c_text::{first, skip_space};
use super::error::InputError;
use super::float::float8_prefix;

/// `EPSILON`: coordinates closer than this are equal.
const EPSILON: f64 = 1e-6;

type Point = (f64, f64);

/// The text of a value, and what of it was not read yet.
struct Parser<'a> {
    type_name: &'static str,
    all: &'a str,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn new(type_name: &'static str, text: &'a str) -> Self {
        Self { type_name, all: text, rest: skip_space(text) }
    }

    fn error(&self) -> InputError {
        InputError::syntax(self.type_name, self.all)
    }

    /// Skips a byte, if it is the next one, and white space after it.
    fn accept(&mut self, byte: char) -> bool {
        let Some(rest) = self.rest.strip_prefix(byte) else { return false };
        self.rest = skip_space(rest);
        true
    }

    fn expect(&mut self, byte: char) -> Result<(), InputError> {
        if self.accept(byte) { Ok(()) } else { Err(self.error()) }
    }

    fn end(&self) -> Result<(), InputError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.error()) }
    }

    fn number(&mut self) -> Result<f64, InputError> {
        let (number, rest) = float8_prefix(self.rest, self.type_name, self.all)?;
        self.rest = rest;
        Ok(number)
    }

    /// `x,y` or `(x,y)`.
    fn point(&mut self) -> Result<Point, InputError> {
        self.rest = skip_space(self.rest);
        let parenthesis = self.accept('(');
        let x = self.number()?;
        self.expect(',')?;
        let y = self.number()?;
        if parenthesis {
            self.expect(')')?;
        }
        Ok((x, y))
    }

    /// Points in brackets, or without any. Returns whether the brackets were `[]`, which are only
    /// allowed if `open`.
    fn points(&mut self, count: usize, open: bool) -> Result<(Vec<Point>, bool), InputError> {
        self.rest = skip_space(self.rest);
        let mut depth = 0;
        let is_open = first(self.rest) == b'[';
        if is_open {
            if !open {
                return Err(self.error());
            }
            depth = 1;
            self.rest = self.rest.get(1..).unwrap_or_default();
        } else if let Some(inner) = self.rest.strip_prefix('(') {
            // The parenthesis is around all points if another follows, or if it is the only one.
            let inner = skip_space(inner);
            if inner.starts_with('(') || self.rest.rfind('(') == Some(0) {
                (depth, self.rest) = (1, inner);
            }
        }
        let mut points = Vec::with_capacity(count);
        for _ in 0..count {
            points.push(self.point()?);
            self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
        }
        if depth > 0 && !self.accept(')') && !(is_open && self.accept(']')) {
            return Err(self.error());
        }
        Ok((points, is_open))
    }
}

fn write(numbers: impl IntoIterator<Item = f64>, out: &mut Vec<u8>) {
    out.extend(numbers.into_iter().flat_map(f64::to_le_bytes));
}

fn write_points(points: &[Point], out: &mut Vec<u8>) {
    write(points.iter().flat_map(|&(x, y)| [x, y]), out);
}

/// The number of points in a text, from the number of its commas.
fn count(parser: &Parser<'_>) -> Result<usize, InputError> {
    let commas = parser.all.bytes().filter(|&byte| byte == b',').count();
    if commas % 2 == 1 { Ok(commas.div_ceil(2)) } else { Err(parser.error()) }
}

/// A type of fixed length.
pub(crate) fn fixed(name: &'static str, text: &str, out: &mut Vec<u8>) -> Result<(), InputError> {
    let mut parser = Parser::new(name, text);
    match name {
        "point" => {
            let point = parser.point()?;
            write_points(&[point], out);
        }
        "lseg" => write_points(&parser.points(2, true)?.0, out),
        "box" => {
            let (points, _) = parser.points(2, false)?;
            write_points(&corners(&points), out);
        }
        "circle" => circle(&mut parser, out)?,
        _ => line(&mut parser, out)?,
    }
    parser.end()
}

/// The upper right and the lower left corner of the box around all points.
pub(crate) fn corners(points: &[Point]) -> [Point; 2] {
    let mut points = points.iter().copied();
    let Some(start) = points.next() else { return [(0.0, 0.0); 2] };
    // A NaN is greater than all numbers.
    let greater = |one: f64, other: f64| one > other || one.is_nan() && !other.is_nan();
    points.fold([start, start], |[mut high, mut low], (x, y)| {
        for (value, high, low) in [(x, &mut high.0, &mut low.0), (y, &mut high.1, &mut low.1)] {
            if greater(value, *high) {
                *high = value;
            }
            if greater(*low, value) {
                *low = value;
            }
        }
        [high, low]
    })
}

/// `<(x,y),r>`, `((x,y),r)`, `(x,y),r` or `x,y,r`.
fn circle(parser: &mut Parser<'_>, out: &mut Vec<u8>) -> Result<(), InputError> {
    let angle = first(parser.rest) == b'<';
    let mut depth = u32::from(angle);
    if angle {
        parser.rest = parser.rest.get(1..).unwrap_or_default();
    } else if let Some(inner) = parser.rest.strip_prefix('(') {
        let inner = skip_space(inner);
        if inner.starts_with('(') {
            (depth, parser.rest) = (1, inner);
        }
    }
    let (x, y) = parser.point()?;
    parser.rest = parser.rest.strip_prefix(',').unwrap_or(parser.rest);
    let radius = parser.number()?;
    if radius < 0.0 || depth > 0 && !parser.accept(')') && !parser.accept('>') {
        return Err(parser.error());
    }
    write([x, y, radius], out);
    Ok(())
}

fn equal(one: f64, other: f64) -> bool {
    one == other || (one - other).abs() <= EPSILON
}

/// `{A,B,C}`, or two points on the line.
fn line(parser: &mut Parser<'_>, out: &mut Vec<u8>) -> Result<(), InputError> {
    let invalid =
        |what: &str| Err(InputError::new("22P02", format!("invalid line specification: {what}")));
    if let Some(rest) = parser.rest.strip_prefix('{') {
        parser.rest = rest;
        let a = parser.number()?;
        parser.expect(',')?;
        let b = parser.number()?;
        parser.expect(',')?;
        let c = parser.number()?;
        parser.expect('}')?;
        parser.end()?;
        if equal(a, 0.0) && equal(b, 0.0) {
            return invalid("A and B cannot both be zero");
        }
        write([a, b, c], out);
        return Ok(());
    }
    let (points, _) = parser.points(2, true)?;
    parser.end()?;
    let &[(x1, y1), (x2, y2)] = points.as_slice() else { return Err(parser.error()) };
    if equal(x1, x2) && equal(y1, y2) {
        return invalid("must be two distinct points");
    }
    let numbers = if equal(x1, x2) {
        [-1.0, 0.0, x1]
    } else if equal(y1, y2) {
        [0.0, -1.0, y1]
    } else {
        let slope = (y1 - y2) / (x1 - x2);
        let c = y1 - slope * x1;
        // No minus zero.
        [slope, -1.0, if c == 0.0 { 0.0 } else { c }]
    };
    write(numbers, out);
    Ok(())
}

/// A `path`, open in `[]` and closed otherwise.
pub(crate) fn path(text: &str, out: &mut Vec<u8>) -> Result<(), InputError> {
    let mut parser = Parser::new("path", text);
    let count = count(&parser)?;
    // A single parenthesis is around all points.
    let outer = parser.rest.rfind('(') == Some(0);
    if outer {
        parser.rest = parser.rest.get(1..).unwrap_or_default();
    }
    let (points, open) = parser.points(count, true)?;
    if outer {
        parser.expect(')')?;
    }
    parser.end()?;
    for word in [points.len() as i32, i32::from(!open), 0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    write_points(&points, out);
    Ok(())
}

/// A `polygon`, stored after its bounding box.
pub(crate) fn polygon(text: &str, out: &mut Vec<u8>) -> Result<(), InputError> {
    let mut parser = Parser::new("polygon", text);
    let count = count(&parser)?;
    let (points, _) = parser.points(count, false)?;
    parser.end()?;
    out.extend_from_slice(&(points.len() as i32).to_le_bytes());
    write_points(&corners(&points), out);
    write_points(&points, out);
    Ok(())
}
