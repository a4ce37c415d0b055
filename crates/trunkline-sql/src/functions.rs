//! **Functions**: what PostgreSQL's built-in functions, operators and casts compute.
//!
//! ```text
//!   pg_proc.prosrc, such as "int4pl" ── kernel() ──▶ Kernel
//!   Kernel(Call: arguments as arrays, settings) ──▶ array, or an error with an SQLSTATE
//! ```
//!
//! A function is identified by `pg_proc.prosrc`, the name of its C function. That name is the same in
//! all versions, and every operator and cast leads to it. If a function has no kernel, a query that
//! calls it is refused.
//!
//! A kernel computes a whole batch. It is called with arrays as described in [`crate::values`].
//! Aggregates have states for all groups instead: [`Aggregation`].

mod aggregate;
mod aggregates;
mod array;
mod bits;
mod call;
mod catalog;
mod collation;
mod comparisons;
pub mod datetime;
mod degrees;
mod domain;
mod enums;
mod float_math;
mod floats;
mod formatting;
mod integers;
mod json;
mod json_path;
mod money;
mod network;
mod nulls;
mod numeric_series;
mod numerics;
mod printing;
mod random;
mod record;
mod regex;
mod registry;
mod rows;
mod series;
mod server;
mod session;
mod set_rows;
mod statistics;
mod text;

#[cfg(test)]
pub(crate) mod cases;
#[cfg(test)]
mod kernel_tests;
#[cfg(test)]
mod key_tests;
#[cfg(test)]
mod number_tests;
#[cfg(test)]
pub(crate) mod tests;

pub use aggregate::{AggregateCall, AggregateDefinition, Aggregation, GroupedRows};
pub use array::{
    ArrayBuilder, ArrayKey, ArrayView, DIMENSIONS_MAX, Dimension, ELEMENTS_MAX, attribute_of,
    compare_with_elements, slice, subscript,
};
pub(crate) use call::Zones;
pub use call::{Argument, Call, CallSettings, DefinedRow, Kernel, ServerFunctions};
pub(crate) use catalog::Deparser;
pub use catalog::literal;
pub use collation::{Collation, Collations, Letters, Provider};
pub use datetime::Interval;
pub use json::{append_json, append_jsonb_key};
pub use record::ValueKeys;
pub use registry::{aggregate, gives_row_values, kernel, set_function};
pub use rows::{Input, Output, Reader, binary, each_row, ternary, unary};
pub use session::stored_address;
pub use set_rows::{NoRows, SetFunction, SetRows};
