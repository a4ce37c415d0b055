//! **Command failure**: consists of one sentence for the developer and an exit code for scripts.
//! There are different codes for findings (1) and usage errors (2), as in trunkline itself.

use std::fmt;

/// The cause of the failure.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    code: u8,
}

impl Failure {
    /// A check found a problem, or couldn't be performed.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 1 }
    }

    /// Invalid command line.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 2 }
    }

    /// An operation on a file or program failed; the message names both.
    pub(crate) fn io(what: impl fmt::Display, error: std::io::Error) -> Self {
        Self::new(format!("{what}: {error}"))
    }

    /// The process's exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
