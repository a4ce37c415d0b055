//! **Test counts**: parses the output of `cargo test` to find out how many tests passed, how many
//! failed, and which tests skipped themselves. The exit code isn't enough for that. It doesn't even
//! tell us whether it was a test or the build that failed.

use std::collections::BTreeMap;

/// Totals over all `test result:` lines of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Tests that ran and passed.
    pub(crate) passed: u64,
    /// Tests that ran and failed.
    pub(crate) failed: u64,
    /// Names of the failed tests.
    pub(crate) failures: Vec<String>,
    /// Reasons for skipped tests, each with the number of tests. Note that Cargo shows the output
    /// of a passing test only with `--show-output`.
    pub(crate) skipped: BTreeMap<String, u64>,
    section: Section,
}

/// The part of a test binary's output that the next line belongs to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Build messages and one line for each test.
    #[default]
    Progress,
    /// The output of the tests that passed, whatever it looks like.
    Outputs,
    /// The names of the tests that passed.
    Successes,
    /// The output and the names of the tests that failed.
    Failures,
}

impl Tally {
    /// Counts what the captured output of one `cargo test` says.
    pub(crate) fn read(output: &str) -> Self {
        let mut tally = Self::default();
        output.lines().for_each(|line| {
            tally.line(line);
        });
        tally
    }

    /// Processes one line of the output of `cargo test`, and returns whether to show the line. We
    /// hide the output of passing tests. Some of them panic on purpose, and in a long log their
    /// backtraces would make it hard to find the one real failure.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        let line = line.trim_end();
        // The heading appears twice: above the output, and again above the names.
        if line == "successes:" {
            self.section = match self.section {
                Section::Outputs => Section::Successes,
                _ => Section::Outputs,
            };
        } else if let Some(reason) = line.strip_prefix("skipped: ") {
            // We don't show this line, because the summary contains the reason. Besides, some of
            // xtask's own tests print lines like this, and the enclosing test run must not count
            // them as skipped tests.
            *self.skipped.entry(reason.to_owned()).or_default() += 1;
            return false;
        } else if self.section == Section::Outputs {
            return false;
        } else if line == "failures:" {
            self.section = Section::Failures;
        } else if line.starts_with("test result:") {
            self.section = Section::Progress;
            self.passed += number_before(line, " passed");
            self.failed += number_before(line, " failed");
        } else if self.section == Section::Failures
            && let Some(name) =
                line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" ----"))
        {
            self.failures.push(name.trim_end_matches(" stdout").to_owned());
        }
        !matches!(self.section, Section::Outputs | Section::Successes)
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
        let tally = Tally::read(
            "running 2 tests\n\
             test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n\
             test result: FAILED. 40 passed; 3 failed; 0 ignored; 0 measured\n",
        );
        assert_eq!((tally.passed, tally.failed), (42, 3));
    }

    #[test]
    fn a_reason_to_skip_is_counted_and_not_shown() {
        let mut tally = Tally::default();
        assert!(!tally.line("skipped: not root\n"));
        assert_eq!(tally.skipped["not root"], 1);
    }

    #[test]
    fn a_compile_error_is_no_test() {
        assert_eq!(Tally::read("error[E0308]: mismatched types\n"), Tally::default());
    }

    #[test]
    fn only_failures_are_shown_with_their_output() {
        let output = "test a ... ok\ntest b ... FAILED\n\nsuccesses:\n\n---- a stdout ----\n\
             thread 'a' panicked on purpose\nskipped: not root\n\
             test result: FAILED. 9 passed; 9 failed; printed by a\n\nsuccesses:\n    a\n\n\
             failures:\n\n---- b stdout ----\nthread 'b' panicked\n\nfailures:\n    b\n\n\
             test result: FAILED. 1 passed; 1 failed; 0 ignored\ntest c ... ok\n";
        let mut tally = Tally::default();
        let shown: Vec<_> = output.lines().filter(|line| tally.line(line)).collect();
        assert_eq!((tally.passed, tally.failed), (1, 1));
        assert_eq!(tally.failures, ["b"]);
        assert_eq!(tally.skipped["not root"], 1);
        assert!(!shown.iter().any(|line| line.contains("on purpose")), "{shown:?}");
        for line in ["---- b stdout ----", "thread 'b' panicked", "test c ... ok"] {
            assert!(shown.contains(&line), "{line}: {shown:?}");
        }
    }
}
