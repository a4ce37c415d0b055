//! Predicts whether PostgreSQL 18 and 19 would start here, with each I/O method.
//!
//! A server with `io_method=io_uring` opens a ring for each process that it may ever have, before it
//! accepts connections, and doesn't start if one of them fails. There is no fallback. We open as
//! many rings of the same size with the same limits, so the prediction is a trial, not arithmetic:
//!
//! ```text
//!   max_connections + autovacuum_worker_slots + max_worker_processes + max_wal_senders + 2 + 6
//!   rings of io_max_concurrency entries, and room for at least 48 + 10 other files
//! ```
//! Arithmetic is used only where a trial would say something else than the server: memory that a
//! running server has locked already counts against the same limit.

use serde::Serialize;
use trunkline_aio::ring_bytes;

use super::check::Check;
use super::host::Host;
use super::ring_probe::{Answer, Outcome, Trial};
use super::server_settings::ServerSettings;
use super::uring::{self, Why};
use crate::exit::plain;
use crate::output::human_bytes;

/// Files that a server needs beside its rings (`FD_MINFREE` and `NUM_RESERVED_FDS`).
const FILES_MIN: u64 = 48 + 10;
/// Files that servers of both versions have open before they count how many more they may open. Measured
/// with the least limits at which they start (decision 0026).
const FILES_OPEN: u64 = 5;

/// What would happen with one I/O method.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Prediction {
    pub(crate) version: u32,
    pub(crate) io_method: &'static str,
    /// Whether the server would start.
    pub(crate) starts: bool,
    pub(crate) rings: u32,
    pub(crate) ring_entries: u32,
    /// Memory of all rings.
    pub(crate) ring_bytes: u64,
    /// Whether that memory counts against `RLIMIT_MEMLOCK`.
    pub(crate) is_charged: bool,
    /// Descriptors that the server needs at start.
    pub(crate) descriptors: u64,
    pub(crate) reason: String,
    pub(crate) fix: Option<String>,
}

impl Prediction {
    /// As a check.
    pub(crate) fn check(&self) -> Check {
        let area = format!("PostgreSQL {}", self.version);
        let name = format!("io_method={}", self.io_method);
        match (&self.fix, self.starts) {
            (None, _) => Check::good(&area, name, &self.reason),
            (Some(fix), true) => Check::limited(&area, name, &self.reason, fix),
            (Some(fix), false) => Check::missing(&area, name, &self.reason, fix),
        }
    }
}

/// Predicts both asynchronous methods. `outcome` is that of opening the server's rings, and
/// `is_running` says whether a server of the same user has rings already.
pub(crate) fn predict(
    settings: &ServerSettings,
    outcome: &Outcome,
    host: &Host,
    nofile: Option<u64>,
    is_running: bool,
) -> [Prediction; 2] {
    let (rings, ring_entries) = (settings.rings(), settings.ring_entries());
    let charged = match outcome {
        Outcome::Answered(answer) => host.charges_rings() && !answer.locks_memory,
        _ => host.charges_rings(),
    };
    let base = |io_method, rings: u32, result: Result<(String, Option<String>), Why>| {
        let starts = result.is_ok();
        let (reason, fix) = match result {
            Ok((reason, fix)) => (reason, fix),
            Err(Why { reason, fix }) => (format!("would not start: {reason}"), Some(fix)),
        };
        Prediction {
            version: settings.version,
            io_method,
            starts,
            rings,
            ring_entries: if rings == 0 { 0 } else { ring_entries },
            ring_bytes: ring_bytes(ring_entries) * u64::from(rings),
            is_charged: charged && rings > 0,
            descriptors: u64::from(rings) + FILES_OPEN + FILES_MIN,
            reason: plain(reason),
            fix,
        }
    };
    let refused = settings
        .faults
        .first()
        .map(|fault| Why { reason: fault.clone(), fix: "correct the configuration".to_owned() });
    let faults = || refused.clone().map_or(Ok(()), Err);
    let with_rings = faults().and_then(|()| io_uring(settings, outcome, host, charged, is_running));
    let with_workers =
        faults().and_then(|()| room_for_files(0, nofile)).map(|()| workers(settings, host));
    [base("io_uring", rings, with_rings), base("worker", 0, with_workers)]
}

/// Whether a server could open its rings.
fn io_uring(
    settings: &ServerSettings,
    outcome: &Outcome,
    host: &Host,
    charged: bool,
    is_running: bool,
) -> Result<(String, Option<String>), Why> {
    if let Some(why) = uring::obstacle(outcome, host) {
        return Err(why);
    }
    let Outcome::Answered(answer) = outcome else {
        return Err(Why { reason: "not tried".to_owned(), fix: "run doctor again".to_owned() });
    };
    let rings = settings.rings();
    let bytes = ring_bytes(settings.ring_entries()) * u64::from(rings);
    let need = format!(
        "{rings} rings of {} entries, {} of memory",
        settings.ring_entries(),
        human_bytes(bytes)
    );
    if let Some(errno) = answer.rings_errno {
        let fits = charged && answer.memlock.is_some_and(|limit| bytes <= limit);
        let is_memory = errno == rustix::io::Errno::NOMEM.raw_os_error();
        if is_memory && fits && is_running {
            let reason = format!(
                "would start after the running server has ended, whose rings count against the \
                 same RLIMIT_MEMLOCK: {need}"
            );
            return Ok((reason, Some(memlock_fix(bytes * 2))));
        }
        return Err(failed_ring(answer, errno, host, &need, bytes, rings));
    }
    room_for_files(rings, answer.nofile)?;
    let limit = answer.memlock.filter(|_| charged);
    let memory = match limit {
        Some(limit) => format!(" (RLIMIT_MEMLOCK is {})", human_bytes(limit)),
        None => String::new(),
    };
    let reason = format!("would start: {need}{memory}; all of them were opened");
    // A second cluster of the same user, as during pg_upgrade, would fail.
    let fix = limit.filter(|limit| bytes * 2 > *limit).map(|_| memlock_fix(bytes * 2));
    let reason = match fix {
        Some(_) => format!("{reason}, but a second server of the same user would not start"),
        None => reason,
    };
    Ok((reason, fix))
}

/// Why one of the rings could not be opened.
fn failed_ring(
    answer: &Answer,
    errno: i32,
    host: &Host,
    need: &str,
    bytes: u64,
    rings: u32,
) -> Why {
    let trial =
        Trial { name: format!("ring {} of {rings}", answer.opened + 1), errno: Some(errno) };
    let why = uring::why(&trial, errno, answer, host);
    let fix = match rustix::io::Errno::from_raw_os_error(errno) {
        rustix::io::Errno::NOMEM => memlock_fix(bytes),
        rustix::io::Errno::MFILE => nofile_fix(rings),
        _ => why.fix,
    };
    Why { reason: format!("{}; it needs {need}", why.reason), fix }
}

fn memlock_fix(bytes: u64) -> String {
    let kilobytes = bytes.div_ceil(1 << 20) << 10;
    format!("ulimit -l {kilobytes}, or LimitMEMLOCK={kilobytes}K in the systemd unit")
}

fn nofile_fix(rings: u32) -> String {
    // What the server's own hint suggests: all rings, and max_files_per_process.
    let files = u64::from(rings) + 1000 + FILES_OPEN;
    format!("ulimit -n {files}, or LimitNOFILE={files} in the systemd unit")
}

/// Whether the limit leaves enough descriptors for files.
fn room_for_files(rings: u32, nofile: Option<u64>) -> Result<(), Why> {
    let needed = u64::from(rings) + FILES_OPEN + FILES_MIN;
    match nofile {
        Some(limit) if limit < needed => {
            let reason = format!(
                "RLIMIT_NOFILE is {limit}, but {needed} descriptors are needed, {rings} of them \
                 for rings"
            );
            Err(Why { reason, fix: nofile_fix(rings) })
        }
        _ => Ok(()),
    }
}

/// What I/O workers would do. Three workers, the default of 18, are few for a machine with many
/// processors: about a quarter of them is the usual advice.
fn workers(settings: &ServerSettings, host: &Host) -> (String, Option<String>) {
    let advised = u32::try_from(host.processors.div_ceil(4)).unwrap_or(32).min(32);
    let (most, range) = match settings.version {
        18 => (settings.get("io_workers"), format!("io_workers={}", settings.get("io_workers"))),
        _ => {
            let (low, high) = (settings.get("io_min_workers"), settings.get("io_max_workers"));
            (high, format!("io_min_workers={low}, io_max_workers={high}"))
        }
    };
    let reason = format!("would start: {range}, {} processors", host.processors);
    if most >= advised {
        return (reason, None);
    }
    let name = if settings.version == 18 { "io_workers" } else { "io_max_workers" };
    (format!("{reason}, of which few workers keep few busy"), Some(format!("{name} = {advised}")))
}
