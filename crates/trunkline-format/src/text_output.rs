//! **Output functions**: values of every built-in type, as the text that `SELECT` shows.
//!
//! ```text
//!   OID ── Type::resolve ──▶ Type            once for each column, with the catalogs
//!   Type, bytes ── write_text ──▶ text       as the type's output function, to the byte
//! ```
//! For example, the bytes `81 81 0c 00 80 0d d2 1e` of a `numeric` become `123456.789`. The input
//! is the payload, detoasted and without its varlena header.
//!
//! The text isn't escaped; `COPY` adds its own escapes. Arbitrary bytes yield either text or a
//! [`ValueError`]. Note that after an error, the text appended so far remains in the output buffer.

mod base;
mod catalog;
mod compound;
mod date_time;
mod description;
mod digits;
mod error;
mod float;
mod geometry;
mod interval;
mod jsonb;
mod jsonpath;
mod network;
mod numeric;
mod options;
mod quote;
mod reader;
mod reg_types;
mod resolve;
mod scalars;
mod statistics;
mod text_search;
mod xml;

#[cfg(test)]
mod tests;

pub use base::Base;
pub use catalog::{ColumnRow, ObjectClass, TypeCatalog};
pub use compound::write_text;
pub use description::Type;
pub use error::{TEXT_MAX, UnsupportedReason, UnsupportedType, ValueError};
pub use options::{ByteaOutput, IntervalStyle, TextOptions, TimeZone, Utc};
pub use reg_types::RegType;
pub use resolve::{DEPTH_MAX, PARTS_MAX};
