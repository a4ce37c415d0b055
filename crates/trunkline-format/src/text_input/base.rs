//! Reads values of the built-in types whose values don't contain values of other types.

use super::error::InputError;
use super::options::InputOptions;
use super::{date_time, float, integer, interval, numeric, scalars, strings};
use crate::text_output::{Base, StringType, Type};

/// Appends the value that `text` stands for, in storage form, to `out`.
///
/// The bytes are those that a tuple holds, without the varlena header: fixed-length types are
/// little-endian, a `name` has 64 bytes. `text` is in UTF-8, and so are the strings in the value.
/// `typmod` is the type modifier, or -1. For a domain, pass its base type's modifier; its constraints
/// are not checked.
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

/// Reads a value of any type.
pub(super) fn read(
    ty: &Type,
    text: &str,
    typmod: i32,
    options: &InputOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    match ty {
        Type::Base(base) => read_base(*base, text, typmod, options, out),
        _ => Err(InputError::unsupported("reading this type is not supported by trunkline")),
    }
}

fn read_base(
    base: Base,
    text: &str,
    typmod: i32,
    options: &InputOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let major = options.major;
    match base {
        Base::Int4 => out.extend_from_slice(&integer::int4(text, major)?.to_le_bytes()),
        Base::Int8 => out.extend_from_slice(&integer::int8(text, major)?.to_le_bytes()),
        Base::Int2 => out.extend_from_slice(&integer::int2(text, major)?.to_le_bytes()),
        Base::Text(kind) => return read_string(kind, text, typmod, out),
        Base::Numeric => return numeric::numeric(text, typmod, major, out),
        Base::Float4 => out.extend_from_slice(&float::float4(text)?.to_le_bytes()),
        Base::Float8 => out.extend_from_slice(&float::float8(text)?.to_le_bytes()),
        Base::Bool => out.push(u8::from(scalars::boolean(text)?)),
        Base::Date => out.extend_from_slice(&date_time::date(text, options)?.to_le_bytes()),
        Base::Timestamp | Base::Timestamptz => {
            let micros = date_time::timestamp(text, base == Base::Timestamptz, typmod, options)?;
            out.extend_from_slice(&micros.to_le_bytes());
        }
        Base::Time => {
            out.extend_from_slice(&date_time::time(text, typmod, options)?.to_le_bytes());
        }
        Base::Timetz => {
            let (micros, west) = date_time::timetz(text, typmod, options)?;
            out.extend_from_slice(&micros.to_le_bytes());
            out.extend_from_slice(&west.to_le_bytes());
        }
        Base::Interval => {
            let (micros, days, months) = interval::interval(text, typmod, options)?;
            out.extend_from_slice(&micros.to_le_bytes());
            out.extend_from_slice(&days.to_le_bytes());
            out.extend_from_slice(&months.to_le_bytes());
        }
        Base::U32(name) => {
            out.extend_from_slice(&integer::u32_type(text, name, major)?.to_le_bytes());
        }
        _ => return read_rare(base, text, typmod, options, out),
    }
    Ok(())
}

fn read_string(
    kind: StringType,
    text: &str,
    typmod: i32,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    match kind {
        StringType::Text => out.extend_from_slice(text.as_bytes()),
        StringType::Varchar => strings::varchar(text, typmod, out)?,
        StringType::Bpchar => strings::bpchar(text, typmod, out)?,
        StringType::Json => return Err(refuse("json")),
        StringType::NodeTree => {
            let message = "cannot accept a value of type pg_node_tree";
            return Err(InputError::new("0A000", message));
        }
    }
    Ok(())
}

fn refuse(type_name: &str) -> InputError {
    InputError::unsupported(format!(
        "reading values of type {type_name} is not supported by trunkline"
    ))
}

fn read_rare(
    base: Base,
    text: &str,
    typmod: i32,
    options: &InputOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), InputError> {
    let major = options.major;
    match base {
        Base::Char => out.push(strings::char(text)),
        Base::Name => strings::name(text, out),
        Base::Bytea => return strings::bytea(text, out),
        Base::Money => out.extend_from_slice(&numeric::money(text)?.to_le_bytes()),
        Base::Uuid => out.extend_from_slice(&scalars::uuid(text)?),
        Base::U64(name) => {
            out.extend_from_slice(&integer::u64_type(text, name, major)?.to_le_bytes());
        }
        Base::Tid => return scalars::tid(text, out),
        Base::Lsn => out.extend_from_slice(&scalars::lsn(text)?.to_le_bytes()),
        Base::Snapshot => return scalars::snapshot(text, out),
        Base::Bits(name) => return scalars::bits(text, name == "bit", typmod, out),
        Base::Vector("int2vector") => return scalars::int2_vector(text, out),
        Base::Vector(_) => return scalars::oid_vector(text, major, out),
        _ => return Err(refuse(&format!("{base:?}"))),
    }
    Ok(())
}
