//! Output of arrays, composites, ranges and multiranges, whose values contain other values.
//!
//! Each part is first written in place, and then quoted if necessary. The nesting depth depends
//! only on the type, and [`super::Type::resolve`] limits it. Quotes double at each level, so we
//! limit the length of the text to [`TEXT_MAX`], as the server does.
//!
//! Mirrors `array_out`, `record_out`, `range_out` and `multirange_out` of PostgreSQL's `utils/adt`.

use super::error::ValueError;
use super::quote::Within;
use super::reader::{Layout, Reader};
use super::{TextOptions, Type, digits, write_text};
use crate::align::Align;
use crate::ids::Oid;
use std::sync::Arc;

/// Maximum length of a compound value's text: 1 GiB, as in the server.
pub const TEXT_MAX: usize = 1 << 30;
/// `MAXDIM`: the most dimensions of an array.
const DIMENSIONS_MAX: usize = 6;

/// A type, and how its values are stored as parts of other values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    pub(super) ty: Type,
    /// The type's OID. For a domain, this is the domain itself rather than its base type.
    pub(super) oid: Oid,
    pub(super) layout: Layout,
    /// `typdelim`: the delimiter between array elements of this type.
    pub(super) delimiter: u8,
}

/// Fails if more than [`TEXT_MAX`] bytes were written since `start`.
pub(super) fn bounded(start: usize, out: &[u8]) -> Result<(), ValueError> {
    if out.len() - start <= TEXT_MAX {
        return Ok(());
    }
    Err(ValueError::Malformed { type_name: "compound", what: "a text above 1 GiB" })
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
            *size = usize::try_from(reader.i32()?).map_err(|_| reader.error("a negative size"))?;
            shape.elements = shape.elements.saturating_mul(*size);
        }
        for bound in shape.bounds.iter_mut().take(dimensions) {
            *bound = reader.i32()?;
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

/// An array, as `array_out`. If `element` isn't given or differs from the element type in the
/// array's header, we resolve the type in the header.
pub(super) fn array(
    value: &[u8],
    element: Option<&Part>,
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let mut reader = Reader::new("array", value);
    let dimensions = usize::try_from(reader.i32()?).unwrap_or(usize::MAX);
    let (data, oid) = (reader.u32()? as usize, Oid(reader.u32()?));
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
    // Only nulls take no bytes, and each null needs a bit in the bitmap. This bounds the element
    // count.
    if shape.elements > value.len().saturating_mul(8) {
        return Err(reader.error("more elements than bytes"));
    }
    let nulls = if data == 0 { None } else { Some(reader.take(shape.elements.div_ceil(8))?) };
    match data {
        0 => reader.align(Align::Double),
        data => reader.seek(data)?,
    }
    let start = out.len();
    shape.write(out);
    let within = Within::Array(element.delimiter);
    let mut room = Vec::new();
    for at in 0..shape.elements {
        if at > 0 {
            out.push(element.delimiter);
        }
        out.extend(std::iter::repeat_n(b'{', shape.edges(at)));
        let present =
            nulls.and_then(|nulls| nulls.get(at / 8)).is_none_or(|bits| bits >> (at % 8) & 1 == 1);
        if present {
            let part = reader.part(element.layout, true, &mut room)?;
            write_part(&element.ty, part, within, options, out)?;
        } else {
            out.extend_from_slice(b"NULL");
        }
        bounded(start, out)?;
        out.extend(std::iter::repeat_n(b'}', shape.edges(at + 1)));
    }
    Ok(())
}

/// The columns of a composite type, with `None` for dropped columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Columns(pub(super) Vec<(Layout, Option<Type>)>);

/// A composite, as `record_out`. A composite datum is a tuple header (`HeapTupleHeaderData`) whose
/// first word, `t_datum.datum_len_`, is the varlena length. It therefore has no separate header.
pub(super) fn composite(
    value: &[u8],
    columns: &Columns,
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    const HAS_NULL: u16 = 0x0001;
    const NATTS: u16 = 0x07FF;
    let mut reader = Reader::new("composite", value);
    reader.seek(18)?;
    let count = usize::from(reader.u16()? & NATTS);
    let has_nulls = reader.u16()? & HAS_NULL != 0;
    let header = usize::from(reader.u8()?);
    let nulls = if has_nulls { Some(reader.take(count.div_ceil(8))?) } else { None };
    if header < 23 || header % 8 != 0 {
        return Err(reader.error("an impossible size of its header"));
    }
    if count > columns.0.len() {
        return Err(reader.error("more columns than its type has"));
    }
    reader.seek(header)?;
    // Column alignment is relative to the row's data area, which starts at a multiple of 8.
    let start = out.len();
    out.push(b'(');
    let (mut room, mut first) = (Vec::new(), true);
    for (at, (layout, ty)) in columns.0.iter().enumerate() {
        let present = at < count
            && nulls
                .and_then(|nulls| nulls.get(at / 8))
                .is_none_or(|bits| bits >> (at % 8) & 1 == 1);
        let part = if present { Some(reader.part(*layout, false, &mut room)?) } else { None };
        let Some(ty) = ty else { continue };
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

/// A range type, or the multirange type over it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bounds {
    /// The range type's OID, which every value also stores.
    pub(super) oid: Oid,
    pub(super) bound: Part,
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
                let part = reader.part(self.bound.layout, false, &mut room)?;
                write_part(&self.bound.ty, part, Within::Range, options, out)?;
            }
            let inclusive = mark == b')' && flags & UPPER_INCLUSIVE != 0;
            out.push(if inclusive { b']' } else { mark });
        }
        Ok(())
    }
}

/// A range, as `range_out`.
pub(super) fn range(
    value: &[u8],
    bounds: &Arc<Bounds>,
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let (value, flags) = match value.split_last() {
        Some((&flags, value)) => (value, flags),
        None => return Err(ValueError::Truncated { type_name: "range", found: 0 }),
    };
    let mut reader = Reader::new("range", value);
    if Oid(reader.u32()?) != bounds.oid {
        return Err(reader.error("of another type than its column"));
    }
    bounds.write(flags, &mut reader, options, out)?;
    reader.end()
}

/// A multirange, as `multirange_out`.
pub(super) fn multirange(
    value: &[u8],
    oid: Oid,
    bounds: &Arc<Bounds>,
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    const IS_OFFSET: u32 = 0x8000_0000;
    let mut reader = Reader::new("multirange", value);
    if Oid(reader.u32()?) != oid {
        return Err(reader.error("of another type than its column"));
    }
    let count = reader.u32()? as usize;
    let begin = out.len();
    out.push(b'{');
    if count > 0 {
        let items = reader.take((count - 1).saturating_mul(4))?.as_chunks::<4>().0;
        let flags = reader.take(count)?;
        reader.align(bounds.bound.layout.align);
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
