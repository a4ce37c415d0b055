//! Random databases: a server copies each table. `trunkline copy` then reads the server's files,
//! and its output must be the same, byte for byte.
//!
//! We print the seed, so that a failed run can be repeated by setting `TRUNKLINE_SEED`.
//! `TRUNKLINE_ROUNDS` sets the number of runs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use trunkline_aio::facade::env;
use trunkline_aio::facade::random::{self, Rng};

use crate::history::{Abilities, History};
use crate::server::{Server, Stopped, servers};
use crate::values::pick;

/// The seeds of this run.
pub(crate) fn seeds() -> impl Iterator<Item = u64> {
    let first = number("TRUNKLINE_SEED").unwrap_or_else(random::seed);
    let rounds = number("TRUNKLINE_ROUNDS").unwrap_or(1);
    (0..rounds).map(move |more| first.wrapping_add(more))
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).map(|text| text.to_string_lossy().parse().expect(variable))
}

fn trunkline(arguments: &[&str], data: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.args(arguments).arg("--no-progress").arg("-D").arg(data);
    command.output().expect("runs")
}

#[test]
fn random_databases_are_copied_byte_for_byte() {
    for bin in servers() {
        for seed in seeds() {
            println!("TRUNKLINE_SEED={seed} ({})", bin.display());
            round(&bin, seed);
        }
    }
}

/// Creates a random database and stops its server.
pub(crate) fn random_database(bin: &Path, rng: &mut Rng) -> (Stopped, History) {
    let server =
        Server::start(bin, &[("synchronize_seqscans", "off"), ("enable_indexscan", "off")]);
    let output = server.home().join("printed");
    fs::create_dir(&output).expect("made");
    let lz4 = server.sql("postgres", "select count(*) from pg_settings where name = 'default_toast_compression' and 'lz4' = any (enumvals)");
    let abilities = Abilities { lz4: lz4.starts_with(b"1"), computes: server.major() >= 18 };
    let history = History::new(rng, abilities, &output);
    fs::write(server.home().join("history.sql"), &history.script).expect("written");
    server.script("postgres", &history.script, true);
    (server.stop(), history)
}

fn round(bin: &Path, seed: u64) {
    let mut rng = Rng::new(seed);
    let (stopped, history) = random_database(bin, &mut rng);
    let (mut rows, mut compared) = (0, 0);
    for (table, file) in &history.tables {
        // A table that could not be created has no output.
        let Ok(expected) = fs::read(file) else { continue };
        compared += 1;
        rows += expected.iter().filter(|&&byte| byte == b'\n').count();
        compare(&mut rng, &stopped, table, &expected, seed);
    }
    assert!(rows > 1000, "only {rows} rows, seed {seed}");
    let all = history.tables.len();
    assert!(compared * 10 > all * 8, "only {compared} of {all} tables, seed {seed}");
    println!("  {compared} of {all} tables, {rows} rows");
    let verified = trunkline(&["verify", "-d", "postgres", "--deep"], &stopped.data());
    let said = String::from_utf8_lossy(&verified.stdout);
    assert!(
        verified.status.success(),
        "seed {seed}: {said}{}",
        String::from_utf8_lossy(&verified.stderr)
    );
}

/// Copies a table with a random I/O configuration, and compares the output.
fn compare(rng: &mut Rng, stopped: &Stopped, table: &str, expected: &[u8], seed: u64) {
    let method = pick(rng, &["sync", "worker", "io_uring"]);
    let direct = pick(rng, &["--io-direct=data", "--io-direct="]);
    let buffers = pick(rng, &["--shared-buffers=16", "--shared-buffers=1024"]);
    let way = ["copy", "-d", "postgres", table, "--ctid", "--io-method", method, direct, buffers];
    let copied = trunkline(&way, &stopped.data());
    let said = String::from_utf8_lossy(&copied.stderr);
    assert!(copied.status.success(), "seed {seed}: {way:?}: {said}");
    let same = copied.stdout == expected;
    assert!(same, "seed {seed}: {table}: {}", difference(&copied.stdout, expected));
}

/// The first line that differs.
fn difference(ours: &[u8], theirs: &[u8]) -> String {
    let lines = |bytes: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
    };
    let (ours, theirs) = (lines(ours), lines(theirs));
    let differs = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
    let at = differs.unwrap_or(ours.len().min(theirs.len()));
    let (counts, lines) = ((ours.len(), theirs.len()), (ours.get(at), theirs.get(at)));
    format!("line {at} of {counts:?}:\nours   {:?}\ntheirs {:?}", lines.0, lines.1)
}
