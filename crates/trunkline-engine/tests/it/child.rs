//! Reruns a single test of this binary in a child process with different privileges or limits.
//!
//! The child is recognized by an extra command-line argument. The test harness takes this argument
//! for another name filter, which is harmless because no test has such a name.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const MARK: &str = "this-is-the-child";

/// Whether this process is the child.
pub(crate) fn is_child() -> bool {
    std::env::args().any(|arg| arg == MARK)
}

/// Whether this process may read all files, as root can. In that case, file modes have no effect.
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

/// Reruns `test` as an unprivileged user. To do this, we have to copy the binary, because the user
/// might not be allowed to access the build directory.
pub(crate) fn as_unprivileged_user(test: &str) {
    let place = tempfile::tempdir().expect("temporary directory");
    let binary = place.path().join("it");
    std::fs::copy(std::env::current_exe().expect("own path"), &binary).expect("copied");
    set_mode(place.path(), 0o755);
    let mut command = Command::new(binary);
    command.uid(65534).gid(65534).current_dir("/");
    run(command, test);
}

/// Reruns `test` with a limit on the number of open files.
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
