//! **Scratch tree**: the copy of the checkout to which mutants are applied. It has its own build
//! directory, which is kept between mutants and between runs. We only rewrite files that differ,
//! so cargo rebuilds just what the patch touched.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::patch::{FOLDER, Mutant, TestProgram};
use crate::failure::Failure;
use crate::fixtures::{self, Fixtures};
use crate::invocation::{Invocation, Outcome};
use crate::tally::Tally;
use crate::tree::Checkout;

/// Outcome of one mutant.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Caught(&'static str),
    Survived(String),
}

/// The scratch copy, its build directory, and the fixtures for its tests.
pub(super) struct ScratchTree {
    source: PathBuf,
    files: Vec<String>,
    tree: PathBuf,
    target: PathBuf,
    fixtures: Fixtures,
}

impl ScratchTree {
    /// Creates copy number `number`, or updates it to match the checkout.
    pub(super) fn new(checkout: &Checkout, number: usize) -> Result<Self, Failure> {
        let home = checkout.target.join(format!("mutants-{number}"));
        let scratch = Self {
            source: checkout.root.clone(),
            files: checkout.files()?,
            tree: home.join("tree"),
            target: home.join("target"),
            fixtures: fixtures::make(checkout)?,
        };
        scratch.restore()?;
        Ok(scratch)
    }

    /// Runs a program's tests for all of its mutants at once on the unpatched tree. They must all
    /// pass, or else a later failure would prove nothing.
    pub(super) fn baseline(
        &self,
        program: &TestProgram,
        mutants: &[Mutant],
    ) -> Result<(), Failure> {
        let with = || mutants.iter().filter(|mutant| mutant.program == *program);
        let filters: Vec<&str> = with().map(|mutant| mutant.filter.as_str()).collect();
        let build = self.cargo(program, "--no-run", &[]).capture()?;
        if !build.success() {
            let text = tail(&build.text);
            return Err(Failure::new(format!("does not compile without a mutant\n{text}")));
        }
        let command = self.cargo(program, "", &filters);
        println!("without a mutant: {command}");
        // Each mutant's own limit, because its test takes no longer here than with the bug.
        let seconds = with().map(|mutant| mutant.timeout_seconds).sum();
        let outcome = command.clone().within(seconds).capture()?;
        if !outcome.success() {
            let text = tail(&outcome.text);
            return Err(Failure::new(format!("fails without any mutant: {command}\n{text}")));
        }
        let passed = passed_tests(&outcome.text);
        let selects = |filter: &&&str| passed.iter().any(|name| name.contains(**filter));
        if let Some(filter) = filters.iter().find(|filter| !selects(filter)) {
            return Err(Failure::new(format!("{filter} selects no test: {command}")));
        }
        Ok(())
    }

    /// Applies one patch, builds, runs its test, and reverts the patch.
    pub(super) fn judge(&self, mutant: &Mutant) -> Result<Verdict, Failure> {
        let verdict = self.try_out(mutant);
        self.restore()?;
        verdict
    }

    fn try_out(&self, mutant: &Mutant) -> Result<Verdict, Failure> {
        let patch = self.source.join(format!("{}{}.patch", FOLDER, mutant.name));
        // The ceiling hides the enclosing repository, because git would silently skip files that
        // repository ignores.
        let apply = Invocation::new(&self.tree, "git", "apply --whitespace=nowarn")
            .arg(&patch)
            .env("GIT_CEILING_DIRECTORIES", self.tree.parent().unwrap_or(&self.tree));
        let applied = apply.capture()?;
        if !applied.success() {
            return Ok(Verdict::Survived(format!("no longer applies: {}", applied.text.trim())));
        }
        // Build first, so that the time limit applies to the test alone.
        let built = self.cargo(&mutant.program, "--no-run", &[]).capture()?;
        if !built.success() {
            return Ok(Verdict::Survived(format!("does not compile\n{}", tail(&built.text))));
        }
        let test = self.cargo(&mutant.program, "", &[&mutant.filter]);
        let outcome = test.within(mutant.timeout_seconds).capture()?;
        Ok(verdict(&outcome, mutant.hang_is_ok))
    }

    /// Resets the copy to the state of the checkout.
    fn restore(&self) -> Result<(), Failure> {
        let wanted: BTreeSet<PathBuf> = self.files.iter().map(PathBuf::from).collect();
        for path in &wanted {
            mirror(&self.source.join(path), &self.tree.join(path))?;
        }
        remove_others(&self.tree, Path::new(""), &wanted)
    }

    /// `cargo test` for one test program, with `options` for cargo and with filters.
    fn cargo(&self, program: &TestProgram, options: &str, filters: &[&str]) -> Invocation {
        // Different compiler flags would rebuild every crate, so tests with flags get a separate
        // build directory.
        let flags = program.env.iter().any(|(key, _)| key == "RUSTFLAGS");
        let target = if flags { self.target.with_extension("flags") } else { self.target.clone() };
        // Cargo takes one filter; the test program takes any number.
        let filters = filters.join(" ");
        let args = format!("test {options} {} -- {filters}", program.args);
        let command = Invocation::new(&self.tree, "cargo", &args)
            .env("CARGO_TARGET_DIR", target)
            // A mutant runs only a few tests, so building it takes longer than running it.
            .env("CARGO_PROFILE_TEST_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_TEST_DEBUG", "0");
        let command =
            program.env.iter().fold(command, |command, (key, value)| command.env(key, value));
        self.fixtures.expose(command)
    }
}

/// Names of the tests that passed, from the output of `cargo test`.
fn passed_tests(output: &str) -> Vec<&str> {
    let lines = output.lines().filter_map(|line| line.strip_prefix("test "));
    lines.filter_map(|line| line.strip_suffix(" ... ok")).collect()
}

/// Derives the verdict from how a test run ended. Only a test that failed on its own has caught the
/// mutant. A cargo error or an external signal proves nothing. A process that aborts itself, as it
/// does for a panic in a completion, has failed too, even if the test harness could not print the
/// message any more.
fn verdict(outcome: &Outcome, hang_is_ok: bool) -> Verdict {
    let noticed = ["panicked at", "SIGABRT"].iter().any(|sign| outcome.text.contains(sign))
        || Tally::read(&outcome.text).failed > 0;
    match outcome.code {
        Some(0) => Verdict::Survived("the test passes with the bug in it".to_owned()),
        // terminated by `timeout`, or killed together with it
        Some(124 | 137) | None if hang_is_ok => Verdict::Caught("hangs, as announced"),
        Some(124 | 137) | None => {
            Verdict::Survived("hangs, and is not marked `# hang: ok`".to_owned())
        }
        _ if noticed => Verdict::Caught("test fails"),
        _ => Verdict::Survived(format!("ended without a failed test\n{}", tail(&outcome.text))),
    }
}

/// Copies a file, unless the destination is already identical.
fn mirror(from: &Path, to: &Path) -> Result<(), Failure> {
    let bytes = fs::read(from).map_err(|error| Failure::io(from.display(), error))?;
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let fail = |error| Failure::io(to.display(), error);
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(fail)?;
    }
    fs::write(to, bytes).map_err(fail)?;
    // Preserve the executable bit of scripts.
    let mode = fs::metadata(from).map_err(fail)?.permissions();
    fs::set_permissions(to, mode).map_err(fail)
}

/// Deletes files a patch or an older checkout left in the copy.
fn remove_others(tree: &Path, at: &Path, wanted: &BTreeSet<PathBuf>) -> Result<(), Failure> {
    let folder = tree.join(at);
    let fail = |error| Failure::io(folder.display(), error);
    for entry in fs::read_dir(&folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let path = at.join(entry.file_name());
        if entry.file_type().map_err(fail)?.is_dir() {
            remove_others(tree, &path, wanted)?;
        } else if !wanted.contains(&path) {
            fs::remove_file(entry.path()).map_err(fail)?;
        }
    }
    Ok(())
}

/// The last lines of a long output, indented.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let from = lines.len().saturating_sub(15);
    lines[from..].iter().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: &str = "test result: FAILED. 0 passed; 1 failed; 0 ignored";

    fn judged(code: Option<i32>, text: &str, hang_is_ok: bool) -> bool {
        let outcome = Outcome { code, text: text.to_owned() };
        matches!(verdict(&outcome, hang_is_ok), Verdict::Caught(_))
    }

    #[test]
    fn only_a_failing_test_catches() {
        assert!(judged(Some(101), FAILED, false));
        assert!(judged(Some(101), "thread 'x' panicked at src/x.rs:1:2", false));
        assert!(judged(Some(101), "(signal: 6, SIGABRT: process abort signal)", false));
        assert!(!judged(Some(101), "(signal: 9, SIGKILL: kill)", false));
        assert!(!judged(Some(0), "test result: ok. 1 passed; 0 failed", false));
        assert!(!judged(Some(101), "error[E0308]: mismatched types", false));
    }

    #[test]
    fn a_hang_must_be_announced() {
        for code in [Some(124), Some(137), None] {
            assert!(judged(code, "", true));
            assert!(!judged(code, FAILED, false));
        }
    }

    /// Creates a small package with one test, and a scratch tree for it.
    fn package(name: &str) -> ScratchTree {
        let home = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        let source = home.join("source");
        let file = |path: &str, text: &str| {
            let path = source.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let code = "fn two() -> i32 {\n    2\n}\n#[test]\nfn probe() {\n    assert_eq!(two(), 2);\n}\n\
            #[test]\nfn endless() {\n    loop {}\n}\n";
        file("Cargo.toml", "[package]\nname = \"m\"\nedition = \"2024\"\n[workspace]\n");
        file("src/lib.rs", code);
        let diff = |new: &str| {
            let head = "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,3 +1,3 @@\n";
            format!("# lesson: l\n{head} fn two() -> i32 {{\n-    2\n+    {new}\n }}\n")
        };
        file("xtask/mutants/bug.patch", &diff("3"));
        file("xtask/mutants/same.patch", &diff("1 + 1"));
        file("xtask/mutants/broken.patch", &diff("\"\""));
        file("xtask/mutants/hang.patch", &diff("loop {}"));
        file("xtask/mutants/stale.patch", &diff("3").replace("-    2", "-    7"));
        let files = vec!["Cargo.toml".to_owned(), "src/lib.rs".to_owned()];
        let fixtures = Fixtures { dir: home.clone(), ..Fixtures::default() };
        let scratch = ScratchTree {
            source,
            files,
            tree: home.join("tree"),
            target: home.join("target"),
            fixtures,
        };
        scratch.restore().unwrap();
        scratch
    }

    fn mutant(name: &str, filter: &str) -> Mutant {
        let program = TestProgram { args: "--lib".to_owned(), env: Vec::new() };
        let (name, lesson, changes) = (name.to_owned(), "l".to_owned(), "src".to_owned());
        let filter = filter.to_owned();
        Mutant { name, lesson, changes, program, filter, hang_is_ok: false, timeout_seconds: 5 }
    }

    #[test]
    fn tries_real_patches() {
        let scratch = package("mutants");
        let baseline = |mutants: &[Mutant]| scratch.baseline(&mutants[0].program, mutants);
        baseline(&[mutant("bug", "probe")]).unwrap();
        let unknown = [mutant("bug", "probe"), mutant("bug", "nothing_of_that_name")];
        let why = baseline(&unknown).unwrap_err().to_string();
        assert!(why.contains("nothing_of_that_name selects no test"), "{why}");
        let why = baseline(&[mutant("bug", "endless")]).unwrap_err().to_string();
        assert!(why.contains("fails without any mutant"), "{why}");
        let expect = |name: &str, part: Option<&str>| match (
            scratch.judge(&mutant(name, "probe")).unwrap(),
            part,
        ) {
            (Verdict::Caught(_), None) => {}
            (Verdict::Survived(why), Some(part)) if why.contains(part) => {}
            (verdict, _) => panic!("{name}: {verdict:?}"),
        };
        expect("bug", None);
        expect("same", Some("passes with the bug"));
        expect("broken", Some("does not compile"));
        expect("stale", Some("no longer applies"));
        expect("hang", Some("hangs"));
        let now = fs::read(scratch.tree.join("src/lib.rs")).unwrap();
        assert_eq!(
            now,
            fs::read(scratch.source.join("src/lib.rs")).unwrap(),
            "patch stayed in the copy"
        );
        fs::remove_dir_all(scratch.target.parent().unwrap()).unwrap();
    }
}
