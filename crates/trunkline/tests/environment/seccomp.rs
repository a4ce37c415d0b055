//! A seccomp filter, such as the one a container runtime installs, forbids some or all io_uring
//! system calls. The command must fall back to another method and print the reason.
//!
//! A filter applies only to the thread that installs it and to that thread's children. We therefore
//! start a thread that installs the filter, starts the child, and exits.

use std::process::Command;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use trunkline_aio::facade::channel::bounded;
use trunkline_aio::facade::thread;

use crate::child::{Ended, Running};
use crate::cluster::Cluster;
use crate::verify::{Report, binary, verify};

// These numbers are the same on every architecture.
pub(crate) const IO_URING_SETUP: i64 = 425;
pub(crate) const IO_URING_ENTER: i64 = 426;
pub(crate) const IO_URING_REGISTER: i64 = 427;

/// Runs `verify` under a seccomp filter. If the command makes the system call `call`, it fails with
/// `errno`.
fn verify_without(call: i64, errno: u32, cluster: &Cluster) -> Report {
    let command = verify(&[], binary(), &cluster.path, "io_uring");
    Report::of(run_without(call, SeccompAction::Errno(errno), command))
}

/// Runs a command under a seccomp filter that takes this action if it makes the system call `call`.
pub(crate) fn run_without(call: i64, action: SeccompAction, mut command: Command) -> Ended {
    let (sender, receiver) = bounded::<Ended>(1);
    let body = move || {
        let architecture = std::env::consts::ARCH.try_into().expect("known");
        let rules = [(call, Vec::new())].into();
        let otherwise = SeccompAction::Allow;
        let filter = SeccompFilter::new(rules, otherwise, action, architecture).expect("a filter");
        let program: BpfProgram = filter.try_into().expect("a program");
        apply_filter(&program).expect("filtered");
        sender.send(Running::start(&mut command).wait_for_end()).expect("received");
    };
    thread::spawn("filtered", body).expect("a thread");
    receiver.receive().expect("it ended")
}

#[test]
fn forbidden_by_seccomp() {
    let cluster = Cluster::with_files(20, 40);
    let forbidden = "io_uring is not available, using worker: a seccomp filter forbids it";
    let (eperm, enosys) = (1, 38);
    for (call, errno) in [
        (IO_URING_SETUP, eperm),
        (IO_URING_SETUP, enosys),
        // The ring can be created, but fails at the first read.
        (IO_URING_ENTER, eperm),
        (IO_URING_ENTER, enosys),
        // Without this system call, we can't probe a ring's features.
        (IO_URING_REGISTER, eperm),
        (IO_URING_REGISTER, enosys),
    ] {
        let report = verify_without(call, errno, &cluster);
        let case = format!("system call {call} fails with {errno}: {report:?}");
        assert_eq!(report.code, 0, "{case}");
        assert_eq!(report.summary["io_method"], "worker", "{case}");
        assert_eq!(report.summary["blocks_scanned"], 800, "{case}");
        assert!(report.has_message("warning", forbidden), "{case}");
        let fix = "allow io_uring_setup, io_uring_enter and io_uring_register";
        assert!(report.has_message("hint", fix), "{case}");
    }
}
