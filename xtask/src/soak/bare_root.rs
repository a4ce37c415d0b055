//! **Bare root**: `.ci/run` on a machine that has nothing but Debian's smallest system and Rust.
//!
//! A developer's machine has programs that a test starts although `.ci/run` doesn't install them,
//! and CI's image may have them too. Then nothing says that they are needed until a newcomer's
//! tests fail. So we make a root file system with `debootstrap`, copy the commit into it, and run
//! `.ci/run` there with `chroot`.
//!
//! The new root shares this machine's kernel, devices and network, and borrows Rust and cargo's
//! downloads from it. Its mounts are in a mount namespace, so they go away with the run, even if it
//! is killed.

use std::fs;
use std::path::{Path, PathBuf};

use super::record::output;
use crate::failure::Failure;
use crate::fixtures;
use crate::invocation::Invocation;
use crate::tree::Checkout;

/// The Debian release.
const RELEASE: &str = "bookworm";

/// Names, inside the new root, of what it borrows. Fixed names, because cargo records paths.
const RUST: &str = "/opt/rust";
const CARGO_HOME: &str = "/opt/cargo";
const SOURCE: &str = "/srv/trunkline";
const FIXTURES: &str = "/srv/shared/fixtures";
const TARGET: &str = "/srv/target";

/// Files of this machine that programs in the new root need in order to reach the network.
const NETWORK: [&str; 3] = ["/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt"];

/// Certificates that this machine trusts in addition to Debian's, for example those of a proxy.
/// Debian's own list is installed with `ca-certificates`, which adds these to it.
const CERTIFICATES: &str = "/usr/local/share/ca-certificates";

/// Runs `.ci/run` in a new root.
pub(super) fn run(checkout: &Checkout) -> Result<String, Failure> {
    if !fixtures::is_root()? {
        return Err(Failure::usage(
            "soak bare-root must run as root: it uses debootstrap and chroot",
        ));
    }
    let root = checkout.target.join("soak/bare-root");
    if root.exists() {
        fs::remove_dir_all(&root).map_err(|error| Failure::io(root.display(), error))?;
    }
    fs::create_dir_all(&root).map_err(|error| Failure::io(root.display(), error))?;
    debootstrap(checkout, &root)?;
    let source = inside(&root, SOURCE);
    Invocation::new(&checkout.root, "git", "-c safe.directory=* clone --quiet --no-hardlinks")
        .arg(&checkout.root)
        .arg(&source)
        .run()?;
    lend(checkout, &root)?;
    let summary = ci(checkout, &root)?;
    // These are several GB. We keep them only after a failure, when they show what went wrong.
    fs::remove_dir_all(&root).map_err(|error| Failure::io(root.display(), error))?;
    Ok(summary)
}

/// Creates the file system. The package list is refreshed by `.ci/run`.
fn debootstrap(checkout: &Checkout, root: &Path) -> Result<(), Failure> {
    let mut command =
        Invocation::new(&checkout.root, "debootstrap", "--variant=minbase").arg(RELEASE).arg(root);
    if let Some(mirror) = std::env::var_os("DEBIAN_MIRROR") {
        command = command.arg(mirror);
    }
    command.run()
}

/// Copies or mounts what the new root borrows. Mounts are made in [`ci`], in its own namespace;
/// here we only make their mount points.
fn lend(checkout: &Checkout, root: &Path) -> Result<(), Failure> {
    for file in NETWORK {
        let to = inside(root, file);
        let from = Path::new(file);
        if !from.exists() {
            continue;
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(|error| Failure::io(folder.display(), error))?;
        }
        fs::copy(from, &to).map_err(|error| Failure::io(to.display(), error))?;
    }
    for folder in [RUST, CARGO_HOME, FIXTURES, TARGET] {
        let place = inside(root, folder);
        fs::create_dir_all(&place).map_err(|error| Failure::io(place.display(), error))?;
    }
    if Path::new(CERTIFICATES).exists() {
        let to = inside(root, CERTIFICATES);
        fs::create_dir_all(&to).map_err(|error| Failure::io(to.display(), error))?;
        let from = Path::new(CERTIFICATES).join(".");
        Invocation::new(&checkout.root, "cp", "-R").arg(from).arg(to).run()?;
    }
    let archives = fixtures::archives(checkout);
    let to = inside(root, FIXTURES);
    Invocation::new(&checkout.root, "cp", "-R").arg(archives.join(".")).arg(to).run()
}

/// Runs `.ci/run` in the new root and returns its last line.
fn ci(checkout: &Checkout, root: &Path) -> Result<String, Failure> {
    let rust = output(checkout, "rustc", "--print sysroot")?;
    let home = std::env::var("HOME").unwrap_or_else(|_| "/root".to_owned());
    let cargo = std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo"));
    let script = format!(
        "set -e; root=$1
        for kind in dev proc sys; do mount --rbind /$kind \"$root/$kind\"; done
        mount --bind -o ro \"$2\" \"$root{RUST}\"
        mount --bind \"$3\" \"$root{CARGO_HOME}\"
        # Cargo looks there for commands such as cargo-fmt first; rustup's need rustup's own files.
        mkdir -p \"$root{CARGO_HOME}/bin\" && mount -t tmpfs tmpfs \"$root{CARGO_HOME}/bin\"
        mount -t tmpfs -o mode=1777 tmpfs \"$root/dev/shm\"
        exec chroot \"$root\" /usr/bin/env PATH={RUST}/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            HOME=/root CI=true CARGO_HOME={CARGO_HOME} CARGO_TARGET_DIR={TARGET} \
            TRUNKLINE_FIXTURES={FIXTURES} {SOURCE}/.ci/run"
    );
    let run = Invocation::new(&checkout.root, "unshare", "--mount --propagation=private bash -c")
        .arg(script)
        .arg("bare-root")
        .arg(root)
        .arg(rust)
        .arg(cargo);
    let mut last = String::new();
    let code = run.tee(|line| {
        if line.starts_with("ci: ok: ") || line.starts_with("ci: FAILED: ") {
            last = line.trim().to_owned();
        }
        true
    })?;
    let summary = format!("Debian {RELEASE}: {last}");
    match code {
        Some(0) if last.starts_with("ci: ok: ") => Ok(summary),
        _ => Err(Failure::new(summary)),
    }
}

/// A path of the new root as this machine sees it.
fn inside(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_stay_inside_the_root() {
        assert_eq!(inside(Path::new("/r"), "/etc/hosts"), Path::new("/r/etc/hosts"));
    }
}
