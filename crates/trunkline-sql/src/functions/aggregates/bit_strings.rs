//! `bit_and`, `bit_or` and `bit_xor` of bit strings, which must have the same length.

use super::grouped::{State, aggregates, each};
use crate::error::SqlError;
use crate::functions::aggregate::AggregateDefinition;
use crate::functions::bits::Bits;

/// How the bit strings of a group are combined.
trait Combination: std::fmt::Debug + Send + 'static {
    const NAME: &'static str;

    fn merge(one: u8, other: u8) -> u8;
}

macro_rules! combinations {
    ($($kind:ident $name:literal $merge:expr;)*) => {$(
        #[derive(Debug)]
        struct $kind;

        impl Combination for $kind {
            const NAME: &'static str = $name;

            fn merge(one: u8, other: u8) -> u8 {
                let merge: fn(u8, u8) -> u8 = $merge;
                merge(one, other)
            }
        }
    )*};
}

combinations! {
    And "AND" |one, other| one & other;
    Or "OR" |one, other| one | other;
    Xor "XOR" |one, other| one ^ other;
}

/// The bit strings of a group, combined; `None` until there is one.
#[derive(Debug)]
struct Combined<C>(Option<Bits>, std::marker::PhantomData<C>);

impl<C> Default for Combined<C> {
    fn default() -> Self {
        Self(None, std::marker::PhantomData)
    }
}

impl<C: Combination> Combined<C> {
    fn add(&mut self, bits: Bits) -> Result<(), SqlError> {
        self.0 = Some(match self.0.take() {
            Some(found) => found.merged(&bits, C::NAME, C::merge)?,
            None => bits,
        });
        Ok(())
    }
}

impl<C: Combination> State for Combined<C> {
    fn save(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        out.extend(self.0.iter().flat_map(Bits::store));
        Ok(())
    }

    fn merge(&mut self, saved: &[u8]) -> Result<(), SqlError> {
        match saved.is_empty() {
            true => Ok(()),
            false => self.add(Bits::parse(saved)?),
        }
    }

    fn size(&self) -> usize {
        self.0.as_ref().map_or(0, Bits::size)
    }
}

macro_rules! combined {
    ($kind:ty) => {
        |rows, states| {
            each(rows, states, |state: &mut Combined<$kind>, value: &[u8]| {
                state.add(Bits::parse(value)?)
            })
        }
    };
}

/// The aggregates of this module.
pub(in crate::functions) const BIT_STRINGS: &[AggregateDefinition] = aggregates! {
    "bit_and" "" => combined!(And), |state| Ok(state.0.as_ref().map(Bits::store));
    "bit_or" "" => combined!(Or), |state| Ok(state.0.as_ref().map(Bits::store));
    "bitxor" "" => combined!(Xor), |state| Ok(state.0.as_ref().map(Bits::store));
};
