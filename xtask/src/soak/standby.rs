//! **Standby**: servers of 18 follow a cluster of our own under load, and have the same files in the end.
//!
//! CI runs the same test with a number of commits. The record has how many there were, and how much WAL.

use crate::failure::Failure;
use crate::fixtures;
use crate::tally::Tally;
use crate::tree::Checkout;

use super::crash::number_and_bins;
use super::record;

/// How long each server follows, in minutes, if the command line has no number.
const MINUTES: u64 = 60;

/// The seed of the load.
const SEED: &str = "1";

/// The minutes and the folders with servers, or `None` if there is no folder.
pub(super) fn arguments<'a>(args: &'a [&'a str]) -> Option<(u64, &'a [&'a str])> {
    number_and_bins(args, MINUTES)
}

/// Lets each of the servers follow. The first argument may be the number of minutes.
pub(super) fn run(checkout: &Checkout, args: &[&str]) -> Result<String, Failure> {
    let (minutes, bins) =
        arguments(args).ok_or_else(|| Failure::usage("soak standby: expected [MINUTES] BIN..."))?;
    let fixtures = fixtures::make(checkout)?;
    let mut summary = Vec::new();
    for bin in bins {
        let version = record::output(checkout, &format!("{bin}/postgres"), "--version")?;
        let test = "test -p trunkline --test server -- --exact --show-output";
        let name = "standby::a_standby_follows_a_cluster_of_ours";
        let test = checkout.cargo(&format!("{test} {name}"));
        let test = fixtures
            .expose(test)
            .env("TRUNKLINE_SERVERS", *bin)
            .env("TRUNKLINE_SEED", SEED)
            .env("TRUNKLINE_ROUNDS", "1")
            .env("TRUNKLINE_STANDBY_MINUTES", minutes.to_string());
        let (mut tally, mut followed) = (Tally::default(), None);
        let code = test.tee(|line| {
            let is_count = line.trim_end().ends_with(" pages compared");
            if is_count {
                followed = Some(line.trim().to_owned());
            }
            tally.line(line) || is_count
        })?;
        match followed.filter(|_| code == Some(0) && tally.skipped.is_empty()) {
            Some(followed) => summary.push(format!("{version}: {minutes} minutes, {followed}")),
            None => {
                let failures = tally.failures;
                return Err(Failure::new(format!("{version}: {test} failed: {failures:?}")));
            }
        }
    }
    Ok(summary.join("; "))
}
