//! What keeps a server from working with every I/O method: its configuration, a read-only mount, huge
//! pages that it requires, and direct I/O that a file system refuses.
//!
//! ```text
//!   doesn't start     configuration, huge_pages=on, a read-only data directory
//!   starts and fails  a read-only log, debug_io_direct where O_DIRECT is refused
//! ```
//! PostgreSQL opens its log for writing only when it writes to it, and data files when a client
//! connects. So it starts on such a mount, and fails afterwards (decision 0026).

use super::check::{Check, Status, Why};
use super::direct::DirectTrial;
use super::server_settings::ServerSettings;
use crate::mount::Mount;
use crate::place::Place;

/// A fault that doesn't depend on the I/O method.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) effect: Effect,
    pub(crate) why: Why,
}

/// What a fault does to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It doesn't start.
    Refuses,
    /// It starts, and fails at something later.
    Fails(&'static str),
    /// It may start or not, which only the server can find out.
    Undecided,
}

impl Fault {
    fn new(effect: Effect, reason: String, fix: &str) -> Fault {
        Fault { effect, why: Why { reason, fix: fix.to_owned() } }
    }
}

/// What the faults are found in.
pub(crate) struct Findings<'f> {
    /// The directory is that of a cluster.
    pub(crate) is_cluster: bool,
    /// Lines of the configuration files that the server refuses.
    pub(crate) lines: &'f [String],
    /// The places, the first of which is the data directory, and what was tried there.
    pub(crate) places: &'f [(&'f Place, DirectTrial)],
    /// The check of huge pages.
    pub(crate) huge_pages: &'f Check,
}

/// Why the server would refuse its configuration, if it would.
pub(crate) fn configuration<'f>(
    settings: &'f ServerSettings,
    lines: &'f [String],
) -> Option<&'f String> {
    lines.iter().chain(&settings.faults).next()
}

/// All faults.
pub(crate) fn faults(settings: &ServerSettings, findings: &Findings<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    if let Some(fault) = configuration(settings, findings.lines) {
        faults.push(Fault::new(Effect::Refuses, fault.clone(), "correct the configuration"));
    }
    let effect = match findings.huge_pages.status {
        Status::Good => None,
        Status::Limited => Some(Effect::Undecided),
        Status::Missing => Some(Effect::Refuses),
    };
    if let Some(effect) = effect.filter(|_| settings.requires_huge_pages()) {
        let fix = findings.huge_pages.fix.clone().unwrap_or_default();
        let reason = format!("huge_pages = on, and {}", findings.huge_pages.reason);
        faults.push(Fault::new(effect, reason, &fix));
    }
    let Some((data, _)) = findings.places.first() else { return faults };
    let log = Mount::of(&data.path.join("pg_wal")).map_or(data.mount.id, |mount| mount.id);
    for (index, (place, trial)) in findings.places.iter().enumerate() {
        let (holds_data, holds_log) = (index == 0, place.mount.id == log);
        let path = place.path.display();
        if findings.is_cluster && place.mount.has("ro") {
            let fix = format!("mount -o remount,rw {}", place.mount.path.display());
            let reason = format!("the mount of {path} is read-only");
            match (holds_data, holds_log) {
                (true, _) => faults.push(Fault::new(Effect::Refuses, reason, &fix)),
                (_, true) => {
                    faults.push(Fault::new(Effect::Fails("its first log record"), reason, &fix))
                }
                // A tablespace may be read-only as long as nothing in it changes.
                _ => {}
            }
        }
        let uses = |kind: &str| settings.io_direct.iter().any(|it| it == kind);
        let fails_at = match () {
            () if holds_data && uses("data") => Some("the first connection"),
            () if holds_log && uses("wal") => Some("its first log record"),
            () if holds_log && uses("wal_init") => Some("its next log segment"),
            () => None,
        };
        if let Some(fails_at) = fails_at.filter(|_| trial.is_refused) {
            let kinds = settings.io_direct.join(",");
            let reason = format!("direct I/O doesn't work in {path} (debug_io_direct = {kinds})");
            faults.push(Fault::new(Effect::Fails(fails_at), reason, "leave debug_io_direct empty"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::path::Path;

    fn place(path: &Path, options: &str) -> Place {
        let mut mount = Mount::of(path).expect("a mount");
        mount.options = options.split(',').map(str::to_owned).collect();
        Place { path: path.to_owned(), mount, in_cluster: true }
    }

    fn trial(is_refused: bool) -> DirectTrial {
        DirectTrial { checks: Vec::new(), works: !is_refused, is_refused }
    }

    /// When a server with these settings and a log elsewhere fails: empty if it doesn't start.
    fn found(given: &[(&str, &str)], data: (&str, bool), log: (&str, bool)) -> Vec<&'static str> {
        let values: BTreeMap<String, String> =
            given.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let settings = ServerSettings::new(18, &values, true);
        let home = tempfile::tempdir().expect("a directory");
        let elsewhere = Path::new("/proc");
        std::os::unix::fs::symlink(elsewhere, home.path().join("pg_wal")).expect("linked");
        let (data_place, log_place) = (place(home.path(), data.0), place(elsewhere, log.0));
        let huge_pages = Check::missing("limits", "huge pages", "none", "some");
        let findings = Findings {
            is_cluster: true,
            lines: &[],
            places: &[(&data_place, trial(data.1)), (&log_place, trial(log.1))],
            huge_pages: &huge_pages,
        };
        let found = faults(&settings, &findings);
        let effect = |fault: &Fault| match fault.effect {
            Effect::Refuses => "",
            Effect::Fails(when) => when,
            Effect::Undecided => "undecided",
        };
        found.iter().map(effect).collect()
    }

    #[test]
    fn faults_are_those_of_a_server() {
        let (rw, direct) = (("rw", false), [("debug_io_direct", "data")]);
        assert_eq!(found(&[], rw, rw), [""; 0]);
        assert_eq!(found(&[], ("ro", false), rw), [""]);
        assert_eq!(found(&[], rw, ("ro", false)), ["its first log record"]);
        assert_eq!(found(&[("huge_pages", "on")], rw, rw), [""]);
        assert_eq!(found(&[("max_connections", "0")], rw, rw), [""]);
        assert_eq!(found(&direct, ("rw", true), rw), ["the first connection"]);
        // Only the log refuses it, and only data needs it.
        assert_eq!(found(&direct, rw, ("rw", true)), [""; 0]);
        let log = [("debug_io_direct", "wal")];
        assert_eq!(found(&log, ("rw", true), rw), [""; 0]);
        assert_eq!(found(&log, rw, ("rw", true)), ["its first log record"]);
        let segments = [("debug_io_direct", "wal_init")];
        assert_eq!(found(&segments, rw, ("rw", true)), ["its next log segment"]);
    }
}
