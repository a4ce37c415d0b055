//! Reruns a single test of this binary in a child process, with other privileges or limits.
//!
//! An extra command-line argument marks the child. The test harness mistakes it for another name
//! filter, but that's harmless because it matches no test.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const MARK: &str = "this-is-the-child";

/// Whether this process is the child.
pub(crate) fn is_child() -> bool {
    std::env::args().any(|arg| arg == MARK)
}

/// Whether this process may read all files, as root may. In that case file modes have no effect.
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

/// Reruns `test` as an unprivileged user. We must copy the binary first, since that user might not
/// have access to the build directory.
pub(crate) fn as_unprivileged_user(test: &str) {
    let place = tempfile::tempdir().expect("temporary directory");
    let binary = place.path().join("it");
    std::fs::copy(std::env::current_exe().expect("own path"), &binary).expect("copied");
    set_mode(place.path(), 0o755);
    let mut command = Command::new(binary);
    command.uid(65534).gid(65534).current_dir("/");
    run(command, test);
}

/// Reruns `test` with a limit on open files.
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
