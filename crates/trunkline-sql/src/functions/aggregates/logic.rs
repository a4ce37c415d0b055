//! `bool_and`, `bool_or`, and `bit_and`, `bit_or`, `bit_xor` of integers.

use super::grouped::{State, aggregates, chunk, each};
use crate::error::SqlError;
use crate::functions::aggregate::AggregateDefinition;

/// A combination of 64 bits, of which narrower types use the lower ones; `None` until there is a value.
/// Groups of rows are combined by the same operation, which [`Operation`] names.
#[derive(Debug)]
struct Bits<O>(Option<i64>, std::marker::PhantomData<O>);

impl<O> Default for Bits<O> {
    fn default() -> Self {
        Self(None, std::marker::PhantomData)
    }
}

/// How bits are combined.
trait Operation: std::fmt::Debug + Send + 'static {
    fn combine(a: i64, b: i64) -> i64;
}

#[derive(Debug)]
struct And;

impl Operation for And {
    fn combine(a: i64, b: i64) -> i64 {
        a & b
    }
}

#[derive(Debug)]
struct Or;

impl Operation for Or {
    fn combine(a: i64, b: i64) -> i64 {
        a | b
    }
}

#[derive(Debug)]
struct Xor;

impl Operation for Xor {
    fn combine(a: i64, b: i64) -> i64 {
        a ^ b
    }
}

impl<O: Operation> Bits<O> {
    fn add(&mut self, value: i64) {
        self.0 = Some(self.0.map_or(value, |bits| O::combine(bits, value)));
    }
}

impl<O: Operation> State for Bits<O> {
    fn save(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        out.extend(self.0.iter().flat_map(|bits| bits.to_le_bytes()));
        Ok(())
    }

    fn merge(&mut self, mut saved: &[u8]) -> Result<(), SqlError> {
        if !saved.is_empty() {
            self.add(i64::from_le_bytes(chunk(&mut saved)?));
        }
        Ok(())
    }
}

macro_rules! combined {
    ($type:ty, $operation:ty) => {
        |rows, states| {
            each(rows, states, |state: &mut Bits<$operation>, value: $type| {
                state.add(i64::from(value));
                Ok(())
            })
        }
    };
}

pub(in crate::functions) const LOGIC: &[AggregateDefinition] = aggregates! {
    "booland_statefunc" "" => combined!(bool, And), |state| Ok(state.0.map(|bits| bits != 0));
    "boolor_statefunc" "" => combined!(bool, Or), |state| Ok(state.0.map(|bits| bits != 0));
    "int2and" "" => combined!(i16, And), |state| Ok(state.0.map(|bits| bits as i16));
    "int4and" "" => combined!(i32, And), |state| Ok(state.0.map(|bits| bits as i32));
    "int8and" "" => combined!(i64, And), |state| Ok(state.0);
    "int2or" "" => combined!(i16, Or), |state| Ok(state.0.map(|bits| bits as i16));
    "int4or" "" => combined!(i32, Or), |state| Ok(state.0.map(|bits| bits as i32));
    "int8or" "" => combined!(i64, Or), |state| Ok(state.0);
    "int2xor" "" => combined!(i16, Xor), |state| Ok(state.0.map(|bits| bits as i16));
    "int4xor" "" => combined!(i32, Xor), |state| Ok(state.0.map(|bits| bits as i32));
    "int8xor" "" => combined!(i64, Xor), |state| Ok(state.0);
};
