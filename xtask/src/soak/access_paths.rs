//! **Access paths**: random predicates, each evaluated by every access path, and compared with servers.
//!
//! CI runs the same tests with fewer predicates. Each of them prints a line of counts, such as "compared
//! paths: 300 predicates, 1200 results, 250 index scans". The record has these counts for each server, so
//! that it shows how much was compared, and that the paths were really used. A server has predicates of its
//! own, because each has its own seed.

use std::fmt;

use crate::ci::SQL;
use crate::failure::Failure;
use crate::fixtures::{self, Fixtures};
use crate::tally::Tally;
use crate::tree::Checkout;

use super::record;

/// How many predicates, queries or joins each test compares, unless it has a list of them.
const PREDICATES: &str = "300";

/// The tests that compare us with a server: first those with random predicates, then those with lists.
const COMPARED: [&str; 9] = [
    "access_paths::every_path_gives_the_rows_of_a_server",
    "index_joins::random_joins_return_the_rows_of_a_server",
    "index_only_scans::entries_have_the_columns_of_their_rows",
    "ordered_scans::the_order_of_an_index_is_that_of_a_sort",
    "partial_indexes::a_partial_index_is_used_only_if_it_has_all_rows",
    "index_joins::every_kind_of_join_returns_the_rows_of_a_server",
    "index_joins::keys_of_every_type_find_the_rows_of_a_server",
    "path_conditions::conditions_say_no_more_than_their_filters",
    "point_queries::a_row_is_looked_up_without_a_plan",
];

/// Compares the access paths with each of the servers.
pub(super) fn run(checkout: &Checkout, bins: &[&str]) -> Result<String, Failure> {
    let fixtures = fixtures::make(checkout)?;
    // A server may show a bug of ours that the others don't, so all are tried.
    let (mut summary, mut failures) = (Vec::new(), Vec::new());
    for (bin, seed) in bins.iter().zip(1..) {
        let text = record::output(checkout, &format!("{bin}/postgres"), "--version")?;
        let run = Run { version: version(&text), bin, seed };
        match run.counts(checkout, &fixtures) {
            Ok(counts) => summary.push(format!("{}, seed {seed}: {counts}", run.version)),
            Err(failure) => failures.push(failure.to_string()),
        }
    }
    match failures.is_empty() {
        true => Ok(summary.join("; ")),
        false => Err(Failure::new(failures.join("; "))),
    }
}

/// The number in what `postgres --version` prints.
fn version(text: &str) -> &str {
    let number = text.split_once("(PostgreSQL) ").map_or(text, |(_, rest)| rest);
    number.split(' ').next().unwrap_or(text)
}

/// The tests with one server.
struct Run<'a> {
    version: &'a str,
    bin: &'a str,
    seed: u32,
}

impl Run<'_> {
    /// Runs the tests, all of which must pass and print counts.
    fn counts(&self, checkout: &Checkout, fixtures: &Fixtures) -> Result<Counts, Failure> {
        println!("== access-paths: {}", self.version);
        let arguments = format!("{} --exact --show-output", COMPARED.join(" "));
        let test = checkout.cargo(&format!("test {SQL} --test it -- {arguments}"));
        let test = fixtures
            .expose(test)
            .env("TRUNKLINE_SERVERS", self.bin)
            .env("TRUNKLINE_SEED", self.seed.to_string())
            .env("TRUNKLINE_QUERIES", PREDICATES);
        let (mut tally, mut counts, mut lines) = (Tally::default(), Counts::default(), 0);
        let code = test.tee(|line| {
            let counted = counts.add(line);
            lines += usize::from(counted);
            tally.line(line) || counted
        })?;
        let passed = usize::try_from(tally.passed).unwrap_or(usize::MAX);
        if code != Some(0)
            || passed != COMPARED.len()
            || lines < passed
            || !tally.skipped.is_empty()
        {
            let reasons = [tally.failures, tally.skipped.into_keys().collect()].concat().join(", ");
            let version = self.version;
            return Err(Failure::new(format!(
                "{version}: {passed} tests passed, {lines} lines of counts: {test} failed: {reasons}"
            )));
        }
        Ok(counts)
    }
}

/// Sums of counts with the same noun, under the name of a kind of comparison.
#[derive(Debug, Default)]
struct Counts(Vec<(String, Vec<(String, u64)>)>);

impl Counts {
    /// Adds a line such as "compared paths: 300 predicates, 250 index scans". Returns false if the
    /// line isn't one of counts.
    fn add(&mut self, line: &str) -> bool {
        let Some((name, rest)) =
            line.trim().strip_prefix("compared ").and_then(|rest| rest.split_once(": "))
        else {
            return false;
        };
        let counts = rest.split(", ").map(|part| {
            let (count, noun) = part.split_once(' ')?;
            Some((count.parse::<u64>().ok()?, noun))
        });
        let Some(counts) = counts.collect::<Option<Vec<_>>>() else { return false };
        let sums = entry(&mut self.0, name);
        for (count, noun) in counts {
            *entry(sums, noun) += count;
        }
        true
    }
}

/// The value for a key, in the order in which keys were first seen.
fn entry<'e, V: Default>(entries: &'e mut Vec<(String, V)>, key: &str) -> &'e mut V {
    let at = entries.iter().position(|(found, _)| found == key).unwrap_or_else(|| {
        entries.push((key.to_owned(), V::default()));
        entries.len() - 1
    });
    &mut entries[at].1
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups = self.0.iter().map(|(name, sums)| {
            let sums: Vec<String> =
                sums.iter().map(|(noun, sum)| format!("{sum} {noun}")).collect();
            format!("{name} ({})", sums.join(", "))
        });
        f.write_str(&groups.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_with_the_same_noun_are_added_up() {
        let mut counts = Counts::default();
        assert!(counts.add("compared paths: 300 predicates, 1200 results\n"));
        assert!(counts.add("compared order: 7 queries"));
        assert!(counts.add("compared paths: 300 predicates, 1201 results"));
        for other in ["compared paths", "compared paths: no number", "test a ... ok", ""] {
            assert!(!counts.add(other), "{other}");
        }
        let text = counts.to_string();
        assert_eq!(text, "paths (600 predicates, 2401 results), order (7 queries)");
    }

    #[test]
    fn versions_are_short() {
        assert_eq!(version("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)"), "15.14");
        assert_eq!(version("postgres (PostgreSQL) 18.4"), "18.4");
    }
}
