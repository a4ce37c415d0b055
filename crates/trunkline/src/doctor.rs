//! `trunkline doctor`: what works on this machine, why other things don't, and how to fix them.
//!
//! ```text
//!   good     io_uring: set up               a ring was opened and read a file, Linux 6.18.44
//!   limited  limits: RLIMIT_MEMLOCK         8192 kB for rings and registered memory; fix: ...
//!   missing  PostgreSQL 18: io_method=io_uring  would not start: ring 514 of 1042: ...; fix: ...
//! ```
//! Everything that can be tried is tried: rings, as many as a server opens; direct I/O and atomic
//! writes in a scratch file on the same file system, but never inside a cluster. `/proc` and `/sys`
//! only explain why something failed. What can't be tried, such as a file system that accepts
//! `O_DIRECT` and ignores it, is reported as a caution, with its source.
//!
//! Only what was asked for decides the exit status ([`requests`]).

mod check;
mod device;
mod direct;
mod file_system;
mod host;
mod huge_pages;
mod kernel;
mod limits;
mod prediction;
mod requests;
mod ring_probe;
mod server_settings;
mod server_user;
mod shortage;
mod startup;
mod uring;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, geteuid, getrlimit};

use crate::config_file::{ConfigFiles, read_config_files};
use crate::exit::{Exit, Failure, message, warnings};
use crate::interrupt::Interrupt;
use crate::options::Context;
use crate::output::{object, print_report};
use crate::place::{is_cluster, places};
use check::{Check, Status, render};
use host::Host;
use prediction::{Circumstances, Prediction, RINGS_MAX, predict};
use requests::Evidence;
use ring_probe::{Outcome, ask};
use server_settings::{ServerSettings, is_known, is_of_other_version};
use server_user::ServerUser;
use startup::Findings;

pub(crate) use ring_probe::ProbeRingsArgs;

/// The versions with asynchronous I/O.
const VERSIONS: [u32; 2] = [18, 19];

/// An ordinary user, to try rings for a server when root asks and there is no cluster whose owner
/// that could be: a server never runs as root.
const ORDINARY_USER: u32 = 65534;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {}

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, _: &DoctorArgs) -> Result<Exit, Failure> {
    let given = given_settings(context)?;
    let interrupt = Interrupt::install()?;
    let directory = context.global.pgdata().cloned().unwrap_or_else(|| PathBuf::from("."));
    let asked = interrupt.clone();
    // A file system may hang.
    let report = interrupt.wait_for("doctor", move || {
        let cluster = match is_cluster(&directory) {
            true => Some(Cluster::read(&directory, &asked)?),
            false => None,
        };
        Subject { directory, cluster, given }.examine()
    })?;
    let report = report?;
    let status = |it: &Check| it.area == requests::AREA && it.status == Status::Missing;
    let is_missing = report.checks.iter().any(status);
    let json = object! {
        schema: 1,
        command: "doctor",
        directory: report.directory.display().to_string(),
        kernel: &report.host.release,
        container: report.host.container,
        checks: &report.checks,
        predictions: &report.predictions,
    };
    print_report(context.global, &json, || render(&report.checks))?;
    Ok(if is_missing { Exit::Findings } else { Exit::Good })
}

/// Runs the hidden command that opens rings.
pub(crate) fn probe_rings(args: &ProbeRingsArgs) -> Result<Exit, Failure> {
    ring_probe::run(args)
}

/// Why direct I/O in this directory may not be what it seems to be.
pub(crate) fn direct_caution(directory: &Path) -> Option<String> {
    let place = places(directory).ok()?.into_iter().next()?;
    file_system::direct_caution(&place, &Host::read())
}

/// How many pages a session of the cluster in this directory may pin. Without a cluster, those of a
/// server with default settings.
///
/// # Errors
/// The configuration files can't be read.
pub(crate) fn pinned_pages(directory: &Path, interrupt: &Interrupt) -> Result<u32, Failure> {
    let version = if is_cluster(directory) { Cluster::version_of(directory).ok() } else { None };
    let mut values = BTreeMap::new();
    if version.is_some() {
        let config = read_config_files(directory.to_owned(), interrupt)?;
        let known = config.iter().filter(|(name, _)| is_known(name));
        values.extend(known.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    let version = version.filter(|version| VERSIONS.contains(version)).unwrap_or(VERSIONS[0]);
    Ok(ServerSettings::new(version, &values, false).pinned_pages())
}

/// The settings of a server that the command line gives.
fn given_settings(context: &Context<'_>) -> Result<BTreeMap<String, String>, Failure> {
    if let Some(name) = context.text_settings.keys().find(|name| !is_known(name)) {
        let text = format!("unrecognized configuration parameter \"{name}\"");
        return Err(Failure::usage(text).with_hint("doctor takes settings that affect I/O"));
    }
    let mut given = context.text_settings.clone();
    // The others of the names that were given are settings of the engine, with checked values.
    let of_engine = |name: &&String| !context.text_settings.contains_key(*name);
    let matters = |name: &&String| *name == "io_direct" || is_known(name);
    for name in context.given.iter().filter(of_engine).filter(matters) {
        let name_of_server = if name == "io_direct" { "debug_io_direct" } else { name };
        given.insert(name_of_server.to_owned(), context.settings.show(name)?);
    }
    Ok(given)
}

/// A cluster, as its files describe it.
struct Cluster {
    version: u32,
    /// User and group of the data directory.
    owner: (u32, u32),
    settings: BTreeMap<String, String>,
    /// The first lines of its configuration files that a server refuses.
    faults: Vec<String>,
    /// The server that is running.
    pid: Option<u32>,
}

impl Cluster {
    /// The version of a data directory.
    fn version_of(directory: &Path) -> Result<u32, Failure> {
        let file = directory.join("PG_VERSION");
        let failed = |error: std::io::Error| {
            Failure::cannot_run(format_args!("could not read \"{}\": {error}", file.display()))
        };
        let text = fs::read_to_string(&file).map_err(failed)?;
        let version = text.trim().parse::<u32>().ok().filter(|version| (15..=19).contains(version));
        let Some(version) = version else {
            let found = text.trim();
            return Err(Failure::cannot_run(format_args!(
                "\"{}\" contains {found:?}, expected a version from 15 to 19",
                file.display()
            )));
        };
        Ok(version)
    }

    fn read(directory: &Path, interrupt: &Interrupt) -> Result<Cluster, Failure> {
        let version = Cluster::version_of(directory)?;
        let failed = |error: std::io::Error| {
            Failure::cannot_run(format_args!("could not read \"{}\": {error}", directory.display()))
        };
        let owner = fs::metadata(directory).map_err(failed)?;
        let config = ConfigFiles::read(directory, &|| interrupt.requested()).map_err(|error| {
            if interrupt.requested() {
                return interrupt.failure();
            }
            let text = "could not read the configuration files of the cluster";
            Failure::cannot_run(format_args!("{text}: {error}"))
        })?;
        if !config.found {
            message("warning", "the cluster has no postgresql.conf: assuming the defaults");
        }
        warnings(&config.faults, config.faults_total - config.faults.len() as u64);
        let known = config.iter().filter(|(name, _)| is_known(name));
        let settings = known.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let pid = fs::read_to_string(directory.join("postmaster.pid")).ok();
        let pid = pid.and_then(|text| text.lines().next()?.trim().parse().ok());
        Ok(Cluster {
            version,
            owner: (owner.uid(), owner.gid()),
            settings,
            faults: config.faults,
            pid: pid.filter(|pid| is_running_in(directory, &owner, *pid)),
        })
    }
}

/// Whether a process is the server of a data directory: a server's working directory is its data
/// directory. After a crash, the number in `postmaster.pid` may be that of any process. We may not see
/// the working directories of other users' processes; then the owner decides.
fn is_running_in(directory: &Path, owner: &fs::Metadata, pid: u32) -> bool {
    let process = PathBuf::from(format!("/proc/{pid}"));
    match (fs::metadata(process.join("cwd")), fs::metadata(directory)) {
        (Ok(found), Ok(own)) => (found.dev(), found.ino()) == (own.dev(), own.ino()),
        (Err(error), _) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            fs::metadata(process).is_ok_and(|process| process.uid() == owner.uid())
        }
        _ => false,
    }
}

/// A directory to examine, and the settings of the servers that it is examined for.
struct Subject {
    directory: PathBuf,
    cluster: Option<Cluster>,
    /// Settings on the command line.
    given: BTreeMap<String, String>,
}

/// The report: checks and predictions.
struct Report {
    directory: PathBuf,
    host: Host,
    checks: Vec<Check>,
    predictions: Vec<Prediction>,
}

impl Subject {
    fn examine(&self) -> Result<Report, Failure> {
        let host = Host::read();
        let places = places(&self.directory).map_err(|error| {
            let directory = self.directory.display();
            Failure::cannot_run(format_args!("could not open \"{directory}\": {error}"))
        })?;
        let servers = VERSIONS.map(|version| self.server(version));
        let user = self.server_user();
        let outcomes = try_rings(&servers, user.as_ref());
        let (mut checks, mut predictions) = (Vec::new(), Vec::new());
        if let Some((_, outcome)) = outcomes.first() {
            checks.extend(uring_checks(outcome, user.as_ref(), &host));
        }
        checks.extend(self.running_server());
        let pid = self.cluster.as_ref().and_then(|cluster| cluster.pid);
        let huge_pages = huge_pages::checks(&servers[0], pid, self.given.is_empty());
        checks.extend(huge_pages.clone());
        checks.extend(kernel::checks(&host));
        let tried: Vec<_> = places.iter().map(|place| (place, direct::examine(place))).collect();
        for (place, trial) in &tried {
            checks.extend(file_system::checks(place, &host, trial.works));
            checks.extend(trial.checks.clone());
            checks.extend(device::checks(place));
        }
        let direct: Vec<_> = tried.iter().map(|(place, it)| (&*place.path, it.works)).collect();
        let lines = self.cluster.as_ref().map_or(&[][..], |cluster| &cluster.faults);
        let findings = Findings {
            is_cluster: self.cluster.is_some(),
            lines,
            places: &tried,
            huge_pages: &huge_pages[0],
        };
        let running_rings = pid.map_or(0, limits::rings_of_process);
        for server in &servers {
            let size = size_of(server);
            let Some((_, outcome)) = outcomes.iter().find(|(tried, _)| *tried == size) else {
                continue;
            };
            let nofile = match outcome {
                Outcome::Answered(answer) => answer.nofile,
                _ => getrlimit(Resource::Nofile).current,
            };
            let faults = startup::faults(server, &findings);
            let faults = &faults;
            let found = Circumstances { host: &host, outcome, nofile, running_rings, faults };
            predictions.extend(predict(server, &found));
        }
        checks.extend(predictions.iter().map(Prediction::check));
        for server in servers.iter().filter(|server| self.asks_for(server.version)) {
            let asks = |name: &str| self.values().contains_key(name);
            let evidence = Evidence {
                configuration: startup::configuration(server, lines),
                predictions: &predictions,
                direct: &direct,
                huge_pages: &huge_pages[0],
            };
            checks.extend(requests::checks(server, asks, &evidence));
        }
        let directory = places.first().map_or(self.directory.clone(), |place| place.path.clone());
        Ok(Report { directory, host, checks, predictions })
    }

    /// All settings: those of the cluster, overridden by the command line.
    fn values(&self) -> BTreeMap<String, String> {
        let mut values = self.cluster.as_ref().map_or_else(BTreeMap::new, |it| it.settings.clone());
        values.extend(self.given.clone());
        values
    }

    /// The settings of a server of one version.
    fn server(&self, version: u32) -> ServerSettings {
        let is_own = self.cluster.as_ref().is_some_and(|cluster| cluster.version == version);
        let mut values = self.cluster.as_ref().map_or_else(BTreeMap::new, |it| it.settings.clone());
        // One name of the worker settings on the command line stands for those of both versions.
        let given = self.given.iter().filter(|(name, _)| !is_of_other_version(name, version));
        values.extend(given.map(|(name, value)| (name.clone(), value.clone())));
        ServerSettings::new(version, &values, is_own)
    }

    /// Whether the settings ask something of a server of this version: the cluster's own version, or
    /// each one if there is no cluster.
    fn asks_for(&self, version: u32) -> bool {
        match &self.cluster {
            Some(cluster) if VERSIONS.contains(&cluster.version) => cluster.version == version,
            _ => !self.given.is_empty(),
        }
    }

    /// The user of the server, if we are root: that of the running server, or of the data directory.
    fn server_user(&self) -> Option<ServerUser> {
        if !geteuid().is_root() {
            return None;
        }
        let cluster = self.cluster.as_ref();
        let running = cluster.and_then(|cluster| ServerUser::of_process(cluster.pid?));
        let owner = |cluster: &Cluster| ServerUser::of_owner(cluster.owner.0, cluster.owner.1);
        let user = running.or_else(|| cluster.map(owner)).filter(|user| user.uid != 0);
        Some(user.unwrap_or_else(|| ServerUser::of_owner(ORDINARY_USER, ORDINARY_USER)))
    }

    /// The limits of the server that is running on the directory.
    fn running_server(&self) -> Option<Check> {
        let pid = self.cluster.as_ref()?.pid?;
        let (memlock, files) = limits::of_process(pid)?;
        let reason = format!("process {pid} has RLIMIT_MEMLOCK {memlock}, RLIMIT_NOFILE {files}");
        Some(Check::good("limits", "running server", reason))
    }
}

/// Opens the rings of each server as its user, once for each number and size.
fn try_rings(servers: &[ServerSettings], user: Option<&ServerUser>) -> Vec<((u32, u32), Outcome)> {
    let sizes: BTreeSet<(u32, u32)> = servers.iter().map(size_of).collect();
    let outcome = |(rings, entries): (u32, u32)| ask(rings.min(RINGS_MAX), entries, user);
    sizes.into_iter().map(|size| (size, outcome(size))).collect()
}

/// The checks of io_uring and of limits. If the server's user could try nothing, as in a user
/// namespace that doesn't have it, we say so, and check what we can do ourselves.
fn uring_checks(outcome: &Outcome, user: Option<&ServerUser>, host: &Host) -> Vec<Check> {
    let (mut checks, own);
    let outcome = match (outcome, user) {
        (Outcome::Failed(reason), Some(user)) => {
            let uid = user.uid;
            let reason = format!(
                "user {uid} could not try it ({reason}); the other checks are those of our own user"
            );
            let fix = format!("run doctor as user {uid}");
            checks = vec![Check::limited(uring::AREA, "user", reason, fix)];
            own = ask(0, 1, None);
            &own
        }
        _ => {
            checks = Vec::new();
            outcome
        }
    };
    checks.extend(uring::checks(outcome, host));
    if let Outcome::Answered(answer) = outcome {
        checks.extend(limits::checks(answer, host));
    }
    checks
}

/// Number and size of a server's rings.
fn size_of(server: &ServerSettings) -> (u32, u32) {
    (server.rings(), server.ring_entries())
}
