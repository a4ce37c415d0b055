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
use super::quote::Within;
use super::reader::Reader;
use crate::align::Align;
use crate::deform::is_present;
use crate::heap_tuple::{HAS_NULL, NATTS, TUPLE_HEADER_SIZE};
use crate::ids::Oid;

/// `MAXDIM`: the most dimensions of an array.
const DIMENSIONS_MAX: usize = 6;

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

/// An array's dimensions and lower bounds.
#[derive(Default)]
struct Shape {
    sizes: [usize; DIMENSIONS_MAX],
    bounds: [i32; DIMENSIONS_MAX],
    dimensions: usize,
    elements: usize,
}

impl Shape {
    fn parse(reader: &mut Reader<'_>, dimensions: usize) -> Result<Self, ValueError> {
        if dimensions > DIMENSIONS_MAX {
            return Err(reader.error("more than 6 dimensions"));
        }
        let mut shape = Self { dimensions, elements: 1, ..Self::default() };
        for size in shape.sizes.iter_mut().take(dimensions) {
            *size = usize::try_from(reader.read::<i32>()?)
                .map_err(|_| reader.error("a negative size"))?;
            shape.elements = shape.elements.saturating_mul(*size);
        }
        for bound in shape.bounds.iter_mut().take(dimensions) {
            *bound = reader.read::<i32>()?;
        }
        Ok(shape)
    }

    /// Prints `[2:3][-1:1]=`, but only if a lower bound differs from 1.
    fn write(&self, out: &mut Vec<u8>) {
        let dimensions = || self.sizes.iter().zip(self.bounds).take(self.dimensions);
        if dimensions().all(|(_, bound)| bound == 1) {
            return;
        }
        for (&size, bound) in dimensions() {
            out.push(b'[');
            digits::signed(i64::from(bound), out);
            out.push(b':');
            digits::signed(i64::from(bound) + size as i64 - 1, out);
            out.push(b']');
        }
        out.push(b'=');
    }

    /// How many dimensions begin at element `at`, or end just before it.
    fn edges(&self, at: usize) -> usize {
        let sizes = self.sizes.iter().take(self.dimensions).rev();
        let mut rows = 1_usize;
        sizes
            .take_while(|&&size| {
                rows = rows.saturating_mul(size);
                at.is_multiple_of(rows)
            })
            .count()
    }
}

/// Prints an array as `array_out` does. If `element` is `None`, or if it is not the element type
/// given in the array's header, we look up the type in the header instead.
fn array(
    value: &[u8],
    element: Option<&Part>,
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let mut reader = Reader::new("array", value);
    let dimensions = usize::try_from(reader.read::<i32>()?).unwrap_or(usize::MAX);
    let (data, oid) = (reader.read::<u32>()? as usize, Oid(reader.read::<u32>()?));
    let resolved;
    let element = match element {
        Some(part) if part.oid == oid => part,
        _ => {
            resolved = Part::resolve(oid, options.catalog)?;
            &resolved
        }
    };
    let shape = Shape::parse(&mut reader, dimensions)?;
    if shape.elements == 0 || dimensions == 0 {
        out.extend_from_slice(b"{}");
        return Ok(());
    }
    // Every element takes up at least one byte, or one bit in the null bitmap if it is null. The
    // number of elements is therefore limited by the size of the value, even if the array's header
    // is damaged.
    if shape.elements > value.len().saturating_mul(8) {
        return Err(reader.error("more elements than bytes"));
    }
    let mut nulls: &[u8] = &[];
    match data {
        0 => reader.align(Align::Double),
        data => {
            nulls = reader.take(shape.elements.div_ceil(8))?;
            reader.seek(data)?;
        }
    }
    let start = out.len();
    shape.write(out);
    let within = Within::Array(element.delimiter);
    let mut room = Vec::new();
    for at in 0..shape.elements {
        digits::separate(at, &[element.delimiter], out);
        out.extend(std::iter::repeat_n(b'{', shape.edges(at)));
        if is_present(nulls, at) {
            let part = reader.part(element.attribute, true, &mut room)?;
            write_part(&element.ty, part, within, options, out)?;
        } else {
            out.extend_from_slice(b"NULL");
        }
        bounded(start, out)?;
        out.extend(std::iter::repeat_n(b'}', shape.edges(at + 1)));
    }
    Ok(())
}

/// Prints a composite value as `record_out` does. A composite datum starts with a tuple header
/// (`HeapTupleHeaderData`). The first word of that header, `t_datum.datum_len_`, also serves as the
/// varlena header, so there is no separate one.
fn composite(
    value: &[u8],
    columns: &Record,
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let mut reader = Reader::new("composite", value);
    reader.seek(18)?;
    let count = usize::from(reader.read::<u16>()? & NATTS);
    let has_nulls = reader.read::<u16>()? & HAS_NULL != 0;
    let header = usize::from(reader.read::<u8>()?);
    let nulls = if has_nulls { reader.take(count.div_ceil(8))? } else { &[] };
    if header < usize::from(TUPLE_HEADER_SIZE) || header % 8 != 0 {
        return Err(reader.error("an impossible size of its header"));
    }
    if count > columns.fields.len() {
        return Err(reader.error("more columns than its type has"));
    }
    reader.seek(header)?;
    // Column alignment is relative to the row's data area, which starts at a multiple of 8.
    let start = out.len();
    out.push(b'(');
    let (mut room, mut first) = (Vec::new(), true);
    for (at, field) in columns.fields.iter().enumerate() {
        let present = at < count && is_present(nulls, at);
        let part =
            if present { Some(reader.part(field.attribute, false, &mut room)?) } else { None };
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

const EMPTY: u8 = 0x01;
const LOWER_INCLUSIVE: u8 = 0x02;
const UPPER_INCLUSIVE: u8 = 0x04;
const LOWER_INFINITE: u8 = 0x08;
const UPPER_INFINITE: u8 = 0x10;

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
    let (value, flags) = match value.split_last() {
        Some((&flags, value)) => (value, flags),
        None => return Err(ValueError::Truncated { type_name: "range", found: 0 }),
    };
    let mut reader = Reader::new("range", value);
    if Oid(reader.read::<u32>()?) != bounds.oid {
        return Err(reader.error("of another type than its column"));
    }
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
    const IS_OFFSET: u32 = 0x8000_0000;
    let mut reader = Reader::new("multirange", value);
    if Oid(reader.read::<u32>()?) != oid {
        return Err(reader.error("of another type than its column"));
    }
    let count = reader.read::<u32>()? as usize;
    let begin = out.len();
    out.push(b'{');
    if count > 0 {
        let items = reader.take((count - 1).saturating_mul(4))?.as_chunks::<4>().0;
        let flags = reader.take(count)?;
        reader.align(bounds.bound.attribute.align);
        let (base, mut start) = (reader.offset(), 0_usize);
        for (at, &flags) in flags.iter().enumerate() {
            if at > 0 {
                out.push(b',');
                let item = items.get(at - 1).map_or(0, |&item| u32::from_le_bytes(item));
                let length = (item & !IS_OFFSET) as usize;
                start = if item & IS_OFFSET == 0 { start + length } else { length };
            }
            let (end, at) = (reader.offset(), base.saturating_add(start));
            if at < end {
                return Err(reader.error("ranges that overlap"));
            }
            reader.seek(at)?;
            bounds.write(flags, &mut reader, options, out)?;
            bounded(begin, out)?;
        }
    }
    out.push(b'}');
    Ok(())
}
