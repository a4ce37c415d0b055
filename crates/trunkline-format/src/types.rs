//! Every built-in type from its stored bytes to PostgreSQL's text output.
//!
//! A resolved type and the bytes of a value in, the text of `COPY` out.

mod catalog;

pub use catalog::{ColumnRow, ObjectClass, ObjectRow, TypeCatalog, TypeRow};
