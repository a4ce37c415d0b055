//! **Rows as values**: comparing them, and the keys of values that have parts.
//!
//! What a row looks like is in the format crate; see `row_fields` there. For example,
//! `ROW(1, 2) < ROW(1, 3)` as values of the type `record` is `record_lt`.

mod comparing;
mod cuts;
mod key;
mod multiranges;
mod range_aggregates;
mod ranges;

pub use key::ValueKeys;

pub(super) use comparing::COMPARING;
pub(super) use multiranges::{MULTIRANGE_SETS, MULTIRANGES};
pub(super) use range_aggregates::RANGE_AGGREGATES;
pub(super) use ranges::RANGES;
