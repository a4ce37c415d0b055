//! **Fixtures**: real PostgreSQL clusters for the tests. `pgNN/data` is the data directory of a
//! cluster that was shut down cleanly, and `pgNN/expected` contains the server's own output for
//! every table. `shopNN` is another cluster, for SQL: its `expected` also has the server's answers
//! to the queries in trunkline-sql's test data.
//!
//! `pg18` and `pg19` are unpacked from archives. We create the clusters for version 15 ourselves if
//! Debian's server is installed, and the others with servers from npm's registry if we can reach
//! it. Each cluster is built only once, in `fixtures/` under the target directory. The servers are
//! kept in `fixtures/servers/`, because some tests create their own clusters.

mod answers;
mod client;
mod cluster;
mod registry;
mod scratch;
mod server;
mod shop;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::tree::Checkout;
use cluster::{fingerprint, is_current, publish};
use scratch::{Scratch, succeed};
use server::Server;
pub(crate) use server::{Account, is_root};

/// Clusters unpacked from archives.
const ARCHIVES: [&str; 2] = ["pg18", "pg19"];
/// The installed server that creates `pg15` and `shop15`.
const SERVER: &str = "/usr/lib/postgresql/15/bin";
/// Servers from the registry. The last one doesn't create the first cluster, because we already
/// have an archive for its version.
const FROM_REGISTRY: [Registered; 3] = [
    Registered { version: "16.14.0-beta.17", cluster: Some("pg16"), shop: "shop16" },
    Registered { version: "17.10.0-beta.17", cluster: Some("pg17"), shop: "shop17" },
    Registered { version: "18.4.0-beta.17", cluster: None, shop: "shop18" },
];

/// A server from the registry.
struct Registered {
    version: &'static str,
    /// The clusters that it creates.
    cluster: Option<&'static str>,
    shop: &'static str,
}

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
    let queries = checkout.root.join(shop::QUERIES);
    let installed = Server::Installed(SERVER.into());
    let done = build(&source, &made.dir, "pg15", &installed);
    made.note("pg15", done);
    let done = shop::build(&queries, &made.dir, "shop15", &installed);
    made.note("shop15", done);
    for Registered { version, cluster, shop } in FROM_REGISTRY {
        let server = match registry::server(&made.dir, version) {
            Ok(at) => Server::Unpacked(at),
            Err(why) => {
                made.unreachable.push(format!("server {version}: {why}"));
                continue;
            }
        };
        if let Some(name) = cluster {
            let done = build(&source, &made.dir, name, &server);
            made.note(name, done);
        }
        let done = shop::build(&queries, &made.dir, shop, &server);
        made.note(shop, done);
    }
    Ok(made)
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
    let account = Account::own(at)?;
    succeed(&account.shell(at, &format!("bash ./make.sh {} out", bin.display())))?;
    // We copy the cluster instead of renaming it, because the target may be on another file system.
    // As a side effect, this also makes us the owner of the files again.
    let inside = Scratch::new(dir, name)?;
    let copy = Invocation::new(dir, "cp", "-R --preserve=mode,timestamps");
    succeed(&copy.arg(at.join("out")).arg(inside.path.join(name)))?;
    publish(&inside.path.join(name), dir, name, &stamp)
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
