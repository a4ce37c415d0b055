//! `kill -9` at random moments: whatever a command has left, its next start cleans, and a cluster
//! never changes.
//!
//! ```text
//!   once       the command alone, to know how long it takes here
//!   each round start ── kill after a random part of that time ──▶ start again, to its end ──▶ check
//! ```
//! A calibration takes half a minute at least and leaves nothing, so it isn't run again each time.
//! A kill may come before or after any step, so no outcome depends on when it comes. `cargo xtask
//! soak kills` has more rounds.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use trunkline_aio::clock;
use trunkline_aio::facade::random::Rng;

use crate::child::Running;
use crate::doctor::{make_cluster, owner};
use crate::doctor_places::{Status, files};
use crate::fuse::PATIENCE;
use crate::need;
use crate::verify::binary;

/// Rounds of each command, unless `TRUNKLINE_KILLS` says otherwise.
const ROUNDS: u32 = 1;

/// Time limit for a complete run. Creating a cluster alone takes a minute on a busy machine.
const COMPLETE: Duration = Duration::from_secs(600);

/// A command under test, and what it may leave.
struct Victim<'a> {
    /// Starts it.
    command: &'a dyn Fn() -> Command,
    /// The output after which a command that serves until it is signalled is ready.
    ready: Option<&'a str>,
    /// Names that may be in the directory beside the cluster, however the command ended.
    stay: &'a [&'a str],
    /// How long the command takes, if that is too long for a complete run after each kill. Then
    /// nothing may be left even before the next start.
    long: Option<Duration>,
}

impl Victim<'_> {
    fn start(&self) -> Running {
        Running::start(&mut (self.command)())
    }

    /// Runs the command undisturbed, to its end. Returns how long it took to be ready.
    fn complete(&self) -> Duration {
        let (begin, mut running) = (clock::now(), self.start());
        if let Some(text) = self.ready {
            running.wait_for_output(text);
        }
        let took = clock::now().since(begin);
        if self.ready.is_some() {
            running.signal(Signal::TERM);
        }
        let ended = running.wait_for_end_within(COMPLETE);
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        if self.ready.is_some() { took } else { clock::now().since(begin) }
    }

    /// Kills it at random moments. `home` has the directory `data`, which must not change.
    fn is_killed(&self, home: &Path) {
        let number = |name: &str, default: u32| {
            #[expect(
                clippy::disallowed_methods,
                reason = "a test has no main that could pass this down"
            )]
            let value = std::env::var(name).ok();
            value.map_or(default, |value| value.parse().expect("a number"))
        };
        let mut random = Rng::new(number("TRUNKLINE_SEED", 1).into());
        let before = files(&home.join("data"));
        let took = self.long.unwrap_or_else(|| self.complete());
        self.check(home, &before);
        for round in 0..number("TRUNKLINE_KILLS", ROUNDS) {
            let part = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            let mut running = self.start();
            running.run_for(took.mul_f64(part));
            running.signal(Signal::KILL);
            running.wait_for_end();
            assert_eq!(files(&home.join("data")), before, "round {round}");
            if self.long.is_none() {
                self.complete();
            }
            self.check(home, &before);
        }
    }

    /// Checks that nothing is left: no files, no mounts, no processes.
    fn check(&self, home: &Path, before: &BTreeMap<PathBuf, Status>) {
        assert_eq!(&files(&home.join("data")), before);
        let entries = fs::read_dir(home).expect("listed").map(|entry| entry.expect("an entry"));
        let names = entries.map(|entry| entry.file_name().into_string().expect("a name"));
        let is_left = |name: &String| name != "data" && !self.stay.contains(&name.as_str());
        let left: Vec<String> = names.filter(is_left).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
        let path = home.to_str().expect("a name");
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("read");
        assert!(!mounts.contains(path), "still mounted: {mounts}");
        // A process that serves a mount ends when nothing uses it any more, which is soon after ours.
        let deadline = clock::now().after(PATIENCE);
        while let Some(command) = process_of(path) {
            assert!(clock::now() < deadline, "still running: {command}");
        }
    }
}

/// A process with this path in its command line.
fn process_of(path: &str) -> Option<String> {
    let commands = fs::read_dir("/proc").expect("listed").flatten().map(|process| {
        let command = fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).replace('\0', " ")
    });
    commands.into_iter().find(|command| command.contains(path))
}

fn trunkline(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.env_remove("PGDATA").current_dir("/").args(arguments);
    command
}

/// A directory with a cluster of this user.
fn home(user: u32) -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a directory");
    make_cluster(home.path(), "", owner(user));
    home
}

#[test]
fn doctor_is_killed() {
    let home = home(61_021);
    let data = home.path().join("data");
    let command = || trunkline(&["doctor", "--json", "-D", data.to_str().expect("a name")]);
    // Nothing is asked for, so nothing that is missing here is an error.
    Victim { command: &command, ready: None, stay: &[], long: None }.is_killed(home.path());
}

#[test]
fn calibrate_is_killed() {
    let home = home(61_026);
    let data = home.path().join("data");
    let arguments = ["calibrate", "--time", "30", "--size", "32MB", "-D"];
    let command = || trunkline(&[&arguments[..], &[data.to_str().expect("a name")]].concat());
    let long = Some(Duration::from_secs(30));
    Victim { command: &command, ready: None, stay: &[], long }.is_killed(home.path());
}

#[test]
fn bench_is_killed() {
    let home = home(61_022);
    let at = |name: &str| home.path().join(name).to_str().expect("a name").to_owned();
    let [csv, html, save] = ["run.csv", "run.html", "run.json"].map(at);
    let workloads = ["sequential", "checkpoint", "durable"];
    let how = ["--scale", "1", "--repetitions", "1", "--io-method", "worker"];
    let files = ["--csv", &csv, "--html", &html, "--save", &save];
    let scratch = ["--scratch", home.path().to_str().expect("a name")];
    let arguments = [&["bench"], &workloads[..], &how, &files, &scratch].concat();
    let command = || trunkline(&arguments);
    let stay = ["run.csv", "run.html", "run.json"];
    Victim { command: &command, ready: None, stay: &stay, long: None }.is_killed(home.path());
}

#[test]
fn bench_on_a_slow_disk_is_killed() {
    if !need::fuse() {
        return;
    }
    let home = home(61_024);
    let disk = ["--slow-disk", "latency=1ms", "--scale", "1", "--repetitions", "1"];
    let scratch = ["--scratch", home.path().to_str().expect("a name")];
    let work = ["bench", "sequential", "durable", "--io-method", "worker"];
    let arguments = [&work[..], &disk, &scratch].concat();
    let command = || trunkline(&arguments);
    Victim { command: &command, ready: None, stay: &[], long: None }.is_killed(home.path());
}

#[test]
fn bench_with_a_server_is_killed() {
    if !need::fuse() {
        return;
    }
    let Some(programs) = need::server() else { return };
    let home = home(61_025);
    // The server's user must get through it.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(home.path(), open).expect("set");
    let work = ["bench", "linear_10", "--scan", "bitmap", "--selectivity", "1"];
    let how = ["--io-method", "worker", "--io-direct=", "--scale", "1", "--repetitions", "1"];
    let server = ["--postgres", programs, "--slow-disk", "latency=1ms"];
    let scratch = ["--scratch", home.path().to_str().expect("a name")];
    let arguments = [&work[..], &how, &server, &scratch].concat();
    let command = || trunkline(&arguments);
    Victim { command: &command, ready: None, stay: &[], long: None }.is_killed(home.path());
}

#[test]
fn slow_disk_is_killed() {
    if !need::fuse() {
        return;
    }
    let home = home(61_023);
    for name in ["directory", "mount"] {
        fs::create_dir(home.path().join(name)).expect("made");
    }
    let [directory, mount] = ["directory", "mount"]
        .map(|name| home.path().join(name).to_str().expect("a name").to_owned());
    let command = || trunkline(&["slow-disk", &directory, &mount, "--profile", "latency=1ms"]);
    let ready = Some("error of the median");
    Victim { command: &command, ready, stay: &["directory", "mount"], long: None }
        .is_killed(home.path());
}
