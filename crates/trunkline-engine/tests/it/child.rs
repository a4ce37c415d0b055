//! Runs one test of this binary again in a child process with other rights or limits.
//!
//! An extra argument marks the child: test names are filters, and one that matches nothing is
//! harmless.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const MARK: &str = "this-is-the-child";

/// Whether this process is the child.
pub(crate) fn is_child() -> bool {
    std::env::args().any(|arg| arg == MARK)
}

/// Whether this process may read all files, so that file modes have no effect.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn run(mut command: Command, test: &str) {
    let output =
        command.args([test, MARK, "--exact", "--nocapture"]).output().expect("child started");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "the child ran no test: {text}");
}

/// Runs `test` as an unprivileged user. The binary is copied, since that user may not have access
/// to the build directory.
pub(crate) fn as_unprivileged_user(test: &str) {
    let place = tempfile::tempdir().expect("temporary directory");
    let binary = place.path().join("it");
    std::fs::copy(std::env::current_exe().expect("own path"), &binary).expect("copied");
    set_mode(place.path(), 0o755);
    let mut command = Command::new(binary);
    command.uid(65534).gid(65534).current_dir("/");
    run(command, test);
}

/// Runs `test` with a limit for open files.
pub(crate) fn with_files_max(files: u32, test: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {files} && exec \"$0\" \"$@\"")]);
    command.arg::<&OsStr>(std::env::current_exe().expect("own path").as_ref());
    run(command, test);
}

/// Sets the mode of a file or directory.
pub(crate) fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("mode set");
}
