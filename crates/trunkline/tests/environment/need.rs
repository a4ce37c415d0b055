//! Skips tests if the machine lacks something they need.

use std::path::Path;

use trunkline_aio::facade::env;

/// Whether we are running as root; if not, the test is skipped.
pub(crate) fn root() -> bool {
    rustix::process::geteuid().is_root() || skip("not root")
}

/// Whether FUSE file systems can be mounted; if not, the test is skipped.
pub(crate) fn fuse() -> bool {
    root() && (Path::new("/dev/fuse").exists() || skip("no /dev/fuse"))
}

/// Prints that the test is skipped, and returns false. In CI, if we are root, the test fails
/// instead.
pub(crate) fn skip(reason: &str) -> bool {
    let ci = env::var("CI").is_some_and(|value| value == *"true");
    assert!(!(ci && rustix::process::geteuid().is_root()), "nothing is skipped in CI: {reason}");
    println!("skipped: {reason}");
    false
}
