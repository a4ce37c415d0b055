//! `min` and `max`, for all types whose order doesn't depend on a catalog.
//!
//! If values are equal, the last one is the result, as in PostgreSQL: `max` of 1.0 and 1.00 is 1.00.

use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;

use trunkline_format::btree::Order;

use super::grouped::{Groups, State, aggregates, chunk, each, saved};
use crate::error::{SqlError, SqlState};
use crate::functions::aggregate::{AggregateCall, AggregateDefinition};
use crate::functions::call::Call;
use crate::functions::comparisons::float_order;

/// A number that `min` and `max` keep.
trait Number: Copy + fmt::Debug + Send + 'static {
    fn order(self, other: Self) -> Ordering;
    fn bytes(self) -> Vec<u8>;
    fn read(saved: &[u8]) -> Result<Self, SqlError>;
}

macro_rules! number {
    ($($type:ty, $order:expr;)*) => {$(
        impl Number for $type {
            fn order(self, other: Self) -> Ordering {
                $order(self, other)
            }

            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }

            fn read(mut saved: &[u8]) -> Result<Self, SqlError> {
                chunk(&mut saved).map(Self::from_le_bytes)
            }
        }
    )*};
}

number! {
    i16, |a: i16, b: i16| a.cmp(&b);
    i32, |a: i32, b: i32| a.cmp(&b);
    i64, |a: i64, b: i64| a.cmp(&b);
    u32, |a: u32, b: u32| a.cmp(&b);
    u64, |a: u64, b: u64| a.cmp(&b);
    f32, |a: f32, b: f32| float_order(a.into(), b.into());
    f64, float_order;
}

/// Whether a value replaces the best one so far, given how it compares to it.
fn replaces(order: Ordering, greatest: bool) -> bool {
    if greatest { order.is_ge() } else { order.is_le() }
}

/// The greatest or the least number; `None` until there is a value.
#[derive(Debug)]
struct Best<T, const GREATEST: bool>(Option<T>);

impl<T, const GREATEST: bool> Default for Best<T, GREATEST> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Number, const GREATEST: bool> Best<T, GREATEST> {
    fn add(&mut self, value: T) {
        if self.0.is_none_or(|best| replaces(value.order(best), GREATEST)) {
            self.0 = Some(value);
        }
    }
}

impl<T: Number, const GREATEST: bool> State for Best<T, GREATEST> {
    fn save(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        out.extend(self.0.iter().flat_map(|best| best.bytes()));
        Ok(())
    }

    fn merge(&mut self, saved: &[u8]) -> Result<(), SqlError> {
        if !saved.is_empty() {
            self.add(T::read(saved)?);
        }
        Ok(())
    }
}

/// An order of stored values.
trait StoredOrder: Send + 'static {
    fn order(a: &[u8], b: &[u8]) -> Result<Ordering, SqlError>;
}

macro_rules! stored_orders {
    ($($name:ident = $order:expr;)*) => {$(
        struct $name;

        impl StoredOrder for $name {
            fn order(a: &[u8], b: &[u8]) -> Result<Ordering, SqlError> {
                $order.compare(a, b).ok_or_else(|| {
                    SqlError::new(SqlState::DATA_CORRUPTED, "a value is too short for its type")
                })
            }
        }
    )*};
}

stored_orders! {
    Numerics = Order::Numeric;
    Bytes = Order::Bytes;
    Blanks = Order::Padded;
    Networks = Order::Network;
    Intervals = Order::Interval;
    ZonedTimes = Order::TimeTz;
}

/// The greatest or the least of values that are stored as bytes; `None` until there is a value.
struct BestBytes<O, const GREATEST: bool>(Option<Vec<u8>>, PhantomData<O>);

impl<O, const GREATEST: bool> Default for BestBytes<O, GREATEST> {
    fn default() -> Self {
        Self(None, PhantomData)
    }
}

impl<O, const GREATEST: bool> fmt::Debug for BestBytes<O, GREATEST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BestBytes").field(&self.0).finish()
    }
}

impl<O: StoredOrder, const GREATEST: bool> BestBytes<O, GREATEST> {
    fn add(&mut self, value: &[u8]) -> Result<(), SqlError> {
        match &mut self.0 {
            None => self.0 = Some(value.to_vec()),
            Some(best) if replaces(O::order(value, best)?, GREATEST) => {
                best.clear();
                best.extend_from_slice(value);
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// The result of a type with values of `N` bytes.
    fn fixed<const N: usize>(&self) -> Result<Option<[u8; N]>, SqlError> {
        self.0.as_deref().map(|mut best| chunk(&mut best)).transpose()
    }

    fn text(&self) -> Result<Option<String>, SqlError> {
        Ok(self.0.as_deref().map(|best| String::from_utf8_lossy(best).into_owned()))
    }
}

impl<O: StoredOrder, const GREATEST: bool> State for BestBytes<O, GREATEST> {
    fn save(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        if let Some(best) = &self.0 {
            // A value may be empty, so it is marked.
            out.push(1);
            out.extend_from_slice(best);
        }
        Ok(())
    }

    fn merge(&mut self, saved: &[u8]) -> Result<(), SqlError> {
        saved.split_first().map_or(Ok(()), |(_, best)| self.add(best))
    }

    fn size(&self) -> usize {
        self.0.as_ref().map_or(0, Vec::capacity)
    }
}

macro_rules! best {
    ($type:ty, $greatest:literal) => {
        |rows, states| {
            each(rows, states, |state: &mut Best<$type, $greatest>, value: $type| {
                state.add(value);
                Ok(())
            })
        }
    };
}

macro_rules! best_bytes {
    ($type:ty, $order:ty, $greatest:literal) => {
        |rows, states| {
            each(rows, states, |state: &mut BestBytes<$order, $greatest>, value: $type| {
                state.add(AsRef::<[u8]>::as_ref(&value))
            })
        }
    };
}

/// The order of texts must be one that we can compute.
fn check_collation(call: &AggregateCall) -> Result<(), SqlError> {
    let call = Call {
        arguments: &[],
        rows: 0,
        argument_types: &call.argument_types,
        result_type: call.result_type,
        collation: call.collation,
        row: None,
        settings: &call.settings,
    };
    call.check_order()
}

/// `min` or `max` of a type of texts.
macro_rules! text_extreme {
    ($transition:literal, $order:ty, $greatest:literal) => {
        AggregateDefinition {
            transition: $transition,
            last: "",
            state: saved,
            start: |call| {
                check_collation(call)?;
                Ok(Groups::start(best_bytes!(&str, $order, $greatest), |state| state.text()))
            },
        }
    };
}

pub(in crate::functions) const TEXT_EXTREMES: &[AggregateDefinition] = &[
    text_extreme!("text_larger", Bytes, true),
    text_extreme!("text_smaller", Bytes, false),
    text_extreme!("bpchar_larger", Blanks, true),
    text_extreme!("bpchar_smaller", Blanks, false),
];

pub(in crate::functions) const EXTREMES: &[AggregateDefinition] = aggregates! {
    "int2larger" "" => best!(i16, true), |best| Ok(best.0);
    "int2smaller" "" => best!(i16, false), |best| Ok(best.0);
    "int4larger" "" => best!(i32, true), |best| Ok(best.0);
    "int4smaller" "" => best!(i32, false), |best| Ok(best.0);
    "int8larger" "" => best!(i64, true), |best| Ok(best.0);
    "int8smaller" "" => best!(i64, false), |best| Ok(best.0);
    "oidlarger" "" => best!(u32, true), |best| Ok(best.0);
    "oidsmaller" "" => best!(u32, false), |best| Ok(best.0);
    "xid8_larger" "" => best!(u64, true), |best| Ok(best.0);
    "xid8_smaller" "" => best!(u64, false), |best| Ok(best.0);
    "pg_lsn_larger" "" => best!(u64, true), |best| Ok(best.0);
    "pg_lsn_smaller" "" => best!(u64, false), |best| Ok(best.0);
    "tidlarger" "" => best!(u64, true), |best| Ok(best.0);
    "tidsmaller" "" => best!(u64, false), |best| Ok(best.0);
    "float4larger" "" => best!(f32, true), |best| Ok(best.0);
    "float4smaller" "" => best!(f32, false), |best| Ok(best.0);
    "float8larger" "" => best!(f64, true), |best| Ok(best.0);
    "float8smaller" "" => best!(f64, false), |best| Ok(best.0);
    "cashlarger" "" => best!(i64, true), |best| Ok(best.0);
    "cashsmaller" "" => best!(i64, false), |best| Ok(best.0);
    "date_larger" "" => best!(i32, true), |best| Ok(best.0);
    "date_smaller" "" => best!(i32, false), |best| Ok(best.0);
    "time_larger" "" => best!(i64, true), |best| Ok(best.0);
    "time_smaller" "" => best!(i64, false), |best| Ok(best.0);
    "timestamp_larger" "" => best!(i64, true), |best| Ok(best.0);
    "timestamp_smaller" "" => best!(i64, false), |best| Ok(best.0);
    "numeric_larger" "" => best_bytes!(&[u8], Numerics, true), |best| Ok(best.0.clone());
    "numeric_smaller" "" => best_bytes!(&[u8], Numerics, false), |best| Ok(best.0.clone());
    "bytea_larger" "" => best_bytes!(&[u8], Bytes, true), |best| Ok(best.0.clone());
    "bytea_smaller" "" => best_bytes!(&[u8], Bytes, false), |best| Ok(best.0.clone());
    "network_larger" "" => best_bytes!(&[u8], Networks, true), |best| Ok(best.0.clone());
    "network_smaller" "" => best_bytes!(&[u8], Networks, false), |best| Ok(best.0.clone());
    "interval_larger" "" =>
        best_bytes!([u8; 16], Intervals, true), BestBytes::fixed::<16>;
    "interval_smaller" "" =>
        best_bytes!([u8; 16], Intervals, false), BestBytes::fixed::<16>;
    "timetz_larger" "" =>
        best_bytes!([u8; 12], ZonedTimes, true), BestBytes::fixed::<12>;
    "timetz_smaller" "" =>
        best_bytes!([u8; 12], ZonedTimes, false), BestBytes::fixed::<12>;
};
