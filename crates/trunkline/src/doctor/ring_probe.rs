//! Tries io_uring in a child process.
//!
//! The child may be a different user: root isn't subject to `RLIMIT_MEMLOCK`, but PostgreSQL never
//! runs as root. If root asks about a data directory, the child therefore runs as the directory's
//! owner, with the limits of this process. A child also survives two things that would end us: a
//! seccomp filter that kills the caller, and a descriptor limit that is used up.
//!
//! ```text
//!   trunkline doctor ── starts ──▶ trunkline probe-rings 142 64   (as the owner)
//!                    ◀── Answer, as JSON on its standard output ──
//! ```
//! The kernel frees a ring, and gives back the locked memory it was charged for, some time after it
//! was closed. If a ring can't be opened although the limit is large enough, the child therefore
//! tries again for a while.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};
use trunkline_aio::clock;
use trunkline_aio::facade::Futex;
use trunkline_aio::{UringProbe, UringTrial, open_rings, ring_bytes};

use super::host::Privileges;
use crate::exit::{Exit, Failure};
use crate::output::print_json;

/// How long the child waits for memory of rings that were closed.
const PATIENCE: Duration = Duration::from_secs(10);
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The program itself, even if its path can't be reached by the child's user.
const PROGRAM: &str = "/proc/self/exe";

/// Arguments of the child.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct ProbeRingsArgs {
    /// Number of rings to open at the same time.
    count: u32,
    /// Entries of each ring.
    entries: u32,
}

/// One thing that the child tried.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Trial {
    pub(crate) name: String,
    pub(crate) errno: Option<i32>,
}

/// What the child found out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The child's user.
    pub(crate) uid: u32,
    pub(crate) setup: Trial,
    pub(crate) read: Option<Trial>,
    pub(crate) features: Vec<Trial>,
    pub(crate) flags: Vec<Trial>,
    pub(crate) opcodes: Vec<Trial>,
    pub(crate) registrations: Vec<Trial>,
    /// How many of the rings could be opened, and the errno of the next one.
    pub(crate) opened: u32,
    pub(crate) rings_errno: Option<i32>,
    /// Limits in bytes and in files; `None` if there is no limit.
    pub(crate) memlock: Option<u64>,
    pub(crate) nofile: Option<u64>,
    pub(crate) seccomp: bool,
    /// The limit of locked memory doesn't apply to this user.
    pub(crate) locks_memory: bool,
}

/// How the child ended.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    Answered(Box<Answer>),
    /// A signal ended the child.
    Killed(i32),
    /// The child could not run or could not answer.
    Failed(String),
}

/// Runs the child, as user `(uid, gid)` if given.
pub(crate) fn ask(count: u32, entries: u32, user: Option<(u32, u32)>) -> Outcome {
    let mut command = Command::new(PROGRAM);
    command.args(["probe-rings", &count.to_string(), &entries.to_string()]);
    command.stdin(Stdio::null()).stderr(Stdio::piped()).current_dir("/");
    if let Some((uid, gid)) = user {
        command.gid(gid).uid(uid);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return Outcome::Failed(format!("could not start {PROGRAM}: {error}")),
    };
    if let Some(signal) = output.status.signal() {
        return Outcome::Killed(signal);
    }
    match serde_json::from_slice(&output.stdout) {
        Ok(answer) => Outcome::Answered(Box::new(answer)),
        Err(_) => Outcome::Failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// Runs in the child: tries everything and prints the answer.
pub(crate) fn run(args: &ProbeRingsArgs) -> Result<Exit, Failure> {
    let file = File::open(PROGRAM)
        .map_err(|error| Failure::cannot_run(format_args!("could not open {PROGRAM}: {error}")))?;
    let probe = UringProbe::run(&file);
    let privileges = Privileges::own();
    let memlock = getrlimit(Resource::Memlock).current;
    let bytes = ring_bytes(args.entries) * u64::from(args.count);
    let fits = privileges.locks_memory || memlock.is_none_or(|limit| bytes <= limit);
    let (opened, rings_errno) = match probe.setup.errno {
        Some(_) => (0, probe.setup.errno),
        None => open_all(args, fits),
    };
    print_json(&Answer {
        uid: rustix::process::geteuid().as_raw(),
        setup: Trial::of(&probe.setup),
        read: probe.read.as_ref().map(Trial::of),
        features: trials(&probe.features),
        flags: trials(&probe.flags),
        opcodes: trials(&probe.opcodes),
        registrations: trials(&probe.registrations),
        opened,
        rings_errno,
        memlock,
        nofile: getrlimit(Resource::Nofile).current,
        seccomp: privileges.seccomp,
        locks_memory: privileges.locks_memory,
    })?;
    Ok(Exit::Good)
}

/// Opens the rings, again if memory is short although the limit is large enough.
fn open_all(args: &ProbeRingsArgs, fits: bool) -> (u32, Option<i32>) {
    let (deadline, never) = (clock::now().after(PATIENCE), Futex::new(0));
    loop {
        let rings = open_rings(args.count, args.entries);
        let result = (rings.opened, rings.errno);
        let is_short = rings.errno == Some(rustix::io::Errno::NOMEM.raw_os_error());
        if !(is_short && fits && clock::now() < deadline) {
            return result;
        }
        drop(rings);
        never.wait(0, Some(RETRY_INTERVAL));
    }
}

impl Trial {
    fn of(trial: &UringTrial) -> Trial {
        Trial { name: trial.name.to_owned(), errno: trial.errno }
    }
}

fn trials(trials: &[UringTrial]) -> Vec<Trial> {
    trials.iter().map(Trial::of).collect()
}
