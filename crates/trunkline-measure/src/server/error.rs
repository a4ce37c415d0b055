//! **Errors** of a server that we run.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Why a server can't be used, or can't do a piece of work.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A program is missing, or of a version that we don't know.
    #[error("\"{}\": {reason}", path.display())]
    Program {
        /// The program.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No user can run the server.
    #[error("{0}")]
    Account(String),
    /// Settings can't be part of a configuration that is compared.
    #[error("settings that can't be compared: {}", by_reason(.0))]
    Settings(
        /// Each name, with what it would break.
        Vec<(String, &'static str)>,
    ),
    /// A file or a process could not be used.
    #[error("\"{}\": {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The server ended, or never accepted a connection.
    #[error("{what}; its log ends with: {log}")]
    Ended {
        /// What happened.
        what: String,
        /// The last lines of its log.
        log: String,
    },
    /// A statement failed.
    #[error("\"{statement}\" failed: {reason}")]
    Statement {
        /// Its first words.
        statement: String,
        /// The server's message.
        reason: String,
    },
    /// The planner chose another plan than the one that is measured.
    #[error("the server's plan is {found}, expected {expected}")]
    Plan {
        /// The nodes of the plan.
        found: String,
        /// The node that the settings should force.
        expected: String,
    },
    /// The server did other work than we do.
    #[error("the server reports {found} {unit}, expected {expected}")]
    Work {
        /// What was counted.
        unit: &'static str,
        /// How many there were.
        found: i64,
        /// How many there should be.
        expected: i64,
    },
    /// A setting has another value than after the server's start.
    #[error("the server's {name} is \"{found}\", expected \"{expected}\"")]
    Changed {
        /// Its name.
        name: String,
        /// Its value.
        found: String,
        /// Its value after the start.
        expected: String,
    },
    /// The user ended the measurement.
    #[error("cancelled")]
    Cancelled,
}

impl ServerError {
    pub(super) fn system(path: &Path, source: impl Into<io::Error>) -> Self {
        Self::System { path: path.to_owned(), source: source.into() }
    }

    /// A statement that failed, with the server's own message.
    pub(super) fn statement(statement: &str, error: &postgres::Error) -> Self {
        let reason = match error.as_db_error() {
            Some(error) => error.message().to_owned(),
            None => causes(error),
        };
        let statement = statement.split_whitespace().take(8).collect::<Vec<_>>().join(" ");
        Self::Statement { statement, reason }
    }

    /// Whether only this case can't be compared, and others can.
    pub(crate) fn is_of_case(&self) -> bool {
        matches!(self, Self::Plan { .. } | Self::Work { .. })
    }
}

/// Names by their reason: `"port", "ssl" (a reason), "jit" (another)`.
fn by_reason(refused: &[(String, &'static str)]) -> String {
    let mut names: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, reason) in refused {
        names.entry(reason).or_default().push(format!("\"{name}\""));
    }
    let groups = names.iter().map(|(reason, names)| format!("{} ({reason})", names.join(", ")));
    groups.collect::<Vec<_>>().join(", ")
}

/// An error with its causes.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text += &format!(": {cause}");
        next = cause.source();
    }
    text
}
