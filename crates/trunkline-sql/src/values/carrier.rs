//! Carriers: the Arrow type that holds the values of a PostgreSQL type.
//!
//! For example, a `date` is an `Int32` of days since 2000, and every enum is a `UInt32` with the OID
//! of the label. Where a carrier's own order and equality are not PostgreSQL's, such as for a
//! numeric, comparisons use keys that are computed from the values.

use arrow_schema::DataType;
use trunkline_format::text_output::{Base, Type};

/// The Arrow representation of a type's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// `bool`.
    Bool,
    /// `int2`.
    Int16,
    /// `int4`; `date` in days since 2000.
    Int32,
    /// `int8`; `money` in hundredths; `time` in microseconds of the day; `timestamp` and
    /// `timestamptz` in microseconds since 2000, where the two ends of the range are infinite.
    Int64,
    /// `"char"`.
    UInt8,
    /// `oid`, `xid`, `cid`, the `reg*` types, and enums as the OIDs of their labels.
    UInt32,
    /// `xid8`, `pg_lsn`.
    UInt64,
    /// `tid` as `block << 16 | item`, in a `UInt64`.
    Tid,
    /// `float4`.
    Float32,
    /// `float8`.
    Float64,
    /// `text`, `varchar`, `bpchar` (padded as stored), `json`, `xml`, `unknown`, `cstring`: in UTF-8.
    Text,
    /// `name`: as text, without the NULs after it.
    Name,
    /// Fixed-length types that are not numbers, as stored: `uuid`, `interval`, `timetz`, `macaddr`,
    /// `point` and so on. The number is their length in bytes.
    Fixed(u8),
    /// Everything else, as the payload of the stored datum: `numeric`, `bytea`, `jsonb`, arrays,
    /// composites, ranges, `inet` and so on.
    Bytes,
}

impl Carrier {
    /// The carrier of a resolved type.
    pub fn of(ty: &Type) -> Self {
        match ty {
            Type::Base(base) => Self::of_base(*base),
            Type::Enum(..) => Self::UInt32,
            Type::Array(_) | Type::Composite(_) | Type::Range(_) | Type::Multirange(..) => {
                Self::Bytes
            }
        }
    }

    fn of_base(base: Base) -> Self {
        match base {
            Base::Bool => Self::Bool,
            Base::Int2 => Self::Int16,
            Base::Int4 | Base::Date => Self::Int32,
            Base::Int8 | Base::Money | Base::Time | Base::Timestamp | Base::Timestamptz => {
                Self::Int64
            }
            Base::Char => Self::UInt8,
            Base::U32(_) | Base::RegType(_) => Self::UInt32,
            Base::U64(_) | Base::Lsn => Self::UInt64,
            Base::Tid => Self::Tid,
            Base::Float4 => Self::Float32,
            Base::Float8 => Self::Float64,
            Base::Text(_) | Base::Xml => Self::Text,
            Base::Name => Self::Name,
            Base::Uuid | Base::Interval => Self::Fixed(16),
            Base::Timetz => Self::Fixed(12),
            Base::Macaddr => Self::Fixed(6),
            Base::Macaddr8 => Self::Fixed(8),
            Base::Points(name) => Self::Fixed(match name {
                "point" => 16,
                "line" | "circle" => 24,
                _ => 32,
            }),
            // An aclitem has 12 bytes in version 15 and 16 in later ones.
            Base::Aclitem
            | Base::Numeric
            | Base::Bytea
            | Base::Snapshot
            | Base::Inet
            | Base::Cidr
            | Base::Bits(_)
            | Base::Jsonb
            | Base::Jsonpath
            | Base::Path
            | Base::Polygon
            | Base::Tsvector
            | Base::Tsquery
            | Base::Vector(_)
            | Base::AnyArray
            | Base::Record
            | Base::Ndistinct
            | Base::Dependencies => Self::Bytes,
        }
    }

    /// The Arrow type of an array.
    pub fn data_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Int16 => DataType::Int16,
            Self::Int32 => DataType::Int32,
            Self::Int64 => DataType::Int64,
            Self::UInt8 => DataType::UInt8,
            Self::UInt32 => DataType::UInt32,
            Self::UInt64 | Self::Tid => DataType::UInt64,
            Self::Float32 => DataType::Float32,
            Self::Float64 => DataType::Float64,
            Self::Text | Self::Name => DataType::Utf8View,
            Self::Fixed(bytes) => DataType::FixedSizeBinary(i32::from(bytes)),
            Self::Bytes => DataType::BinaryView,
        }
    }
}
