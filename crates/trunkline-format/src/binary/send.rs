//! Send functions of the types whose values don't contain values of other types.
//!
//! Mirrors the functions `…send` of PostgreSQL's `utils/adt`.

use crate::ids::Tid;
use crate::little_endian::read_at;
use crate::numeric::{Finite, INFINITY, MINUS_INFINITY, NAN, Numeric};
use crate::text_output::base::fixed;
use crate::text_output::reader::Reader;
use crate::text_output::{Base, ValueError, jsonb, jsonpath, xml};
use thiserror::Error;

/// Why a value has no binary format.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SendError {
    /// The bytes are not a valid value.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The type has no send function: SQLSTATE 42883.
    #[error("no binary output function available for type {0}")]
    NoFunction(&'static str),
}

/// Copies a number, most significant byte first.
fn reversed<const N: usize>(
    name: &'static str,
    value: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let mut bytes: [u8; N] = fixed(name, value)?;
    bytes.reverse();
    out.extend_from_slice(&bytes);
    Ok(())
}

/// Copies numbers of four bytes each, most significant byte first.
fn swap<const N: usize>(bytes: &[u8], out: &mut Vec<u8>) {
    for number in bytes.as_chunks::<N>().0 {
        out.extend(number.iter().rev());
    }
}

/// Copies a value of a type of fixed length that has `count` fields of 8 bytes.
fn doubles(
    name: &'static str,
    value: &[u8],
    count: usize,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    let expected = count * 8;
    if value.len() != expected {
        return Err(ValueError::Length { type_name: name, expected, found: value.len() });
    }
    swap::<8>(value, out);
    Ok(())
}

/// Sends a value.
pub(super) fn send_base(base: Base, value: &[u8], out: &mut Vec<u8>) -> Result<(), SendError> {
    match base {
        Base::Int4 => reversed::<4>("integer", value, out)?,
        Base::Int8 => reversed::<8>("bigint", value, out)?,
        Base::Int2 => reversed::<2>("smallint", value, out)?,
        Base::Text(_) | Base::Bytea => out.extend_from_slice(value),
        Base::Float4 => reversed::<4>("float4", value, out)?,
        Base::Float8 => reversed::<8>("float8", value, out)?,
        Base::Numeric => numeric(value, out)?,
        Base::Bool => out.push(u8::from(fixed::<u8>("boolean", value)? != 0)),
        Base::Date => reversed::<4>("date", value, out)?,
        Base::Time | Base::Timestamp | Base::Timestamptz | Base::Money => {
            reversed::<8>("timestamp", value, out)?;
        }
        Base::U32(name) => reversed::<4>(name, value, out)?,
        Base::RegType(_) => reversed::<4>("reg*", value, out)?,
        Base::U64(name) => reversed::<8>(name, value, out)?,
        Base::Lsn => reversed::<8>("pg_lsn", value, out)?,
        Base::Char => out.push(fixed("\"char\"", value)?),
        Base::Uuid => out.extend_from_slice(&fixed::<[u8; 16]>("uuid", value)?),
        Base::Macaddr => out.extend_from_slice(&fixed::<[u8; 6]>("macaddr", value)?),
        Base::Macaddr8 => out.extend_from_slice(&fixed::<[u8; 8]>("macaddr8", value)?),
        Base::Timetz => {
            let bytes: [u8; 12] = fixed("timetz", value)?;
            let (micros, west) = bytes.split_at(8);
            swap::<8>(micros, out);
            swap::<4>(west, out);
        }
        Base::Interval => {
            let bytes: [u8; 16] = fixed("interval", value)?;
            let (micros, days) = bytes.split_at(8);
            swap::<8>(micros, out);
            swap::<4>(days, out);
        }
        _ => return send_rare(base, value, out),
    }
    Ok(())
}

fn send_rare(base: Base, value: &[u8], out: &mut Vec<u8>) -> Result<(), SendError> {
    match base {
        Base::Name => {
            let name: [u8; 64] = fixed("name", value)?;
            let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
            out.extend_from_slice(name.get(..end).unwrap_or_default());
        }
        Base::Tid => {
            let tid = Tid::from_bytes(fixed("tid", value)?);
            out.extend_from_slice(&tid.block.to_be_bytes());
            out.extend_from_slice(&tid.item.to_be_bytes());
        }
        Base::Inet => address("inet", value, out)?,
        Base::Cidr => address("cidr", value, out)?,
        Base::Bits(name) => bits(name, value, out)?,
        Base::Jsonb => {
            out.push(1);
            jsonb::jsonb(value, out)?;
        }
        Base::Jsonpath => {
            out.push(1);
            jsonpath::jsonpath(value, out)?;
        }
        Base::Xml => xml::xml(value, out),
        Base::Points(name) => {
            let count = match name {
                "point" => 2,
                "line" | "circle" => 3,
                _ => 4,
            };
            doubles(name, value, count, out)?;
        }
        Base::Path => {
            let mut reader = Reader::new("path", value);
            let (count, closed) = (reader.read::<i32>()?, reader.read::<i32>()?);
            reader.read::<i32>()?;
            out.push(u8::from(closed != 0));
            points(reader, count, out)?;
        }
        Base::Polygon => {
            let mut reader = Reader::new("polygon", value);
            let count = reader.read::<i32>()?;
            reader.take(32)?;
            points(reader, count, out)?;
        }
        Base::Snapshot => snapshot(value, out)?,
        Base::Vector(name) => vector(name, value, out)?,
        Base::Tsvector => tsvector(value, out)?,
        Base::Tsquery => tsquery(value, out)?,
        // These are sent as `bytea`.
        Base::Ndistinct | Base::Dependencies => out.extend_from_slice(value),
        Base::Aclitem => return Err(SendError::NoFunction("aclitem")),
        // The functions above and our caller send all other types.
        _ => return Err(SendError::NoFunction("unknown")),
    }
    Ok(())
}

/// The number of digits, weight, sign, scale, and digits, two bytes each.
fn numeric(value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let malformed = |what| ValueError::Malformed { type_name: "numeric", what };
    let short = ValueError::Truncated { type_name: "numeric", found: value.len() };
    let mut put = |fields: [u16; 4]| {
        out.extend(fields.iter().flat_map(|field| field.to_be_bytes()));
    };
    let Finite { negative, scale, weight, digits } = match Numeric::parse(value).ok_or(short)? {
        Numeric::Special(header @ (NAN | INFINITY | MINUS_INFINITY)) => {
            // An infinity has a scale of 32 in the server's own macro, which reads it from the flags.
            let scale = if header == NAN { 0 } else { 32 };
            put([0, 0, header, scale]);
            return Ok(());
        }
        Numeric::Special(_) => return Err(malformed("an unknown mark")),
        Numeric::Finite(number) => number,
    };
    let (digits, odd) = digits.as_chunks::<2>();
    let count = u16::try_from(digits.len()).map_err(|_| malformed("too many digits"))?;
    if !odd.is_empty() {
        return Err(malformed("half a digit at its end"));
    }
    put([count, weight as u16, if negative { 0x4000 } else { 0 }, scale as u16]);
    swap::<2>(digits.as_flattened(), out);
    Ok(())
}

/// The family, the length in bits, whether it is a `cidr`, the number of octets, and the octets.
fn address(name: &'static str, value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut reader = Reader::new(name, value);
    let (family, bits) = (reader.read::<u8>()?, reader.read::<u8>()?);
    let count = match family {
        2 => 4,
        3 => 16,
        _ => return Err(reader.error("neither IPv4 nor IPv6")),
    };
    out.extend_from_slice(&[family, bits, u8::from(name == "cidr"), count]);
    out.extend_from_slice(reader.take(count.into())?);
    reader.end()
}

/// The length in bits, and the bits.
fn bits(name: &'static str, value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut reader = Reader::new(name, value);
    let count =
        usize::try_from(reader.read::<i32>()?).map_err(|_| reader.error("a negative length"))?;
    out.extend_from_slice(&(count as u32).to_be_bytes());
    out.extend_from_slice(reader.take(count.div_ceil(8))?);
    reader.end()
}

/// The number of points, and their coordinates.
fn points(mut reader: Reader<'_>, count: i32, out: &mut Vec<u8>) -> Result<(), ValueError> {
    let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(16));
    let bytes = reader.take(bytes.unwrap_or(usize::MAX))?;
    out.extend_from_slice(&count.to_be_bytes());
    swap::<8>(bytes, out);
    reader.end()
}

/// The number of transactions, `xmin`, `xmax`, and the transactions.
fn snapshot(value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut reader = Reader::new("pg_snapshot", value);
    let count = reader.read::<u32>()?;
    let bytes = (count as usize).checked_add(2).and_then(|count| count.checked_mul(8));
    out.extend_from_slice(&count.to_be_bytes());
    swap::<8>(reader.take(bytes.unwrap_or(usize::MAX))?, out);
    reader.end()
}

/// An array of one dimension that begins at 0.
fn vector(name: &'static str, value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut reader = Reader::new(name, value);
    let header: [u32; 5] =
        [reader.read()?, reader.read()?, reader.read()?, reader.read()?, reader.read()?];
    let [dimensions, nulls, element, count, lower] = header;
    if (dimensions, nulls) != (1, 0) {
        return Err(reader.error("not a vector"));
    }
    for word in [dimensions, nulls, element, count, lower] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    let size = if name == "int2vector" { 2 } else { 4 };
    for _ in 0..count {
        out.extend_from_slice(&(size as u32).to_be_bytes());
        out.extend(reader.take(size)?.iter().rev());
    }
    reader.end()
}

/// The number of words; for each word its letters, a NUL, and its positions.
fn tsvector(value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    let mut reader = Reader::new("tsvector", value);
    let count = reader.read::<u32>()?;
    let entries = reader.take((count as usize).saturating_mul(4))?;
    let data = reader.rest();
    // Words don't overlap, so their total length can't exceed the data's.
    let mut left = data.len();
    out.extend_from_slice(&count.to_be_bytes());
    for &entry in entries.as_chunks::<4>().0 {
        let entry = u32::from_le_bytes(entry);
        let (start, length) = ((entry >> 12) as usize, (entry >> 1 & 0x7FF) as usize);
        let end = start + length;
        let beyond = || reader.error("a word beyond its end");
        left = left.checked_sub(length).ok_or_else(|| reader.error("words that overlap"))?;
        out.extend_from_slice(data.get(start..end).ok_or_else(beyond)?);
        out.push(0);
        if entry & 1 == 0 {
            out.extend_from_slice(&[0, 0]);
            continue;
        }
        let at = end.next_multiple_of(2);
        let count = read_at::<u16>(data, at).ok_or_else(beyond)?;
        let positions = data.get(at + 2..at + 2 + usize::from(count) * 2).ok_or_else(beyond)?;
        left =
            left.checked_sub(positions.len()).ok_or_else(|| reader.error("words that overlap"))?;
        out.extend_from_slice(&count.to_be_bytes());
        swap::<2>(positions, out);
    }
    Ok(())
}

/// The number of items; for each item its kind and then a word with its weight, or an operator.
fn tsquery(value: &[u8], out: &mut Vec<u8>) -> Result<(), ValueError> {
    const ITEM: usize = 12;
    const PHRASE: u8 = 4;
    let mut reader = Reader::new("tsquery", value);
    let count = reader.read::<u32>()?;
    let items = reader.take((count as usize).saturating_mul(ITEM))?.as_chunks::<ITEM>().0;
    let operands = reader.rest();
    let mut left = operands.len();
    out.extend_from_slice(&count.to_be_bytes());
    for item in items {
        match *item {
            [1, weight, prefix, _, _, _, _, _, a, b, c, d] => {
                let place = u32::from_le_bytes([a, b, c, d]);
                let (start, length) = ((place >> 12) as usize, (place & 0xFFF) as usize);
                let beyond = || reader.error("a word beyond its end");
                left = left.checked_sub(length).ok_or_else(beyond)?;
                out.extend_from_slice(&[1, weight, u8::from(prefix != 0)]);
                out.extend_from_slice(operands.get(start..start + length).ok_or_else(beyond)?);
                out.push(0);
            }
            [2, operator, low, high, ..] => {
                out.extend_from_slice(&[2, operator]);
                if operator == PHRASE {
                    out.extend_from_slice(&[high, low]);
                }
            }
            _ => return Err(reader.error("an item that means nothing")),
        }
    }
    Ok(())
}
