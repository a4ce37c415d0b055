//! Environment variables, read in one place.
//!
//! A seeded run must not depend on the environment, so only the program's `main` function reads it.

use std::ffi::OsString;

/// The value of an environment variable.
#[expect(clippy::disallowed_methods, reason = "the façade's own way to read the environment")]
pub fn var(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}
