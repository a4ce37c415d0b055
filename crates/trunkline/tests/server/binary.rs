//! Runs the binary on a data directory.

use std::path::Path;
use std::process::Command;

/// Returns the exit code, standard output and standard error.
pub(crate) fn run(data: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.env_remove("PGDATA").env_remove("PGDATABASE").current_dir("/");
    let output = command.args(args).arg("-D").arg(data).output().expect("runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("exited"), text(output.stdout), text(output.stderr))
}
