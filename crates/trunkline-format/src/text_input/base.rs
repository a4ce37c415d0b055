//! Reads values of the built-in types whose values don't contain values of other types.
//!
//! For example, the text `{"a": 1}` as a `jsonb` becomes a container with one key.

use super::error::InputError;
use super::options::InputOptions;
use super::{
    date_time, float, geometry, integer, interval, json, json_path, jsonb, network, numeric,
    scalars, strings,
};
use crate::text_output::{Base, RegType, StringType};

/// Reads a value.
pub(super) fn read_base(
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
        StringType::Json => {
            json::parse(text, &mut json::Check)?;
            out.extend_from_slice(text.as_bytes());
        }
        StringType::NodeTree => {
            return Err(cannot_accept("pg_node_tree"));
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
        Base::Inet => return network::address(text, false, out),
        Base::Cidr => return network::address(text, true, out),
        Base::Macaddr => out.extend_from_slice(&network::macaddr(text)?),
        Base::Macaddr8 => out.extend_from_slice(&network::macaddr8(text)?),
        Base::Points(name) => return geometry::fixed(name, text, out),
        Base::Path => return geometry::path(text, out),
        Base::Polygon => return geometry::polygon(text, out),
        Base::Jsonb => return jsonb::jsonb(text, major, out),
        Base::RegType(kind) => {
            out.extend_from_slice(&reg_type(kind, text, options)?.to_le_bytes());
        }
        Base::Xml => return Err(refuse("xml")),
        Base::Jsonpath => return json_path::jsonpath(text, major, out),
        Base::Tsvector => return Err(refuse("tsvector")),
        Base::Tsquery => return Err(refuse("tsquery")),
        Base::Aclitem => return Err(refuse("aclitem")),
        Base::Record => {
            let message = "input of anonymous composite types is not implemented";
            return Err(InputError::new("0A000", message));
        }
        Base::AnyArray => return Err(cannot_accept("anyarray")),
        Base::Ndistinct => return Err(cannot_accept("pg_ndistinct")),
        Base::Dependencies => return Err(cannot_accept("pg_dependencies")),
        // The functions above read all other types.
        _ => return Err(refuse("?")),
    }
    Ok(())
}

/// 0A000: the server can't read such values either.
fn cannot_accept(type_name: &str) -> InputError {
    InputError::new("0A000", format!("cannot accept a value of type {type_name}"))
}

/// The OID that a `reg*` value stands for: `-`, digits, or a name.
fn reg_type(kind: RegType, text: &str, options: &InputOptions<'_>) -> Result<u32, InputError> {
    let is_operator = matches!(kind, RegType::Oper | RegType::Operator);
    if text == "-" && !is_operator || text == "0" {
        return Ok(0);
    }
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match digits {
        true => integer::u32_type(text, "oid", 15),
        false => options.names.object(kind, text).map(|oid| oid.0),
    }
}
