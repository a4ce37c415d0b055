//! Send functions of enums, arrays, composites, ranges and multiranges.
//!
//! Each part is preceded by its length in four bytes, which is -1 for null.
//!
//! Mirrors `array_send`, `record_send`, `range_send` and `multirange_send` of PostgreSQL's
//! `utils/adt`.

use super::send::{SendError, send_base};
use crate::ids::Oid;
use crate::text_output::base::fixed;
use crate::text_output::description::{Bounds, Part, Record};
use crate::text_output::parts::{
    self, ArrayParts, CompositeParts, EMPTY, LOWER_INFINITE, UPPER_INFINITE,
};
use crate::text_output::reader::Reader;
use crate::text_output::record::RowTypes;
use crate::text_output::{Base, Type, TypeCatalog, ValueError};

/// Appends the binary format of `value`, which is in storage form as
/// [`crate::text_output::write_text`] expects it. Strings remain in the database's encoding.
///
/// # Errors
///
/// [`SendError`] if the type has no send function, or if the bytes are not a valid value. In the
/// latter case, some bytes may already have been appended to `out`.
pub fn write_binary(
    ty: &Type,
    value: &[u8],
    catalog: &dyn TypeCatalog,
    out: &mut Vec<u8>,
) -> Result<(), SendError> {
    match ty {
        Type::Base(Base::AnyArray) => array(value, None, catalog, out),
        Type::Base(Base::Record) => {
            let record = RowTypes::default().of(value, catalog)?;
            composite(value, &record, catalog, out)
        }
        Type::Base(base) => send_base(*base, value, out),
        Type::Enum(_, labels) => {
            let label = Oid(fixed("enum", value)?);
            let at = labels.binary_search_by_key(&label, |&(oid, _)| oid);
            let text = at.ok().and_then(|at| labels.get(at)).ok_or(ValueError::Label { label })?;
            out.extend_from_slice(&text.1);
            Ok(())
        }
        Type::Array(element) => array(value, Some(element), catalog, out),
        Type::Composite(columns) => composite(value, columns, catalog, out),
        Type::Range(bounds) => {
            let (flags, mut reader) = parts::range(value, bounds)?;
            range(flags, &mut reader, bounds, catalog, out)?;
            Ok(reader.end()?)
        }
        Type::Multirange(oid, bounds) => multirange(value, *oid, bounds, catalog, out),
    }
}

fn put(word: i32, out: &mut Vec<u8>) {
    out.extend_from_slice(&word.to_be_bytes());
}

/// Appends what `write` appends, after its length.
fn with_length(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), SendError>,
) -> Result<(), SendError> {
    let start = out.len();
    put(0, out);
    write(out)?;
    let length = i32::try_from(out.len() - start - 4).unwrap_or(i32::MAX);
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

fn array(
    value: &[u8],
    element: Option<&Part>,
    catalog: &dyn TypeCatalog,
    out: &mut Vec<u8>,
) -> Result<(), SendError> {
    let mut resolved = None;
    let mut parts = ArrayParts::parse(value, element, catalog, &mut resolved)?;
    let element = parts.element;
    put(parts.shape.dimensions().count() as i32, out);
    put(i32::from(parts.has_nulls()), out);
    put(element.oid.0 as i32, out);
    for (size, lower) in parts.shape.dimensions() {
        put(size as i32, out);
        put(lower, out);
    }
    let mut room = Vec::new();
    for _ in 0..parts.shape.elements() {
        match parts.next(&mut room)? {
            None => put(-1, out),
            Some(part) => {
                with_length(out, |out| write_binary(&element.ty, part, catalog, out))?;
            }
        }
    }
    Ok(())
}

fn composite(
    value: &[u8],
    columns: &Record,
    catalog: &dyn TypeCatalog,
    out: &mut Vec<u8>,
) -> Result<(), SendError> {
    let mut parts = CompositeParts::parse(value, columns.fields.len())?;
    put(columns.types().count() as i32, out);
    let mut room = Vec::new();
    for field in &columns.fields {
        let part = parts.next(field.attribute, &mut room)?;
        let Some(ty) = &field.ty else { continue };
        put(field.oid.0 as i32, out);
        match part {
            None => put(-1, out),
            Some(part) => with_length(out, |out| write_binary(ty, part, catalog, out))?,
        }
    }
    Ok(())
}

/// The flags, and the bounds that are finite.
fn range(
    flags: u8,
    reader: &mut Reader<'_>,
    bounds: &Bounds,
    catalog: &dyn TypeCatalog,
    out: &mut Vec<u8>,
) -> Result<(), SendError> {
    out.push(flags);
    let mut room = Vec::new();
    for infinite in [LOWER_INFINITE, UPPER_INFINITE] {
        if flags & (EMPTY | infinite) == 0 {
            let part = reader.part(bounds.bound.attribute, false, &mut room)?;
            with_length(out, |out| write_binary(&bounds.bound.ty, part, catalog, out))?;
        }
    }
    Ok(())
}

/// The number of ranges, and the ranges.
fn multirange(
    value: &[u8],
    oid: Oid,
    bounds: &Bounds,
    catalog: &dyn TypeCatalog,
    out: &mut Vec<u8>,
) -> Result<(), SendError> {
    let start = out.len();
    put(0, out);
    let mut failure = None;
    let mut count = 0;
    parts::multirange(value, oid, bounds, |_, flags, reader| {
        count += 1;
        match with_length(out, |out| range(flags, reader, bounds, catalog, out)) {
            Err(SendError::Value(error)) => return Err(error),
            Err(other) => failure = Some(other),
            Ok(()) => {}
        }
        Ok(())
    })?;
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&i32::to_be_bytes(count));
    }
    failure.map_or(Ok(()), Err)
}
