//! Runs `trunkline query` on the data directories that `cargo xtask fixtures` unpacks.
//!
//! `psql.txt` has what psql 15 prints for the same statements and options, with a server of version
//! 15: `psql -X -c`, with `PGCLIENTENCODING=UTF8`. A block of it has the options, the statements,
//! the exit status, standard output and standard error. `$` marks the ends of their lines, `␉` is a tab
//! and `␍` a carriage return.
#![expect(clippy::expect_used, reason = "a test that cannot go on ends, also in its helpers")]

mod bad_input;
mod formats;
mod psql;
mod serve;

use std::path::PathBuf;
use std::process::{Command, Output};

use trunkline_aio::facade::env;

/// The data directory of version 15.
fn data() -> Option<PathBuf> {
    let directory = env::var("TRUNKLINE_FIXTURE_DIR").map(PathBuf::from);
    let Some(directory) = directory else {
        println!("skipped: no fixture");
        return None;
    };
    let data = directory.join("pg15/data");
    assert!(data.is_dir(), "no fixture in {}", directory.display());
    Some(data)
}

/// The command on a directory, without a database.
fn query(data: &std::path::Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    for variable in ["PGDATA", "PGDATABASE", "PGUSER", "USER"] {
        command.env_remove(variable);
    }
    command.current_dir("/").args(["query", "--shared-buffers", "2MB", "-D"]).arg(data);
    command
}

/// Exit status, standard output and standard error.
fn said(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (status.code().expect("exited"), text(stdout), text(stderr))
}

/// What the command prints in the database `fixture`, if there is one.
fn run(args: &[&str]) -> Option<(i32, String, String)> {
    Some(said(query(&data()?).args(["-d", "fixture"]).args(args)))
}

/// Checks standard output of a command that succeeds without a message.
fn check(args: &[&str], expected: &str) {
    let Some((code, stdout, stderr)) = run(args) else { return };
    assert_eq!((code, &*stdout, &*stderr), (0, expected, ""), "{args:?}");
}
