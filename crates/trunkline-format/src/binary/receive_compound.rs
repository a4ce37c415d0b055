//! Receive functions of enums, arrays, composites, ranges and multiranges.
//!
//! Mirrors `array_recv`, `record_recv`, `range_recv` and `multirange_recv` of PostgreSQL's
//! `utils/adt`.

use super::message::Message;
use super::receive::{invalid, receive_base};
use crate::ids::Oid;
use crate::text_input::array::{ArrayValue, Dimension, check_bounds};
use crate::text_input::composite::{self, StoredColumn};
use crate::text_input::compound::{enum_label, refuse_domain, rules, type_name, valid_text};
use crate::text_input::range::{Bound, RangeValue};
use crate::text_input::scalars::vector_header;
use crate::text_input::{InputError, InputOptions};
use crate::text_output::description::{Bounds, Record};
use crate::text_output::parts::{
    EMPTY, LOWER_INCLUSIVE, LOWER_INFINITE, UPPER_INCLUSIVE, UPPER_INFINITE,
};
use crate::text_output::{Base, Type};

type Result<T> = std::result::Result<T, InputError>;

/// `MAXDIM`: the most dimensions of an array.
const DIMENSIONS_MAX: i32 = 6;
/// `MaxArraySize`: the most elements of an array.
const ELEMENTS_MAX: usize = 134_217_727;

/// Appends the value that `message` holds in the binary format, in storage form, to `out`. It is the
/// counterpart of [`super::write_binary`], and what it appends is what
/// [`crate::text_input::read_text`] appends. Strings must be UTF-8.
///
/// # Errors
///
/// [`InputError`], with the server's SQLSTATE and message. `out` is then as it was before.
pub fn read_binary(
    ty: &Type,
    message: &[u8],
    typmod: i32,
    options: &InputOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    let mut rest = Message::new(message);
    let read = receive(ty, &mut rest, typmod, options, out).and_then(|()| match rest.left() {
        0 => Ok(()),
        _ => Err(invalid("incorrect binary data format")),
    });
    if read.is_err() {
        out.truncate(start);
    }
    read
}

fn receive(
    ty: &Type,
    message: &mut Message<'_>,
    typmod: i32,
    options: &InputOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    match ty {
        Type::Base(Base::Vector(name)) => vector(name, message, options, out),
        Type::Base(base) => receive_base(*base, message, typmod, options.major, out),
        Type::Enum(oid, labels) => {
            let text = valid_text(message.rest())?;
            let label = enum_label(*oid, labels, text.as_bytes(), options)?;
            out.extend_from_slice(&label.0.to_le_bytes());
            Ok(())
        }
        Type::Array(element) => {
            refuse_domain(element.domain)?;
            let value = array(element.oid, message, options, |message, out| {
                receive(&element.ty, message, typmod, options, out)
            })?;
            value.store(element.oid, element.attribute, out);
            Ok(())
        }
        Type::Composite(record) => composite(record, message, options, out),
        Type::Range(bounds) => {
            let value = range(bounds, message, options)?;
            rules(bounds).store(&value, out);
            Ok(())
        }
        Type::Multirange(oid, bounds) => {
            let count = message.int()?;
            let mut ranges = Vec::new();
            for _ in 0..count {
                let length = usize::try_from(message.int()?).unwrap_or(usize::MAX);
                let mut inner = Message::new(message.take(length)?);
                ranges.push(range(bounds, &mut inner, options)?);
            }
            at_end(message)?;
            let rules = rules(bounds);
            rules.store_multirange(*oid, &rules.merge(ranges)?, out);
            Ok(())
        }
    }
}

/// Reads a part after its length; `None` if it is null. `wrong` is the error if the part has bytes
/// left over.
fn part(
    message: &mut Message<'_>,
    read: impl FnOnce(&mut Message<'_>, &mut Vec<u8>) -> Result<()>,
    wrong: &dyn Fn() -> InputError,
) -> Result<Option<Vec<u8>>> {
    let length = message.int()?;
    if length == -1 {
        return Ok(None);
    }
    let length = usize::try_from(length).ok().filter(|&length| length <= message.left());
    let length = length.ok_or_else(|| invalid("insufficient data left in message"))?;
    let mut inner = Message::new(message.take(length)?);
    let mut value = Vec::new();
    read(&mut inner, &mut value)?;
    if inner.left() > 0 { Err(wrong()) } else { Ok(Some(value)) }
}

/// Complains about the wrong type of a part. The OIDs of types that users defined differ between
/// databases, so only those of built-in types are compared.
fn check_type(
    found: Oid,
    expected: Oid,
    options: &InputOptions<'_>,
    explain: impl FnOnce(&str, &str) -> String,
) -> Result<()> {
    /// `FirstGenbkiObjectId`.
    const BUILT_IN_END: u32 = 10_000;
    if found == expected || found.0 >= BUILT_IN_END || expected.0 >= BUILT_IN_END {
        return Ok(());
    }
    let name = |oid: Oid| format!("{oid} ({})", type_name(oid, options));
    Err(InputError::new("42804", explain(&name(found), &name(expected))))
}

/// Reads an array. `read` reads an element from a message of its own.
fn array(
    element: Oid,
    message: &mut Message<'_>,
    options: &InputOptions<'_>,
    mut read: impl FnMut(&mut Message<'_>, &mut Vec<u8>) -> Result<()>,
) -> Result<ArrayValue> {
    let dimensions = message.int()?;
    if dimensions < 0 {
        return Err(invalid(format!("invalid number of dimensions: {dimensions}")));
    }
    if dimensions > DIMENSIONS_MAX {
        let text = format!(
            "number of array dimensions ({dimensions}) exceeds the maximum allowed ({DIMENSIONS_MAX})"
        );
        return Err(InputError::new("54000", text));
    }
    if !matches!(message.int()?, 0 | 1) {
        return Err(invalid("invalid array flags"));
    }
    check_type(Oid(message.int()? as u32), element, options, |found, expected| {
        format!("binary data has array element type {found} instead of expected {expected}")
    })?;
    let mut value = ArrayValue::default();
    for _ in 0..dimensions {
        value.dimensions.push(Dimension { size: message.int()?, lower: message.int()? });
    }
    let count = value.dimensions.iter().try_fold(1_usize, |count, dimension| {
        let size = usize::try_from(dimension.size).ok()?;
        count.checked_mul(size).filter(|&count| count <= ELEMENTS_MAX)
    });
    let too_large = || {
        let text = format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})");
        InputError::new("54000", text)
    };
    let count = count.ok_or_else(too_large)?;
    check_bounds(&value.dimensions)?;
    if dimensions == 0 || count == 0 {
        return Ok(ArrayValue::default());
    }
    for at in 1..=count {
        let wrong = || invalid(format!("improper binary format in array element {at}"));
        value.elements.push(part(message, &mut read, &wrong)?);
    }
    Ok(value)
}

/// An `int2vector` or `oidvector`: an array of one dimension, without nulls, that begins at 0.
fn vector(
    name: &str,
    message: &mut Message<'_>,
    options: &InputOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let (base, oid) = match name {
        "int2vector" => (Base::Int2, Oid(21)),
        _ => (Base::U32("oid"), Oid(26)),
    };
    let value = array(oid, message, options, |message, out| {
        receive_base(base, message, -1, options.major, out)
    })?;
    let from_zero = matches!(value.dimensions[..], [Dimension { lower: 0, .. }]);
    let elements: Option<Vec<Vec<u8>>> = value.elements.into_iter().collect();
    let elements = elements.filter(|_| from_zero);
    let elements = elements.ok_or_else(|| invalid(format!("invalid {name} data")))?;
    vector_header(oid.0, elements.len(), out);
    elements.iter().for_each(|element| out.extend_from_slice(element));
    Ok(())
}

fn composite(
    record: &Record,
    message: &mut Message<'_>,
    options: &InputOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let (found, expected) = (message.int()?, record.types().count());
    if usize::try_from(found) != Ok(expected) {
        let text = format!("wrong number of columns: {found}, expected {expected}");
        return Err(InputError::new("42804", text));
    }
    let mut columns: Vec<StoredColumn> = Vec::with_capacity(record.fields.len());
    for (field, number) in record.fields.iter().zip(1..) {
        let Some(ty) = &field.ty else {
            columns.push((field.attribute, None));
            continue;
        };
        refuse_domain(field.domain)?;
        check_type(Oid(message.int()? as u32), field.oid, options, |found, expected| {
            format!(
                "binary data has type {found} instead of expected {expected} in record column {number}"
            )
        })?;
        let wrong = || invalid(format!("improper binary format in record column {number}"));
        let read = |message: &mut Message<'_>, out: &mut Vec<u8>| {
            receive(ty, message, field.modifier, options, out)
        };
        columns.push((field.attribute, part(message, read, &wrong)?));
    }
    composite::store(record.oid, &columns, out);
    Ok(())
}

/// Fails if a message has bytes left over (`pq_getmsgend`).
fn at_end(message: &Message<'_>) -> Result<()> {
    match message.left() {
        0 => Ok(()),
        _ => Err(InputError::new("08P01", "invalid message format")),
    }
}

/// The flags, and the bounds that are finite.
fn range(
    bounds: &Bounds,
    message: &mut Message<'_>,
    options: &InputOptions<'_>,
) -> Result<RangeValue> {
    refuse_domain(bounds.bound.domain)?;
    let known = EMPTY | LOWER_INCLUSIVE | UPPER_INCLUSIVE | LOWER_INFINITE | UPPER_INFINITE;
    let flags = message.byte()? & known;
    let mut bound = |infinite, inclusive| {
        let mut value = None;
        if flags & (EMPTY | infinite) == 0 {
            let length = usize::try_from(message.int()?).unwrap_or(usize::MAX);
            let mut inner = Message::new(message.take(length)?);
            let mut stored = Vec::new();
            // As in the server, bytes that are left over don't matter here.
            receive(&bounds.bound.ty, &mut inner, -1, options, &mut stored)?;
            value = Some(stored);
        }
        Ok(Bound { value, inclusive: flags & inclusive != 0 })
    };
    let lower = bound(LOWER_INFINITE, LOWER_INCLUSIVE)?;
    let upper = bound(UPPER_INFINITE, UPPER_INCLUSIVE)?;
    at_end(message)?;
    if flags & EMPTY != 0 {
        return Ok(None);
    }
    rules(bounds).normalize(lower, upper)
}
