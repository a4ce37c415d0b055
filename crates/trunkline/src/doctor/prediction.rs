//! Predicts whether PostgreSQL 18 and 19 would start and work here, with each I/O method.
//!
//! A server with `io_method=io_uring` opens a ring for each process that it may ever have, before it
//! accepts connections, and doesn't start if one of them fails. There is no fallback. We open as
//! many rings of the same size with the same limits, so the prediction is a trial, not arithmetic:
//!
//! ```text
//!   max_connections + autovacuum_worker_slots + max_worker_processes + max_wal_senders + 2 + 6
//!   rings of io_max_concurrency entries, and room for at least 48 + 10 other files
//! ```
//! Arithmetic is used where a trial is not possible, or would say something else than the server: for
//! more rings than we open, and if a running server has rings that count against the same limit.
//!
//! What doesn't depend on the method, such as the configuration, comes from [`super::startup`].

use serde::Serialize;
use trunkline_aio::ring_bytes;

use super::check::{Check, Why};
use super::host::Host;
use super::ring_probe::{Answer, Outcome, Trial};
use super::server_settings::ServerSettings;
use super::shortage::{Memory, memlock_fix, nofile_fix};
use super::startup::{Effect, Fault};
use super::uring::{self, Obstacle};
use crate::exit::plain;
use crate::output::human_bytes;

/// Most rings that are tried. More would take gigabytes.
pub(crate) const RINGS_MAX: u32 = 20_000;

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
    /// Whether the server would start; `None` if that is not known.
    pub(crate) starts: Option<bool>,
    /// Whether it would also serve clients afterwards.
    pub(crate) works: Option<bool>,
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
    /// As a check. A server of which nothing is known is not good.
    pub(crate) fn check(&self) -> Check {
        let area = format!("PostgreSQL {}", self.version);
        let name = format!("io_method={}", self.io_method);
        match (&self.fix, self.works) {
            (None, _) => Check::good(&area, name, &self.reason),
            (Some(fix), Some(true)) => Check::limited(&area, name, &self.reason, fix),
            (Some(fix), _) => Check::missing(&area, name, &self.reason, fix),
        }
    }
}

/// How a start ends.
enum Verdict {
    /// It works, with this reason, and perhaps an advice.
    Works(String, Option<String>),
    /// It starts, and fails at something later.
    Fails(&'static str, Why),
    /// It doesn't start.
    Refuses(Why),
    Unknown(Why),
}

/// The circumstances of a server, as far as they were found out.
pub(crate) struct Circumstances<'c> {
    pub(crate) host: &'c Host,
    /// The result of opening the server's rings, at most [`RINGS_MAX`].
    pub(crate) outcome: &'c Outcome,
    /// `RLIMIT_NOFILE`.
    pub(crate) nofile: Option<u64>,
    /// Rings of the server that is running on the directory, which end with it.
    pub(crate) running_rings: u32,
    /// What doesn't depend on the method.
    pub(crate) faults: &'c [Fault],
}

/// Predicts every method of a server.
pub(crate) fn predict(settings: &ServerSettings, found: &Circumstances<'_>) -> [Prediction; 3] {
    let (rings, ring_entries) = (settings.rings(), settings.ring_entries());
    let is_charged = match found.outcome {
        Outcome::Answered(answer) => found.host.charges_rings() && !answer.locks_memory,
        _ => found.host.charges_rings(),
    };
    let prediction = |io_method, rings: u32, verdict: Verdict| {
        let (starts, works, reason, fix) = match with_faults(verdict, found.faults) {
            Verdict::Works(reason, fix) => {
                (Some(true), Some(true), format!("would start: {reason}"), fix)
            }
            Verdict::Fails(when, Why { reason, fix }) => {
                let reason = format!("would start, but fail at {when}: {reason}");
                (Some(true), Some(false), reason, Some(fix))
            }
            Verdict::Refuses(Why { reason, fix }) => {
                (Some(false), Some(false), format!("would not start: {reason}"), Some(fix))
            }
            Verdict::Unknown(Why { reason, fix }) => {
                (None, None, format!("not known: {reason}"), Some(fix))
            }
        };
        Prediction {
            version: settings.version,
            io_method,
            starts,
            works,
            rings,
            ring_entries: if rings == 0 { 0 } else { ring_entries },
            ring_bytes: ring_bytes(ring_entries) * u64::from(rings),
            is_charged: is_charged && rings > 0,
            descriptors: u64::from(rings) + FILES_OPEN + FILES_MIN,
            reason: plain(reason),
            fix,
        }
    };
    let without_rings = |works: Verdict| match room_for_files(settings, 0, found.nofile) {
        Some(why) => Verdict::Refuses(why),
        None => works,
    };
    let sync = Verdict::Works("every process does its own I/O".to_owned(), None);
    [
        prediction("io_uring", rings, io_uring(settings, found)),
        prediction("worker", 0, without_rings(workers(settings, found.host))),
        prediction("sync", 0, without_rings(sync)),
    ]
}

/// The verdict of a method, together with the faults that don't depend on it.
fn with_faults(verdict: Verdict, faults: &[Fault]) -> Verdict {
    let of = |effect| faults.iter().find(|fault| fault.effect == effect);
    if let Some(fault) = of(Effect::Refuses) {
        return Verdict::Refuses(fault.why.clone());
    }
    let Verdict::Works(reason, fix) = verdict else { return verdict };
    let later = faults.iter().find_map(|fault| match fault.effect {
        Effect::Fails(when) => Some((when, fault.why.clone())),
        _ => None,
    });
    match (later, of(Effect::Undecided)) {
        (Some((when, why)), _) => Verdict::Fails(when, why),
        (None, Some(Fault { why, .. })) => {
            Verdict::Works(format!("{reason}; not decided: {}", why.reason), Some(why.fix.clone()))
        }
        (None, None) => Verdict::Works(reason, fix),
    }
}

/// Whether a server could open its rings and read with them.
fn io_uring(settings: &ServerSettings, found: &Circumstances<'_>) -> Verdict {
    let (rings, entries) = (settings.rings(), settings.ring_entries());
    let bytes = ring_bytes(entries) * u64::from(rings);
    let opened = match (Obstacle::of(found.outcome, found.host, bytes), found.outcome) {
        (Some(Obstacle::NotTried(why)), _) => return Verdict::Unknown(why),
        (Some(Obstacle::SetUp(why)), _) => return Verdict::Refuses(why),
        (Some(Obstacle::Read(why)), Outcome::Answered(answer)) => {
            (answer, Some(("its first read", why)))
        }
        (None, Outcome::Answered(answer)) => (answer, None),
        _ => return Verdict::Works("a ring was opened".to_owned(), None),
    };
    let (answer, cannot_read) = opened;
    let need = format!("{rings} rings of {entries} entries, {} of memory", human_bytes(bytes));
    let memory = Memory::of_rings(bytes, answer, found.host);
    if let Some(errno) = answer.rings_errno {
        let is_memory = errno == rustix::io::Errno::NOMEM.raw_os_error();
        let would_fit = answer.opened.saturating_add(found.running_rings) >= rings;
        if is_memory && would_fit && memory.limit(answer).is_some() {
            let reason = format!(
                "{need}, after the running server has ended, whose {} rings count against the same \
                 RLIMIT_MEMLOCK",
                found.running_rings
            );
            return Verdict::Works(reason, Some(memlock_fix(bytes * 2)));
        }
        return Verdict::Refuses(failed_ring(settings, answer, errno, found.host, memory, &need));
    }
    if let Some(why) = room_for_files(settings, rings, answer.nofile) {
        return Verdict::Refuses(why);
    }
    // The rings that we didn't try.
    if rings > RINGS_MAX
        && let Some(Why { reason, fix }) = memory.exceeds(answer)
    {
        return Verdict::Refuses(Why { reason: format!("{reason}; it needs {need}"), fix });
    }
    if let Some((when, why)) = cannot_read {
        return Verdict::Fails(when, why);
    }
    let limit = memory.limit(answer);
    let of_limit = limit
        .map(|limit| format!(" (RLIMIT_MEMLOCK is {})", human_bytes(limit)))
        .unwrap_or_default();
    let tried = match rings > RINGS_MAX {
        true => {
            format!("{RINGS_MAX} of them were opened, and no limit is lower than all of them need")
        }
        false => "all of them were opened".to_owned(),
    };
    let reason = format!("{need}{of_limit}; {tried}");
    // A second cluster of the same user, as during pg_upgrade, would fail.
    match limit.filter(|limit| bytes * 2 > *limit) {
        Some(_) => {
            let reason = format!("{reason}, but a second server of the same user would not start");
            Verdict::Works(reason, Some(memlock_fix(bytes * 2)))
        }
        None => Verdict::Works(reason, None),
    }
}

/// Why one of the rings could not be opened.
fn failed_ring(
    settings: &ServerSettings,
    answer: &Answer,
    errno: i32,
    host: &Host,
    memory: Memory,
    need: &str,
) -> Why {
    let rings = settings.rings();
    let trial =
        Trial { name: format!("ring {} of {rings}", answer.opened + 1), errno: Some(errno) };
    let why = uring::why(&trial, errno, answer, host, memory);
    let fix = match rustix::io::Errno::from_raw_os_error(errno) {
        rustix::io::Errno::MFILE => nofile_fix(files(settings, rings)),
        _ => why.fix,
    };
    Why { reason: format!("{}; it needs {need}", why.reason), fix }
}

/// The descriptors that the server's own hint suggests: all rings, and `max_files_per_process`.
fn files(settings: &ServerSettings, rings: u32) -> u64 {
    u64::from(rings) + u64::from(settings.get("max_files_per_process")) + FILES_OPEN
}

/// Why the limit leaves too few descriptors for files, if it does.
fn room_for_files(settings: &ServerSettings, rings: u32, nofile: Option<u64>) -> Option<Why> {
    let needed = u64::from(rings) + FILES_OPEN + FILES_MIN;
    let limit = nofile.filter(|limit| *limit < needed)?;
    let reason = format!(
        "RLIMIT_NOFILE is {limit}, but {needed} descriptors are needed, {rings} of them for rings"
    );
    Some(Why { reason, fix: nofile_fix(files(settings, rings)) })
}

/// What I/O workers would do. Three workers, the default of 18, are few for a machine with many
/// processors: about a quarter of them is the usual advice.
fn workers(settings: &ServerSettings, host: &Host) -> Verdict {
    let advised = u32::try_from(host.processors.div_ceil(4)).unwrap_or(32).min(32);
    let (most, range) = match settings.version {
        18 => (settings.get("io_workers"), format!("io_workers={}", settings.get("io_workers"))),
        _ => {
            let (low, high) = (settings.get("io_min_workers"), settings.get("io_max_workers"));
            (high, format!("io_min_workers={low}, io_max_workers={high}"))
        }
    };
    if most >= advised {
        return Verdict::Works(format!("{range}, {} processors", host.processors), None);
    }
    let name = if settings.version == 18 { "io_workers" } else { "io_max_workers" };
    let reason = format!("{range}, too few workers for {} processors", host.processors);
    Verdict::Works(reason, Some(format!("{name} = {advised}")))
}

#[cfg(test)]
mod tests;
