//! **Input functions**: text to values in storage form, as the input functions of the built-in types
//! read it.
//!
//! ```text
//!   OID ── Type::resolve ──▶ Type                      once for each type, with the catalogs
//!   Type, text, typmod ── read_text ──▶ bytes          as a tuple holds them, without a header
//! ```
//! For example, the text `123456.789` as a `numeric` is the bytes `81 81 0c 00 80 0d d2 1e`, and
//! `123456.789x` is SQLSTATE 22P02, `invalid input syntax for type numeric: "123456.789x"`. This is
//! the counterpart of [`crate::text_output`].
//!
//! Some values depend on settings (`TimeZone`, `DateStyle`) and on the time of the transaction, and
//! some need names to be looked up. [`InputOptions`] has all of these. Types that we can't read are
//! refused by name, with SQLSTATE 0A000.

pub(crate) mod array;
mod base;
pub(crate) mod c_text;
pub(crate) mod composite;
pub(crate) mod compound;
mod date_decode;
mod date_fields;
mod date_parts;
pub(crate) mod date_time;
mod date_words;
pub(crate) mod error;
mod float;
pub(crate) mod geometry;
mod integer;
pub(crate) mod interval;
mod interval_iso;
mod interval_sum;
pub(crate) mod json;
mod json_parts;
pub(crate) mod json_path;
pub(crate) mod jsonb;
pub(crate) mod network;
pub(crate) mod numeric;
mod options;
mod order;
pub(crate) mod range;
pub(crate) mod scalars;
pub(crate) mod strings;
mod zone_abbreviations;

#[cfg(test)]
pub(crate) mod tests;

pub use compound::{check_text, read_text, write_multirange, write_range};
pub use date_time::timestamptz;
pub use error::InputError;
pub use json_parts::{JsonKind, JsonPart, JsonParts};
pub use json_path::{JsonPath, PathChain, PathItem, PathOperator};
pub use options::{DateOrder, InputNames, InputOptions, NoNames};
