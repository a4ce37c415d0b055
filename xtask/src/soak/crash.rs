//! **Crashes**: servers are killed at random moments under a random load. What we read from the directory must be
//! what the server has after its recovery.
//!
//! ```text
//! start ─▶ load of seven sessions ─▶ kill -9 ─▶ copy the directory ─▶ recover the original
//!                                                       │                     │ COPY of every table
//!                                       trunkline copy --all, verify --deep   │
//!                                                       └──────── equal? ◀────┘
//! ```
//! First, a server recovers the original and is shut down before any session reads it. Then each page that we build
//! must be the server's, byte by byte; see the example `compare_replay` of the engine.
//!
//! The cluster of a server is kept from round to round, so that later rounds begin with what earlier crashes have
//! left. Every fifth round makes base backups under load instead, which are read as of restore points and compared
//! with a server that recovers to the same moments.
//!
//! A seed decides the statements, the settings and the moment of the kill, but not how sessions interleave. So
//! what fails is kept in `soak/crash/` of the target directory: the files, the server's rows and ours.

mod arguments;
mod backup;
mod cluster;
mod compare;
mod load;
mod long_history;
mod random;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::tree::Checkout;
use arguments::{each_server, program};
use cluster::Cluster;
use compare::{Compared, Reader};
use random::Random;

pub(super) use arguments::number_and_bins;
pub(super) use long_history::{arguments as until_arguments, run as until};

/// Number of rounds for each server, if the command line has none.
const ROUNDS: u64 = 100;

/// Every round with a multiple of this number makes backups.
const BACKUPS: u64 = 5;

/// A server with this many failed rounds is left, since their files are kept.
const FAILURES_MAX: usize = 5;

/// What the rounds of one server have compared.
#[derive(Default)]
struct Total {
    crashes: u64,
    backups: u64,
    moments: u64,
    /// Recoveries that a server could not finish alone.
    helped: u64,
    compared: Compared,
    failures: Vec<String>,
}

/// One round.
struct Round<'a> {
    program: &'a Path,
    /// The example that compares pages.
    pages: &'a Path,
    seed: u64,
    number: u64,
}

/// The number of rounds and the folders with servers, or `None` if there is no folder.
pub(super) fn arguments<'a>(args: &'a [&'a str]) -> Option<(u64, &'a [&'a str])> {
    number_and_bins(args, ROUNDS)
}

/// Crashes each of the servers. The first argument may be the number of rounds.
pub(super) fn run(checkout: &Checkout, args: &[&str]) -> Result<String, Failure> {
    let (rounds, bins) =
        arguments(args).ok_or_else(|| Failure::usage("soak crash: expected [ROUNDS] BIN..."))?;
    let program = program(checkout)?;
    checkout.cargo("build --release -p trunkline-engine --example compare_replay").run()?;
    let programs = (&*program, &*checkout.target.join("release/examples/compare_replay"));
    each_server(bins, |bin, seed| {
        let (version, total) = server(checkout, programs, (bin, seed), rounds)?;
        let text = format!("{version}, seed {seed}: {}", total.text());
        Ok((text, !total.failures.is_empty()))
    })
}

/// All rounds of one server. Returns its version, too.
fn server(
    checkout: &Checkout,
    (program, pages): (&Path, &Path),
    (bin, seed): (&str, u64),
    rounds: u64,
) -> Result<(String, Total), Failure> {
    let name = format!("trunkline-crash-{}-{seed}", std::process::id());
    let mut cluster = Cluster::create(bin, &name, &mut Random::part(seed, 0, 0))?;
    let version = cluster.version()?;
    let space = cluster.home.join("space");
    cluster.start("data", "")?;
    cluster.sql("postgres", &format!("create tablespace space location '{}'", space.display()))?;
    cluster.sql("postgres", &format!("create database {}", load::DATABASE))?;
    cluster.sql("postgres", "create database small template template0 is_template true")?;
    cluster.sql(load::DATABASE, load::SETUP)?;
    cluster.stop("data", "fast")?;
    let mut total = Total::default();
    for number in 1..=rounds {
        let round = Round { program, pages, seed, number };
        let done = match number % BACKUPS {
            0 => round.back_up(&mut cluster, &mut total),
            _ => round.crash(&mut cluster, &mut total),
        };
        let problem = match done {
            Ok(compared) => {
                let count = (compared.tables, compared.rows);
                println!("{version}, round {number}: {} tables, {} rows", count.0, count.1);
                let problem = compared.differences.join("; ");
                total.compared.add(compared);
                problem
            }
            Err(failure) => failure.to_string(),
        };
        if problem.is_empty() {
            continue;
        }
        let kept = keep(checkout, &cluster, &format!("{name}-{number}"))?;
        println!("{version}, round {number}: FAILED: {problem}; kept in {}", kept.display());
        total.failures.push(format!("round {number}: {problem}"));
        if total.failures.len() >= FAILURES_MAX {
            break;
        }
        // A failure may have left a server running.
        for data in ["data", "restored/data"] {
            if cluster.home.join(data).join("postmaster.pid").exists() {
                let _ = cluster.stop(data, "immediate");
            }
        }
    }
    Ok((version, total))
}

impl Round<'_> {
    fn random(&self, part: u64) -> Random {
        Random::part(self.seed, self.number, part)
    }

    /// Kills the server under load, and compares.
    fn crash(&self, cluster: &mut Cluster, total: &mut Total) -> Result<Compared, Failure> {
        let mut random = self.random(1);
        let level = random.pick(&["minimal", "replica", "logical"]);
        let senders = if level == "minimal" { 0 } else { 2 };
        let settings = format!(
            "{}wal_level = {level}\nmax_wal_senders = {senders}\n",
            common_settings(&mut random)
        );
        cluster.start("data", &settings)?;
        self.under_load(cluster, true, |cluster| {
            let time = 300 + random.below(4200);
            cluster.run(&format!("sleep {}.{:03}", time / 1000, time % 1000))?;
            cluster.kill()
        })?;
        cluster.copy_to("copy")?;
        // All its processes are gone, even if one is a zombie.
        cluster.run("rm -f data/postmaster.pid .s.PGSQL.*.lock")?;
        let before = cluster.fingerprint("copy")?;
        // Nothing may read a page after the recovery: the launcher of logical replication would. Whether hints are
        // logged decides which positions pages get, so it must be as before.
        let recovery = format!("{settings}autovacuum = off\nmax_logical_replication_workers = 0\n");
        let removed = cluster.start("data", &recovery)?;
        if !removed.is_empty() {
            println!("round {}: recovery failed until {removed:?} was removed", self.number);
            total.helped += 1;
        }
        cluster.stop("data", "fast")?;
        let pages = self.compare_pages(cluster)?;
        cluster.start("data", &recovery)?;
        let reader = Reader { program: self.program, copy: "copy", options: String::new() };
        let mut compared = compare::compare(cluster, &reader)?;
        compared.add(pages);
        if cluster.fingerprint("copy")? != before {
            compared.differences.push("the crashed directory has changed".to_owned());
        }
        cluster.stop("data", random.pick(&["fast", "immediate"]))?;
        total.crashes += 1;
        Ok(compared)
    }

    /// Compares all pages of the copy with those of the server, which has recovered and is shut down.
    fn compare_pages(&self, cluster: &Cluster) -> Result<Compared, Failure> {
        let path = |name: &str| cluster.home.join(name);
        let call = Invocation::new(&cluster.home, "timeout", "600").arg(self.pages);
        let call = call.arg(path("copy/data")).arg(path("data")).arg(std::env::temp_dir());
        compare::of_pages(&call.capture()?)
    }

    /// Makes backups under load, and compares them with servers that recover them.
    fn back_up(&self, cluster: &mut Cluster, total: &mut Total) -> Result<Compared, Failure> {
        let mut random = self.random(1);
        cluster.run("rm -rf archive && mkdir archive")?;
        let settings = common_settings(&mut random) + &backup::settings(cluster);
        cluster.start("data", &settings)?;
        let points = self.under_load(cluster, false, |cluster| {
            let points = backup::make(cluster, &mut random, self.number);
            cluster.stop("data", "fast")?;
            points
        })?;
        let compared = backup::check(cluster, self.program, (&mut random, &points))?;
        total.backups += 1;
        total.moments += 2 + points.len() as u64;
        Ok(compared)
    }

    /// Runs `body`, which must end the server, while sessions execute statements.
    fn under_load<T>(
        &self,
        cluster: &mut Cluster,
        any_strategy: bool,
        body: impl FnOnce(&mut Cluster) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        cluster.sql(load::DATABASE, load::END_PREPARED)?;
        cluster.run("rm -rf sessions over && mkdir sessions")?;
        let mut script = String::new();
        for session in 0..load::SESSIONS {
            let sql = load::session(&mut self.random(10 + session), self.number, session);
            self.write(cluster, &format!("s{session}"), &sql)?;
            let call = cluster.psql(load::DATABASE);
            let _ =
                writeln!(script, "{call} -f sessions/s{session} >sessions/s{session}.out 2>&1 &");
        }
        self.write(cluster, "databases", &load::databases(&mut self.random(2), any_strategy))?;
        self.write(cluster, "visitor", &load::visitor(&mut self.random(3)))?;
        let _ = writeln!(
            script,
            "{} -f sessions/databases >sessions/databases.out 2>&1 &\n\
             n=0; while ! test -e over; do n=$((n + 1)); {} -f sessions/visitor; sleep 0.1; done \
             >sessions/visitor.out 2>&1 &\nwait",
            cluster.psql("postgres"),
            cluster.psql("d$((n % 3))"),
        );
        let sessions = cluster.invocation(&script);
        thread::scope(|scope| {
            // The sessions end with the server.
            let waiting = scope.spawn(move || sessions.capture());
            let done = body(cluster);
            if done.is_err() {
                let _ = cluster.stop("data", "immediate");
            }
            cluster.run("touch over")?;
            waiting.join().map_err(|_| Failure::new("the load panicked"))??;
            done
        })
    }

    fn write(&self, cluster: &Cluster, name: &str, text: &str) -> Result<(), Failure> {
        let path = cluster.home.join("sessions").join(name);
        fs::write(&path, text).map_err(|error| Failure::io(path.display(), error))
    }
}

/// Settings that differ from round to round.
fn common_settings(random: &mut Random) -> String {
    let switch = |random: &mut Random| random.pick(&["on", "off"]);
    format!(
        "full_page_writes = {}\nwal_compression = {}\nwal_log_hints = {}\nsynchronous_commit = {}\n\
         autovacuum = {}\nautovacuum_naptime = '1s'\ncheckpoint_timeout = '30s'\nwal_recycle = {}\n",
        switch(random),
        random.pick(&["off", "pglz"]),
        switch(random),
        switch(random),
        switch(random),
        switch(random),
    )
}

/// Copies what belongs to a failed round.
fn keep(checkout: &Checkout, cluster: &Cluster, name: &str) -> Result<PathBuf, Failure> {
    let folder = checkout.target.join("soak/crash").join(name);
    fs::create_dir_all(&folder).map_err(|error| Failure::io(folder.display(), error))?;
    for part in ["copy", "stream", "backup", "archive", "server", "ours", "sessions", "log"] {
        let from = cluster.home.join(part);
        if from.exists() {
            let copy = Invocation::new(&folder, "cp", "-a").arg(from);
            cluster::succeed(&copy.arg(&folder))?;
        }
    }
    Ok(folder)
}

impl Total {
    fn text(&self) -> String {
        let Self { crashes, backups, moments, helped, compared, failures } = self;
        let Compared { tables, rows, pages, differences: _ } = compared;
        let pages: String = pages.iter().map(|(what, count)| format!(", {count} {what}")).collect();
        let count = format!(
            "{crashes} crashes, {backups} backups as of {moments} moments, {tables} tables with {rows} rows \
             compared{pages}"
        );
        let count = match helped {
            0 => count,
            _ => format!(
                "{count}, {helped} recoveries that stopped at a file of an aborted transaction"
            ),
        };
        match failures.is_empty() {
            true => count,
            false => format!("{count}, {} rounds failed: {}", failures.len(), failures.join("; ")),
        }
    }
}
