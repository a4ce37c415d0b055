//! **Aggregates**: those of `trunkline-sql` as aggregate functions of DataFusion.
//!
//! ```text
//!   sum(DISTINCT a ORDER BY b)
//!     AggregateFunction ── create_groups_accumulator ──▶ Accumulating ── Aggregation (int4_sum)
//!                                                                 └───── or Buffered, which sorts
//! ```

mod accumulator;
mod buffered;
mod first;
mod function;

pub(crate) use first::FIRST_VALUE;
pub(crate) use function::{AggregateFunction, CallKeys, ShownCall};
