//! **Output functions**: values of every built-in type, as the text that `SELECT` shows.
//!
//! ```text
//!   OID ── Type::resolve ──▶ Type            once for each column, with the catalogs
//!   Type, bytes ── write_text ──▶ text       as the type's output function, to the byte
//! ```
//! For example, a `numeric` that is stored as the bytes `81 81 0c 00 80 0d d2 1e` is printed as
//! `123456.789`. The caller must detoast the value first and strip its varlena header.
//!
//! We don't escape the text the way `COPY` does. If the bytes are not a valid value, we return a
//! [`ValueError`]. Note that in that case, some text may already have been added to the output
//! buffer.

pub(crate) mod base;
mod catalog;
mod compound;
mod date_time;
pub(crate) mod description;
mod digits;
mod error;
mod float;
mod geometry;
mod interval;
pub(crate) mod jsonb;
pub(crate) mod jsonpath;
mod network;
mod numeric;
mod options;
pub(crate) mod parts;
mod quote;
mod range_bounds;
pub(crate) mod reader;
pub(crate) mod record;
pub(crate) mod reg_types;
mod resolve;
mod scalars;
mod statistics;
mod text_search;
pub(crate) mod xml;

#[cfg(test)]
mod tests;

pub use base::{Base, StringType};
pub use catalog::{ColumnRow, ObjectClass, TypeCatalog};
pub use compound::write_text;
pub use description::{Bounds, ColumnType, Part, Record, Type};
pub use error::{TEXT_MAX, UnsupportedReason, UnsupportedType, ValueError};
pub use jsonb::write_json_string;
pub use options::{ByteaOutput, IntervalStyle, TextOptions, TimeZone, Utc};
pub use quote::write_identifier;
pub use range_bounds::{RangeBounds, multirange_bounds, range_bounds};
pub use record::{
    RECORD, RecordColumn, RecordField, RowTypes, record_columns, row_fields, row_type,
};
pub use reg_types::RegType;
pub use resolve::{DEPTH_MAX, FIRST_USER_OID, PARTS_MAX};
