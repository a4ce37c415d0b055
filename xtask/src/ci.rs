//! The steps that every change must pass, in the order in which they are likely to fail fast.
//!
//! Each step prints its name, its time and, when it fails, the one line that repeats it alone. Fixtures come first,
//! since tests that find none only say so: on a CI machine (`CI=true`) their absence is a failure, never a silence.

use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::fixtures::{self, Fixtures};
use crate::invocation::Invocation;
use crate::tally::Tally;
use crate::tree::Checkout;
use crate::{mutants, tidy};

/// How much to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// What is worth waiting for between two edits.
    Fast,
    /// Everything.
    Full,
}

/// One run of the list: what has passed so far.
struct Run<'a> {
    checkout: &'a Checkout,
    started: Instant,
    steps: u32,
    tests: u64,
    notes: Vec<String>,
}

/// Runs every step; stops at the first that fails.
pub(crate) fn run(checkout: &Checkout, depth: Depth) -> Result<(), Failure> {
    let mut run = Run { checkout, started: Instant::now(), steps: 0, tests: 0, notes: Vec::new() };
    let done = run.all(depth);
    match &done {
        Ok(()) => println!("ci: ok: {}", run.summary()),
        Err(_) => println!("ci: FAILED: {}", run.summary()),
    }
    done
}

impl Run<'_> {
    fn all(&mut self, depth: Depth) -> Result<(), Failure> {
        let checkout = self.checkout;
        let made = self.step("fixtures", "cargo xtask fixtures", |run| run.fixtures())?;
        self.command("fmt", &checkout.cargo("fmt --all --check"))?;
        let clippy = "clippy --workspace --all-targets -- -D warnings";
        self.command("clippy", &checkout.cargo(clippy))?;
        self.step("tidy", "cargo xtask tidy", |run| tidy::run(run.checkout, false))?;
        if depth == Depth::Full {
            let doc =
                checkout.cargo("doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings");
            self.command("doc", &doc)?;
        }
        // Twice: cargo unifies features over all packages of one call, and trunkline-sim switches the scheduler on
        // in trunkline-aio. Without it everything is tested as it ships.
        let shipped = "test --workspace --exclude trunkline-sim";
        self.tests("test", &made.expose(checkout.cargo(shipped)))?;
        let scheduled = "test -p trunkline-sim -p trunkline-aio";
        self.tests("test, scheduler", &made.expose(checkout.cargo(scheduled)))?;
        if depth == Depth::Full {
            self.loom()?;
            let caught =
                self.step("mutants", "cargo xtask mutants", |run| mutants::run(run.checkout, &[]))?;
            self.notes.push(caught);
        }
        Ok(())
    }

    /// Makes the fixtures, and decides whether their absence matters here.
    fn fixtures(&mut self) -> Result<Fixtures, Failure> {
        let made = fixtures::make(self.checkout)?;
        println!("{made}");
        let absent = [&made.missing[..], &made.unreachable].concat().join("; ");
        if absent.is_empty() {
            return Ok(made);
        }
        if std::env::var_os("CI").is_some_and(|value| value == "true") {
            return Err(Failure::new(format!("CI=true allows no missing fixture: {absent}")));
        }
        self.notes.push(format!("SKIPPED fixtures: {absent}"));
        Ok(made)
    }

    /// Model checks of the small lock-free pieces: another world of atomics, hence a build of its own.
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

    /// A step that is one command.
    fn command(&mut self, name: &str, command: &Invocation) -> Result<(), Failure> {
        self.step(name, &command.to_string(), |_| command.run())
    }

    /// A step that is one `cargo test`: it must run at least one test.
    fn tests(&mut self, name: &str, command: &Invocation) -> Result<(), Failure> {
        self.step(name, &command.to_string(), |run| {
            let outcome = command.tee()?;
            let tally = Tally::read(&outcome.text);
            run.tests += tally.passed;
            if !outcome.success() {
                return Err(Failure::new(format!("{} tests failed", tally.failed)));
            }
            if tally.passed == 0 {
                return Err(Failure::new("not one test ran"));
            }
            Ok(())
        })
    }

    /// Runs one step, prints its time, and adds the line that repeats it to a failure.
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
        line
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Is there a model check to run? The façade says `cfg(loom)` too, so that alone does not count.
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
        let started = Instant::now();
        let mut run = Run { checkout: &checkout, started, steps: 0, tests: 0, notes: Vec::new() };
        body(&mut run)
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
