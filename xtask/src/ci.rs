//! **CI**: the steps every change must pass. The order puts steps that are quick and likely to
//! fail first.
//!
//! Each step prints its name and elapsed time and, if it fails, the command that repeats just this
//! step. Fixtures are built before the tests, because tests without their fixture are skipped. The
//! summary at the end lists the skipped tests and the reasons. In CI (`CI=true`) a missing fixture
//! is a failure, and so is a test that was skipped although a Debian machine could run it as root.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::fixtures::{self, Fixtures};
use crate::invocation::Invocation;
use crate::tally::Tally;
use crate::tree::Checkout;
use crate::{mutants, tidy};

/// The reasons to skip a test that are accepted in CI, by their beginning. npm's servers don't have
/// this program, and `.ci/run` installs only that of version 15.
const ACCEPTED_SKIPS: [&str; 1] = ["no pg_checksums "];

/// The reasons to skip a part of a test that are accepted in CI and in soak tests. npm's servers
/// don't have these programs either.
pub(crate) const ACCEPTED_PART_SKIPS: [&str; 4] =
    ["no pg_dump ", "no pg_resetwal ", "no pg_upgrade ", "no pg_waldump "];

/// Which steps to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Only the quick steps, for use between two edits.
    Fast,
    /// All steps.
    Full,
}

/// Which packages to check. Only trunkline-query depends on the query engine, which takes minutes to
/// build, so the others are checked without it (decision 0022).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but SQL execution.
    Engine,
    /// SQL execution.
    Sql,
    /// Both.
    All,
}

impl Part {
    fn engine(self) -> bool {
        self != Self::Sql
    }

    fn sql(self) -> bool {
        self != Self::Engine
    }
}

/// The packages of [`Part::Engine`], as arguments of cargo.
const ENGINE: &str = "--workspace --exclude trunkline-query --exclude trunkline-server";

/// Those of [`Part::Sql`].
pub(crate) const SQL: &str =
    "-p trunkline-query -p trunkline-server -p trunkline --features trunkline/sql";

/// The tests of [`Part::Sql`]. The other targets of trunkline were tested without SQL.
const SQL_TESTS: &str = "-p trunkline-query -p trunkline-server -p trunkline \
                         --features trunkline/sql --lib --bins --test it --test query";

/// The runs of the tests. We must run the engine's tests twice: cargo unifies features across all
/// packages built by one command, and trunkline-sim enables the scheduler in trunkline-aio.
#[derive(Debug, Clone, Copy)]
enum Tests {
    /// The engine as shipped.
    Shipped,
    /// The tests that need the scheduler.
    Scheduler,
    /// SQL execution.
    Sql,
}

impl Tests {
    fn name(self) -> &'static str {
        match self {
            Self::Shipped => "test",
            Self::Scheduler => "test, scheduler",
            Self::Sql => "test, sql",
        }
    }

    fn packages(self) -> &'static str {
        match self {
            Self::Shipped => {
                "--workspace --exclude trunkline-sim --exclude trunkline-query --exclude trunkline-server"
            }
            Self::Scheduler => "-p trunkline-sim -p trunkline-aio",
            Self::Sql => SQL_TESTS,
        }
    }
}

/// The current run and its results so far.
struct Run<'a> {
    checkout: &'a Checkout,
    /// Whether this is CI, where nothing may be missing.
    is_ci: bool,
    started: Instant,
    steps: u32,
    tests: u64,
    /// Reasons for skipped tests, each with the number of tests.
    skipped: BTreeMap<String, u64>,
    notes: Vec<String>,
}

/// Runs the steps in order, and stops at the first failure.
pub(crate) fn run(checkout: &Checkout, part: Part, depth: Depth) -> Result<(), Failure> {
    let mut run = Run::new(checkout);
    let done = run.all(part, depth);
    match &done {
        Ok(()) => println!("ci: ok: {}", run.summary()),
        Err(_) => println!("ci: FAILED: {}", run.summary()),
    }
    done
}

/// Builds the tests of the step `test` without running them.
pub(crate) fn build_tests(checkout: &Checkout) -> Result<(), Failure> {
    checkout.cargo(&format!("test {} --no-run", Tests::Shipped.packages())).run()
}

/// Runs the step `test` and nothing else. Returns the number of tests that passed.
pub(crate) fn tests_alone(checkout: &Checkout) -> Result<u64, Failure> {
    let mut run = Run::new(checkout);
    let made = run.fixtures()?;
    run.test_run(Tests::Shipped, &made)?;
    Ok(run.tests)
}

impl<'a> Run<'a> {
    fn new(checkout: &'a Checkout) -> Self {
        let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        let (skipped, notes) = (BTreeMap::new(), Vec::new());
        Self { checkout, is_ci, started: Instant::now(), steps: 0, tests: 0, skipped, notes }
    }

    fn all(&mut self, part: Part, depth: Depth) -> Result<(), Failure> {
        let made = self.step("fixtures", "cargo xtask fixtures", |run| run.fixtures())?;
        self.command("fmt", &self.checkout.cargo("fmt --all --check"))?;
        self.step("tidy", "cargo xtask tidy", |run| tidy::run(run.checkout, false))?;
        if part.engine() {
            self.lint("", ENGINE, depth)?;
            self.engine_tests(&made, depth)?;
        }
        if part.sql() {
            self.lint(", sql", SQL, depth)?;
            self.test_run(Tests::Sql, &made)?;
        }
        Ok(())
    }

    /// Runs clippy, and builds the documentation of these packages.
    fn lint(&mut self, suffix: &str, packages: &str, depth: Depth) -> Result<(), Failure> {
        let clippy = format!("clippy {packages} --all-targets -- -D warnings");
        self.command(&format!("clippy{suffix}"), &self.checkout.cargo(&clippy))?;
        if depth == Depth::Full {
            let doc = self.checkout.cargo(&format!("doc {packages} --no-deps"));
            self.command(&format!("doc{suffix}"), &doc.env("RUSTDOCFLAGS", "-D warnings"))?;
        }
        Ok(())
    }

    fn engine_tests(&mut self, made: &Fixtures, depth: Depth) -> Result<(), Failure> {
        self.test_run(Tests::Shipped, made)?;
        // Before the second run, which replaces the examples of trunkline-aio.
        self.examples()?;
        self.test_run(Tests::Scheduler, made)?;
        if depth == Depth::Full {
            self.loom()?;
            let caught =
                self.step("mutants", "cargo xtask mutants", |run| mutants::run_part(run.checkout))?;
            self.notes.push(caught);
        }
        Ok(())
    }

    /// Runs some of the tests.
    fn test_run(&mut self, tests: Tests, made: &Fixtures) -> Result<(), Failure> {
        let command = self.checkout.cargo(&format!("test {} -- --show-output", tests.packages()));
        self.tests(tests.name(), &made.expose(command))
    }

    /// Runs all examples of the crates meant for embedding. We find the examples by listing their
    /// files, so a new example can't be forgotten.
    fn examples(&mut self) -> Result<(), Failure> {
        for path in self.checkout.files()? {
            if let Some((package, name)) = example(&path)
                && self.has_main(&path)?
            {
                // The test step has built the examples. `cargo run` would build the crates below
                // them once more, because it selects the features of one package only.
                let program = self.checkout.target.join("debug/examples").join(name);
                let program = program.display().to_string();
                let repeat = format!("cargo run -p {package} --example {name}");
                let run = Invocation::new(&self.checkout.root, &program, "");
                self.step(&format!("example {name}"), &repeat, |_| run.run())?;
            }
        }
        Ok(())
    }

    /// Is this file a program? Otherwise it is a module that examples share.
    fn has_main(&self, path: &str) -> Result<bool, Failure> {
        let text = std::fs::read_to_string(self.checkout.root.join(path))
            .map_err(|error| Failure::io(path, error))?;
        Ok(text.contains("fn main("))
    }

    /// Builds the fixtures. In CI, fails if a fixture is missing.
    fn fixtures(&mut self) -> Result<Fixtures, Failure> {
        let made = fixtures::make(self.checkout)?;
        println!("{made}");
        let absent = [&made.missing[..], &made.unreachable].concat().join("; ");
        if absent.is_empty() {
            return Ok(made);
        }
        if self.is_ci {
            return Err(Failure::new(format!("CI=true allows no missing fixture: {absent}")));
        }
        self.notes.push(format!("SKIPPED fixtures: {absent}"));
        Ok(made)
    }

    /// Runs the loom model checks of the small lock-free modules. Loom replaces the atomics, so
    /// this needs a separate build.
    fn loom(&mut self) -> Result<(), Failure> {
        if !has_loom_tests(self.checkout)? {
            println!("== loom: skipped, no loom test yet");
            self.notes.push("loom skipped: no tests yet".to_owned());
            return Ok(());
        }
        let loom = self
            .checkout
            .cargo("test -p trunkline-aio -p trunkline-engine --release --lib loom")
            .env("RUSTFLAGS", "--cfg loom")
            .env("CARGO_TARGET_DIR", self.checkout.target.join("loom"));
        self.tests("loom", &loom)
    }

    /// Runs a step that consists of one command.
    fn command(&mut self, name: &str, command: &Invocation) -> Result<(), Failure> {
        self.step(name, &command.to_string(), |_| command.run())
    }

    /// Runs a step that consists of one `cargo test`. Fails if no test ran, because a filter that
    /// matches nothing would otherwise look like success.
    fn tests(&mut self, name: &str, command: &Invocation) -> Result<(), Failure> {
        self.step(name, &command.to_string(), |run| {
            let mut tally = Tally::default();
            let code = command.tee(|line| tally.line(line))?;
            run.tests += tally.passed;
            for (reason, count) in tally.skipped {
                *run.skipped.entry(reason).or_default() += count;
            }
            if code != Some(0) {
                let names = tally.failures.join(", ");
                return Err(Failure::new(format!("{} tests failed: {names}", tally.failed)));
            }
            if tally.passed == 0 {
                return Err(Failure::new("not one test ran"));
            }
            run.refuse_skips()
        })
    }

    /// In CI, fails if a test was skipped that a Debian machine could run as root.
    fn refuse_skips(&self) -> Result<(), Failure> {
        let accepted = |reason: &str| {
            let mut starts = ACCEPTED_SKIPS.iter().chain(&ACCEPTED_PART_SKIPS);
            starts.any(|start| reason.starts_with(start))
        };
        let refused: Vec<&str> =
            self.skipped.keys().map(String::as_str).filter(|reason| !accepted(reason)).collect();
        if self.is_ci && !refused.is_empty() {
            let reasons = refused.join("; ");
            return Err(Failure::new(format!("CI=true allows no skipped tests: {reasons}")));
        }
        Ok(())
    }

    /// Runs one step and prints its elapsed time. On failure, adds the command that repeats the
    /// step.
    fn step<T>(
        &mut self,
        name: &str,
        repeat: &str,
        body: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        println!("== {name}: {repeat}");
        let begin = Instant::now();
        let done = body(self);
        let took = seconds(begin.elapsed());
        match done {
            Ok(value) => {
                println!("== {name}: ok in {took}");
                self.steps += 1;
                Ok(value)
            }
            Err(why) => {
                println!("== {name}: FAILED after {took}");
                Err(Failure::new(format!("step {name}: {why}\n  repeat it: {repeat}")))
            }
        }
    }

    fn summary(&self) -> String {
        let took = seconds(self.started.elapsed());
        let mut line = format!("{} steps, {} tests passed, {took}", self.steps, self.tests);
        for note in &self.notes {
            line.push_str("; ");
            line.push_str(note);
        }
        for (reason, count) in &self.skipped {
            line.push_str(&format!("\nci: skipped {count} tests: {reason}"));
        }
        line
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Package and name of an example in an embeddable crate.
fn example(path: &str) -> Option<(&str, &str)> {
    let (package, file) = path.strip_prefix("crates/")?.split_once("/examples/")?;
    let name = file.strip_suffix(".rs")?;
    let embeddable = ["trunkline-aio", "trunkline-engine"].contains(&package);
    (embeddable && !name.contains('/')).then_some((package, name))
}

/// Does this crate have a model check? The façade contains `cfg(loom)` too, so that alone isn't
/// sufficient.
fn has_loom_tests(checkout: &Checkout) -> Result<bool, Failure> {
    for path in checkout.files()? {
        if path.starts_with("crates/trunkline-aio/src/") && path.ends_with(".rs") {
            let text = std::fs::read_to_string(checkout.root.join(&path))
                .map_err(|error| Failure::io(&path, error))?;
            if text.contains("loom::model") {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn with_run<T>(body: impl FnOnce(&mut Run<'_>) -> T) -> T {
        let root = PathBuf::from("/");
        let checkout = Checkout { target: root.clone(), root };
        body(&mut Run { is_ci: false, ..Run::new(&checkout) })
    }

    #[test]
    fn a_module_of_examples_is_not_an_example() {
        let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let checkout = Checkout { target: root.clone(), root };
        let run = Run::new(&checkout);
        let examples = "crates/trunkline-engine/examples";
        assert!(run.has_main(&format!("{examples}/read_page.rs")).unwrap());
        assert!(!run.has_main(&format!("{examples}/own_table.rs")).unwrap());
    }

    fn printing(text: &str, code: u8) -> Invocation {
        let script = format!("printf '{text}'; exit {code}");
        Invocation::new(&PathBuf::from("/"), "sh", "-c").arg(script)
    }

    #[test]
    fn a_failed_step_says_how_to_repeat_it() {
        let failure = with_run(|run| run.command("probe", &printing("", 4)).unwrap_err());
        assert_eq!(failure.exit_code(), 1);
        let text = failure.to_string();
        assert!(text.contains("repeat it: sh -c "), "{text}");
    }

    #[test]
    fn examples_are_files_of_embeddable_crates() {
        let read = example("crates/trunkline-aio/examples/read.rs");
        assert_eq!(read, Some(("trunkline-aio", "read")));
        for path in [
            "crates/trunkline-engine/examples/shared/own_table.rs",
            "crates/trunkline-format/examples/check_dir.rs",
            "crates/trunkline-aio/src/read.rs",
            "crates/trunkline-aio/examples/README.md",
        ] {
            assert_eq!(example(path), None, "{path}");
        }
    }

    #[test]
    fn skipped_tests_are_listed_with_their_reasons() {
        with_run(|run| {
            let text =
                "skipped: not root\\nskipped: not root\\ntest result: ok. 2 passed; 0 failed;\\n";
            run.tests("good", &printing(text, 0)).unwrap();
            assert!(
                run.summary().ends_with("\nci: skipped 2 tests: not root"),
                "{}",
                run.summary()
            );
        });
    }

    #[test]
    fn ci_refuses_to_skip_what_debian_can_run() {
        with_run(|run| {
            run.is_ci = true;
            let skipped = |reason| {
                printing(&format!("skipped: {reason}\\ntest result: ok. 1 passed; 0 failed;\\n"), 0)
            };
            run.tests("accepted", &skipped("no pg_checksums 18")).unwrap();
            let failure = run.tests("refused", &skipped("not root")).unwrap_err().to_string();
            assert!(failure.contains("CI=true allows no skipped tests: not root\n"), "{failure}");
        });
    }

    #[test]
    fn tests_are_counted_and_must_exist() {
        with_run(|run| {
            run.tests("good", &printing("test result: ok. 5 passed; 0 failed;\\n", 0)).unwrap();
            assert_eq!((run.steps, run.tests), (1, 5));
            let nothing =
                run.tests("empty", &printing("test result: ok. 0 passed; 0 failed;\\n", 0));
            assert!(nothing.unwrap_err().to_string().contains("not one test ran"));
            let broken =
                run.tests("bad", &printing("test result: FAILED. 1 passed; 2 failed;\\n", 101));
            assert!(broken.unwrap_err().to_string().contains("2 tests failed"));
        });
    }
}
