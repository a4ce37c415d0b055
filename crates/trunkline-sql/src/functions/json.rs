//! `jsonb`, on the containers that it is stored in, and `json`, on its text.
//!
//! Of a `jsonb`, nothing is parsed but the containers on the way to what is wanted. For example, `jsonb -> 'a'` finds
//! the key by its length and bytes, and copies its value.

pub(super) mod access;
mod aggregates;
mod casts;
mod changing;
mod comparing;
pub(super) mod container;
mod converting;
mod key;
mod paths;
mod populating;
mod pretty;
mod records;
pub(super) mod rows;
mod text;
mod writing;

#[cfg(test)]
mod tests;

pub use key::append_jsonb_key;
pub use writing::append_json;

pub(super) use access::ACCESS;
pub(super) use aggregates::AGGREGATES;
pub(super) use casts::CASTS;
pub(super) use changing::CHANGING;
pub(super) use comparing::COMPARING;
pub(super) use converting::CONVERTING;
pub(super) use paths::PATHS;
pub(super) use pretty::PRETTY;
pub(super) use records::{RECORD_SETS, RECORDS};
pub(super) use rows::SETS;
pub(super) use text::TEXT;
