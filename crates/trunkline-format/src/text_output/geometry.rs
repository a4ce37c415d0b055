//! `point`, `lseg`, `path`, `box`, `polygon`, `line` and `circle`.
//!
//! All of them store float8s in a fixed order, and print the numbers as `float8out` does.
//!
//! Mirrors PostgreSQL's `utils/adt/geo_ops.c`.

use super::digits::separate;
use super::error::ValueError;
use super::float::float8;
use super::reader::Reader;

/// `(x,y)`.
fn point(reader: &mut Reader<'_>, extra: i8, out: &mut Vec<u8>) -> Result<(), ValueError> {
    out.push(b'(');
    float8(reader.read()?, extra, out);
    out.push(b',');
    float8(reader.read()?, extra, out);
    out.push(b')');
    Ok(())
}

/// `count` points, separated by commas.
fn points(
    mut reader: Reader<'_>,
    count: usize,
    extra: i8,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    for at in 0..count {
        separate(at, b",", out);
        point(&mut reader, extra, out)?;
    }
    reader.end()
}

/// Reads the point count: at least one, and no more points than the remaining bytes can hold.
fn count(reader: &mut Reader<'_>) -> Result<usize, ValueError> {
    let count = usize::try_from(reader.read::<i32>()?).ok();
    let fits = |&count: &usize| (1..=reader.rest().len() / 16).contains(&count);
    count.filter(fits).ok_or_else(|| reader.error("an impossible number of points"))
}

/// The fixed-length types: points, then numbers, separated by commas and in brackets.
pub(super) fn fixed(
    type_name: &'static str,
    value: &[u8],
    extra: i8,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let (open, points, numbers, close): (&[u8], _, _, &[u8]) = match type_name {
        "line" => (b"{", 0, 3, b"}"),
        "circle" => (b"<", 1, 1, b">"),
        "lseg" => (b"[", 2, 0, b"]"),
        "box" => (b"", 2, 0, b""),
        _ => (b"", 1, 0, b""),
    };
    let mut reader = Reader::aligned(type_name, value);
    out.extend_from_slice(open);
    for at in 0..points + numbers {
        separate(at, b",", out);
        match at < points {
            true => point(&mut reader, extra, out)?,
            false => float8(reader.read()?, extra, out),
        }
    }
    out.extend_from_slice(close);
    reader.end()
}

/// A path: `((…),…)` if it is closed, otherwise `[(…),…]`.
pub(super) fn path(value: &[u8], extra: i8, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut reader = Reader::new("path", value);
    let count = count(&mut reader)?;
    let closed = reader.read::<i32>()? != 0;
    reader.read::<i32>()?;
    out.push(if closed { b'(' } else { b'[' });
    points(reader, count, extra, out)?;
    out.push(if closed { b')' } else { b']' });
    Ok(())
}

/// A polygon: `((…),…)`. Its bounding box is stored first, but isn't printed.
pub(super) fn polygon(value: &[u8], extra: i8, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut reader = Reader::new("polygon", value);
    let count = count(&mut reader)?;
    reader.take(32)?;
    out.push(b'(');
    points(reader, count, extra, out)?;
    out.push(b')');
    Ok(())
}
