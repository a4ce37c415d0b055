//! Checks of io_uring: whether a ring works, why not, and which features the kernel has.
//!
//! The errno alone doesn't tell the cause. `EPERM` can come from the sysctl, from a seccomp filter or
//! from a security module. So the cause is recognised from the errno together with the state of the
//! system, as in the engine's own fallback ([`Fallback`]). Limits that ran out are in [`shortage`].

use std::io;

use rustix::io::Errno;
use trunkline_aio::{Cause, Fallback, Feature, UringProbe};

use super::check::{Check, Why};
use super::host::Host;
use super::ring_probe::{Answer, Outcome, Trial};
use super::shortage::{self, Memory};

pub(crate) const AREA: &str = "io_uring";

/// What seccomp sends by default to a process that makes a forbidden call.
const SIGSYS: i32 = 31;

/// What keeps a process from reading with io_uring.
#[derive(Debug, Clone)]
pub(crate) enum Obstacle {
    /// The trial itself failed, so nothing is known.
    NotTried(Why),
    /// No ring can be opened.
    SetUp(Why),
    /// Rings can be opened, but don't read.
    Read(Why),
}

impl Obstacle {
    /// The first one in a trial, if any. `bytes` is the memory of the rings that are needed.
    pub(crate) fn of(outcome: &Outcome, host: &Host, bytes: u64) -> Option<Obstacle> {
        let answer = match outcome {
            Outcome::Killed(SIGSYS) => {
                let reason = "a seccomp filter kills programs that use io_uring (SIGSYS)";
                let why = Why { reason: reason.to_owned(), fix: host.seccomp_fix() };
                return Some(Obstacle::SetUp(why));
            }
            Outcome::Killed(signal) => {
                let reason = format!("the program that tried it was killed by signal {signal}");
                let fix = "see the kernel's log".to_owned();
                return Some(Obstacle::NotTried(Why { reason, fix }));
            }
            Outcome::Failed(reason) => {
                let fix = "run doctor as the server's user, with /proc mounted".to_owned();
                let reason = format!("not tried as the server's user: {reason}");
                return Some(Obstacle::NotTried(Why { reason, fix }));
            }
            Outcome::Answered(answer) => answer,
        };
        let memory = Memory::of_rings(bytes, answer, host);
        if let Some(errno) = answer.setup.errno {
            return Some(Obstacle::SetUp(why(&answer.setup, errno, answer, host, memory)));
        }
        let read = answer.read.as_ref()?;
        Some(Obstacle::Read(why(read, read.errno?, answer, host, memory)))
    }

    fn why(self) -> Why {
        match self {
            Obstacle::NotTried(why) | Obstacle::SetUp(why) | Obstacle::Read(why) => why,
        }
    }
}

/// Why our own engine doesn't use a ring that reads, if so. It asks each ring for its opcodes, which
/// a server doesn't.
fn engine_obstacle(answer: &Answer, host: &Host) -> Option<Why> {
    let needed = ["READ", "WRITE", "READV", "WRITEV", "FSYNC", "REGISTER_PROBE"];
    let mut opcodes = answer.opcodes.iter().filter(|trial| needed.contains(&&*trial.name));
    let memory = Memory::of_rings(UringProbe::bytes(), answer, host);
    opcodes.find_map(|trial| Some(why(trial, trial.errno?, answer, host, memory)))
}

/// Why a call failed with `errno`. It needs this memory.
pub(crate) fn why(trial: &Trial, errno: i32, answer: &Answer, host: &Host, memory: Memory) -> Why {
    match Errno::from_raw_os_error(errno) {
        Errno::NOMEM => return shortage::no_memory(trial, answer, memory),
        Errno::NFILE => return shortage::file_table_full(trial),
        _ => {}
    }
    let fallback = Fallback::recognise(Feature::IoUring, errno);
    let error = io::Error::from_raw_os_error(errno);
    let is_member = host
        .uring_group
        .is_some_and(|group| answer.groups.iter().any(|own| i64::from(*own) == group));
    let cause = match fallback.cause {
        // The sysctl admits it.
        Cause::Sysctl(1) if is_member && answer.seccomp => Cause::Seccomp,
        Cause::Sysctl(1) if is_member => Cause::Permission,
        // A filter may be there for other reasons, and io_uring isn't.
        Cause::Seccomp if errno == Errno::NOSYS.raw_os_error() && !host.has((5, 1)) => {
            Cause::Kernel
        }
        cause => cause,
    };
    let reason = match cause {
        Cause::Sysctl(1) => {
            let group = host.uring_group.filter(|group| *group >= 0);
            let group = group.map_or("no group".to_owned(), |group| format!("group {group}"));
            format!(
                "the sysctl kernel.io_uring_disabled is 1 and kernel.io_uring_group admits {group}, \
                 but not user {} with the groups {:?}",
                answer.uid, answer.groups
            )
        }
        Cause::Sysctl(value) => format!("the sysctl kernel.io_uring_disabled is {value}"),
        Cause::Seccomp => {
            let container = host.container.map(|name| format!(" of {name}")).unwrap_or_default();
            format!("a seccomp filter{container} forbids it: {}: {error}", trial.name)
        }
        Cause::Kernel => format!("the kernel {} lacks it: {}: {error}", host.release, trial.name),
        Cause::Descriptors(_) => {
            let limit = answer.nofile.unwrap_or(u64::MAX);
            format!("RLIMIT_NOFILE is {limit}: {}: {error}", trial.name)
        }
        _ => format!("{}: {error}", trial.name),
    };
    let fix = match cause {
        Cause::Sysctl(1) => format!(
            "sysctl -w kernel.io_uring_group=GID with a group of user {}, or \
             kernel.io_uring_disabled=0",
            answer.uid
        ),
        Cause::Seccomp => host.seccomp_fix(),
        cause => Fallback { cause, ..fallback }.fix(),
    };
    Why { reason, fix }
}

/// All checks of io_uring.
pub(crate) fn checks(outcome: &Outcome, host: &Host) -> Vec<Check> {
    let mut checks = Vec::new();
    let bytes = UringProbe::bytes();
    let obstacle = match (Obstacle::of(outcome, host, bytes), outcome) {
        (None, Outcome::Answered(answer)) => engine_obstacle(answer, host).map(Obstacle::Read),
        (obstacle, _) => obstacle,
    };
    match obstacle {
        Some(Obstacle::Read(Why { reason, fix })) => {
            checks.push(Check::good(AREA, "set up", "a ring was opened"));
            checks.push(Check::missing(AREA, "use", reason, fix));
        }
        Some(obstacle) => {
            let Why { reason, fix } = obstacle.why();
            checks.push(Check::missing(AREA, "set up", reason, fix));
        }
        None => {
            let reason = format!("a ring was opened and read a file, Linux {}", host.release);
            checks.push(Check::good(AREA, "set up", reason));
        }
    }
    let Outcome::Answered(answer) = outcome else { return checks };
    let parts: [(&str, &[Trial]); 4] = [
        ("IORING_FEAT_", &answer.features),
        ("IORING_SETUP_", &answer.flags),
        ("IORING_OP_", &answer.opcodes),
        ("IORING_REGISTER_", &answer.registrations),
    ];
    for (prefix, trials) in parts {
        for trial in trials {
            checks.push(feature(&format!("{prefix}{}", trial.name), trial, answer, host));
        }
    }
    checks
}

/// What a feature is good for, and the kernel that brought it.
const FEATURES: [(&str, &str, &str); 16] = [
    ("IORING_FEAT_NODROP", "5.5", "completions that outlive an overflow of the queue"),
    ("IORING_FEAT_EXT_ARG", "5.11", "waiting with a time limit"),
    ("IORING_FEAT_NATIVE_WORKERS", "5.12", "kernel threads that belong to the process"),
    ("IORING_SETUP_CQSIZE", "5.5", "completion queues of any size"),
    ("IORING_SETUP_COOP_TASKRUN", "5.19", "completions without interrupting the issuer"),
    ("IORING_SETUP_SINGLE_ISSUER", "6.0", "reduced locking for a ring with one thread"),
    ("IORING_SETUP_DEFER_TASKRUN", "6.1", "completions in batches"),
    ("IORING_OP_SYNC_FILE_RANGE", "5.2", "asynchronous writeback"),
    ("IORING_OP_READ_FIXED", "5.1", "reads into registered memory"),
    ("IORING_OP_WRITE_FIXED", "5.1", "writes from registered memory"),
    ("IORING_OP_READV_FIXED", "6.15", "combined reads into registered memory"),
    ("IORING_OP_WRITEV_FIXED", "6.15", "combined writes from registered memory"),
    ("IORING_REGISTER_BUFFERS", "5.1", "memory that is pinned once, instead of for each I/O"),
    ("IORING_REGISTER_BUFFERS (sparse)", "5.13", "registration of memory while the ring is in use"),
    ("IORING_REGISTER_FILES (sparse)", "5.19", "registration of files while the ring is in use"),
    (
        "IORING_REGISTER_IOWQ_MAX_WORKERS",
        "5.15",
        "limit of kernel threads, all of which a hung mount can take",
    ),
];

fn feature(name: &str, trial: &Trial, answer: &Answer, host: &Host) -> Check {
    let known = FEATURES.iter().find(|(known, ..)| *known == name);
    let (since, purpose) = known.map_or(("5.6", "basic reads and writes"), |it| (it.1, it.2));
    let Some(errno) = trial.errno else { return Check::good(AREA, name, purpose) };
    let error = io::Error::from_raw_os_error(errno);
    let is_new =
        matches!(Errno::from_raw_os_error(errno), Errno::INVAL | Errno::OPNOTSUPP | Errno::FAULT);
    if is_new {
        let fix = format!("use Linux {since} or newer");
        return Check::limited(AREA, name, format!("{error}; without it, no {purpose}"), fix);
    }
    let memory = match name.starts_with("IORING_REGISTER_") {
        true => Memory::registered(UringProbe::bytes(), answer),
        false => Memory::of_rings(UringProbe::bytes(), answer, host),
    };
    let Why { reason, fix } = why(trial, errno, answer, host, memory);
    Check::limited(AREA, name, format!("{reason}; without it, no {purpose}"), fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(setup: Option<i32>, read: Option<i32>) -> Answer {
        let trial = |name: &str, errno| Trial { name: name.to_owned(), errno };
        Answer {
            uid: 26,
            groups: [26].into(),
            setup: trial("io_uring_setup", setup),
            read: setup.is_none().then(|| trial("IORING_OP_READ", read)),
            features: Vec::new(),
            flags: Vec::new(),
            opcodes: vec![trial("READV_FIXED", Some(95))],
            registrations: vec![trial("BUFFERS", Some(12))],
            opened: 0,
            rings_errno: None,
            memlock: Some(64 << 10),
            nofile: Some(1024),
            seccomp: false,
            locks_memory: false,
        }
    }

    fn lines(outcome: &Outcome) -> Vec<String> {
        let checks = checks(outcome, &Host { container: None, ..Host::read() });
        let line =
            |it: &Check| format!("{:?} {}: {} | {:?}", it.status, it.name, it.reason, it.fix);
        checks.iter().map(line).collect()
    }

    #[test]
    fn what_kills_the_child_is_named() {
        let found = lines(&Outcome::Killed(SIGSYS));
        assert!(found[0].contains("Missing set up: a seccomp filter kills"), "{found:?}");
        let found = lines(&Outcome::Killed(9));
        assert!(found[0].contains("killed by signal 9"), "{found:?}");
        let found = lines(&Outcome::Failed("no /proc".to_owned()));
        assert!(found[0].contains("not tried as the server's user: no /proc"), "{found:?}");
    }

    #[test]
    fn limits_are_those_of_the_process_that_tried() {
        let found = lines(&Outcome::Answered(Box::new(answer(Some(24), None))));
        assert!(found[0].contains("RLIMIT_NOFILE is 1024: io_uring_setup"), "{found:?}");
    }

    #[test]
    fn a_ring_that_cannot_read_is_of_no_use() {
        let found = lines(&Outcome::Answered(Box::new(answer(None, Some(5)))));
        assert!(found[0].starts_with("Good set up"), "{found:?}");
        assert!(found[1].starts_with("Missing use: IORING_OP_READ: "), "{found:?}");
    }

    #[test]
    fn a_feature_names_the_kernel_that_brought_it() {
        let found = lines(&Outcome::Answered(Box::new(answer(None, None))));
        assert!(found[0].starts_with("Good set up"), "{found:?}");
        assert!(found[1].contains("use Linux 6.15 or newer"), "{found:?}");
        assert!(found[1].contains("; without it, no combined reads into registered"), "{found:?}");
        let name = "Limited IORING_REGISTER_BUFFERS: ";
        assert!(found[2].starts_with(name), "{found:?}");
    }

    /// The cause of a failure of `io_uring_setup` for this answer on this kernel, and the fix.
    fn cause(errno: i32, bytes: u64, kernel: (u32, u32), answer: &Answer) -> Why {
        let host = Host { container: None, kernel, uring_group: Some(1234), ..Host::read() };
        let memory = Memory::of_rings(bytes, answer, &host);
        why(&answer.setup, errno, answer, &host, memory)
    }

    #[test]
    fn a_shortage_of_memory_has_three_causes() {
        let nomem = Errno::NOMEM.raw_os_error();
        let limited = |limit| Answer { memlock: Some(limit), ..answer(Some(nomem), None) };
        let found = cause(nomem, 1 << 20, (6, 18), &limited(64 << 10));
        assert!(found.reason.starts_with("RLIMIT_MEMLOCK is 64 kB: io_uring_setup"), "{found:?}");
        assert!(found.fix.starts_with("ulimit -l 1024,"), "{found:?}");
        // It would fit, if others had locked nothing.
        let found = cause(nomem, 1 << 20, (6, 18), &limited(8 << 20));
        assert!(found.reason.contains("other processes of user 26"), "{found:?}");
        assert!(found.fix.starts_with("ulimit -l 9216,"), "{found:?}");
        let unlimited = Answer { memlock: None, ..answer(Some(nomem), None) };
        let privileged = Answer { locks_memory: true, ..limited(64 << 10) };
        for (kernel, answer) in
            [((6, 1), &limited(64 << 10)), ((6, 18), &unlimited), ((6, 18), &privileged)]
        {
            let found = cause(nomem, 1 << 20, kernel, answer);
            assert!(found.reason.contains("the control group /"), "{found:?}");
            assert!(found.fix.starts_with("raise memory.max"), "{found:?}");
        }
    }

    #[test]
    fn an_old_kernel_and_a_full_file_table_are_no_fault_of_a_filter_or_limit() {
        let filtered = Answer { seccomp: true, ..answer(Some(38), None) };
        let found = cause(38, 0, (4, 18), &filtered);
        assert!(found.reason.starts_with("the kernel "), "{found:?}");
        let found = cause(23, 0, (6, 18), &filtered);
        assert!(found.reason.contains("fs.file-max"), "{found:?}");
        assert!(found.fix.starts_with("sysctl -w fs.file-max"), "{found:?}");
    }
}
