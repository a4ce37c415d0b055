//! Brings back known bugs, one at a time, and checks that a test fails.
//!
//! Each `xtask/mutants/*.patch` undoes a lesson in a scratch copy of the tree. Its test must pass before and fail
//! after, by an assertion: a patch that no longer applies, a mutant that does not compile, a test that selects
//! nothing and an unannounced hang all count as failures of the check. The format is described in
//! `xtask/mutants/README.md`.

mod scratch_tree;

use std::fs;
use std::time::Instant;

use crate::failure::Failure;
use crate::tree::Checkout;
use scratch_tree::ScratchTree;

const FOLDER: &str = "xtask/mutants/";
/// A test that takes longer than this with a bug in it hangs.
const TIMEOUT_SECONDS: u64 = 120;

/// One known bug.
#[derive(Debug, PartialEq, Eq)]
struct Mutant {
    name: String,
    lesson: String,
    test: TestCommand,
    hang_is_ok: bool,
    timeout_seconds: u64,
}

/// The test that must fail: arguments of `cargo test`, and its environment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TestCommand {
    args: String,
    env: Vec<(String, String)>,
}

/// The result for one mutant.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Caught(&'static str),
    Survived(String),
}

/// Runs the named mutants, or all; returns a line for the summary.
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

/// Reads the `# key: value` lines above the diff.
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
