//! `trunkline inspect`: one file decoded, for people and as JSON.
//!
//! Reads exactly what was asked for, with plain reads: no engine is started, no lock looked at, so
//! it also works on a directory that nothing else here would open.

mod control;
mod page;
mod tuple;

use crate::cli::{Global, Subject};
use crate::exit::{Exit, Failure};

/// Runs the command.
pub(crate) fn run(global: &Global, subject: &Subject) -> Result<Exit, Failure> {
    match subject {
        Subject::Control { file, .. } => control::run(global, file.as_deref()),
        Subject::Page { file, block, .. } => page::run(global, file, *block),
    }
}
