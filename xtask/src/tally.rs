//! **Test counts**: parses `cargo test` output for the numbers of passed and failed tests, and for
//! tests that skipped themselves. The exit code alone isn't enough, because it doesn't distinguish
//! a failed test from a failed build.

use std::collections::BTreeMap;

/// Totals over all `test result:` lines of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Tests that ran and passed.
    pub(crate) passed: u64,
    /// Tests that ran and failed.
    pub(crate) failed: u64,
    /// Reasons for skipped tests, each with the number of tests. Cargo shows a passing test's
    /// output only with `--show-output`.
    pub(crate) skipped: BTreeMap<String, u64>,
}

impl Tally {
    /// Parses the output of one `cargo test`.
    pub(crate) fn read(output: &str) -> Self {
        let mut sum = Self::default();
        for line in output.lines() {
            if line.starts_with("test result:") {
                sum.passed += number_before(line, " passed");
                sum.failed += number_before(line, " failed");
            } else if let Some(reason) = line.strip_prefix("skipped: ") {
                *sum.skipped.entry(reason.to_owned()).or_default() += 1;
            }
        }
        sum
    }
}

fn number_before(line: &str, word: &str) -> u64 {
    let Some((head, _)) = line.split_once(word) else { return 0 };
    head.rsplit(' ').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_up_binaries() {
        let output = "running 2 tests\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\
            test result: FAILED. 40 passed; 3 failed; 0 ignored; 0 measured\n";
        assert_eq!(Tally::read(output), Tally { passed: 42, failed: 3, ..Tally::default() });
    }

    #[test]
    fn a_compile_error_is_no_test() {
        assert_eq!(Tally::read("error[E0308]: mismatched types\n"), Tally::default());
    }
}
