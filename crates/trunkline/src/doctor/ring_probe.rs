//! Tries io_uring in a child process.
//!
//! The child may be a different user: root isn't subject to `RLIMIT_MEMLOCK`, but PostgreSQL never
//! runs as root. If root asks about a data directory, the child therefore becomes the directory's
//! owner, with the limits of this process. If it can't, it tries nothing, since the result would be
//! that of another user. A child also survives two things that would end us: a seccomp filter that
//! kills the caller, and a descriptor limit that is used up.
//!
//! ```text
//!   trunkline doctor ── starts ──▶ trunkline probe-rings 142 64 PARENT 26 26 1234
//!                    ◀── Answer, as JSON on its standard output ──
//! ```
//! The kernel ends the child as soon as its parent ends, even by `kill -9`.
//!
//! The kernel frees a ring, and gives back the locked memory it was charged for, some time after it
//! was closed. If a ring can't be opened although the limit is large enough, the child therefore
//! tries again for a while.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{
    Resource, Signal, getgroups, getppid, getrlimit, set_parent_process_death_signal,
};
use serde::{Deserialize, Serialize};
use trunkline_aio::clock::{self, Time};
use trunkline_aio::facade::Futex;
use trunkline_aio::{UringProbe, UringTrial, open_rings, ring_bytes};

use super::host::Privileges;
use super::server_user::ServerUser;
use crate::exit::{Exit, Failure};
use crate::output::print_json;

/// How long the child waits for memory of rings that were closed.
const PATIENCE: Duration = Duration::from_secs(10);
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The program itself, even if its path can't be reached by the child's user.
const PROGRAM: &str = "/proc/self/exe";

/// Arguments of the child.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ProbeRingsArgs {
    /// Number of rings to open at the same time.
    count: u32,
    /// Entries of each ring.
    entries: u32,
    /// The process that waits for the answer, which must be our parent.
    parent: i32,
    /// The user to become before anything is tried.
    user: Option<u32>,
    /// The user's groups, the primary one first.
    groups: Vec<u32>,
}

/// The result of a trial: the call, opcode or feature, and the errno if it failed.
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
    /// Its groups.
    pub(crate) groups: BTreeSet<u32>,
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

/// Runs the child, as a user if given. The thread that calls this is the child's parent, and must
/// not end before.
pub(crate) fn ask(count: u32, entries: u32, user: Option<&ServerUser>) -> Outcome {
    let mut command = Command::new(PROGRAM);
    let own = std::process::id();
    command.args(["probe-rings", &count.to_string(), &entries.to_string(), &own.to_string()]);
    command.stdin(Stdio::null()).stderr(Stdio::piped()).current_dir("/");
    if let Some(user) = user {
        command.arg(user.uid.to_string()).args(user.groups.iter().map(u32::to_string));
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
        Err(_) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let text = text.trim().trim_start_matches("trunkline: error: ");
            Outcome::Failed(text.to_owned())
        }
    }
}

/// Runs in the child: tries everything and prints the answer.
pub(crate) fn run(args: &ProbeRingsArgs) -> Result<Exit, Failure> {
    let file = File::open(PROGRAM)
        .map_err(|error| Failure::cannot_run(format_args!("could not open {PROGRAM}: {error}")))?;
    if let Some(uid) = args.user {
        let user = ServerUser { uid, groups: args.groups.clone() };
        user.assume().map_err(|error| {
            Failure::cannot_run(format_args!("could not become user {uid}: {error}"))
        })?;
    }
    // After the change of the user, which resets it.
    end_with_parent(args.parent)?;
    let privileges = Privileges::own();
    let memlock = getrlimit(Resource::Memlock).current;
    let fits = |bytes| privileges.locks_memory || memlock.is_none_or(|limit| bytes <= limit);
    let mut patience = Patience::new(fits(UringProbe::bytes()));
    let probe = UringProbe::run(&file, &mut || patience.wait());
    let bytes = ring_bytes(args.entries) * u64::from(args.count);
    let (opened, rings_errno) = match probe.setup.errno {
        Some(_) => (0, probe.setup.errno),
        None => open_all(args, Patience::new(fits(bytes))),
    };
    let mut groups: BTreeSet<u32> =
        getgroups().unwrap_or_default().into_iter().map(|group| group.as_raw()).collect();
    groups.insert(rustix::process::getegid().as_raw());
    print_json(&Answer {
        uid: rustix::process::geteuid().as_raw(),
        groups,
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

/// Makes the kernel end this process together with its parent.
fn end_with_parent(parent: i32) -> Result<(), Failure> {
    let failed = |error: rustix::io::Errno| {
        Failure::cannot_run(format_args!("could not set the parent's death signal: {error}"))
    };
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed)?;
    // It may have ended before that call.
    match getppid() {
        Some(found) if found.as_raw_pid() == parent => Ok(()),
        _ => Err(Failure::cannot_run(format_args!("process {parent} is not the parent"))),
    }
}

/// How long the child waits for memory that the kernel gives back late.
struct Patience {
    deadline: Time,
    /// The limit is large enough, so that waiting may help.
    fits: bool,
    never: Futex,
}

impl Patience {
    fn new(fits: bool) -> Patience {
        Patience { deadline: clock::now().after(PATIENCE), fits, never: Futex::new(0) }
    }

    /// Waits a moment. Returns false instead if waiting doesn't help any more.
    fn wait(&mut self) -> bool {
        let may_help = self.fits && clock::now() < self.deadline;
        if may_help {
            self.never.wait(0, Some(RETRY_INTERVAL));
        }
        may_help
    }
}

/// Opens the rings. If memory is short, closes all of them and tries again as long as that may help.
fn open_all(args: &ProbeRingsArgs, mut patience: Patience) -> (u32, Option<i32>) {
    loop {
        let rings = open_rings(args.count, args.entries);
        let result = (rings.opened, rings.errno);
        drop(rings);
        let is_short = result.1 == Some(rustix::io::Errno::NOMEM.raw_os_error());
        if !(is_short && patience.wait()) {
            return result;
        }
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
