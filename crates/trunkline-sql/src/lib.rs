//! **PostgreSQL's SQL**: from the text of a statement to a bound tree, and the functions that the tree
//! calls.
//!
//! ```text
//!   text ── syntax ──▶ syntax tree ── bind ──▶ bound tree: relations and expressions, with types
//!                                      │           │
//!                     catalog, resolve ┘           └ functions: kernels over Arrow arrays
//! ```
//!
//! The meaning of a query is PostgreSQL's: types, operators, functions and casts are those that the
//! catalogs of the opened database list. Everything that is not implemented is refused by name.
//!
//! This crate executes nothing. It doesn't use threads, does no I/O of its own, and depends neither
//! on an async runtime nor on a query engine, so all of it can be tested without one. Arrow arrays
//! hold PostgreSQL's storage format ([`values`]), which means that no value is lost or rounded on its
//! way from a page to the client.

#![forbid(unsafe_code)]

pub mod bind;
pub mod bound;
pub mod catalog;
pub mod deparse;
pub mod error;
pub mod functions;
pub mod numeric;
pub mod resolve;
pub mod syntax;
pub mod values;

pub use error::{SqlError, SqlState};
