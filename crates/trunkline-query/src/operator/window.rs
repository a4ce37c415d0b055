//! Window functions: `OVER`.
//!
//! ```text
//!   rows in the order of PARTITION BY and ORDER BY
//!     ── process ──▶ a partition ── frames ──▶ for each row, the rows that it sees
//!                                      ├ functions: rank, lag, first_value, …
//!                                      └ aggregates: sum, count, …
//! ```

mod aggregation;
mod definition;
mod frame;
mod function;
mod partition;
mod process;
mod work;

pub(crate) use definition::{
    AggregateOver, RankFunction, ValueFunction, Window, WindowCall, WindowFunction,
};
pub(crate) use frame::{Bound, FrameDefinition, Offset, RangeTest};
