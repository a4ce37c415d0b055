//! **Patch files**: the bug that a mutant brings back, and the `# key: value` lines that say which
//! test must fail. `xtask/mutants/README.md` describes the format.

use crate::failure::Failure;

/// Directory of the patches.
pub(super) const FOLDER: &str = "xtask/mutants/";
/// Timeout in seconds; a mutant's test that exceeds it counts as hanging.
const TIMEOUT_SECONDS: u64 = 120;

/// One mutant.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mutant {
    pub(super) name: String,
    pub(super) lesson: String,
    /// The crate that the patch changes first: `crates/NAME` or `xtask`.
    pub(super) changes: String,
    pub(super) program: TestProgram,
    /// Part of the names of the tests that must fail.
    pub(super) filter: String,
    pub(super) hang_is_ok: bool,
    pub(super) timeout_seconds: u64,
}

/// The test program whose tests must fail.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TestProgram {
    /// Arguments of `cargo test` that select the program: `-p PACKAGE --test NAME`.
    pub(super) args: String,
    /// Environment variables for the build and for the test.
    pub(super) env: Vec<(String, String)>,
}

impl Mutant {
    /// Parses the `# key: value` lines above the diff.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, Failure> {
        let fail = |what: &str| Failure::new(format!("{FOLDER}{name}.patch: {what}"));
        let mut mutant = Self {
            name: name.to_owned(),
            lesson: String::new(),
            changes: changed_crate(text),
            program: TestProgram { args: String::new(), env: Vec::new() },
            filter: String::new(),
            hang_is_ok: false,
            timeout_seconds: TIMEOUT_SECONDS,
        };
        for line in text.lines().map_while(|line| line.strip_prefix('#')) {
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match key.trim() {
                "lesson" => mutant.lesson = value.to_owned(),
                "test" => {
                    let (program, filter) = test_command(value)
                        .ok_or_else(|| fail("test: not `cargo test PROGRAM FILTER`"))?;
                    mutant.program.args = program.to_owned();
                    mutant.filter = filter.to_owned();
                }
                "hang" => mutant.hang_is_ok = value == "ok",
                "timeout" => {
                    mutant.timeout_seconds =
                        value.parse().map_err(|_| fail("timeout: not seconds"))?;
                }
                "env" => {
                    let (key, value) =
                        value.split_once('=').ok_or_else(|| fail("env: not NAME=value"))?;
                    mutant.program.env.push((key.to_owned(), value.to_owned()));
                }
                _ => {}
            }
        }
        if mutant.lesson.is_empty() || mutant.filter.is_empty() {
            return Err(fail("needs `# lesson:` and `# test:` above the diff"));
        }
        Ok(mutant)
    }
}

/// Splits a test command into the arguments that select the program, and the filter. The filter is
/// the last word. A command without one would run all tests of the program, so it is refused.
fn test_command(command: &str) -> Option<(&str, &str)> {
    let (program, filter) = command.strip_prefix("cargo test ")?.trim().rsplit_once(' ')?;
    let before = program.rsplit(' ').next();
    let is_value = filter.starts_with('-') || matches!(before, Some("-p" | "--test"));
    (!is_value).then_some((program, filter))
}

/// The crate of the first file in a diff.
fn changed_crate(diff: &str) -> String {
    let path = diff.lines().find_map(|line| line.strip_prefix("+++ b/")).unwrap_or("");
    let depth = if path.starts_with("crates/") { 2 } else { 1 };
    path.split('/').take(depth).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# lesson: 2: a short read is retried\n\
        # test: cargo test -p trunkline-aio --lib short_read\n\
        # env: RUSTFLAGS=--cfg loom\n\
        # hang: ok\n\
        # timeout: 30\n\
        diff --git a/x b/x\n--- a/crates/x/src/y.rs\n+++ b/crates/x/src/y.rs\n";

    #[test]
    fn reads_the_header() {
        let mutant = Mutant::parse("short", GOOD).unwrap();
        assert_eq!(mutant.lesson, "2: a short read is retried");
        assert_eq!(mutant.program.args, "-p trunkline-aio --lib");
        assert_eq!(mutant.filter, "short_read");
        assert_eq!(mutant.program.env, [("RUSTFLAGS".to_owned(), "--cfg loom".to_owned())]);
        assert!(mutant.hang_is_ok);
        assert_eq!(mutant.changes, "crates/x");
        assert_eq!(mutant.timeout_seconds, 30);
    }

    #[test]
    fn a_header_without_lesson_or_test_is_refused() {
        for missing in ["# lesson", "# test"] {
            let text: String = GOOD
                .lines()
                .filter(|line| !line.starts_with(missing))
                .collect::<Vec<_>>()
                .join("\n");
            assert!(Mutant::parse("short", &text).is_err(), "{missing}");
        }
        assert!(Mutant::parse("short", &GOOD.replace("30", "soon")).is_err());
    }

    #[test]
    fn a_test_command_without_a_filter_is_refused() {
        for command in
            ["-p trunkline-aio --lib", "-p trunkline-sim --test contract", "-p trunkline-aio"]
        {
            let text = GOOD.replace("-p trunkline-aio --lib short_read", command);
            assert!(Mutant::parse("short", &text).is_err(), "{command}");
        }
    }

    #[test]
    fn a_hang_counts_only_when_announced() {
        assert!(!Mutant::parse("short", &GOOD.replace("# hang: ok\n", "")).unwrap().hang_is_ok);
    }
}
