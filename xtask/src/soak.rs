//! **Soak tests**: checks that take too long for CI, `cargo xtask soak NAME`.
//!
//! Each soak test is a longer run of something CI does in small, so a failure can be narrowed down
//! with the tools of CI. The seeds are fixed, so a run can be repeated. Every run, failed or not,
//! adds a line to `docs/soak.md` with the commit and the machine: a soak test proves something
//! about one commit on one machine, and only a record says which.

mod access_paths;
mod bare_root;
mod calibrate;
mod choice;
mod crash;
mod record;
mod redo;
mod standby;
mod stress;
mod writers;

use std::time::Instant;

use crate::ci::ACCEPTED_PART_SKIPS;
use crate::failure::Failure;
use crate::fixtures;
use crate::invocation::Invocation;
use crate::mutants;
use crate::tally::Tally;
use crate::tree::Checkout;
use record::Record;

/// Number of faults that `soak faults` injects.
const FAULTS: &str = "1000000";
/// Number of crashes that each of the tests of `soak log-crashes` tries.
const LOG_CRASHES: &str = "500000";
/// Number of mutations in each of the tests that `soak mutations` runs.
const MUTATIONS: &str = "10000000";
/// Number of times that `soak kills` kills each command.
const KILLS: &str = "50";
/// Number of seeds per server that `soak servers` runs. Each is a random database.
const ROUNDS: &str = "20";
/// First of those seeds.
const FIRST_SEED: &str = "1";
/// Number of queries per server that `soak random-queries` runs.
const RANDOM_QUERIES: usize = 10_000;

const USAGE: &str = "\
usage: cargo xtask soak <name>

  faults           a million faults on the simulated disk, under the seeded pool workload
  log-crashes      a million crashes of the simulated disk while sessions write the log, with lost,
                   torn and reordered writes
  mutations        ten million mutated log records, and as many random ones, are decoded, and as
                   many mutated records and pages are given to redo
  mutants          all mutants, of which ci tries an eighth
  stress           the test step of ci ten times in a row, while other threads keep CPUs and
                   disk busy; needs what ci needs
  kills            kill -9 at 50 random moments of each command that writes or mounts something;
                   needs root and /dev/fuse
  bare-root        .ci/run in a bare Debian root, which has none of the packages it needs;
                   needs root, debootstrap, a network and about 16 GB of disk
  calibrate [steady | bursts]
                   what trunkline calibrate finds out about 20 mounted slow disks, those without
                   or with a credit; takes 40 minutes on an idle machine; needs root and /dev/fuse
  choice NAME=DIR...
                   whether the chosen access paths are among the fastest, in clusters with the
                   tables uniform and linear_10 in a database bench; needs an idle machine
  servers BIN...   random databases, compared with the PostgreSQL servers in these folders
  random-queries BIN...
                   10,000 random queries for each of the servers in these folders, which need
                   pg_resetwal, on copies of the fixtures
  access-paths BIN...
                   300 random predicates, joins and sort orders for each of the servers in these
                   folders, by each access path; needs psql of Debian's package postgresql-15 for
                   servers without their own
  redo BIN...      30 random logs of each of the servers in these folders, with images of all pages,
                   which are compared with what our redo makes of the records
  crash [ROUNDS] BIN...
                   kill -9 of each server in 100 rounds at random moments of a random load, or base
                   backups; its directory is read, and compared with what the server recovers; needs
                   psql. BIN may be ROOT:BIN, for a server that needs chroot
  until [TRANSACTIONS] BIN...
                   a backup of each server and a million transactions, read as of ten restore points
                   and compared with a server that recovers to each; needs psql. BIN as for crash
  writers BIN...   200 kills of a process that writes into a cluster of our own, for each of the servers of
                   18 in these folders: our recovery and the server's must make the same files
  standby [MINUTES] BIN...
                   each server of 18 in these folders follows a cluster of our own under load, as a standby, for an
                   hour, and has the same files in the end
  checksums BIN... only what pg_checksums finds in random databases, with and without damage

A folder BIN has the programs of a PostgreSQL 15 to 19 with pg_checksums, such as
/usr/lib/postgresql/18/bin of Debian's package postgresql-18. Parts of a test that need pg_dump,
pg_resetwal or pg_upgrade are left out if the folder doesn't have them. For access-paths and
redo, initdb, pg_ctl and postgres are enough.";

/// Runs one soak test and records the result.
pub(crate) fn run(checkout: &Checkout, args: &[&str]) -> Result<(), Failure> {
    let (name, args) = args.split_first().ok_or_else(|| Failure::usage(USAGE))?;
    let test: fn(&Checkout, &[&str]) -> Result<String, Failure> = match (*name, args) {
        ("faults", []) => |checkout, _| faults(checkout),
        ("log-crashes", []) => |checkout, _| log_crashes(checkout),
        ("mutations", []) => |checkout, _| mutations(checkout),
        ("mutants", []) => |checkout, _| mutants::run(checkout, &[]),
        ("stress", []) => |checkout, _| stress::run(checkout),
        ("kills", []) => |checkout, _| kills(checkout),
        ("bare-root", []) => |checkout, _| bare_root::run(checkout),
        ("calibrate", [] | ["steady" | "bursts"]) => {
            |checkout, part| calibrate::run(checkout, part.first().copied())
        }
        ("choice", [_, ..]) => choice::run,
        ("servers", [_, ..]) => |checkout, bins| servers(checkout, bins, ""),
        ("random-queries", [_, ..]) => random_queries,
        ("access-paths", [_, ..]) => access_paths::run,
        ("redo", [_, ..]) => redo::run,
        ("crash", args) if crash::arguments(args).is_some() => crash::run,
        ("until", args) if crash::until_arguments(args).is_some() => crash::until,
        ("writers", [_, ..]) => writers::run,
        ("standby", args) if standby::arguments(args).is_some() => standby::run,
        ("checksums", [_, ..]) => |checkout, bins| servers(checkout, bins, "checksums::"),
        _ => return Err(Failure::usage(USAGE)),
    };
    let record = Record::begin(checkout, name)?;
    let begin = Instant::now();
    let done = test(checkout, args);
    let result = match &done {
        Ok(summary) => format!("ok: {summary}"),
        Err(failure) => format!("FAILED: {failure}"),
    };
    println!("soak {name}: {result}");
    record.end(checkout, begin.elapsed(), &result)?;
    done.map(|_| ())
}

/// Runs the pool's workload until it has injected [`FAULTS`] faults.
fn faults(checkout: &Checkout) -> Result<String, Failure> {
    let test = "test -p trunkline-sim --test pool_workload -- --nocapture";
    let test = checkout.cargo(test).env("TRUNKLINE_POOL_FAULTS", FAULTS);
    let mut totals = String::new();
    let code = test.tee(|line| {
        // The line with the totals, such as
        // "21344 seeds in 700s, 30 per second; 1000003 faults, 9000000 switch points".
        if line.contains(" faults, ") {
            totals = line.trim().to_owned();
        }
        true
    })?;
    match code {
        Some(0) if !totals.is_empty() => Ok(totals),
        _ => Err(Failure::new(format!("{test} failed"))),
    }
}

/// Crashes the simulated disk [`LOG_CRASHES`] times in each test. The build is optimised, and still checks arithmetic.
fn log_crashes(checkout: &Checkout) -> Result<String, Failure> {
    let test = "test --release -p trunkline-sim --test log_contract -- --nocapture crashes::";
    let test = with_checks(checkout.cargo(test)).env("TRUNKLINE_LOG_CRASHES", LOG_CRASHES);
    let (mut crashes, mut tests) = (0, 0);
    let code = test.tee(|line| {
        // Such as "500012 crashes of the log".
        if let Some(rest) = line.trim().strip_suffix(" crashes of the log") {
            let number = rest.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok());
            crashes += number.unwrap_or(0);
            tests += 1;
        }
        true
    })?;
    match code {
        Some(0) if tests == 2 => Ok(format!("{crashes} crashes of the log in {tests} tests")),
        _ => Err(Failure::new(format!("{test} failed"))),
    }
}

/// Decodes [`MUTATIONS`] damaged records, and applies as many to damaged pages. The build is optimised, and still
/// checks arithmetic.
fn mutations(checkout: &Checkout) -> Result<String, Failure> {
    let test = "test --release -p trunkline-format --lib -- --nocapture";
    let filters = ["mutated_records", "random_bytes_are_decoded", "damaged_records_and_pages"];
    let test = filters.iter().fold(checkout.cargo(test), |test, filter| test.arg(filter));
    let test = with_checks(test).env("TRUNKLINE_MUTATIONS", MUTATIONS);
    let mut tally = Tally::default();
    let code = test.tee(|line| tally.line(line))?;
    if code != Some(0) || tally.passed != filters.len() as u64 {
        return Err(Failure::new(format!("{test} failed: {}", tally.failures.join(", "))));
    }
    Ok(format!("{} tests with {MUTATIONS} mutations each", tally.passed))
}

/// A release build that checks arithmetic and assertions.
fn with_checks(cargo: Invocation) -> Invocation {
    cargo
        .env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true")
        .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
}

/// Kills each command [`KILLS`] times.
fn kills(checkout: &Checkout) -> Result<String, Failure> {
    let test = checkout.cargo("test -p trunkline --test environment kills -- --show-output");
    let test = test.env("TRUNKLINE_KILLS", KILLS);
    let mut tally = Tally::default();
    let code = test.tee(|line| tally.line(line))?;
    if code != Some(0) || tally.passed == 0 || !tally.skipped.is_empty() {
        let reasons = [tally.failures, tally.skipped.into_keys().collect()].concat().join(", ");
        return Err(Failure::new(format!("{test} failed: {reasons}")));
    }
    Ok(format!("{} commands, each killed {KILLS} times", tally.passed))
}

/// Runs the tests that compare us with a server, or those with `filter` in their names, for each of
/// the servers.
fn servers(checkout: &Checkout, bins: &[&str], filter: &str) -> Result<String, Failure> {
    let fixtures = fixtures::make(checkout)?;
    let mut summary = Vec::new();
    for bin in bins {
        let version = record::output(checkout, &format!("{bin}/postgres"), "--version")?;
        let command = format!("test -p trunkline --test server {filter} -- --show-output");
        let test = checkout.cargo(&command);
        let test = fixtures
            .expose(test)
            .env("TRUNKLINE_SERVERS", *bin)
            .env("TRUNKLINE_SEED", FIRST_SEED)
            .env("TRUNKLINE_ROUNDS", ROUNDS);
        let mut tally = Tally::default();
        let code = test.tee(|line| tally.line(line))?;
        for start in ACCEPTED_PART_SKIPS {
            let parts = tally.skipped.extract_if(.., |reason, _| reason.starts_with(start));
            parts.for_each(|(reason, tests)| println!("left out: {reason} ({tests} tests)"));
        }
        if code != Some(0) || tally.passed == 0 || !tally.skipped.is_empty() {
            let reasons = [tally.failures, tally.skipped.into_keys().collect()].concat().join(", ");
            return Err(Failure::new(format!("{version}: {test} failed: {reasons}")));
        }
        summary.push(format!("{version}: {} tests", tally.passed));
    }
    Ok(format!("{}, {ROUNDS} random databases each", summary.join("; ")))
}

/// Compares random queries with the servers, each with its own seed.
fn random_queries(checkout: &Checkout, bins: &[&str]) -> Result<String, Failure> {
    let fixtures = fixtures::make(checkout)?;
    let count = RANDOM_QUERIES * bins.len();
    let command = "test -p trunkline-query --test it random_queries -- --show-output";
    let test = checkout.cargo(command);
    let test = fixtures
        .expose(test)
        .env("TRUNKLINE_SERVERS", bins.join(":"))
        .env("TRUNKLINE_SEED", FIRST_SEED)
        .env("TRUNKLINE_QUERIES", count.to_string());
    let mut summary = Vec::new();
    let code = test.tee(|line| {
        // A line for each server, such as "seed 1: 15: 300 the same, 200 refused, ...".
        if line.trim_start().starts_with("seed ") {
            summary.push(line.trim().to_owned());
        }
        true
    })?;
    match code {
        Some(0) if summary.len() == bins.len() => Ok(summary.join("; ")),
        _ => Err(Failure::new(format!("{test} failed"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_refused_without_a_record() {
        let root = std::env::temp_dir().join(format!("xtask-soak-{}", std::process::id()));
        let checkout = Checkout { target: root.clone(), root: root.clone() };
        for args in [
            &[][..],
            &["unknown"],
            &["servers"],
            &["checksums"],
            &["random-queries"],
            &["access-paths"],
            &["redo"],
            &["crash"],
            &["crash", "7"],
            &["until"],
            &["until", "7"],
            &["standby"],
            &["standby", "7"],
            &["choice"],
            &["faults", "more"],
            &["calibrate", "more"],
        ] {
            let failure = run(&checkout, args).unwrap_err();
            assert_eq!(failure.exit_code(), 2, "{args:?}");
        }
        assert!(!root.exists());
    }
}
