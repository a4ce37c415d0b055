//! Runs a PostgreSQL 15 server, if it is installed, with a new cluster for each test. PostgreSQL
//! refuses to run as root, but the tests themselves must be run as root, so they run all of
//! PostgreSQL's programs as the `postgres` user.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

/// A cluster with data checksums. Its server is stopped on drop.
pub(crate) struct Server {
    home: TempDir,
    running: bool,
}

impl Server {
    /// Creates a cluster without starting its server. If that is impossible, prints the reason and
    /// returns `None`.
    pub(crate) fn new() -> Option<Self> {
        let root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        if !Path::new(PROGRAMS).join("initdb").exists() || !root {
            println!("skipped: no PostgreSQL 15, or not root");
            return None;
        }
        let home = tempfile::tempdir().expect("temporary directory");
        let owned = Command::new("chown").arg("postgres").arg(home.path()).status();
        assert!(owned.expect("chown runs").success());
        let server = Self { home, running: false };
        server
            .run("initdb", &["-D", &server.data(), "--data-checksums", "--no-sync", "-A", "trust"]);
        Some(server)
    }

    pub(crate) fn start(&mut self) {
        let home = self.home.path().display().to_string();
        let options = format!("-c listen_addresses= -c autovacuum=off -k {home}");
        let log = format!("{home}/log");
        let data = self.data();
        self.run("pg_ctl", &["-D", &data, "-l", &log, "-o", &options, "-w", "start"]);
        self.running = true;
    }

    pub(crate) fn stop(&mut self) {
        self.running = false;
        self.run("pg_ctl", &["-D", &self.data(), "-w", "-m", "fast", "stop"]);
    }

    /// Runs psql and returns its output, unaligned and without column headings.
    pub(crate) fn sql(&self, text: &str) -> String {
        let args = ["-h", &self.home.path().display().to_string(), "-d", "postgres", "-v"];
        self.run("psql", &[&args[..], &["ON_ERROR_STOP=1", "-XAtqc", text]].concat())
    }

    pub(crate) fn pgbench(&self, args: &[&str]) {
        let host = self.home.path().display().to_string();
        self.run("pgbench", &[&["-h", &host][..], args, &["postgres"]].concat());
    }

    /// Path of a table's main fork.
    pub(crate) fn path(&self, table: &str) -> PathBuf {
        let below = self.sql(&format!("select pg_relation_filepath('{table}')"));
        self.home.path().join("data").join(below.trim())
    }

    /// Creates a file that the server can read.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.home.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    }

    fn data(&self) -> String {
        self.home.path().join("data").display().to_string()
    }

    fn run(&self, program: &str, args: &[&str]) -> String {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--", &format!("{PROGRAMS}/{program}")]).args(args);
        command.current_dir(self.home.path());
        // The server inherits our file descriptors and keeps them open. We therefore redirect its
        // output to the log file, rather than to a pipe that we would have to wait for.
        if program == "pg_ctl" {
            let status = command.stdout(std::process::Stdio::null()).status().expect("runs");
            assert!(status.success(), "{program} {args:?}");
            return String::new();
        }
        let output = command.output().expect("runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {args:?}: {error}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.running && !std::thread::panicking() {
            self.stop();
        } else if self.running {
            let mut stop = Command::new("runuser");
            stop.args(["-u", "postgres", "--", &format!("{PROGRAMS}/pg_ctl"), "-D", &self.data()]);
            let _ = stop.args(["-m", "immediate", "stop"]).status();
        }
    }
}
