//! The built-in types whose values don't contain values of other types. For each of them, this
//! module knows the OID and the output function.
//!
//! The output functions themselves are in the other modules of this directory. We test for the most
//! common types first, because most columns in a dump are of one of these types.

use super::error::ValueError;
use super::options::TextOptions;
use super::reader::Reader;
use super::reg_types::{self, RegType};
use super::{catalog::ObjectClass, date_time, digits, float, geometry, interval, jsonb, jsonpath};
use super::{network, numeric, scalars, statistics, text_search, xml};
use crate::ids::{Lsn, Oid, Tid};
use crate::little_endian::Number;

/// A built-in type whose values don't contain values of other types. If a variant contains a
/// string, it is the name of the type to be used in error messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the types")]
pub enum Base {
    Bool,
    Char,
    Name,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Numeric,
    Money,
    /// A type whose values are shown as they are stored.
    Text(StringType),
    Xml,
    /// Bytea and pg_mcv_list.
    Bytea,
    Date,
    Time,
    Timetz,
    Timestamp,
    Timestamptz,
    Interval,
    Uuid,
    /// Oid, xid, cid.
    U32(&'static str),
    /// Xid8, oid8.
    U64(&'static str),
    RegType(RegType),
    Tid,
    Lsn,
    /// Pg_snapshot and txid_snapshot.
    Snapshot,
    Inet,
    Cidr,
    Macaddr,
    Macaddr8,
    /// Bit and varbit.
    Bits(&'static str),
    Jsonb,
    Jsonpath,
    /// Point, lseg, box, line, circle.
    Points(&'static str),
    Path,
    Polygon,
    Tsvector,
    Tsquery,
    /// Int2vector and oidvector.
    Vector(&'static str),
    Aclitem,
    /// An array whose element type is recorded in its header only, as in pg_statistic.
    AnyArray,
    Ndistinct,
    Dependencies,
    /// A row whose header says what its columns are.
    Record,
}

/// The types whose values are stored as their text. All of them are printed alike, but each has its
/// own input function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StringType {
    /// `text` and `refcursor`.
    Text,
    /// `varchar`, which can have a maximum length.
    Varchar,
    /// `character`, padded with blanks to its length.
    Bpchar,
    /// `json`.
    Json,
    /// `pg_node_tree`, which only the server writes.
    NodeTree,
}

impl Base {
    /// Returns the built-in type with this OID. Returns `None` if it is not built in, or if its
    /// values contain values of other types.
    pub fn from_oid(oid: Oid) -> Option<Self> {
        use ObjectClass as Class;
        Some(match oid.0 {
            16 => Self::Bool,
            17 | 5017 => Self::Bytea,
            18 => Self::Char,
            19 => Self::Name,
            20 => Self::Int8,
            21 => Self::Int2,
            22 => Self::Vector("int2vector"),
            23 => Self::Int4,
            24 => Self::RegType(RegType::Proc),
            25 | 1790 => Self::Text(StringType::Text),
            114 => Self::Text(StringType::Json),
            194 => Self::Text(StringType::NodeTree),
            1042 => Self::Text(StringType::Bpchar),
            1043 => Self::Text(StringType::Varchar),
            26 => Self::U32("oid"),
            27 => Self::Tid,
            28 => Self::U32("xid"),
            29 => Self::U32("cid"),
            30 => Self::Vector("oidvector"),
            142 => Self::Xml,
            600 => Self::Points("point"),
            601 => Self::Points("lseg"),
            602 => Self::Path,
            603 => Self::Points("box"),
            604 => Self::Polygon,
            628 => Self::Points("line"),
            650 => Self::Cidr,
            700 => Self::Float4,
            701 => Self::Float8,
            718 => Self::Points("circle"),
            774 => Self::Macaddr8,
            790 => Self::Money,
            829 => Self::Macaddr,
            869 => Self::Inet,
            1033 => Self::Aclitem,
            1082 => Self::Date,
            1083 => Self::Time,
            1114 => Self::Timestamp,
            1184 => Self::Timestamptz,
            1186 => Self::Interval,
            1266 => Self::Timetz,
            1560 => Self::Bits("bit"),
            1562 => Self::Bits("varbit"),
            1700 => Self::Numeric,
            2202 => Self::RegType(RegType::Procedure),
            2203 => Self::RegType(RegType::Oper),
            2204 => Self::RegType(RegType::Operator),
            2205 => Self::RegType(RegType::Named(Class::Relation)),
            2206 => Self::RegType(RegType::Type),
            2249 => Self::Record,
            2277 => Self::AnyArray,
            2950 => Self::Uuid,
            2970 | 5038 => Self::Snapshot,
            3220 => Self::Lsn,
            3361 => Self::Ndistinct,
            3402 => Self::Dependencies,
            3614 => Self::Tsvector,
            3615 => Self::Tsquery,
            3734 => Self::RegType(RegType::Named(Class::TextSearchConfig)),
            3769 => Self::RegType(RegType::Named(Class::TextSearchDictionary)),
            3802 => Self::Jsonb,
            4072 => Self::Jsonpath,
            4089 => Self::RegType(RegType::Named(Class::Schema)),
            4096 => Self::RegType(RegType::Named(Class::Role)),
            4191 => Self::RegType(RegType::Named(Class::Collation)),
            5069 => Self::U64("xid8"),
            6437 => Self::U64("oid8"),
            6490 => Self::RegType(RegType::Named(Class::Database)),
            _ => return None,
        })
    }
}

/// The number that a value of a fixed-length type holds.
#[inline]
pub(crate) fn fixed<T: Number>(type_name: &'static str, value: &[u8]) -> Result<T, ValueError> {
    let expected = size_of::<T>();
    let number = T::first_of(value).filter(|_| value.len() == expected);
    number.ok_or(ValueError::Length { type_name, expected, found: value.len() })
}

/// We test for the most common types first, because most columns in a dump are of one of these
/// types.
#[inline]
pub(super) fn write_base(
    base: Base,
    value: &[u8],
    options: &TextOptions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), ValueError> {
    match base {
        Base::Text(_) => out.extend_from_slice(value),
        Base::Int4 => {
            digits::signed(i64::from(fixed::<i32>("integer", value)?), out);
        }
        Base::Int8 => digits::signed(fixed::<i64>("bigint", value)?, out),
        Base::Int2 => {
            digits::signed(i64::from(fixed::<i16>("smallint", value)?), out);
        }
        Base::Numeric => numeric::numeric(value, out)?,
        Base::Timestamp => {
            date_time::timestamp(fixed("timestamp", value)?, out)?;
        }
        Base::Timestamptz => {
            let micros = fixed("timestamptz", value)?;
            date_time::timestamptz(micros, options.zone, out)?;
        }
        Base::Bool => match fixed::<u8>("boolean", value)? {
            0 => out.push(b'f'),
            1 => out.push(b't'),
            _ => {
                let what = "neither true nor false";
                return Err(ValueError::Malformed { type_name: "boolean", what });
            }
        },
        Base::Float4 => {
            let number = fixed("float4", value)?;
            float::float4(number, options.extra_float_digits, out);
        }
        Base::Float8 => {
            let number = fixed("float8", value)?;
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
        Base::Char => scalars::char(fixed("\"char\"", value)?, out),
        Base::Name => {
            let name: [u8; 64] = fixed("name", value)?;
            let end = name.iter().position(|&byte| byte == 0);
            let what = "no NUL at its end";
            let end = end.ok_or(ValueError::Malformed { type_name: "name", what })?;
            out.extend_from_slice(name.get(..end).unwrap_or_default());
        }
        Base::Bytea => scalars::bytea(value, options.bytea_output, out),
        Base::U32(type_name) => {
            digits::unsigned(u64::from(fixed::<u32>(type_name, value)?), out);
        }
        Base::U64(type_name) => {
            digits::unsigned(fixed::<u64>(type_name, value)?, out);
        }
        Base::RegType(kind) => {
            let oid = Oid(fixed("reg*", value)?);
            reg_types::reg_type(kind, oid, options, out);
        }
        Base::Tid => {
            let tid = Tid::from_bytes(fixed("tid", value)?);
            out.push(b'(');
            digits::unsigned(u64::from(tid.block), out);
            out.push(b',');
            digits::unsigned(u64::from(tid.item), out);
            out.push(b')');
        }
        Base::Lsn => scalars::lsn(Lsn(fixed("pg_lsn", value)?), major, out),
        Base::Date => date_time::date(fixed("date", value)?, out)?,
        Base::Time => date_time::time(fixed("time", value)?, out)?,
        Base::Timetz => {
            let mut reader = Reader::aligned("timetz", value);
            let (micros, west) = (reader.read::<u64>()? as i64, reader.read::<i32>()?);
            reader.end()?;
            date_time::timetz(micros, west, out)?;
        }
        Base::Interval => {
            let mut reader = Reader::aligned("interval", value);
            let parts =
                (reader.read::<u64>()? as i64, reader.read::<i32>()?, reader.read::<i32>()?);
            reader.end()?;
            interval::interval(parts, options.interval_style, major, out);
        }
        Base::Uuid => scalars::uuid(&fixed("uuid", value)?, out),
        Base::Money => numeric::money(fixed("money", value)?, out),
        Base::Macaddr => network::mac(&fixed::<[u8; 6]>("macaddr", value)?, out),
        Base::Macaddr8 => network::mac(&fixed::<[u8; 8]>("macaddr8", value)?, out),
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
        Base::Ndistinct => statistics::ndistinct(value, options.major, out),
        Base::Dependencies => statistics::dependencies(value, options.major, out),
        // The callers handle all other types. `AnyArray` and `Record` have parts, so `write_text`
        // handles them.
        _ => Ok(()),
    }
}
