//! Text, and what is like it: `name`, `bpchar`, `"char"`, `bytea`, `uuid`.
//!
//! Every module has a table of kernels. For example, `textlike` is in [`like`], and `||`, whose
//! function is `textcat`, in [`concatenation`].

mod bytea;
mod casts;
mod comparison;
mod concatenation;
mod conversion;
mod encoding;
mod format;
mod letters;
mod like;
mod padding;
mod parts;
mod quoting;
mod sql_functions;
mod unicode;

#[cfg(test)]
mod tests;

pub(super) use bytea::BYTEA;
pub(super) use casts::CASTS;
pub(super) use comparison::{COMPARISONS, difference};
pub(super) use concatenation::CONCATENATION;
pub(super) use conversion::CONVERSION;
pub(super) use encoding::ENCODING;
pub(super) use format::FORMAT;
pub(super) use letters::LETTERS;
pub(super) use like::LIKE;
pub(super) use padding::PADDING;
pub(super) use parts::PARTS;
pub(super) use quoting::QUOTING;
pub(super) use sql_functions::SQL_FUNCTIONS;
pub(super) use unicode::UNICODE;
