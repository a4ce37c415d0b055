//! **Mutants**: reintroduces known bugs, one at a time, and checks that a test fails.
//!
//! Each `xtask/mutants/*.patch` reintroduces a bug in a scratch copy of the tree. Its test must
//! pass without the patch, and fail by an assertion with the patch. It's an error if the patch
//! doesn't apply, if the mutant doesn't compile, if the filter selects no test, or if the test
//! hangs unexpectedly. In all these cases the test proves nothing. `xtask/mutants/README.md`
//! describes the format.

mod patch;
mod scratch_tree;

use std::fs;
use std::time::Instant;

use crate::failure::Failure;
use crate::tree::Checkout;
use patch::{FOLDER, Mutant};
use scratch_tree::{ScratchTree, Verdict};

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
            mutants.push(Mutant::parse(name, &text)?);
        }
    }
    // A patch and its removal both make cargo rebuild the crate and all crates above it. Mutants of
    // one crate, tested by one program, share the second of these builds.
    mutants
        .sort_by(|a, b| (&a.changes, &a.program, &a.name).cmp(&(&b.changes, &b.program, &b.name)));
    let known = |name: &&&str| mutants.iter().any(|mutant| mutant.name == **name);
    match names.iter().find(|name| !known(name)) {
        Some(name) => Err(Failure::usage(format!("no mutant {FOLDER}{name}.patch"))),
        None => Ok(mutants),
    }
}
