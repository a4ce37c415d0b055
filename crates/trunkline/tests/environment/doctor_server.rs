//! Compares predictions of `trunkline doctor` with a real PostgreSQL 18: it starts with a limit or a
//! setting exactly if doctor says so.
//!
//! ```text
//!   limit, setting ──▶ trunkline doctor ──▶ "would start"
//!        └───────────▶ postgres ──────────▶ "ready to accept connections", or its end
//! ```
//! The server of the fixtures was built without io_uring, so this is about the other methods. What
//! was measured with io_uring is in decision 0026.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use trunkline_aio::facade::env;

use crate::child::Running;
use crate::doctor::{doctor, run};
use crate::need;

/// A user that exists on every system, which `initdb` asks for.
const UID: u32 = 65_534;

/// A copy of a server and a new cluster, which belong to a user that may run them.
struct Server {
    home: tempfile::TempDir,
}

impl Server {
    fn new() -> Option<Server> {
        let fixtures = env::var("TRUNKLINE_FIXTURE_DIR").map(PathBuf::from);
        let programs = fixtures.as_ref().and_then(|dir| {
            let entries = fs::read_dir(dir.join("servers")).ok()?.flatten();
            let mut paths = entries.map(|entry| entry.path());
            paths.find(|path| {
                path.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(b"18."))
            })
        });
        let Some(programs) = programs else {
            need::skip("no fixture");
            return None;
        };
        let home = tempfile::tempdir().expect("temporary directory");
        let run = |command: &mut Command| assert!(command.status().expect("runs").success());
        run(Command::new("cp").arg("-R").arg(programs).arg(home.path().join("server")));
        run(Command::new("chown").args(["-R", &format!("{UID}:{UID}")]).arg(home.path()));
        let server = Server { home };
        let mut command = server.command("initdb", &[]);
        command.arg("-D").arg(server.data()).args(["-U", "postgres", "-A", "trust", "--no-sync"]);
        run(command.stdout(Stdio::null()).stderr(Stdio::null()));
        Some(server)
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// A program of the server, as its user, after other programs.
    fn command(&self, program: &str, before: &[&str]) -> Command {
        let user =
            [format!("--reuid={UID}"), format!("--regid={UID}"), "--clear-groups".to_owned()];
        let before = [before, &["setpriv"]].concat();
        let mut command = Command::new(before[0]);
        command
            .args(&before[1..])
            .args(user)
            .arg(self.home.path().join("server/bin").join(program));
        command.env("LC_ALL", "C").current_dir("/");
        command
    }

    /// Whether the server starts, as this user and with this limit of open files.
    fn starts(&self, nofile: u64, settings: &[&str]) -> bool {
        let limit = format!("--nofile={nofile}:{nofile}");
        let mut command = self.command("postgres", &["prlimit", &limit]);
        command.arg("-D").arg(self.data());
        command.arg("-k").arg(self.home.path()).args(["-c", "listen_addresses="]);
        command.args(["-c", "log_destination=stderr", "-c", "logging_collector=off"]);
        command.args(settings.iter().flat_map(|setting| ["-c", setting]));
        let mut running = Running::start(&mut command);
        let starts =
            running.wait_for_message_or_end("database system is ready to accept connections");
        if starts {
            // A fast shutdown.
            running.signal(Signal::INT);
        }
        running.wait_for_end();
        starts
    }

    /// Asserts that the prediction is right, and that it is this one.
    fn assert_starts(&self, nofile: u64, settings: &[&str], expected: bool) {
        let limit = format!("--nofile={nofile}:{nofile}");
        let args: Vec<&str> = settings.iter().flat_map(|setting| ["-c", setting]).collect();
        let found = run(doctor(&["prlimit", &limit], &self.data(), &args));
        for method in ["worker", "sync"] {
            let prediction = found.prediction(18, method);
            assert_eq!(prediction["starts"], expected, "{nofile} {settings:?}: {prediction}");
            let method = format!("io_method={method}");
            let starts = self.starts(nofile, &[settings, &[&method]].concat());
            assert_eq!(starts, expected, "{nofile} {settings:?} {method}");
        }
    }
}

#[test]
fn a_server_does_what_was_predicted() {
    if !need::root() {
        return;
    }
    let Some(server) = Server::new() else { return };
    let many = 1024;
    server.assert_starts(many, &[], true);
    // Files. The least for Debian's servers is 63, but npm's has two more open: the random devices, by an
    // older OpenSSL.
    server.assert_starts(62, &[], false);
    server.assert_starts(65, &[], true);
    // Settings that contradict each other.
    server.assert_starts(many, &["max_connections=3"], false);
    server.assert_starts(many, &["max_connections=4"], true);
    server.assert_starts(many, &["max_connections=262108"], false);
    // No machine has that many huge pages reserved.
    let huge = ["huge_pages=on", "shared_buffers=1000GB"];
    server.assert_starts(many, &huge, false);
    // A line that the server can't read.
    let append = |path: &Path, text: &str| {
        let before = fs::read_to_string(path).expect("read");
        fs::write(path, before.clone() + text).expect("written");
        before
    };
    let configuration = server.data().join("postgresql.conf");
    let before = append(&configuration, "\nwork_mem = '4MB\n");
    server.assert_starts(many, &[], false);
    fs::write(&configuration, before).expect("written");
    server.assert_starts(many, &[], true);
}
