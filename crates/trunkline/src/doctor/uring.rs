//! Checks of io_uring: whether a ring works, why not, and which features the kernel has.
//!
//! The errno alone doesn't tell the cause. `EPERM` can come from the sysctl, from a seccomp filter or
//! from a security module, and `ENOMEM` nearly always means `RLIMIT_MEMLOCK`. So the cause is
//! recognised from the errno together with the state of the system, as in the engine's own fallback
//! ([`Fallback`]).

use std::io;

use trunkline_aio::{Cause, Fallback, Feature};

use super::check::Check;
use super::host::Host;
use super::ring_probe::{Answer, Outcome, Trial};

pub(crate) const AREA: &str = "io_uring";

/// What seccomp sends by default to a process that makes a forbidden call.
const SIGSYS: i32 = 31;

/// A cause and its fix, each in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Why {
    pub(crate) reason: String,
    pub(crate) fix: String,
}

/// Why io_uring can't be used at all, if so.
pub(crate) fn obstacle(outcome: &Outcome, host: &Host) -> Option<Why> {
    let answer = match outcome {
        Outcome::Killed(SIGSYS) => {
            let reason = "a seccomp filter kills programs that use io_uring (SIGSYS)".to_owned();
            return Some(Why { reason, fix: host.seccomp_fix() });
        }
        Outcome::Killed(signal) => {
            let reason = format!("the program that tried it was killed by signal {signal}");
            return Some(Why { reason, fix: "see the kernel's log".to_owned() });
        }
        Outcome::Failed(reason) => {
            let fix = "mount /proc, and let the server's user execute this program".to_owned();
            return Some(Why { reason: format!("not tried: {reason}"), fix });
        }
        Outcome::Answered(answer) => answer,
    };
    let trials = [Some(&answer.setup), answer.read.as_ref()];
    let needed = ["READ", "WRITE", "READV", "WRITEV", "FSYNC", "REGISTER_PROBE"];
    let opcodes = answer.opcodes.iter().filter(|trial| needed.contains(&&*trial.name));
    let failed = trials
        .into_iter()
        .flatten()
        .chain(opcodes)
        .find_map(|trial| trial.errno.map(|errno| (trial, errno)));
    failed.map(|(trial, errno)| why(trial, errno, answer, host))
}

/// Why a call failed with `errno`.
pub(crate) fn why(trial: &Trial, errno: i32, answer: &Answer, host: &Host) -> Why {
    let fallback = Fallback::recognise(Feature::IoUring, errno);
    let error = io::Error::from_raw_os_error(errno);
    let is_member = host
        .uring_group
        .is_some_and(|group| answer.groups.iter().any(|own| i64::from(*own) == group));
    let cause = match fallback.cause {
        // The sysctl admits it.
        Cause::Sysctl(1) if is_member && answer.seccomp => Cause::Seccomp,
        Cause::Sysctl(1) if is_member => Cause::Permission,
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
        Cause::LockedMemory(_) => {
            let limit = answer.memlock.unwrap_or(u64::MAX) / 1024;
            format!("RLIMIT_MEMLOCK is {limit} kB: {}: {error}", trial.name)
        }
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
    match (obstacle(outcome, host), outcome) {
        (Some(Why { reason, fix }), Outcome::Answered(answer)) if answer.setup.errno.is_none() => {
            checks.push(Check::good(AREA, "set up", "a ring was opened"));
            checks.push(Check::missing(AREA, "use", reason, fix));
        }
        (Some(Why { reason, fix }), _) => checks.push(Check::missing(AREA, "set up", reason, fix)),
        (None, _) => {
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
    ("IORING_FEAT_NODROP", "5.5", "completions are kept when the queue overflows"),
    ("IORING_FEAT_EXT_ARG", "5.11", "waiting with a time limit"),
    ("IORING_FEAT_NATIVE_WORKERS", "5.12", "kernel threads that belong to the process"),
    ("IORING_SETUP_CQSIZE", "5.5", "completion queues of any size"),
    ("IORING_SETUP_COOP_TASKRUN", "5.19", "no interrupts of the issuer"),
    ("IORING_SETUP_SINGLE_ISSUER", "6.0", "less locking for a ring with one thread"),
    ("IORING_SETUP_DEFER_TASKRUN", "6.1", "completions in batches"),
    ("IORING_OP_SYNC_FILE_RANGE", "5.2", "asynchronous writeback"),
    ("IORING_OP_READ_FIXED", "5.1", "reads into registered memory"),
    ("IORING_OP_WRITE_FIXED", "5.1", "writes from registered memory"),
    ("IORING_OP_READV_FIXED", "6.15", "combined reads into registered memory"),
    ("IORING_OP_WRITEV_FIXED", "6.15", "combined writes from registered memory"),
    ("IORING_REGISTER_BUFFERS", "5.1", "pages are pinned once, not for each I/O"),
    ("IORING_REGISTER_BUFFERS (sparse)", "5.13", "memory can be registered while it is in use"),
    ("IORING_REGISTER_FILES (sparse)", "5.19", "files can be registered while they are in use"),
    ("IORING_REGISTER_IOWQ_MAX_WORKERS", "5.15", "a hung mount leaves threads to others"),
];

fn feature(name: &str, trial: &Trial, answer: &Answer, host: &Host) -> Check {
    let known = FEATURES.iter().find(|(known, ..)| *known == name);
    let (since, purpose) = known.map_or(("5.6", "basic reads and writes"), |it| (it.1, it.2));
    let Some(errno) = trial.errno else { return Check::good(AREA, name, purpose) };
    let error = io::Error::from_raw_os_error(errno);
    let is_new = matches!(
        rustix::io::Errno::from_raw_os_error(errno),
        rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::FAULT
    );
    if is_new {
        let fix = format!("use Linux {since} or newer");
        return Check::limited(AREA, name, format!("{error}; it gives {purpose}"), fix);
    }
    let Why { reason, fix } = why(trial, errno, answer, host);
    Check::limited(AREA, name, format!("{reason}; it gives {purpose}"), fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(setup: Option<i32>, read: Option<i32>) -> Answer {
        let trial = |name: &str, errno| Trial { name: name.to_owned(), errno };
        Answer {
            uid: 26,
            groups: vec![26],
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
        assert!(found[0].contains("not tried: no /proc"), "{found:?}");
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
        let name = "Limited IORING_REGISTER_BUFFERS: ";
        assert!(found[2].starts_with(name), "{found:?}");
    }
}
