//! **Redo**: logs of real servers with an image of every page after every change, compared with what
//! our redo makes of their records.
//!
//! CI runs the same test with one log for each of its servers. The record has the number of compared
//! pages for each server, and which operations were never seen: a rule that no load exercises proves
//! nothing.

use crate::failure::Failure;
use crate::fixtures;
use crate::tally::Tally;
use crate::tree::Checkout;

use super::record;

/// The number of logs for each server, each with a seed of its own.
const LOGS: &str = "30";

/// The first of the seeds.
const FIRST_SEED: &str = "1";

/// Compares logs of each of the servers.
pub(super) fn run(checkout: &Checkout, bins: &[&str]) -> Result<String, Failure> {
    let fixtures = fixtures::make(checkout)?;
    // A server may show a bug of ours that the others don't, so all are tried.
    let (mut summary, mut failures) = (Vec::new(), Vec::new());
    for bin in bins {
        let version = record::output(checkout, &format!("{bin}/postgres"), "--version")?;
        let test = "test -p trunkline --test server -- --exact --show-output";
        let test = checkout.cargo(&format!("{test} redo::redo_makes_the_pages_of_servers"));
        let test = fixtures
            .expose(test)
            .env("TRUNKLINE_SERVERS", *bin)
            .env("TRUNKLINE_SEED", FIRST_SEED)
            .env("TRUNKLINE_ROUNDS", LOGS);
        let (mut tally, mut compared) = (Tally::default(), None);
        let code = test.tee(|line| {
            let found = line.trim().strip_prefix("compared redo: ").map(str::to_owned);
            let is_count = found.is_some();
            compared = found.or(compared.take());
            tally.line(line) || is_count
        })?;
        match compared.filter(|_| code == Some(0) && tally.skipped.is_empty()) {
            Some(compared) => summary.push(format!("{version}: {compared}")),
            None => failures.push(format!("{version}: {test} failed: {:?}", tally.failures)),
        }
    }
    match failures.is_empty() {
        true => Ok(summary.join("; ")),
        false => Err(Failure::new(failures.join("; "))),
    }
}
