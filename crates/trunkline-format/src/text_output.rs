//! **Output functions**: values of every built-in type, as the text that `SELECT` shows.
//!
//! ```text
//!   OID ── Type::resolve ──▶ Type            once for each column, with the catalogs
//!   Type, bytes ── write_text ──▶ text       as the type's output function, to the byte
//! ```
//! For example, the bytes `81 81 0c 00 80 0d d2 1e` of a `numeric` become `123456.789`. The input
//! is the payload, detoasted and without its varlena header.
//!
//! The text isn't escaped; `COPY` adds its own escapes. Arbitrary bytes yield either text or a
//! [`ValueError`]. Note that after an error, the text appended so far remains in the output buffer.

mod catalog;
mod compound;
mod date_time;
mod digits;
mod error;
mod float;
mod geometry;
mod interval;
mod jsonb;
mod jsonpath;
mod network;
mod numeric;
mod options;
mod quote;
mod reader;
mod reg_types;
mod resolve;
mod scalars;
mod statistics;
mod text_search;
mod xml;

#[cfg(test)]
mod tests;

pub use catalog::{ColumnRow, ObjectClass, TypeCatalog};
pub use compound::TEXT_MAX;
pub use error::{UnsupportedReason, UnsupportedType, ValueError};
pub use options::{ByteaOutput, IntervalStyle, TextOptions, TimeZone, Utc};
pub use reg_types::RegType;
pub use resolve::{Base, DEPTH_MAX, PARTS_MAX, Type};

use crate::ids::Oid;

/// The bytes of a fixed-length type.
#[inline]
fn fixed<const N: usize>(type_name: &'static str, value: &[u8]) -> Result<[u8; N], ValueError> {
    let error = ValueError::Length { type_name, expected: N, found: value.len() };
    value.try_into().map_err(|_| error)
}

/// Appends the text of `value`, which is of type `ty`, to `out`.
///
/// `value` depends on the type's length. A fixed-length type needs exactly its bytes. For a
/// varlena, pass the payload without the header, decompressed and fetched from TOAST. For a C
/// string, pass the bytes up to the NUL. The text is in the database's encoding.
///
/// # Errors
///
/// [`ValueError`] if the bytes aren't a valid value, in which case part of the text may already
/// have been appended.
#[inline]
pub fn write_text(
    ty: &Type,
    value: &[u8],
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    match ty {
        Type::Base(base) => write_base(*base, value, options, out),
        Type::Enum(labels) => {
            let label = Oid(u32::from_le_bytes(fixed("enum", value)?));
            let at = labels.binary_search_by_key(&label, |&(oid, _)| oid);
            let text = at.ok().and_then(|at| labels.get(at)).ok_or(ValueError::Label { label })?;
            out.extend_from_slice(&text.1);
            Ok(())
        }
        Type::Array(element) => compound::array(value, Some(element.part()), options, out),
        Type::Composite(columns) => compound::composite(value, columns.columns(), options, out),
        Type::Range(bounds) => compound::range(value, bounds.bounds(), options, out),
        Type::Multirange(oid, bounds) => {
            compound::multirange(value, *oid, bounds.bounds(), options, out)
        }
    }
}

/// The most common types come first, because most columns in a dump have these types.
#[inline]
fn write_base(
    base: Base,
    value: &[u8],
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    match base {
        Base::Text => out.extend_from_slice(value),
        Base::Int4 => {
            digits::signed(i64::from(i32::from_le_bytes(fixed("integer", value)?)), out);
        }
        Base::Int8 => digits::signed(i64::from_le_bytes(fixed("bigint", value)?), out),
        Base::Int2 => {
            digits::signed(i64::from(i16::from_le_bytes(fixed("smallint", value)?)), out);
        }
        Base::Numeric => numeric::numeric(value, out)?,
        Base::Timestamp => {
            date_time::timestamp(i64::from_le_bytes(fixed("timestamp", value)?), out)?;
        }
        Base::Timestamptz => {
            let micros = i64::from_le_bytes(fixed("timestamptz", value)?);
            date_time::timestamptz(micros, options.zone, out)?;
        }
        Base::Bool => match fixed("boolean", value)? {
            [0] => out.push(b'f'),
            [1] => out.push(b't'),
            _ => {
                let what = "neither true nor false";
                return Err(ValueError::Malformed { type_name: "boolean", what });
            }
        },
        Base::Float4 => {
            let number = f32::from_le_bytes(fixed("float4", value)?);
            float::float4(number, options.extra_float_digits, out);
        }
        Base::Float8 => {
            let number = f64::from_le_bytes(fixed("float8", value)?);
            float::float8(number, options.extra_float_digits, out);
        }
        _ => return write_rare(base, value, options, out),
    }
    Ok(())
}

fn write_rare(
    base: Base,
    value: &[u8],
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let major = options.major;
    match base {
        Base::Char => scalars::char(u8::from_le_bytes(fixed("\"char\"", value)?), out),
        Base::Name => {
            let name: [u8; 64] = fixed("name", value)?;
            let end = name.iter().position(|&byte| byte == 0);
            let what = "no NUL at its end";
            let end = end.ok_or(ValueError::Malformed { type_name: "name", what })?;
            out.extend_from_slice(name.get(..end).unwrap_or_default());
        }
        Base::Bytea => scalars::bytea(value, options.bytea_output, out),
        Base::U32(type_name) => {
            digits::unsigned(u64::from(u32::from_le_bytes(fixed(type_name, value)?)), out);
        }
        Base::U64(type_name) => {
            digits::unsigned(u64::from_le_bytes(fixed(type_name, value)?), out);
        }
        Base::RegType(kind) => {
            let oid = Oid(u32::from_le_bytes(fixed("reg*", value)?));
            reg_types::reg_type(kind, oid, options, out);
        }
        Base::Tid => {
            let [a, b, c, d, e, f] = fixed("tid", value)?;
            out.push(b'(');
            digits::unsigned(u64::from(u32::from_le_bytes([c, d, a, b])), out);
            out.push(b',');
            digits::unsigned(u64::from(u16::from_le_bytes([e, f])), out);
            out.push(b')');
        }
        Base::Lsn => scalars::lsn(u64::from_le_bytes(fixed("pg_lsn", value)?), major, out),
        Base::Date => date_time::date(i32::from_le_bytes(fixed("date", value)?), out)?,
        Base::Time => date_time::time(i64::from_le_bytes(fixed("time", value)?), out)?,
        Base::Timetz => {
            let mut reader = reader::Reader::aligned("timetz", value);
            let (micros, west) = (reader.u64()? as i64, reader.i32()?);
            reader.end()?;
            date_time::timetz(micros, west, out)?;
        }
        Base::Interval => {
            let mut reader = reader::Reader::aligned("interval", value);
            let parts = (reader.u64()? as i64, reader.i32()?, reader.i32()?);
            reader.end()?;
            interval::interval(parts, options.interval_style, major, out);
        }
        Base::Uuid => scalars::uuid(&fixed("uuid", value)?, out),
        Base::Money => numeric::money(i64::from_le_bytes(fixed("money", value)?), out),
        Base::Macaddr => network::mac(&fixed::<6>("macaddr", value)?, out),
        Base::Macaddr8 => network::mac(&fixed::<8>("macaddr8", value)?, out),
        Base::Aclitem => reg_types::aclitem(value, options, out)?,
        _ => return write_long(base, value, options, out),
    }
    Ok(())
}

/// Variable-length types, and the geometric types.
fn write_long(
    base: Base,
    value: &[u8],
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let extra = options.extra_float_digits;
    match base {
        Base::Inet => network::address(value, false, out),
        Base::Cidr => network::address(value, true, out),
        Base::Bits(type_name) => scalars::bits(type_name, value, out),
        Base::Xml => {
            xml::xml(value, out);
            Ok(())
        }
        Base::Jsonb => jsonb::jsonb(value, out),
        Base::Jsonpath => jsonpath::jsonpath(value, out),
        Base::Points(type_name) => geometry::fixed(type_name, value, extra, out),
        Base::Path => geometry::path(value, extra, out),
        Base::Polygon => geometry::polygon(value, extra, out),
        Base::Tsvector => text_search::tsvector(value, out),
        Base::Tsquery => text_search::tsquery(value, out),
        Base::Snapshot => scalars::snapshot(value, out),
        Base::Vector(type_name) => scalars::vector(type_name, value, out),
        Base::AnyArray => compound::array(value, None, options, out),
        Base::Ndistinct => statistics::ndistinct(value, options.major, out),
        Base::Dependencies => statistics::dependencies(value, options.major, out),
        // The callers handle all other types.
        _ => Ok(()),
    }
}
