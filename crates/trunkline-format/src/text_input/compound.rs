//! Reads values of any type: those of enums, arrays, composites, ranges and multiranges here, all
//! others in other modules.

use super::base::read_base;
use super::c_text::skip_space;
use super::composite::StoredColumn;
use super::error::InputError;
use super::options::InputOptions;
use super::range::{Bound, RangeRules, RangeValue};
use super::{array, composite, range};
use crate::ids::Oid;
use crate::text_output::description::{Bounds, Record};
use crate::text_output::{RangeBounds, TextOptions, Type, reg_types};

/// Appends the value that `text` stands for, in storage form, to `out`.
///
/// The bytes are those that a tuple holds, without the varlena header: fixed-length types are
/// little-endian, a `name` has 64 bytes. `text` is in UTF-8, and so are the strings in the value.
/// `typmod` is the type modifier, or -1. For a domain, pass its base type's modifier; the caller must
/// check its constraints. Domains within other values are refused.
///
/// # Errors
///
/// [`InputError`], with the server's SQLSTATE and message. `out` is then as it was before.
pub fn read_text(
    ty: &Type,
    text: &[u8],
    typmod: i32,
    options: &InputOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let start = out.len();
    let read = valid_text(text).and_then(|text| read(ty, text, typmod, options, out));
    if read.is_err() {
        out.truncate(start);
    }
    read
}

/// Checks that a text is UTF-8 without NULs.
///
/// # Errors
/// 22021, with the first bytes that are wrong.
pub fn check_text(text: &[u8]) -> Result<(), InputError> {
    valid_text(text).map(|_| ())
}

pub(crate) fn valid_text(text: &[u8]) -> Result<&str, InputError> {
    let invalid = |bytes: &[u8]| {
        let digits: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
        let digits = digits.join(" ");
        let message = format!("invalid byte sequence for encoding \"UTF8\": {digits}");
        Err(InputError::new("22021", message))
    };
    match str::from_utf8(text) {
        Ok(valid) if valid.contains('\0') => invalid(&[0]),
        Ok(valid) => Ok(valid),
        Err(error) if text.iter().take(error.valid_up_to()).any(|&byte| byte == 0) => invalid(&[0]),
        Err(error) => {
            let wrong = text.get(error.valid_up_to()..).unwrap_or_default();
            // The server shows as many bytes as the first one announces.
            let length = match wrong.first() {
                Some(0xC0..0xE0) => 2,
                Some(0xE0..0xF0) => 3,
                Some(0xF0..0xF8) => 4,
                _ => 1,
            };
            invalid(wrong.get(..length).unwrap_or(wrong))
        }
    }
}

fn read(
    ty: &Type,
    text: &str,
    typmod: i32,
    options: &InputOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    match ty {
        Type::Base(base) => read_base(*base, text, typmod, options, out),
        Type::Enum(oid, labels) => {
            let label = enum_label(*oid, labels, text.as_bytes(), options)?;
            out.extend_from_slice(&label.0.to_le_bytes());
            Ok(())
        }
        Type::Array(element) => {
            refuse_domain(element.domain)?;
            let value = array::array(text, element.delimiter, |text, out| {
                read(&element.ty, text, typmod, options, out)
            })?;
            value.store(element.oid, element.attribute, out);
            Ok(())
        }
        Type::Composite(record) => read_composite(record, text, options, out),
        Type::Range(bounds) => {
            let rules = rules(bounds);
            rules.store(&read_range(bounds, &rules, text, options)?, out);
            Ok(())
        }
        Type::Multirange(oid, bounds) => {
            let rules = rules(bounds);
            let mut ranges = Vec::new();
            for text in range::split_multirange(text)? {
                ranges.push(read_range(bounds, &rules, skip_space(text), options)?);
            }
            rules.store_multirange(*oid, &rules.merge(ranges)?, out);
            Ok(())
        }
    }
}

/// A domain's constraints can only be checked by the caller, which doesn't see values within values.
pub(crate) fn refuse_domain(domain: bool) -> Result<(), InputError> {
    let message = "reading a value of a domain within another value is not supported by trunkline";
    if domain { Err(InputError::unsupported(message)) } else { Ok(()) }
}

/// The OID of an enum's label.
pub(crate) fn enum_label(
    oid: Oid,
    labels: &[(Oid, Vec<u8>)],
    text: &[u8],
    options: &InputOptions<'_>,
) -> Result<Oid, InputError> {
    let found = labels.iter().find(|(_, label)| label == text);
    found.map(|&(label, _)| label).ok_or_else(|| {
        let text = String::from_utf8_lossy(text);
        let name = type_name(oid, options);
        InputError::new("22P02", format!("invalid input value for enum {name}: \"{text}\""))
    })
}

/// A type's name in SQL.
pub(crate) fn type_name(oid: Oid, options: &InputOptions<'_>) -> String {
    let mut name = Vec::new();
    reg_types::format_type(oid, &TextOptions::new(options.major, options.catalog), &mut name);
    String::from_utf8_lossy(&name).into_owned()
}

fn read_composite(
    record: &Record,
    text: &str,
    options: &InputOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let present = record.fields.iter().filter(|field| field.ty.is_some()).count();
    let mut texts = composite::split(text, present)?.into_iter();
    let mut columns: Vec<StoredColumn> = Vec::with_capacity(record.fields.len());
    for field in &record.fields {
        let text = field.ty.as_ref().and_then(|ty| Some((ty, texts.next()??)));
        let mut value = None;
        if let Some((ty, text)) = text {
            refuse_domain(field.domain)?;
            let mut stored = Vec::new();
            read(ty, &text, field.modifier, options, &mut stored)?;
            value = Some(stored);
        }
        columns.push((field.attribute, value));
    }
    composite::store(record.oid, &columns, out);
    Ok(())
}

/// Appends a range with these bounds in the form that is stored; `None` is an empty one.
///
/// # Errors
/// [`InputError`] if the lower bound is greater than the upper one.
pub fn write_range(
    ty: &Bounds,
    range: Option<RangeBounds>,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let rules = rules(ty);
    let value = match range {
        Some(RangeBounds { lower, upper }) => {
            rules.normalize(stored_bound(lower), stored_bound(upper))?
        }
        None => None,
    };
    rules.store(&value, out);
    Ok(())
}

/// Appends a multirange of the type `oid`, whose ranges may be in any order and overlap.
///
/// # Errors
/// [`InputError`] if the lower bound of a range is greater than its upper one.
pub fn write_multirange(
    oid: Oid,
    ty: &Bounds,
    ranges: impl IntoIterator<Item = RangeBounds>,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let rules = rules(ty);
    let values = ranges.into_iter().map(|range| {
        let (lower, upper) = (stored_bound(range.lower), stored_bound(range.upper));
        rules.normalize(lower, upper)
    });
    let values = values.collect::<Result<Vec<_>, _>>()?;
    rules.store_multirange(oid, &rules.merge(values)?, out);
    Ok(())
}

fn stored_bound(bound: Option<(Vec<u8>, bool)>) -> Bound {
    match bound {
        Some((value, inclusive)) => Bound { value: Some(value), inclusive },
        None => Bound { value: None, inclusive: false },
    }
}

/// The rules of a range type.
pub(crate) fn rules(bounds: &Bounds) -> RangeRules<'_> {
    let Bounds { oid, bound } = bounds;
    RangeRules { oid: *oid, attribute: bound.attribute, subtype: &bound.ty }
}

fn read_range(
    bounds: &Bounds,
    rules: &RangeRules<'_>,
    text: &str,
    options: &InputOptions<'_>,
) -> Result<RangeValue, InputError> {
    let Some(parts) = range::split(text)? else { return Ok(None) };
    refuse_domain(bounds.bound.domain)?;
    let read_bound = |text: Option<String>, inclusive| {
        let mut value = None;
        if let Some(text) = text {
            let mut stored = Vec::new();
            read(&bounds.bound.ty, &text, -1, options, &mut stored)?;
            value = Some(stored);
        }
        Ok(Bound { value, inclusive })
    };
    let [lower, upper] = parts.bounds;
    let lower = read_bound(lower, parts.inclusive[0])?;
    let upper = read_bound(upper, parts.inclusive[1])?;
    rules.normalize(lower, upper)
}
