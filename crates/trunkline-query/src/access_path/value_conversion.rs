//! Constants in the format of an index column.
//!
//! An index can only be searched for values of its own type, but a query may compare its columns with
//! values of a related type. A constant that the column's type can't represent lies between two values
//! of that type, and a comparison with it is the same as one with the value next to it:
//!
//! ```text
//!   int4 column < 3000000000    true for all values          float4 column = 0.1::float8   never true
//!   int4 column = 3000000000    never true                   float4 column < 0.1::float8   < 0.1, as a
//!                                                            float4, or <= the one below it
//! ```

use trunkline_format::Oid;
use trunkline_format::btree::{Comparison, Order};
use trunkline_sql::catalog::oids;

use super::clause::Constant;

/// `NAMEDATALEN`
const NAME_BYTES: usize = 64;

/// Microseconds of a day.
const DAY_US: i64 = 86_400_000_000;

/// A comparison of an index column with a constant, with the constant in the column's format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Converted {
    /// The comparison, which may be another one, and the value.
    Value(Comparison, Box<[u8]>),
    /// True for all values that aren't null.
    Always,
    /// True for no value.
    Never,
}

/// Where a constant is among the values of the column's type.
enum Place {
    At(Box<[u8]>),
    /// Between the values below this one, and this one and those above it.
    Before(Box<[u8]>),
    /// Between this one and those below it, and the values above it.
    After(Box<[u8]>),
    BelowAll,
    AboveAll,
}

/// Converts a constant of type `from` for a comparison with a column that is stored as `input` and
/// compared by `order`. `None` if we can't.
pub(super) fn converted(
    order: Order,
    input: Oid,
    from: Oid,
    comparison: Comparison,
    constant: &Constant,
) -> Option<Converted> {
    let place = match constant {
        Constant::Null => return Some(Converted::Never),
        Constant::Integer(value) => integer(order, *value)?,
        Constant::Stored(payload) if from == oids::NAME && input == oids::NAME => name(payload),
        Constant::Stored(payload) if from == input => Place::At(payload.clone()),
        Constant::Stored(payload) => related(order, input, from, payload)?,
    };
    Some(compared(comparison, place))
}

fn compared(comparison: Comparison, place: Place) -> Converted {
    let below = matches!(comparison, Comparison::Less | Comparison::LessOrEqual);
    match (place, comparison) {
        (Place::At(value), _) => Converted::Value(comparison, value),
        (_, Comparison::Equal) => Converted::Never,
        (Place::Before(value), _) if below => Converted::Value(Comparison::Less, value),
        (Place::Before(value), _) => Converted::Value(Comparison::GreaterOrEqual, value),
        (Place::After(value), _) if below => Converted::Value(Comparison::LessOrEqual, value),
        (Place::After(value), _) => Converted::Value(Comparison::Greater, value),
        (Place::BelowAll, _) if below => Converted::Never,
        (Place::AboveAll, _) if !below => Converted::Never,
        (Place::BelowAll | Place::AboveAll, _) => Converted::Always,
    }
}

/// An integer among the values of another integer type.
fn integer(order: Order, value: i64) -> Option<Place> {
    let (low, high): (i64, i64) = match order {
        Order::Int2 => (i16::MIN.into(), i16::MAX.into()),
        Order::Int4 => (i32::MIN.into(), i32::MAX.into()),
        Order::Int8 => (i64::MIN, i64::MAX),
        _ => return None,
    };
    let size = match order {
        Order::Int2 => 2,
        Order::Int4 => 4,
        _ => 8,
    };
    Some(match value {
        value if value < low => Place::BelowAll,
        value if value > high => Place::AboveAll,
        value => Place::At(value.to_le_bytes().get(..size)?.into()),
    })
}

/// A value of another type that the operator family compares with the column's type.
fn related(order: Order, input: Oid, from: Oid, payload: &[u8]) -> Option<Place> {
    match (from, order) {
        (oids::INT2, _) => integer(order, i16::from_le_bytes(payload.try_into().ok()?).into()),
        (oids::INT4, _) => integer(order, i32::from_le_bytes(payload.try_into().ok()?).into()),
        (oids::INT8, _) => integer(order, i64::from_le_bytes(payload.try_into().ok()?)),
        (oids::FLOAT4, Order::Float8) => {
            let value = f64::from(f32::from_le_bytes(payload.try_into().ok()?));
            Some(Place::At(value.to_le_bytes().into()))
        }
        (oids::FLOAT8, Order::Float4) => {
            Some(narrowed(f64::from_le_bytes(payload.try_into().ok()?)))
        }
        (oids::DATE, Order::Int8) if input == oids::TIMESTAMP => {
            let days = i32::from_le_bytes(payload.try_into().ok()?);
            let instant = match days {
                // -infinity and infinity.
                i32::MIN => i64::MIN,
                i32::MAX => i64::MAX,
                days => i64::from(days).checked_mul(DAY_US)?,
            };
            Some(Place::At(instant.to_le_bytes().into()))
        }
        (oids::TEXT, Order::Name) if input == oids::NAME => Some(name(payload)),
        (oids::NAME, Order::Bytes) if input == oids::TEXT => {
            let end = payload.iter().position(|byte| *byte == 0).unwrap_or(payload.len());
            Some(Place::At(payload.get(..end)?.into()))
        }
        _ => None,
    }
}

/// A text among the values of `name`, which have at most 63 bytes and end at a NUL. A longer text is after
/// the name that it begins with, and before all others that are after that one.
fn name(text: &[u8]) -> Place {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let (kept, is_longer) = match text.get(..NAME_BYTES - 1) {
        Some(kept) => (kept, text.len() >= NAME_BYTES),
        None => (text, false),
    };
    let mut padded = kept.to_vec();
    padded.resize(NAME_BYTES, 0);
    if is_longer { Place::After(padded.into()) } else { Place::At(padded.into()) }
}

/// A double among the values of `float4`, of which the nearest one is on one side of it.
fn narrowed(value: f64) -> Place {
    let nearest = value as f32;
    let payload: Box<[u8]> = nearest.to_le_bytes().into();
    let widened = f64::from(nearest);
    if widened == value || value.is_nan() {
        Place::At(payload)
    } else if widened > value {
        Place::Before(payload)
    } else {
        Place::After(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPARISONS: [Comparison; 5] = [
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Equal,
        Comparison::GreaterOrEqual,
        Comparison::Greater,
    ];

    /// Whether a converted comparison is true for a value of the column.
    fn holds(converted: &Converted, order: Order, value: &[u8]) -> bool {
        match converted {
            Converted::Always => true,
            Converted::Never => false,
            Converted::Value(comparison, constant) => {
                comparison.holds(order.compare(value, constant).expect("a known order"))
            }
        }
    }

    #[test]
    fn integers_of_other_sizes_compare_as_their_values() {
        let values = [i64::MIN, -5_000_000_000, -32_769, -1, 0, 7, 32_767, 32_768, i64::MAX];
        let columns = [i16::MIN, -1, 0, 7, i16::MAX];
        for constant in values {
            for comparison in COMPARISONS {
                let given = Constant::Stored(constant.to_le_bytes().into());
                let found = converted(Order::Int2, oids::INT2, oids::INT8, comparison, &given);
                let found = found.expect("integers are related");
                assert_eq!(
                    Some(&found),
                    converted(
                        Order::Int2,
                        oids::INT2,
                        oids::INT2,
                        comparison,
                        &Constant::Integer(constant)
                    )
                    .as_ref()
                );
                for column in columns {
                    let expected = comparison.holds(i64::from(column).cmp(&constant));
                    let found = holds(&found, Order::Int2, &column.to_le_bytes());
                    assert_eq!(found, expected, "{column} {comparison:?} {constant}");
                }
            }
        }
    }

    #[test]
    fn doubles_compare_with_floats_as_their_values() {
        let below = |value: f32| f32::from_bits(value.to_bits() - 1);
        let columns = [
            f32::NEG_INFINITY,
            f32::MIN,
            -0.1,
            0.0,
            below(0.1),
            0.1,
            0.5,
            f32::MAX,
            f32::INFINITY,
            f32::NAN,
        ];
        let constants = [
            f64::NEG_INFINITY,
            -1e300,
            -0.1,
            0.0,
            0.1,
            f64::from(0.1_f32),
            0.5,
            1e300,
            f64::NAN,
            f64::from(f32::MAX) * 1.000_000_01,
        ];
        for constant in constants {
            for comparison in COMPARISONS {
                let given = Constant::Stored(constant.to_le_bytes().into());
                let found =
                    converted(Order::Float4, oids::FLOAT4, oids::FLOAT8, comparison, &given);
                let found = found.expect("floats are related");
                for column in columns {
                    let (left, right) = (f64::from(column), constant);
                    let ordering = Order::Float8.compare(&left.to_le_bytes(), &right.to_le_bytes());
                    let expected = comparison.holds(ordering.expect("known"));
                    let found = holds(&found, Order::Float4, &column.to_le_bytes());
                    assert_eq!(found, expected, "{column} {comparison:?} {constant}");
                }
            }
        }
    }

    #[test]
    fn dates_are_instants_and_names_end_at_a_nul() {
        let at = |order, input, from, payload: &[u8]| {
            let constant = Constant::Stored(payload.into());
            match converted(order, input, from, Comparison::Equal, &constant) {
                Some(Converted::Value(Comparison::Equal, value)) => Some(value.to_vec()),
                other => panic!("{other:?}"),
            }
        };
        let instant = |days: i32| at(Order::Int8, oids::TIMESTAMP, oids::DATE, &days.to_le_bytes());
        assert_eq!(instant(2), Some((2 * DAY_US).to_le_bytes().to_vec()));
        assert_eq!(instant(i32::MIN), Some(i64::MIN.to_le_bytes().to_vec()));
        assert_eq!(at(Order::Bytes, oids::TEXT, oids::NAME, b"ab\0\0"), Some(b"ab".to_vec()));
        let padded = |text: &[u8]| {
            let mut padded = text.to_vec();
            padded.resize(NAME_BYTES, 0);
            padded
        };
        assert_eq!(at(Order::Name, oids::NAME, oids::TEXT, b"ab"), Some(padded(b"ab")));
        assert_eq!(at(Order::Name, oids::NAME, oids::TEXT, &[b'x'; 63]), Some(padded(&[b'x'; 63])));
        // No name is longer. The arrays of the planner have no names of 64 bytes either.
        for from in [oids::TEXT, oids::NAME] {
            let long = Constant::Stored([b'x'; 64].into());
            let below = converted(Order::Name, oids::NAME, from, Comparison::Less, &long);
            let value = padded(&[b'x'; 63]).into();
            assert_eq!(below, Some(Converted::Value(Comparison::LessOrEqual, value)));
            let equal = converted(Order::Name, oids::NAME, from, Comparison::Equal, &long);
            assert_eq!(equal, Some(Converted::Never));
        }
        // A timestamp with time zone depends on the session's zone.
        let date = Constant::Stored(5_i32.to_le_bytes().into());
        assert_eq!(converted(Order::Int8, Oid(1184), oids::DATE, Comparison::Less, &date), None);
        assert_eq!(
            converted(Order::Int4, oids::INT4, oids::INT4, Comparison::Less, &Constant::Null),
            Some(Converted::Never)
        );
    }
}
