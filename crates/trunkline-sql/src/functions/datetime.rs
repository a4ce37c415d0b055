//! **Dates and times**: functions, operators and casts of `date`, `time`, `timetz`, `timestamp`,
//! `timestamptz` and `interval`.
//!
//! ```text
//!   kernels:   comparison  arithmetic  conversion  extract  truncate  construct  window  overlaps  now
//!                   └──────────┴───────────┴──────────┼─────────┴─────────┴─────────┴───────┘
//!   values:                 interval ── time ── timestamp ── zone            series
//! ```
//!
//! Everything that depends on a zone goes through local time: a timestamptz is converted to the local
//! time in the session's zone or a named one, the calendar does its work, and the result is converted
//! back.

mod aggregates;
mod arithmetic;
mod comparison;
mod construct;
mod conversion;
mod decimal;
mod error;
mod extract;
mod general_format;
mod interval;
mod now;
mod overlaps;
mod precision;
mod series;
mod sql_functions;
mod time;
mod timestamp;
mod truncate;
mod units;
mod window;
mod zone;

pub(super) use aggregates::AGGREGATES;
pub(super) use arithmetic::KERNELS as ARITHMETIC;
pub(super) use comparison::KERNELS as COMPARISONS;
pub(super) use construct::KERNELS as CONSTRUCTORS;
pub(super) use conversion::KERNELS as CONVERSIONS;
pub(super) use extract::KERNELS as EXTRACT;
pub(super) use general_format::general;
pub use interval::{Infinity, Interval};
pub(super) use now::KERNELS as NOW;
pub use now::{current_date, current_time, current_timestamp, local_time, local_timestamp};
pub(super) use overlaps::KERNELS as OVERLAPS;
pub(super) use series::SETS;
pub use series::TimestampSeries;
pub(super) use sql_functions::KERNELS as SQL_FUNCTIONS;
pub(super) use timestamp::{in_range as timestamp_in_range, timestamp_to_timestamptz};
pub use timestamp::{minus_interval, plus_interval};
pub(super) use truncate::KERNELS as TRUNCATE;
pub(super) use window::KERNELS as WINDOW;
