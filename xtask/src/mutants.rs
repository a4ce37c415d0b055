//! **Mutants**: reintroduces known bugs, one at a time, and checks that a test fails.
//!
//! Each `xtask/mutants/*.patch` reintroduces a bug in a scratch copy of the tree. Its test must
//! pass without the patch, and fail by an assertion with the patch. It's an error if the patch
//! doesn't apply, if the mutant doesn't compile, if the filter selects no test, or if the test
//! hangs unexpectedly. In all these cases the test proves nothing. `xtask/mutants/README.md`
//! describes the format.

mod scratch_tree;

use std::fs;
use std::time::Instant;

use crate::failure::Failure;
use crate::tree::Checkout;
use scratch_tree::ScratchTree;

const FOLDER: &str = "xtask/mutants/";
/// Timeout in seconds; a mutant's test that exceeds it counts as hanging.
const TIMEOUT_SECONDS: u64 = 120;

/// One mutant.
#[derive(Debug, PartialEq, Eq)]
struct Mutant {
    name: String,
    lesson: String,
    test: TestCommand,
    hang_is_ok: bool,
    timeout_seconds: u64,
}

/// The test that must fail: arguments for `cargo test`, and environment variables.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TestCommand {
    args: String,
    env: Vec<(String, String)>,
}

/// Outcome of one mutant.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Caught(&'static str),
    Survived(String),
}

/// Runs the named mutants, or all of them, and returns one line for the summary.
pub(crate) fn run(checkout: &Checkout, names: &[&str]) -> Result<String, Failure> {
    let files = checkout.files()?;
    let mutants = load(checkout, &files, names)?;
    if mutants.is_empty() {
        return Ok("no mutants yet".to_owned());
    }
    let tree = ScratchTree::new(checkout)?;
    tree.baseline(&mutants)?;
    let mut survived = 0;
    println!("{:<9} {:>8}  mutant", "verdict", "time");
    for mutant in &mutants {
        let begin = Instant::now();
        let verdict = tree.judge(mutant)?;
        let took = begin.elapsed().as_secs_f64();
        let (word, why) = match verdict {
            Verdict::Caught(how) => ("caught", format!("{how}: {}", mutant.lesson)),
            Verdict::Survived(why) => {
                survived += 1;
                ("SURVIVED", why)
            }
        };
        println!("{word:<9} {took:>6.1} s  {}: {why}", mutant.name);
    }
    if survived > 0 {
        return Err(Failure::new(format!("{survived} of {} mutants survived", mutants.len())));
    }
    Ok(format!("{} mutants caught", mutants.len()))
}

fn load(checkout: &Checkout, files: &[String], names: &[&str]) -> Result<Vec<Mutant>, Failure> {
    let mut mutants = Vec::new();
    for path in files {
        let Some(name) = path.strip_prefix(FOLDER).and_then(|rest| rest.strip_suffix(".patch"))
        else {
            continue;
        };
        if names.is_empty() || names.contains(&name) {
            let text = fs::read_to_string(checkout.root.join(path))
                .map_err(|error| Failure::io(path, error))?;
            mutants.push(parse(name, &text)?);
        }
    }
    let known = |name: &&&str| mutants.iter().any(|mutant| mutant.name == **name);
    match names.iter().find(|name| !known(name)) {
        Some(name) => Err(Failure::usage(format!("no mutant {FOLDER}{name}.patch"))),
        None => Ok(mutants),
    }
}

/// Parses the `# key: value` lines above the diff.
fn parse(name: &str, text: &str) -> Result<Mutant, Failure> {
    let fail = |what: &str| Failure::new(format!("{FOLDER}{name}.patch: {what}"));
    let mut mutant = Mutant {
        name: name.to_owned(),
        lesson: String::new(),
        test: TestCommand { args: String::new(), env: Vec::new() },
        hang_is_ok: false,
        timeout_seconds: TIMEOUT_SECONDS,
    };
    for line in text.lines().map_while(|line| line.strip_prefix('#')) {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match key.trim() {
            "lesson" => mutant.lesson = value.to_owned(),
            "test" => mutant.test.args = value.trim_start_matches("cargo test").trim().to_owned(),
            "hang" => mutant.hang_is_ok = value == "ok",
            "timeout" => {
                mutant.timeout_seconds = value.parse().map_err(|_| fail("timeout: not seconds"))?;
            }
            "env" => {
                let (key, value) =
                    value.split_once('=').ok_or_else(|| fail("env: not NAME=value"))?;
                mutant.test.env.push((key.to_owned(), value.to_owned()));
            }
            _ => {}
        }
    }
    if mutant.lesson.is_empty() || mutant.test.args.is_empty() {
        return Err(fail("needs `# lesson:` and `# test:` above the diff"));
    }
    Ok(mutant)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# lesson: 2: a short read is retried\n\
        # test: cargo test -p trunkline-aio --lib short_read\n\
        # env: RUSTFLAGS=--cfg loom\n\
        # hang: ok\n\
        # timeout: 30\n\
        diff --git a/x b/x\n";

    #[test]
    fn reads_the_header() {
        let mutant = parse("short", GOOD).unwrap();
        assert_eq!(mutant.lesson, "2: a short read is retried");
        assert_eq!(mutant.test.args, "-p trunkline-aio --lib short_read");
        assert_eq!(mutant.test.env, [("RUSTFLAGS".to_owned(), "--cfg loom".to_owned())]);
        assert!(mutant.hang_is_ok);
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
            assert!(parse("short", &text).is_err(), "{missing}");
        }
        assert!(parse("short", &GOOD.replace("30", "soon")).is_err());
    }

    #[test]
    fn a_hang_counts_only_when_announced() {
        assert!(!parse("short", &GOOD.replace("# hang: ok\n", "")).unwrap().hang_is_ok);
    }
}
