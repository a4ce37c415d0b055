//! Output of arrays, composites, ranges and multiranges, whose values contain other values.
//!
//! We first append each element to the output, and then add quotes to it if necessary. The nesting
//! depth depends only on the type, so [`super::Type::resolve`] can limit it. Every level of nesting
//! doubles the quotes of the levels inside it, so a small value can produce a huge text. Like the
//! server, we therefore limit its length, to [`super::TEXT_MAX`].
//!
//! Mirrors `array_out`, `record_out`, `range_out` and `multirange_out` of PostgreSQL's `utils/adt`.

use super::base::{Base, fixed, write_base};
use super::description::{Bounds, Part, Record, Type};
use super::digits;
use super::error::{ValueError, bounded};
use super::options::TextOptions;
use super::parts::{
    self, ArrayParts, CompositeParts, EMPTY, LOWER_INCLUSIVE, LOWER_INFINITE, Shape,
    UPPER_INCLUSIVE, UPPER_INFINITE,
};
use super::quote::Within;
use super::reader::Reader;
use super::record::RowTypes;
use crate::ids::Oid;

/// Appends the text of `value`, which is of type `ty`, to `out`.
///
/// What to pass as `value` depends on the type. For a fixed-length type, pass exactly that number
/// of bytes. For a varlena, pass the payload without its header, after detoasting it. For a C
/// string, pass all bytes before the NUL. The text is in the database's encoding.
///
/// # Errors
///
/// [`ValueError`] if the bytes are not a valid value. In that case, part of the text may already
/// have been appended to `out`.
#[inline]
pub fn write_text(
    ty: &Type,
    value: &[u8],
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    match ty {
        Type::Base(Base::AnyArray) => array(value, None, options, out),
        Type::Base(Base::Record) => {
            let record = RowTypes::default().of(value, options.catalog)?;
            composite(value, &record, options, out)
        }
        Type::Base(base) => write_base(*base, value, options, out),
        Type::Enum(_, labels) => {
            let label = Oid(fixed("enum", value)?);
            let at = labels.binary_search_by_key(&label, |&(oid, _)| oid);
            let text = at.ok().and_then(|at| labels.get(at)).ok_or(ValueError::Label { label })?;
            out.extend_from_slice(&text.1);
            Ok(())
        }
        Type::Array(element) => array(value, Some(element), options, out),
        Type::Composite(columns) => composite(value, columns, options, out),
        Type::Range(bounds) => range(value, bounds, options, out),
        Type::Multirange(oid, bounds) => multirange(value, *oid, bounds, options, out),
    }
}

/// Writes one part and quotes it.
fn write_part(
    ty: &Type,
    value: &[u8],
    within: Within,
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let start = out.len();
    write_text(ty, value, options, out)?;
    within.quote(start, out);
    bounded(start, out)
}

/// Prints `[2:3][-1:1]=`, but only if a lower bound differs from 1.
fn write_bounds(shape: &Shape, out: &mut Vec<u8>) {
    if shape.dimensions().all(|(_, bound)| bound == 1) {
        return;
    }
    for (size, bound) in shape.dimensions() {
        out.push(b'[');
        digits::signed(i64::from(bound), out);
        out.push(b':');
        digits::signed(i64::from(bound) + size as i64 - 1, out);
        out.push(b']');
    }
    out.push(b'=');
}

/// Prints an array as `array_out` does. If `element` is `None`, or if it is not the element type
/// given in the array's header, we look up the type in the header instead.
fn array(
    value: &[u8],
    element: Option<&Part>,
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let mut resolved = None;
    let mut parts = ArrayParts::parse(value, element, options.catalog, &mut resolved)?;
    let element = parts.element;
    if parts.shape.elements() == 0 {
        out.extend_from_slice(b"{}");
        return Ok(());
    }
    let start = out.len();
    write_bounds(&parts.shape, out);
    let within = Within::Array(element.delimiter);
    let mut room = Vec::new();
    for at in 0..parts.shape.elements() {
        digits::separate(at, &[element.delimiter], out);
        out.extend(std::iter::repeat_n(b'{', parts.shape.edges(at)));
        match parts.next(&mut room)? {
            Some(part) => write_part(&element.ty, part, within, options, out)?,
            None => out.extend_from_slice(b"NULL"),
        }
        bounded(start, out)?;
        out.extend(std::iter::repeat_n(b'}', parts.shape.edges(at + 1)));
    }
    Ok(())
}

/// Prints a composite value as `record_out` does.
fn composite(
    value: &[u8],
    columns: &Record,
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let mut parts = CompositeParts::parse(value, columns.fields.len())?;
    let start = out.len();
    out.push(b'(');
    let (mut room, mut first) = (Vec::new(), true);
    for field in &columns.fields {
        let part = parts.next(field.attribute, &mut room)?;
        let Some(ty) = &field.ty else { continue };
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        if let Some(part) = part {
            write_part(ty, part, Within::Composite, options, out)?;
            bounded(start, out)?;
        }
    }
    out.push(b')');
    Ok(())
}

impl Bounds {
    /// Prints `[a,b)`, reading the bounds from `reader`.
    fn write(
        &self,
        flags: u8,
        reader: &mut Reader<'_>,
        options: &TextOptions<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ValueError> {
        if flags & EMPTY != 0 {
            out.extend_from_slice(b"empty");
            return Ok(());
        }
        let mut room = Vec::new();
        let sides = [(LOWER_INFINITE, b','), (UPPER_INFINITE, b')')];
        out.push(if flags & LOWER_INCLUSIVE != 0 { b'[' } else { b'(' });
        for (infinite, mark) in sides {
            if flags & infinite == 0 {
                let part = reader.part(self.bound.attribute, false, &mut room)?;
                write_part(&self.bound.ty, part, Within::Range, options, out)?;
            }
            let inclusive = mark == b')' && flags & UPPER_INCLUSIVE != 0;
            out.push(if inclusive { b']' } else { mark });
        }
        Ok(())
    }
}

/// A range, as `range_out`.
fn range(
    value: &[u8],
    bounds: &Bounds,
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let (flags, mut reader) = parts::range(value, bounds)?;
    bounds.write(flags, &mut reader, options, out)?;
    reader.end()
}

/// A multirange, as `multirange_out`.
fn multirange(
    value: &[u8],
    oid: Oid,
    bounds: &Bounds,
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let begin = out.len();
    out.push(b'{');
    parts::multirange(value, oid, bounds, |at, flags, reader| {
        digits::separate(at, b",", out);
        bounds.write(flags, reader, options, out)?;
        bounded(begin, out)
    })?;
    out.push(b'}');
    Ok(())
}
