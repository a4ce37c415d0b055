//! Shortages: which limit ran out, and the value that would be enough.
//!
//! ```text
//!   ENOMEM  memory is charged   more is needed than RLIMIT_MEMLOCK    the limit
//!                               less                                  other processes of the user
//!           it isn't            memory itself: the control group, or the machine
//!   EMFILE  RLIMIT_NOFILE       ENFILE  fs.file-max
//! ```

use std::fs;
use std::io;

use super::check::Why;
use super::host::Host;
use super::ring_probe::{Answer, Trial};

/// Locked memory that something needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) bytes: u64,
    /// Whether it counts against `RLIMIT_MEMLOCK`.
    pub(crate) is_charged: bool,
}

impl Memory {
    /// That of rings.
    pub(crate) fn of_rings(bytes: u64, answer: &Answer, host: &Host) -> Memory {
        Memory { bytes, is_charged: host.charges_rings() && !answer.locks_memory }
    }

    /// That of pages that were registered, which counts with every kernel.
    pub(crate) fn registered(bytes: u64, answer: &Answer) -> Memory {
        Memory { bytes, is_charged: !answer.locks_memory }
    }

    /// The limit, if it applies.
    pub(crate) fn limit(self, answer: &Answer) -> Option<u64> {
        answer.memlock.filter(|_| self.is_charged)
    }

    /// Why this is more than the limit, if it is.
    pub(crate) fn exceeds(self, answer: &Answer) -> Option<Why> {
        let limit = self.limit(answer).filter(|limit| self.bytes > *limit)?;
        let reason = format!("RLIMIT_MEMLOCK is {} kB", limit / 1024);
        Some(Why { reason, fix: memlock_fix(self.bytes) })
    }
}

/// Why a trial failed with `ENOMEM`.
pub(crate) fn no_memory(trial: &Trial, answer: &Answer, needs: Memory) -> Why {
    let error = io::Error::from(rustix::io::Errno::NOMEM);
    let failed = format!("{}: {error}", trial.name);
    if let Some(Why { reason, fix }) = needs.exceeds(answer) {
        return Why { reason: format!("{reason}: {failed}"), fix };
    }
    if let Some(limit) = needs.limit(answer) {
        let reason = format!(
            "RLIMIT_MEMLOCK is {} kB for all processes of user {}, and other processes of user {} \
             have locked most of it: {failed}",
            limit / 1024,
            answer.uid,
            answer.uid
        );
        return Why { reason, fix: memlock_fix(limit.saturating_add(needs.bytes)) };
    }
    let path = control_group().unwrap_or_else(|| "/".to_owned());
    let reason = format!(
        "RLIMIT_MEMLOCK doesn't apply, so the control group {path} or the machine has no memory \
         left: {failed}"
    );
    let fix = "raise memory.max of the control group, or lower max_connections".to_owned();
    Why { reason, fix }
}

/// Why a trial failed with `ENFILE`.
pub(crate) fn file_table_full(trial: &Trial) -> Why {
    let most = fs::read_to_string("/proc/sys/fs/file-max").unwrap_or_default();
    let error = io::Error::from(rustix::io::Errno::NFILE);
    let reason = format!(
        "the files of all processes have reached fs.file-max, {}: {}: {error}",
        most.trim(),
        trial.name
    );
    Why { reason, fix: "sysctl -w fs.file-max=N with a larger N".to_owned() }
}

/// How to raise `RLIMIT_MEMLOCK` to at least this many bytes.
pub(crate) fn memlock_fix(bytes: u64) -> String {
    let kilobytes = bytes.div_ceil(1 << 20) << 10;
    format!("ulimit -l {kilobytes}, or LimitMEMLOCK={kilobytes}K in the systemd unit")
}

/// How to raise `RLIMIT_NOFILE` to at least this many files.
pub(crate) fn nofile_fix(files: u64) -> String {
    format!("ulimit -n {files}, or LimitNOFILE={files} in the systemd unit")
}

/// The path of our control group. `None` with version 1, which has one for each controller.
fn control_group() -> Option<String> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}
