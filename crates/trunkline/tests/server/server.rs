//! PostgreSQL server for one test: creates a cluster, starts and stops it, and runs queries. It's
//! our equivalent of `PostgreSQL::Test::Cluster`.
//!
//! The server's socket is in a temporary directory. PostgreSQL refuses to run as root, so if we are
//! root, we make another user the owner of this directory and run the server as that user. If that
//! user has no access to the server's programs, we also put a copy of them into the directory. We
//! never have to sleep, because `pg_ctl -w` waits for the server.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use trunkline_aio::facade::env;

/// The directory of Debian's server and psql.
const DEBIAN: &str = "/usr/lib/postgresql/15/bin";

/// Major versions available in CI: Debian's, and those fetched by `cargo xtask fixtures`.
const MAJORS: [u32; 4] = [15, 16, 17, 18];

/// Options of `initdb` for every cluster.
pub(crate) const INITDB: [&str; 10] =
    ["-k", "-N", "-A", "trust", "-U", SUPERUSER, "-E", "UTF8", "--no-locale", "--wal-segsize=1"];

/// The name of the superuser.
const SUPERUSER: &str = "postgres";

/// Settings of every server: small, fast, and without background activity.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", ""),
    ("shared_buffers", "16MB"),
    ("max_connections", "20"),
    ("max_prepared_transactions", "5"),
    ("fsync", "off"),
    ("autovacuum", "off"),
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
    ("min_wal_size", "2MB"),
    ("max_wal_size", "16MB"),
    ("max_parallel_workers_per_gather", "0"),
    ("allow_in_place_tablespaces", "on"),
];

/// Settings of every client, so that the output doesn't depend on the machine.
const CLIENT: &str = "-c extra_float_digits=1 -c datestyle=ISO,MDY -c intervalstyle=postgres";

/// The `bin` directories of the servers to test with. If a server is missing, we print that the
/// test is skipped for it.
pub(crate) fn servers() -> Vec<PathBuf> {
    if user().is_none() {
        missing("root, and no user to run a server as");
        return Vec::new();
    }
    let Some(named) = env::var("TRUNKLINE_SERVERS") else { return installed() };
    let (found, absent): (Vec<_>, Vec<_>) =
        std::env::split_paths(&named).partition(|bin| bin.join("postgres").is_file());
    for bin in absent {
        missing(&format!("no server in {}", bin.display()));
    }
    found
}

/// Debian's server, and the newest of each major version among the fixtures.
fn installed() -> Vec<PathBuf> {
    let mut found = BTreeMap::new();
    if let Some(fixtures) = env::var("TRUNKLINE_FIXTURE_DIR") {
        let entries = fs::read_dir(Path::new(&fixtures).join("servers"));
        let mut versions: Vec<(Vec<u32>, PathBuf)> = (entries.into_iter().flatten().flatten())
            .map(|entry| (numbers(&entry.file_name().to_string_lossy()), entry.path().join("bin")))
            .collect();
        versions.sort();
        found.extend(versions.into_iter().filter_map(|(version, bin)| {
            let major = *version.first()?;
            bin.join("postgres").is_file().then_some((major, bin))
        }));
    }
    if Path::new(DEBIAN).join("postgres").is_file() {
        found.insert(MAJORS[0], PathBuf::from(DEBIAN));
    }
    for major in MAJORS.iter().filter(|major| !found.contains_key(*major)) {
        missing(&format!("no server of PostgreSQL {major}"));
    }
    found.into_values().collect()
}

/// The major version of the server in `bin`.
pub(crate) fn major_of(bin: &Path) -> u32 {
    let output = succeed(Command::new(bin.join("postgres")).arg("--version"));
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split_whitespace().nth(2).unwrap_or_default();
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

/// The numbers in a version such as `16.14.0-beta.17`, up to the hyphen.
fn numbers(version: &str) -> Vec<u32> {
    let numbers = version.split('-').next().unwrap_or_default().split('.');
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// Prints which server is missing.
fn missing(why: &str) {
    println!("skipped: {why}");
}

/// The user that runs the server. `Some(None)` is the current user, which we use unless we are
/// root. Returns `None` if we are root and can't find a suitable user.
fn user() -> Option<Option<(u32, u32)>> {
    if !rustix::process::geteuid().is_root() {
        return Some(None);
    }
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let find = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2).map(|id| id.parse::<u32>().ok());
        Some((ids.next()??, ids.next()??))
    };
    ["postgres", "nobody"].into_iter().find_map(find).map(Some)
}

/// A command that runs as `user`.
fn as_user(program: &Path, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).env("LC_ALL", "C").current_dir("/");
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    command
}

/// Returns the directory with the server's programs. If the user can't run them there, we first
/// copy them into `home`.
fn lend(bin: &Path, home: &Path, user: Option<(u32, u32)>) -> PathBuf {
    let version = as_user(&bin.join("postgres"), user).arg("--version").output();
    if version.is_ok_and(|output| output.status.success()) {
        return bin.to_owned();
    }
    let (Some(whole), Some(name)) = (bin.parent(), bin.file_name()) else { return bin.to_owned() };
    let copy = home.join("server");
    // Hard links are faster, but only work within a file system.
    let linked = Command::new("cp").arg("-al").arg(whole).arg(&copy).output().expect("runs");
    if !linked.status.success() {
        let _ = fs::remove_dir_all(&copy);
        succeed(Command::new("cp").arg("-a").arg(whole).arg(&copy));
    }
    copy.join(name)
}

/// A running server. If it is dropped without a call to [`Server::stop`], it is shut down
/// immediately.
#[derive(Debug)]
pub(crate) struct Server {
    home: Option<TempDir>,
    bin: PathBuf,
    user: Option<(u32, u32)>,
    running: bool,
}

/// The data directory of a stopped server. Dropping it removes the directory.
#[derive(Debug)]
pub(crate) struct Stopped {
    home: TempDir,
}

impl Stopped {
    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }
}

impl Server {
    /// Creates a cluster with the server in `bin`, adds the given settings, and starts it.
    pub(crate) fn start(bin: &Path, settings: &[(&str, &str)]) -> Server {
        let server = Server::prepare(bin);
        server.initdb();
        server.configured(settings)
    }

    /// A server without a cluster.
    pub(crate) fn prepare(bin: &Path) -> Server {
        let home = tempfile::Builder::new().prefix("trunkline-").tempdir().expect("directory");
        let user = user().expect("a user to run it as");
        if let Some((uid, gid)) = user {
            chown(home.path(), Some(uid), Some(gid)).expect("given away");
        }
        let bin = lend(bin, home.path(), user);
        Server { home: Some(home), bin, user, running: false }
    }

    /// Adds settings to the cluster's, and starts the server.
    pub(crate) fn configured(mut self, settings: &[(&str, &str)]) -> Server {
        let server = &mut self;
        let line = |(name, value): &(&str, &str)| format!("{name} = '{value}'\n");
        let mut text = fs::read_to_string(server.configuration()).expect("read");
        text.push_str(&line(&("unix_socket_directories", &server.home().display().to_string())));
        text.extend(SETTINGS.iter().chain(settings).map(line));
        fs::write(server.configuration(), text).expect("written");
        server.run();
        self
    }

    /// Copies a data directory.
    pub(crate) fn copy_from(&self, data: &Path) {
        succeed(Command::new("cp").arg("-a").arg(data).arg(self.data()));
        if let Some((uid, gid)) = self.user {
            succeed(Command::new("chown").arg("-R").arg(format!("{uid}:{gid}")).arg(self.data()));
        }
    }

    /// Creates the cluster. The first cluster of each server is kept as a template that later ones
    /// are copied from, because `initdb` takes much longer than a copy. PostgreSQL's own tests do
    /// the same (`INITDB_TEMPLATE`).
    fn initdb(&self) {
        let version = succeed(self.command("postgres").arg("--version")).stdout;
        // The name contains everything that the template depends on.
        let name = format!("{}{}", String::from_utf8_lossy(&version), INITDB.concat());
        let name: String =
            name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '.').collect();
        let templates = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let template = templates.join(name);
        if !template.exists() {
            succeed(self.command("initdb").args(INITDB).arg("-D").arg(self.data()));
            // Several tests may do this at the same time, and they are interchangeable.
            let scratch = tempfile::tempdir_in(templates).expect("directory");
            let copy = scratch.path().join("data");
            succeed(Command::new("cp").arg("-a").arg(self.data()).arg(&copy));
            let _ = fs::rename(copy, template);
            return;
        }
        self.copy_from(&template);
    }

    /// Runs commands in a single transaction, unless the commands start and end transactions
    /// themselves. Returns the output: the columns of a row are separated by tabs, and COPY data is
    /// unmodified.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> Vec<u8> {
        let mut psql = self.psql(database);
        psql.args(["-c", sql]);
        succeed(&mut psql).stdout
    }

    /// Runs a script, with one transaction per command. If `may_fail`, commands may fail.
    pub(crate) fn script(&self, database: &str, sql: &str, may_fail: bool) -> Vec<u8> {
        let file = self.home().join("script.sql");
        fs::write(&file, sql).expect("written");
        let mut psql = self.psql(database);
        psql.arg("-v").arg(format!("ON_ERROR_STOP={}", u8::from(!may_fail)));
        psql.arg("-f").arg(&file);
        succeed(&mut psql).stdout
    }

    /// A psql command for `database`, as the superuser, without a startup file.
    pub(crate) fn psql(&self, database: &str) -> Command {
        let own = self.bin.join("psql");
        let own = if own.is_file() { own } else { PathBuf::from(DEBIAN).join("psql") };
        let mut psql = Command::new(own);
        psql.args(["-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1"]);
        psql.args(["-U", SUPERUSER, "-d", database, "-h"]).arg(self.home());
        psql.env("PGOPTIONS", CLIENT).env("PGTZ", "UTC").env("LC_ALL", "C").current_dir("/");
        psql
    }

    /// A `pg_dump` command for the rows of `database`.
    pub(crate) fn pg_dump(&self, database: &str) -> Command {
        let mut dump = Command::new(self.bin.join("pg_dump"));
        dump.args(["--data-only", "-U", SUPERUSER, "-d", database, "-h"]).arg(self.home());
        dump.env("LC_ALL", "C").current_dir("/").stdin(Stdio::null());
        dump
    }

    /// The server's major version.
    pub(crate) fn major(&self) -> u32 {
        let text = fs::read_to_string(self.data().join("PG_VERSION")).expect("read");
        text.trim().parse().expect("a number")
    }

    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.home().join("data")
    }

    /// The parent of the data directory. The server may write there, too.
    pub(crate) fn home(&self) -> &Path {
        self.home.as_ref().expect("not stopped").path()
    }

    /// Creates a directory that the server may write to.
    pub(crate) fn make_directory(&self, path: &Path) {
        fs::create_dir(path).expect("made");
        if let Some((uid, gid)) = self.user {
            chown(path, Some(uid), Some(gid)).expect("given away");
        }
    }

    /// Restarts the server with cold caches.
    pub(crate) fn restart(&mut self) {
        self.halt("fast");
        self.run();
    }

    /// Stops the server in immediate mode, which simulates a crash, and starts it again.
    pub(crate) fn crash(&mut self) {
        self.halt("immediate");
        self.run();
    }

    /// Shuts the server down cleanly.
    pub(crate) fn stop(self) -> Stopped {
        self.end("fast")
    }

    /// Stops the server in immediate mode, which simulates a crash.
    pub(crate) fn stop_at_once(self) -> Stopped {
        self.end("immediate")
    }

    fn end(mut self, mode: &str) -> Stopped {
        self.halt(mode);
        Stopped { home: self.home.take().expect("not stopped") }
    }

    /// Starts the server after [`Server::halt`].
    pub(crate) fn run(&mut self) {
        let log = self.home().join("log");
        let mut start = self.control();
        start.args(["-w", "-t", "300", "-l"]).arg(&log).arg("start");
        let output = start.stdout(Stdio::null()).output().expect("runs");
        let log = fs::read_to_string(&log).unwrap_or_default();
        assert!(output.status.success(), "the server does not start: {log}");
        self.running = true;
    }

    /// Stops the server, but keeps its directory for [`Server::run`].
    pub(crate) fn halt(&mut self, mode: &str) {
        self.running = false;
        succeed(self.control().args(["-w", "-t", "300", "-m", mode, "stop"]));
    }

    fn control(&self) -> Command {
        let mut control = self.command("pg_ctl");
        control.arg("-s").arg("-D").arg(self.data());
        control
    }

    fn configuration(&self) -> PathBuf {
        self.data().join("postgresql.conf")
    }

    /// Runs a command that must fail. Returns what psql says about it.
    pub(crate) fn error(&self, database: &str, sql: &str) -> String {
        let output = self.psql(database).args(["-c", sql]).output().expect("runs");
        assert!(!output.status.success(), "{sql}");
        String::from_utf8(output.stderr).expect("text")
    }

    /// Whether the server's directory has this program. If it doesn't, we print that the test skips
    /// what needs it. For example, npm's servers have only `initdb`, `pg_ctl` and `postgres`.
    pub(crate) fn has(&self, name: &str) -> bool {
        let found = self.bin.join(name).is_file();
        if !found {
            missing(&format!("no {name} of PostgreSQL {}", self.major()));
        }
        found
    }

    /// The directory with the server's programs, which its user can run.
    pub(crate) fn programs(&self) -> &Path {
        &self.bin
    }

    /// One of the server's programs, run as the server's user.
    pub(crate) fn command(&self, name: &str) -> Command {
        as_user(&self.bin.join(name), self.user)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.running {
            // The server was not stopped, so the test has failed.
            let _ = self.control().args(["-m", "immediate", "stop"]).status();
        }
    }
}

/// Runs a command that must succeed.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().expect("runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
    output
}
