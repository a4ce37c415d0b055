//! **Writers**: clusters of our own whose writers are killed, recovered by us and by servers of 18.
//!
//! CI runs the same test with one cluster for its server. The record has the number of kills, and of the commits that
//! were acknowledged before them and found afterwards.

use crate::failure::Failure;
use crate::fixtures;
use crate::tally::Tally;
use crate::tree::Checkout;

use super::record;

/// The number of clusters for each server. The writer of each is killed twice.
const CLUSTERS: &str = "100";

/// The first of their seeds.
const FIRST_SEED: &str = "1";

/// Kills writers, and compares recoveries with each of the servers.
pub(super) fn run(checkout: &Checkout, bins: &[&str]) -> Result<String, Failure> {
    let fixtures = fixtures::make(checkout)?;
    let mut summary = Vec::new();
    for bin in bins {
        let version = record::output(checkout, &format!("{bin}/postgres"), "--version")?;
        let test = "test -p trunkline --test server -- --exact --show-output";
        let name = "killed_writers::a_killed_writer_is_recovered_as_by_a_server";
        let test = checkout.cargo(&format!("{test} {name}"));
        let test = fixtures
            .expose(test)
            .env("TRUNKLINE_SERVERS", *bin)
            .env("TRUNKLINE_SEED", FIRST_SEED)
            .env("TRUNKLINE_ROUNDS", CLUSTERS);
        let (mut tally, mut commits, mut kills, mut compared) = (Tally::default(), 0, 0, 0);
        let code = test.tee(|line| {
            let counts = counts_of(line);
            let (more_commits, more_kills, more_compared) = counts.unwrap_or_default();
            commits += more_commits;
            kills += more_kills;
            compared += more_compared;
            tally.line(line) || counts.is_some()
        })?;
        if code != Some(0) || !tally.skipped.is_empty() || kills == 0 || compared < kills {
            return Err(Failure::new(format!("{version}: {test} failed: {:?}", tally.failures)));
        }
        summary.push(format!("{version}: {kills} kills, {commits} acknowledged commits"));
    }
    Ok(summary.join("; "))
}

/// The numbers of a line such as "  166 commits, 2 kills, 2 comparisons".
fn counts_of(line: &str) -> Option<(u64, u64, u64)> {
    let (commits, rest) = line.trim().strip_suffix(" comparisons")?.split_once(" commits, ")?;
    let (kills, compared) = rest.split_once(" kills, ")?;
    Some((commits.parse().ok()?, kills.parse().ok()?, compared.parse().ok()?))
}
