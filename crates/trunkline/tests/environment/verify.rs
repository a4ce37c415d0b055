//! Runs `trunkline verify` and parses its report.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::child::{Ended, Running};

/// The three methods.
pub(crate) const METHODS: [&str; 3] = ["sync", "worker", "io_uring"];

/// Buffered and direct.
pub(crate) const DIRECT: [&[&str]; 2] = [&[], &["--io-direct", "data"]];

/// The command to run. If `before` isn't empty, it is a wrapper program with its arguments.
pub(crate) fn verify(before: &[&str], binary: &Path, directory: &Path, method: &str) -> Command {
    let mut command = match before.split_first() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments).arg(binary);
            command
        }
        None => Command::new(binary),
    };
    command.env_remove("PGDATA").env_remove("PGDATABASE").current_dir("/");
    command.args(["verify", "--files-only", "--json", "--io-method", method, "-D"]).arg(directory);
    command
}

/// The binary under test.
pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_trunkline"))
}

/// Runs a verify to its end.
pub(crate) fn run(command: &mut Command) -> Report {
    Report::of(Running::start(command).wait_for_end())
}

/// How a verify ended.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) code: i32,
    /// The JSON report; null if there is none.
    pub(crate) summary: Value,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Report {
    pub(crate) fn of(ended: Ended) -> Report {
        let code = ended.status.code();
        let code = code.unwrap_or_else(|| panic!("ended by a signal: {ended:?}"));
        let last = ended.stdout.lines().last().unwrap_or("null");
        let summary = serde_json::from_str(last).expect("JSON");
        Report { code, summary, stdout: ended.stdout, stderr: ended.stderr }
    }

    /// Returns whether there is a message of this kind that begins with this text.
    pub(crate) fn has_message(&self, kind: &str, text: &str) -> bool {
        let messages = self.stderr.lines().filter_map(|line| serde_json::from_str(line).ok());
        messages.into_iter().any(|message: Value| {
            let found = message["text"].as_str();
            message["kind"] == kind && found.is_some_and(|found| found.starts_with(text))
        })
    }
}
