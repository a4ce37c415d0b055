//! Why a command stopped: one sentence for a person, and an exit code for a script.
//! A finding (1) differs from a wrong command line (2), as in trunkline itself.

use std::fmt;

/// What ended the run.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    code: u8,
}

impl Failure {
    /// Something checked was not good, or could not be done.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 1 }
    }

    /// The command line makes no sense.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 2 }
    }

    /// An operation on a file or program failed; names both.
    pub(crate) fn io(what: impl fmt::Display, error: std::io::Error) -> Self {
        Self::new(format!("{what}: {error}"))
    }

    /// What the process returns.
    pub(crate) fn exit_code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
