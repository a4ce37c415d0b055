//! Keys: values by which others are sorted, grouped and joined.
//!
//! DataFusion sorts, groups and joins by what is in the arrays. Where that isn't PostgreSQL's order or
//! equality, the expression is wrapped in a key, whose bytes compare as PostgreSQL compares the
//! values:
//!
//! ```text
//!   1.50 (numeric)      04 80000000 0002 1389      positive, weight 0, digits 1 and 5000, plus 1
//!   1.5  (numeric)      04 80000000 0002 1389
//!   'ab ' (bpchar)      "ab"
//!   -0   (float8)       0
//! ```

use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, Int32Builder, StringViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt32Type};
use arrow_array::{Array, ArrayRef};
use trunkline_aio::facade::hash::Map;
use trunkline_format::text_output::{Base, StringType, Type};
use trunkline_sql::SqlError;
use trunkline_sql::bound::SqlType;
use trunkline_sql::values::Carrier;

use crate::environment::Environment;

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyUse {
    /// Grouping, joining, `DISTINCT`: equal keys for equal values.
    Equality,
    /// Sorting.
    Order,
}

/// How a key is computed from a value.
#[derive(Debug, Clone)]
pub(crate) enum Key {
    Float32,
    Float64,
    Numeric,
    Interval,
    Timetz,
    Bpchar,
    Network,
    /// The place of each label, by its OID.
    Enum(Arc<Map<u32, i32>>),
}

impl Key {
    /// The key for values of a type; `None` if the values themselves will do.
    ///
    /// # Errors
    /// 0A000: we can't compare values of this type, or only by a locale.
    pub(crate) fn of(
        environment: &Environment,
        ty: SqlType,
        usage: KeyUse,
    ) -> Result<Option<Self>, SqlError> {
        let order = usage == KeyUse::Order;
        let resolved = match ty.oid.0 {
            // `unknown` and `cstring`
            705 | 2275 => Type::Base(Base::Text(StringType::Text)),
            _ => environment.resolve(ty.oid)?,
        };
        let base = match &resolved {
            Type::Base(base) => *base,
            Type::Enum(..) if !order => return Ok(None),
            Type::Enum(..) => return Ok(Some(enum_key(environment, ty))),
            _ => return Err(refuse(environment, ty)),
        };
        let is_text = matches!(base, Base::Text(_) | Base::Name);
        if is_text && !environment.is_deterministic(ty.collation) {
            let message = "nondeterministic collations are not supported by trunkline";
            return Err(SqlError::unsupported(message));
        }
        Ok(match base {
            Base::Float4 => Some(Self::Float32),
            Base::Float8 => Some(Self::Float64),
            Base::Numeric => Some(Self::Numeric),
            Base::Interval => Some(Self::Interval),
            Base::Timetz => Some(Self::Timetz),
            Base::Inet | Base::Cidr => Some(Self::Network),
            Base::Text(StringType::Bpchar) => {
                if order {
                    environment.require_bytewise(ty.collation)?;
                }
                Some(Self::Bpchar)
            }
            Base::Text(StringType::Text | StringType::Varchar) | Base::Name => {
                if order {
                    environment.require_bytewise(ty.collation)?;
                }
                None
            }
            Base::Bits(_) | Base::U32(_) if !order => None,
            Base::U32("oid") => None,
            Base::Bool
            | Base::Char
            | Base::Int2
            | Base::Int4
            | Base::Int8
            | Base::Money
            | Base::Bytea
            | Base::Date
            | Base::Time
            | Base::Timestamp
            | Base::Timestamptz
            | Base::Uuid
            | Base::U64(_)
            | Base::RegType(_)
            | Base::Tid
            | Base::Lsn
            | Base::Macaddr
            | Base::Macaddr8 => None,
            _ => return Err(refuse(environment, ty)),
        })
    }

    /// The carrier of the keys.
    pub(crate) fn carrier(&self) -> Carrier {
        match self {
            Self::Float32 => Carrier::Float32,
            Self::Float64 => Carrier::Float64,
            Self::Bpchar => Carrier::Text,
            Self::Enum(_) => Carrier::Int32,
            Self::Numeric | Self::Interval | Self::Timetz | Self::Network => Carrier::Bytes,
        }
    }

    /// Computes the keys of an array's values. The key of a null is null.
    ///
    /// # Errors
    /// XX001: a stored value is damaged.
    pub(crate) fn apply(&self, array: &ArrayRef) -> Result<ArrayRef, SqlError> {
        let wrong = || SqlError::internal(format!("a key of an array of {}", array.data_type()));
        Ok(match self {
            Self::Float32 => {
                let values = array.as_primitive_opt::<Float32Type>().ok_or_else(wrong)?;
                Arc::new(values.unary::<_, Float32Type>(|value| {
                    if value.is_nan() { f32::NAN } else { value + 0.0 }
                }))
            }
            Self::Float64 => {
                let values = array.as_primitive_opt::<Float64Type>().ok_or_else(wrong)?;
                Arc::new(values.unary::<_, Float64Type>(|value| {
                    if value.is_nan() { f64::NAN } else { value + 0.0 }
                }))
            }
            Self::Bpchar => {
                let values = array.as_string_view_opt().ok_or_else(wrong)?;
                let mut keys = StringViewBuilder::with_capacity(values.len());
                for value in values {
                    keys.append_option(value.map(|text| text.trim_end_matches(' ')));
                }
                Arc::new(keys.finish())
            }
            Self::Enum(ranks) => {
                let values = array.as_primitive_opt::<UInt32Type>().ok_or_else(wrong)?;
                let mut keys = Int32Builder::with_capacity(values.len());
                for value in values {
                    let rank = value.map(|label| ranks.get(&label).copied().ok_or_else(damaged));
                    keys.append_option(rank.transpose()?);
                }
                Arc::new(keys.finish())
            }
            Self::Numeric => {
                let values = array.as_binary_view_opt().ok_or_else(wrong)?;
                bytes_keys(values.iter(), numeric)?
            }
            Self::Network => {
                let values = array.as_binary_view_opt().ok_or_else(wrong)?;
                bytes_keys(values.iter(), network)?
            }
            Self::Interval => {
                let values = array.as_fixed_size_binary_opt().ok_or_else(wrong)?;
                bytes_keys(values.iter(), interval)?
            }
            Self::Timetz => {
                let values = array.as_fixed_size_binary_opt().ok_or_else(wrong)?;
                bytes_keys(values.iter(), timetz)?
            }
        })
    }
}

fn enum_key(environment: &Environment, ty: SqlType) -> Key {
    let labels = environment.settings.catalog.enum_labels(ty.oid);
    Key::Enum(Arc::new((0..).zip(labels).map(|(rank, (oid, _))| (oid.0, rank)).collect()))
}

fn refuse(environment: &Environment, ty: SqlType) -> SqlError {
    let row = environment.settings.catalog.type_row(ty.oid);
    let name = row.map(|row| String::from_utf8_lossy(&row.name).into_owned());
    let name = name.unwrap_or_else(|| ty.oid.to_string());
    let message = format!("comparing values of type {name} is not supported by trunkline");
    SqlError::unsupported(message)
}

fn damaged() -> SqlError {
    let message = "a stored value is damaged and cannot be compared";
    SqlError::new(trunkline_sql::SqlState::DATA_CORRUPTED, message)
}

fn bytes_keys<'v>(
    values: impl Iterator<Item = Option<&'v [u8]>>,
    key: fn(&[u8], &mut Vec<u8>) -> Option<()>,
) -> Result<ArrayRef, SqlError> {
    let mut keys = BinaryViewBuilder::new();
    let mut buffer = Vec::new();
    for value in values {
        let Some(value) = value else {
            keys.append_null();
            continue;
        };
        buffer.clear();
        key(value, &mut buffer).ok_or_else(damaged)?;
        keys.append_value(&buffer);
    }
    Ok(Arc::new(keys.finish()))
}

/// The two bytes at `at`, in the machine's order.
fn word(payload: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(payload.get(at..)?.first_chunk().copied()?))
}

/// A numeric: its class, then its weight, then its digits. All bytes after the class of a negative
/// number are inverted, and a terminator sorts it before those that have fewer digits.
fn numeric(payload: &[u8], key: &mut Vec<u8>) -> Option<()> {
    let header = word(payload, 0)?;
    let (negative, weight, digits) = match header & 0xF000 {
        0xC000 => {
            key.push(6); // NaN
            return Some(());
        }
        0xD000 => {
            key.push(5); // infinity
            return Some(());
        }
        0xF000 => {
            key.push(1); // minus infinity
            return Some(());
        }
        // The short header: sign, scale, and a weight of seven bits.
        0x8000..=0xB000 => {
            let weight = i32::from(header & 0x3F) - i32::from(header & 0x40);
            (header & 0x2000 != 0, weight, payload.get(2..)?)
        }
        _ => {
            let weight = word(payload, 2)?.cast_signed();
            (header & 0x4000 != 0, i32::from(weight), payload.get(4..)?)
        }
    };
    let digits = digits.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    if digits.len() == 0 {
        key.push(3);
        return Some(());
    }
    key.push(if negative { 2 } else { 4 });
    let start = key.len();
    key.extend(((weight as u32) ^ 0x8000_0000).to_be_bytes());
    // No digit is 0 here, so that none looks like the terminator when it is inverted.
    digits.for_each(|digit| key.extend(digit.saturating_add(1).to_be_bytes()));
    if negative {
        key.get_mut(start..)?.iter_mut().for_each(|byte| *byte = !*byte);
        key.extend([0xFF, 0xFF]);
    }
    Some(())
}

/// An interval as the number of microseconds, where a month has 30 days.
fn interval(payload: &[u8], key: &mut Vec<u8>) -> Option<()> {
    let time = i64::from_le_bytes(*payload.first_chunk()?);
    let days = i32::from_le_bytes(*payload.get(8..)?.first_chunk()?);
    let months = i32::from_le_bytes(*payload.get(12..)?.first_chunk()?);
    let days = i128::from(months) * 30 + i128::from(days);
    let span = days * 86_400_000_000 + i128::from(time);
    key.extend((span.cast_unsigned() ^ (1 << 127)).to_be_bytes());
    Some(())
}

/// A time with a time zone: its time in UTC, then its zone, in seconds west.
fn timetz(payload: &[u8], key: &mut Vec<u8>) -> Option<()> {
    let time = i64::from_le_bytes(*payload.first_chunk()?);
    let zone = i32::from_le_bytes(*payload.get(8..)?.first_chunk()?);
    let utc = time.checked_add(i64::from(zone) * 1_000_000)?;
    key.extend((utc.cast_unsigned() ^ (1 << 63)).to_be_bytes());
    key.extend((zone.cast_unsigned() ^ (1 << 31)).to_be_bytes());
    Some(())
}

/// An address: its family, its network without the host's bits, the length of the network, and all of
/// it.
fn network(payload: &[u8], key: &mut Vec<u8>) -> Option<()> {
    let (family, bits, address) = (*payload.first()?, *payload.get(1)?, payload.get(2..)?);
    key.push(family);
    for (at, byte) in (0_u32..).zip(address) {
        let kept = u32::from(bits).saturating_sub(at * 8).min(8);
        let mask = (0xFF00_u16 >> kept) as u8;
        key.push(byte & mask);
    }
    key.push(bits);
    key.extend(address);
    Some(())
}
