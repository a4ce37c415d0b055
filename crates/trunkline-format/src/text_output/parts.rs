//! Takes apart the values that contain other values: arrays, composites, ranges and multiranges.
//!
//! Both the text output and the binary format need their parts. For example, the array `{1,NULL}` has
//! the parts `01 00 00 00` and none.
//!
//! Mirrors PostgreSQL's `utils/array.h`, `utils/rangetypes.h` and `utils/multirangetypes.h`.

use super::catalog::TypeCatalog;
use super::description::{Bounds, Part};
use super::error::ValueError;
use super::reader::Reader;
use crate::align::Align;
use crate::deform::{Attribute, is_present};
use crate::heap_tuple::{HAS_NULL, NATTS, TUPLE_HEADER_SIZE};
use crate::ids::Oid;

/// `MAXDIM`: the most dimensions of an array.
const DIMENSIONS_MAX: usize = 6;

pub(crate) const EMPTY: u8 = 0x01;
pub(crate) const LOWER_INCLUSIVE: u8 = 0x02;
pub(crate) const UPPER_INCLUSIVE: u8 = 0x04;
pub(crate) const LOWER_INFINITE: u8 = 0x08;
pub(crate) const UPPER_INFINITE: u8 = 0x10;

/// An array's dimensions and lower bounds.
#[derive(Default)]
pub(crate) struct Shape {
    sizes: [usize; DIMENSIONS_MAX],
    bounds: [i32; DIMENSIONS_MAX],
    count: usize,
    elements: usize,
}

impl Shape {
    fn parse(reader: &mut Reader<'_>, dimensions: usize) -> Result<Self, ValueError> {
        if dimensions > DIMENSIONS_MAX {
            return Err(reader.error("more than 6 dimensions"));
        }
        let mut shape = Self { count: dimensions, elements: 1, ..Self::default() };
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

    /// The size and the lower bound of each dimension.
    pub(crate) fn dimensions(&self) -> impl Iterator<Item = (usize, i32)> {
        self.sizes.iter().copied().zip(self.bounds).take(self.count)
    }

    /// The number of elements.
    pub(crate) fn elements(&self) -> usize {
        self.elements
    }

    /// How many dimensions begin at element `at`, or end just before it.
    pub(super) fn edges(&self, at: usize) -> usize {
        let sizes = self.sizes.iter().take(self.count).rev();
        let mut rows = 1_usize;
        sizes
            .take_while(|&&size| {
                rows = rows.saturating_mul(size);
                at.is_multiple_of(rows)
            })
            .count()
    }
}

/// The elements of an array, one after another.
pub(crate) struct ArrayParts<'a> {
    reader: Reader<'a>,
    /// The null bitmap; empty if there are no nulls.
    nulls: &'a [u8],
    /// The array's shape; without any elements if it is empty.
    pub(crate) shape: Shape,
    /// The type of the elements.
    pub(crate) element: &'a Part,
    at: usize,
}

impl<'a> ArrayParts<'a> {
    /// Parses an array's header. If `element` is `None`, or if it is not the element type given in
    /// the header, we look up the type in the header instead, and store it in `resolved`.
    pub(crate) fn parse(
        value: &'a [u8],
        element: Option<&'a Part>,
        catalog: &dyn TypeCatalog,
        resolved: &'a mut Option<Part>,
    ) -> Result<Self, ValueError> {
        let mut reader = Reader::new("array", value);
        let dimensions = usize::try_from(reader.read::<i32>()?).unwrap_or(usize::MAX);
        let (data, oid) = (reader.read::<u32>()? as usize, Oid(reader.read::<u32>()?));
        let element = match element {
            Some(part) if part.oid == oid => part,
            _ => resolved.insert(Part::resolve(oid, catalog)?),
        };
        let mut shape = Shape::parse(&mut reader, dimensions)?;
        let mut nulls: &[u8] = &[];
        if shape.elements == 0 || dimensions == 0 {
            (shape.elements, shape.count) = (0, 0);
            return Ok(Self { reader, nulls, shape, element, at: 0 });
        }
        // Every element takes up at least one byte, or one bit in the null bitmap if it is null. The
        // number of elements is therefore limited by the size of the value, even if the array's
        // header is damaged.
        if shape.elements > value.len().saturating_mul(8) {
            return Err(reader.error("more elements than bytes"));
        }
        match data {
            0 => reader.align(Align::Double),
            data => {
                nulls = reader.take(shape.elements.div_ceil(8))?;
                reader.seek(data)?;
            }
        }
        Ok(Self { reader, nulls, shape, element, at: 0 })
    }

    /// Whether the array has a null bitmap.
    pub(crate) fn has_nulls(&self) -> bool {
        !self.nulls.is_empty()
    }

    /// The next element; `None` if it is null. There are as many as the shape says.
    #[inline]
    pub(crate) fn next<'r>(&mut self, room: &'r mut Vec<u8>) -> Result<Option<&'r [u8]>, ValueError>
    where
        'a: 'r,
    {
        let at = self.at;
        self.at += 1;
        if !is_present(self.nulls, at) {
            return Ok(None);
        }
        self.reader.part(self.element.attribute, true, room).map(Some)
    }
}

/// The columns of a composite value, one after another.
///
/// A composite datum starts with a tuple header (`HeapTupleHeaderData`). The first word of that
/// header, `t_datum.datum_len_`, also serves as the varlena header, so there is no separate one.
pub(crate) struct CompositeParts<'a> {
    reader: Reader<'a>,
    nulls: &'a [u8],
    /// The number of columns that the value has; its type may have more.
    count: usize,
    at: usize,
}

impl<'a> CompositeParts<'a> {
    /// Parses the header of a value whose type has `columns` columns, dropped ones included.
    pub(crate) fn parse(value: &'a [u8], columns: usize) -> Result<Self, ValueError> {
        let mut reader = Reader::new("composite", value);
        reader.seek(18)?;
        let count = usize::from(reader.read::<u16>()? & NATTS);
        let has_nulls = reader.read::<u16>()? & HAS_NULL != 0;
        let header = usize::from(reader.read::<u8>()?);
        let nulls = if has_nulls { reader.take(count.div_ceil(8))? } else { &[] };
        if header < usize::from(TUPLE_HEADER_SIZE) || header % 8 != 0 {
            return Err(reader.error("an impossible size of its header"));
        }
        if count > columns {
            return Err(reader.error("more columns than its type has"));
        }
        // Column alignment is relative to the row's data area, which starts at a multiple of 8.
        reader.seek(header)?;
        Ok(Self { reader, nulls, count, at: 0 })
    }

    /// The next column, whose layout is `attribute`; `None` if it is null or missing.
    #[inline]
    pub(crate) fn next<'r>(
        &mut self,
        attribute: Attribute,
        room: &'r mut Vec<u8>,
    ) -> Result<Option<&'r [u8]>, ValueError>
    where
        'a: 'r,
    {
        let at = self.at;
        self.at += 1;
        if at >= self.count || !is_present(self.nulls, at) {
            return Ok(None);
        }
        self.reader.part(attribute, false, room).map(Some)
    }
}

/// Splits a range into its flags and a reader of its bounds.
pub(crate) fn range<'a>(value: &'a [u8], bounds: &Bounds) -> Result<(u8, Reader<'a>), ValueError> {
    let (value, flags) = match value.split_last() {
        Some((&flags, value)) => (value, flags),
        None => return Err(ValueError::Truncated { type_name: "range", found: 0 }),
    };
    let mut reader = Reader::new("range", value);
    if Oid(reader.read::<u32>()?) != bounds.oid {
        return Err(reader.error("of another type than its column"));
    }
    Ok((flags, reader))
}

/// Calls `visit` for each range of a multirange, with its flags and a reader of its bounds.
pub(crate) fn multirange<'a>(
    value: &'a [u8],
    oid: Oid,
    bounds: &Bounds,
    mut visit: impl FnMut(usize, u8, &mut Reader<'a>) -> Result<(), ValueError>,
) -> Result<(), ValueError> {
    const IS_OFFSET: u32 = 0x8000_0000;
    let mut reader = Reader::new("multirange", value);
    if Oid(reader.read::<u32>()?) != oid {
        return Err(reader.error("of another type than its column"));
    }
    let count = reader.read::<u32>()? as usize;
    if count == 0 {
        return Ok(());
    }
    let items = reader.take((count - 1).saturating_mul(4))?.as_chunks::<4>().0;
    let flags = reader.take(count)?;
    reader.align(bounds.bound.attribute.align);
    let (base, mut start) = (reader.offset(), 0_usize);
    for (at, &flags) in flags.iter().enumerate() {
        if at > 0 {
            let item = items.get(at - 1).map_or(0, |&item| u32::from_le_bytes(item));
            let length = (item & !IS_OFFSET) as usize;
            start = if item & IS_OFFSET == 0 { start + length } else { length };
        }
        let (end, place) = (reader.offset(), base.saturating_add(start));
        if place < end {
            return Err(reader.error("ranges that overlap"));
        }
        reader.seek(place)?;
        visit(at, flags, &mut reader)?;
    }
    Ok(())
}
