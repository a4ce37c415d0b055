//! `point`, `lseg`, `path`, `box`, `polygon`, `line` and `circle`.
//!
//! All of them store float8s in a fixed order, and print the numbers as `float8out` does.
//!
//! Mirrors PostgreSQL's `utils/adt/geo_ops.c`.

use super::error::ValueError;
use super::float::float8;
use super::reader::Reader;

/// `(x,y)`.
fn point(reader: &mut Reader<'_>, extra: i8, out: &mut Vec<u8>) -> Result<(), ValueError> {
    out.push(b'(');
    float8(reader.read::<f64>()?, extra, out);
    out.push(b',');
    float8(reader.read::<f64>()?, extra, out);
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
        if at > 0 {
            out.push(b',');
        }
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

/// The fixed-length types. The value's length determines the number of points or floats.
pub(super) fn fixed(
    type_name: &'static str,
    value: &[u8],
    extra: i8,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let mut reader = Reader::aligned(type_name, value);
    match type_name {
        "line" => {
            for mark in *b"{,," {
                out.push(mark);
                float8(reader.read::<f64>()?, extra, out);
            }
            out.push(b'}');
            reader.end()
        }
        "circle" => {
            out.push(b'<');
            point(&mut reader, extra, out)?;
            out.push(b',');
            float8(reader.read::<f64>()?, extra, out);
            out.push(b'>');
            reader.end()
        }
        "lseg" => {
            out.push(b'[');
            points(reader, 2, extra, out)?;
            out.push(b']');
            Ok(())
        }
        "box" => points(reader, 2, extra, out),
        _ => points(reader, 1, extra, out),
    }
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
