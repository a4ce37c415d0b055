//! Skips tests if the machine lacks something they need.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

/// The directory of Debian's server.
const SERVER: &str = "/usr/lib/postgresql/15/bin";

/// Whether we are running as root; if not, the test is skipped.
pub(crate) fn root() -> bool {
    rustix::process::geteuid().is_root() || skip("not root")
}

/// Whether FUSE file systems can be mounted; if not, the test is skipped.
pub(crate) fn fuse() -> bool {
    root() && (Path::new("/dev/fuse").exists() || skip("no /dev/fuse"))
}

/// The programs of a server that a user other than root can run; if there is none, the test is
/// skipped.
pub(crate) fn server() -> Option<&'static str> {
    let found = Path::new(SERVER).join("initdb").is_file();
    (found || skip("no server of PostgreSQL 15")).then_some(SERVER)
}

/// Whether this process may have `count` more threads; if not, the test is skipped.
pub(crate) fn threads(count: usize) -> bool {
    let processes = getrlimit(Resource::Nproc).current.unwrap_or(u64::MAX);
    if processes < count as u64 {
        return skip(&format!("RLIMIT_NPROC is {processes}"));
    }
    let Some((left, file)) = pids_left() else { return true };
    left >= count as u64 || skip(&format!("{} leaves {left} threads", file.display()))
}

/// How many more threads our control groups allow, and the limit that says so. `None` if there is no
/// limit.
fn pids_left() -> Option<(u64, PathBuf)> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    // Lines are `number:controllers:/path`. Version 2 has one hierarchy, which names no controllers.
    let paths = own.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let root = match controllers {
            "" => "/sys/fs/cgroup",
            _ if controllers.split(',').any(|one| one == "pids") => "/sys/fs/cgroup/pids",
            _ => return None,
        };
        Some(Path::new(root).join(path.trim_start_matches('/')))
    });
    let directories =
        paths.flat_map(|path| path.ancestors().map(PathBuf::from).collect::<Vec<_>>());
    let limits = directories.filter_map(|directory| {
        let number = |name: &str| -> Option<u64> {
            fs::read_to_string(directory.join(name)).ok()?.trim().parse().ok()
        };
        // A limit of "max" is not a number.
        let left = number("pids.max")?.saturating_sub(number("pids.current")?);
        Some((left, directory.join("pids.max")))
    });
    limits.min()
}

/// Prints that the test is skipped, and returns false. `cargo xtask ci` lists the reasons, and in CI
/// fails because of them.
pub(crate) fn skip(reason: &str) -> bool {
    println!("skipped: {reason}");
    false
}
