//! B-tree comparison functions (support function 1) of the built-in operator classes.
//!
//! We only implement sort orders that are the same on every machine. For text, that means the C
//! collation, which compares bytes. The order of any other collation depends on the version of libc
//! or ICU on the machine that built the index. If we compared keys using a different version, we
//! might report a sound index as corrupt.
//!
//! The values to compare are payloads, as in [`super::Key`]. If a value is too short for its type,
//! we can't compare it.
//!
//! Mirrors the comparison functions in PostgreSQL's `access/nbtree/nbtcompare.c` and in
//! `utils/adt`.

use super::numeric;
use crate::ids::{Oid, Tid};
use crate::little_endian::{Number, read_at};
use std::cmp::Ordering;

/// A column's comparison function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// One unsigned byte: `bool`, `"char"`.
    Byte,
    /// `int2`.
    Int2,
    /// `int4`, `date`.
    Int4,
    /// `int8`, `time`, `timestamp`, `timestamptz`, `money`.
    Int8,
    /// `oid`.
    Oid,
    /// `xid8`, `pg_lsn`, `oid8`.
    Unsigned8,
    /// `float4`. Since a B-tree needs a total order, NaN is treated as equal to NaN and as greater
    /// than any other value.
    Float4,
    /// `float8`, with the same rule for NaN.
    Float8,
    /// `numeric`.
    Numeric,
    /// Compared with `memcmp`; if one value is a prefix of the other, the shorter one sorts first.
    /// This is used for `bytea`, `uuid`, `macaddr`, and text in the C collation.
    Bytes,
    /// `name`: the bytes before the first NUL are compared. An index stores a `name` as a C string,
    /// because padding it to 64 bytes would waste space.
    Name,
    /// `bpchar` in the C collation. SQL ignores trailing blanks in comparisons.
    Padded,
    /// `timetz`: compared by the time in UTC and then by the time zone, so that only identical
    /// values are equal.
    TimeTz,
    /// `interval`: a month is 30 days of 24 hours.
    Interval,
    /// `tid`.
    Tid,
    /// `inet`, `cidr`.
    Network,
    /// `bit`, `varbit`.
    Bits,
    /// `oidvector`.
    OidVector,
    /// An enum. `CREATE TYPE` assigns even OIDs to the labels, in sort order, so that two even
    /// OIDs can be compared directly. `ALTER TYPE … ADD VALUE` assigns an odd OID to a label that
    /// would not sort correctly by its OID. To compare an odd OID, we would have to look up
    /// `pg_enum.enumsortorder` (see `enum_cmp_internal`).
    Enum,
    /// Unknown order. We only know that equal bytes are equal.
    Unknown,
}

impl Order {
    /// Returns the sort order of a B-tree operator class, given its operator family and its input
    /// type. `bytewise` must be true if the column's collation compares bytes, as the C and POSIX
    /// collations do.
    ///
    /// Built-in families and types have the same OIDs in all versions (`pg_opfamily.dat`).
    pub fn of(family: Oid, input: Oid, bytewise: bool) -> Self {
        match (family.0, input.0) {
            (424, _) | (429, _) => Self::Byte,
            (1976, 21) => Self::Int2,
            (1976, 23) | (434, 1082) => Self::Int4,
            (1976, 20) | (434, 1114 | 1184) | (1996 | 2099, _) => Self::Int8,
            (1989, _) => Self::Oid,
            (5067 | 3253, _) => Self::Unsigned8,
            (1970, 700) => Self::Float4,
            (1970, 701) => Self::Float8,
            (1988, _) => Self::Numeric,
            (428 | 2968 | 1984 | 3371 | 2095, _) => Self::Bytes,
            (1994, 19) if bytewise => Self::Name,
            (1994, 25) if bytewise => Self::Bytes,
            (426, _) if bytewise => Self::Padded,
            (2097, _) => Self::Padded,
            (2000, _) => Self::TimeTz,
            (1982, _) => Self::Interval,
            (2789, _) => Self::Tid,
            (1974, _) => Self::Network,
            (423 | 2002, _) => Self::Bits,
            (1991, _) => Self::OidVector,
            (3522, _) => Self::Enum,
            _ => Self::Unknown,
        }
    }

    /// Returns true if the operator family ignores trailing blanks (`bpchar_ops` and
    /// `bpchar_pattern_ops`), in whatever collation.
    pub fn ignores_trailing_blanks(family: Oid) -> bool {
        matches!(family.0, 426 | 2097)
    }

    /// Compares two payloads; `None` if we don't know their order.
    #[inline]
    pub fn compare(self, left: &[u8], right: &[u8]) -> Option<Ordering> {
        match self {
            Self::Byte => by::<u8>(left, right),
            Self::Int2 => by::<i16>(left, right),
            Self::Int4 => by::<i32>(left, right),
            Self::Int8 => by::<i64>(left, right),
            Self::Oid => by::<u32>(left, right),
            Self::Unsigned8 => by::<u64>(left, right),
            Self::Float4 => Some(floats(f32::first_of(left)?.into(), f32::first_of(right)?.into())),
            Self::Float8 => Some(floats(f64::first_of(left)?, f64::first_of(right)?)),
            Self::Numeric => numeric::compare(left, right),
            Self::Bytes => Some(left.cmp(right)),
            Self::Name => Some(name(left).cmp(name(right))),
            Self::Padded => Some(unpadded(left).cmp(unpadded(right))),
            Self::TimeTz => Some(instant(left)?.cmp(&instant(right)?)),
            Self::Interval => Some(span(left)?.cmp(&span(right)?)),
            Self::Tid => {
                let tid = |bytes| Number::first_of(bytes).map(Tid::from_bytes);
                Some(tid(left)?.cmp(&tid(right)?))
            }
            Self::Network => networks(left, right),
            Self::Bits => Some(left.get(4..)?.cmp(right.get(4..)?).then(by::<i32>(left, right)?)),
            Self::OidVector => oid_vectors(left, right),
            Self::Enum => {
                let (left, right) = (u32::first_of(left)?, u32::first_of(right)?);
                let known = left == right || (left | right) & 1 == 0;
                known.then(|| left.cmp(&right))
            }
            Self::Unknown => (left == right).then_some(Ordering::Equal),
        }
    }
}

/// Compares the numbers at the start of both values.
#[inline]
fn by<T: Number + Ord>(left: &[u8], right: &[u8]) -> Option<Ordering> {
    Some(T::first_of(left)?.cmp(&T::first_of(right)?))
}

/// Returns `bytes` without trailing blanks, like `bpchartruelen`.
pub fn unpadded(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    bytes.get(..end).unwrap_or_default()
}

fn floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

fn name(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// A `timetz` as microseconds in UTC, and its zone in seconds west of UTC.
fn instant(bytes: &[u8]) -> Option<(i64, i64)> {
    let (time, zone) = (read_at::<i64>(bytes, 0)?, i64::from(read_at::<i32>(bytes, 8)?));
    Some((time.saturating_add(zone * 1_000_000), zone))
}

/// Converts an interval to microseconds, like `interval_cmp_value`. A month counts as 30 days. The
/// result might not fit into 64 bits, so we use a 128-bit integer, as PostgreSQL does.
fn span(bytes: &[u8]) -> Option<i128> {
    let (time, days) = (read_at::<i64>(bytes, 0)?, read_at::<i32>(bytes, 8)?);
    let months = read_at::<i32>(bytes, 12)?;
    let days = i128::from(months) * 30 + i128::from(days);
    Some(days * 86_400_000_000 + i128::from(time))
}

/// Compares two networks in the same way as `network_cmp_internal`. We first compare the address
/// family, then the prefix bits that both networks have, then the prefix length (a shorter prefix
/// sorts first), and finally the whole address.
fn networks(left: &[u8], right: &[u8]) -> Option<Ordering> {
    let [left_family, left_bits, left_address @ ..] = left else { return None };
    let [right_family, right_bits, right_address @ ..] = right else { return None };
    if left_family != right_family {
        return Some(left_family.cmp(right_family));
    }
    let common = *left_bits.min(right_bits);
    let (whole, rest) = (usize::from(common / 8), u32::from(common % 8));
    let network = |address: &'_ [u8]| {
        let last = if rest == 0 { 0 } else { *address.get(whole)? };
        Some(last & !(0xFF_u8 >> rest))
    };
    let by_bytes = left_address.get(..whole)?.cmp(right_address.get(..whole)?);
    let by_network = by_bytes.then(network(left_address)?.cmp(&network(right_address)?));
    Some(by_network.then(left_bits.cmp(right_bits)).then(left_address.cmp(right_address)))
}

/// Like `btoidvectorcmp`: compares the lengths, then the elements.
fn oid_vectors(left: &[u8], right: &[u8]) -> Option<Ordering> {
    // The payload: ndim, dataoffset, elemtype, dim1, lbound1, then the elements.
    let length = |bytes| read_at::<u32>(bytes, 12);
    let by_length = length(left)?.cmp(&length(right)?);
    let (left, right) = (left.get(20..)?, right.get(20..)?);
    let element = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
    let left = left.as_chunks().0.iter().map(element);
    Some(by_length.then_with(|| left.cmp(right.as_chunks().0.iter().map(element))))
}
