//! Random queries, compared with a server that runs on a copy of the same data directory: the same
//! rows in the same order, or the same SQLSTATE. What we refuse by name is counted.
//!
//! `TRUNKLINE_QUERIES` is the number of queries, and `TRUNKLINE_SEED` the first seed. A failure prints
//! the queries, so that one of them can be run by itself. `TRUNKLINE_RUNNING`, such as `18:/tmp:5418`,
//! is a server that runs already, on a database `shop` that was made by the same script as that of the
//! fixture: its version, the directory of its socket, and its port.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;

use trunkline_aio::facade::env;
use trunkline_sql::{SqlError, SqlState};

use crate::answers::versions;
use crate::cluster::open;
use crate::queries::{difference, merging, rows};
use crate::random_query::generator::Generator;
use crate::random_query::tables::tables;
use crate::server::{Server, servers, succeed};

/// The database of the fixtures that has tables of all types.
const DATABASE: &str = "shop";
/// How many queries CI runs.
const QUERIES: usize = 500;
/// What the server returns for a query that it cancels.
const CANCELLED: &str = "57014";

/// The lines of `COPY`, or the SQLSTATE of the error.
type Outcome = Result<Vec<String>, String>;

/// Counts of what was compared.
#[derive(Debug, Default)]
struct Tally {
    same: usize,
    /// By message.
    refused: BTreeMap<String, usize>,
    /// Whether an error of class 22 occurs depends on the order of evaluation.
    undecided: usize,
    wrong: Vec<String>,
}

/// A number from the environment.
fn number(name: &str, default: usize) -> usize {
    env::var(name).map_or(default, |text| {
        text.to_string_lossy().parse().unwrap_or_else(|_| panic!("{name} is not a number"))
    })
}

/// Runs all queries on a server, in one session of `psql`, with a script in `directory`.
fn run_on_server(mut psql: Command, directory: &Path, queries: &[String]) -> Vec<Outcome> {
    let mut script = String::from("\\set VERBOSITY sqlstate\n");
    for (number, query) in queries.iter().enumerate() {
        assert!(!query.contains('\n'), "line numbers of errors are numbers of queries");
        let _ = write!(script, "\\echo @@{number}\ncopy ({query}) to stdout;\n");
    }
    let file = directory.join("random.sql");
    fs::write(&file, script).expect("written");
    psql.args(["-v", "ON_ERROR_STOP=0", "-f"]).arg(&file);
    let output = psql.output().expect("runs");
    let mut outcomes: Vec<Outcome> = queries.iter().map(|_| Ok(Vec::new())).collect();
    let (mut current, mut found) = (None, 0);
    for line in String::from_utf8(output.stdout).expect("UTF-8").lines() {
        if let Some(number) = line.strip_prefix("@@") {
            current = number.parse::<usize>().ok();
            found += 1;
        } else if let Some(Ok(rows)) = current.and_then(|at| outcomes.get_mut(at)) {
            rows.push(line.to_owned());
        }
    }
    assert_eq!(found, queries.len(), "answers of the server");
    // A line such as `psql:/tmp/random.sql:7: ERROR:  22012`.
    for line in String::from_utf8(output.stderr).expect("UTF-8").lines() {
        let Some((place, code)) = line.split_once(": ERROR:  ") else { continue };
        let number = place.rsplit(':').next().and_then(|number| number.parse::<usize>().ok());
        let number = number.unwrap_or_else(|| panic!("{line}"));
        outcomes[(number - 3) / 2] = Err(code.trim().to_owned());
    }
    outcomes
}

fn is_refused(error: &SqlError) -> bool {
    error.code() == SqlState::FEATURE_NOT_SUPPORTED
        && error.message().contains("supported by trunkline")
}

impl Tally {
    fn add(&mut self, query: &str, found: Result<Vec<String>, SqlError>, expected: &Outcome) {
        // The server's 0A000 is that of a cast of an infinite or missing number to an integer.
        let is_data_error =
            |code: &str| code.starts_with("22") || code.starts_with("21") || code == "0A000";
        match (found, expected) {
            (Err(error), _) if is_refused(&error) => {
                *self.refused.entry(error.message().to_owned()).or_default() += 1;
            }
            (_, Err(code)) if code == CANCELLED => self.undecided += 1,
            // These statements have no directory for temporary files, and the server has one.
            (Err(error), _) if error.code() == SqlState::OUT_OF_MEMORY => self.undecided += 1,
            (Ok(found), Ok(expected)) if found == *expected => self.same += 1,
            (Err(error), Err(code)) if error.code().as_str() == code => self.same += 1,
            (Ok(_), Err(code)) if is_data_error(code) => self.undecided += 1,
            (Err(error), _) if is_data_error(error.code().as_str()) => self.undecided += 1,
            (Ok(found), Ok(expected)) => self.wrong.push(format!(
                "{} rows, expected {}\n  found    {:?}\n  expected {:?}\n  {query}",
                found.len(),
                expected.len(),
                difference(&found, expected),
                difference(expected, &found),
            )),
            (found, expected) => {
                let found = found
                    .map(|rows| rows.len())
                    .map_err(|error| format!("{} {}", error.code().as_str(), error.message()));
                let expected = expected.as_ref().map(Vec::len);
                self.wrong.push(format!("found {found:?}, expected {expected:?}\n  {query}"));
            }
        }
    }
}

/// Starts a server on a copy of a data directory, which may have lost its WAL, as fixtures have.
fn server_over(bin: &Path, data: &Path) -> Server {
    let server = Server::prepare(bin);
    server.copy_from(data);
    succeed(server.command("pg_resetwal").arg("-f").arg("-D").arg(server.data()));
    server.configured(&[("statement_timeout", "30s")])
}

/// A server to compare with.
enum Compared {
    /// Its programs.
    Programs(PathBuf),
    /// It runs: the directory of its socket, and its port.
    Running(String, String),
}

impl Compared {
    /// The server that `TRUNKLINE_RUNNING` names, and its version.
    fn running() -> Option<(u32, Self)> {
        let text = env::var("TRUNKLINE_RUNNING")?.to_string_lossy().into_owned();
        let parts: Vec<&str> = text.split(':').collect();
        let [major, directory, port] = parts.as_slice() else { panic!("TRUNKLINE_RUNNING") };
        let major = major.parse().expect("a version");
        Some((major, Self::Running((*directory).to_owned(), (*port).to_owned())))
    }

    /// What the server returns for queries over a copy of the data.
    fn outcomes(&self, data: &Path, queries: &[String]) -> Vec<Outcome> {
        match self {
            Self::Programs(bin) => {
                let server = server_over(bin, data);
                run_on_server(server.psql(DATABASE), server.home(), queries)
            }
            Self::Running(directory, port) => {
                let mut psql = Command::new("psql");
                psql.args(["-X", "-q", "-A", "-t", "-F", "\t", "-U", "postgres"]);
                psql.args(["-d", DATABASE, "-h", directory, "-p", port]);
                psql.env("PGOPTIONS", "-c statement_timeout=30s").env("PGTZ", "UTC");
                psql.env("LC_ALL", "C");
                run_on_server(psql, Path::new(env!("CARGO_TARGET_TMPDIR")), queries)
            }
        }
    }
}

/// Compares `count` queries with a server, which has the version of the fixture.
fn compare(server: &Compared, fixture: &Path, seed: u64, count: usize) -> Tally {
    let tables = tables(&fixture.join("expected").join(DATABASE));
    let mut generator = Generator::new(&tables, seed);
    let queries: Vec<String> = (0..count).map(|_| generator.query()).collect();
    let data = fixture.join("data");
    let expected = server.outcomes(&data, &queries);
    let temporary = tempfile::tempdir().expect("a directory");
    // Every second query is asked with joins that sort.
    let contexts = [open(&data, DATABASE), merging(open(&data, DATABASE), temporary.path())];
    let mut tally = Tally::default();
    for ((query, expected), context) in queries.iter().zip(&expected).zip(contexts.iter().cycle()) {
        match catch_unwind(AssertUnwindSafe(|| rows(context, query))) {
            Ok(found) => {
                let found = found.map(|rows| rows.expect("one query"));
                tally.add(query, found, expected);
            }
            Err(_) => tally.wrong.push(format!("panicked\n  {query}")),
        }
    }
    tally
}

#[test]
fn random_queries_give_the_rows_of_the_server() {
    let fixtures = versions();
    let servers = servers();
    let version = |bin: &Path| {
        let output = std::process::Command::new(bin.join("postgres")).arg("--version").output();
        let text = String::from_utf8_lossy(&output.expect("runs").stdout).into_owned();
        let digits = text.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty());
        digits.and_then(|digits| digits.parse::<u32>().ok()).expect("a version")
    };
    // Fixtures have no WAL, and only some servers come with the program that makes a new one.
    let mut pairs: Vec<_> = servers
        .iter()
        .filter(|bin| bin.join("pg_resetwal").is_file())
        .filter_map(|bin| {
            let major = version(bin);
            let (_, queries) = fixtures.iter().find(|(found, _)| *found == major)?;
            Some((major, Compared::Programs(bin.clone()), queries.parent()?.parent()?.to_owned()))
        })
        .collect();
    if let Some((major, running)) = Compared::running() {
        let fixture = fixtures.iter().find(|(found, _)| *found == major);
        let queries = &fixture.expect("a fixture of this version").1;
        let fixture = queries.parent().and_then(Path::parent).expect("a directory");
        pairs = vec![(major, running, fixture.to_owned())];
    }
    let (seed, count) = (number("TRUNKLINE_SEED", 1) as u64, number("TRUNKLINE_QUERIES", QUERIES));
    let mut wrong = Vec::new();
    for (seed, (major, server, fixture)) in (seed..).zip(&pairs) {
        let tally = compare(server, fixture, seed, count.div_ceil(pairs.len()));
        let refused: usize = tally.refused.values().sum();
        let mut reasons: Vec<_> = tally.refused.iter().map(|(why, count)| (count, why)).collect();
        reasons.sort_unstable_by(|one, other| other.cmp(one));
        for (count, why) in reasons.iter().take(20) {
            println!("refused {major} {count} times: {why}");
        }
        let (same, undecided, failed) = (tally.same, tally.undecided, tally.wrong.len());
        println!(
            "seed {seed}: {major}: {same} the same, {refused} refused, {undecided} undecided, \
             {failed} wrong"
        );
        wrong.extend(tally.wrong.iter().map(|why| format!("{major} seed {seed}: {why}")));
    }
    let count = wrong.len();
    wrong.truncate(20);
    assert!(count == 0, "{count} wrong:\n{}", wrong.join("\n"));
}
