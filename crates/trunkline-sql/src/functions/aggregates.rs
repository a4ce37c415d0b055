//! The built-in aggregates, except those of arrays, strings, JSON and ranges.
//!
//! Each has a state per group, for which [`grouped`] does everything that is the same for all of them.
//! For example, the state of `avg(int4)` is the sum and the number of values.

mod averages;
mod bit_strings;
mod extremes;
mod grouped;
mod keyed_extremes;
mod logic;
mod moments;
mod ordered_set;
mod regression;
mod sums;

#[cfg(test)]
mod tests;

pub(super) use averages::AVERAGES;
pub(super) use bit_strings::BIT_STRINGS;
pub(super) use extremes::{EXTREMES, TEXT_EXTREMES};
pub(super) use keyed_extremes::KEYED_EXTREMES;
pub(super) use logic::LOGIC;
pub(super) use moments::MOMENTS;
pub(super) use ordered_set::ORDERED_SETS;
pub(super) use regression::REGRESSION;
pub(super) use sums::SUMS;
