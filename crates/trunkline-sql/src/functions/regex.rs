//! Regular expressions: PostgreSQL's syntax and its rules of which match is taken.
//!
//! ```text
//!   pattern ── lexer, tree ──▶ parts ── matcher ──▶ automata ── searching, replacing ──▶ results
//! ```
//!
//! A Rust engine finds matches, but it prefers the first alternative, where PostgreSQL prefers the
//! longest match: `substring('foobar' from 'foo|foobar')` is `foobar`. So we build its patterns from
//! our own syntax tree, and use it only for what doesn't depend on the preference. Back references and
//! look-around constraints are refused.

mod characters;
mod flags;
mod lexer;
mod matcher;
mod replacing;
mod searching;
mod similar;
mod tree;

#[cfg(test)]
mod tests;

pub(super) use flags::Flags;
pub(super) use replacing::REPLACING;
pub(super) use searching::{Compiler, SEARCHING, matches, refuse_global, split};
pub(super) use similar::SIMILAR;
