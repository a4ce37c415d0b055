//! **Mutants**: reintroduces known bugs, one at a time, and checks that a test fails.
//!
//! Each `xtask/mutants/*.patch` reintroduces a bug in a scratch copy of the tree. Its test must
//! pass without the patch, and must fail an assertion once the patch is applied. It's an error if
//! the patch doesn't apply, if the mutant doesn't compile, if the filter selects no test, or if the
//! test hangs unexpectedly. In all these cases the test proves nothing. `xtask/mutants/README.md`
//! describes the format.

mod patch;
mod scratch_tree;

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::tree::Checkout;
use patch::{FOLDER, Mutant, TestProgram};
use scratch_tree::{ScratchTree, Verdict};

/// How many scratch trees work in parallel. The crates that a patch changes are built one after
/// the other, which hardly uses more than one CPU.
const TREES_MAX: usize = 2;

/// How many parts CI divides the mutants into. It tries one part per commit, because all of them take
/// half an hour on a machine without a build cache.
const PARTS: usize = 8;

/// Runs the named mutants, or all of them, and returns one line for the summary.
pub(crate) fn run(checkout: &Checkout, names: &[&str]) -> Result<String, Failure> {
    let files = checkout.files()?;
    try_all(checkout, &load(checkout, &files, names)?)
}

/// Runs the mutants of one part, which the commit's hash chooses, and returns one line for the summary.
pub(crate) fn run_part(checkout: &Checkout) -> Result<String, Failure> {
    let git = Invocation::new(&checkout.root, "git", "-c safe.directory=* rev-parse HEAD");
    let commit = git.capture()?.text;
    let mutants = load(checkout, &checkout.files()?, &[])?;
    let (number, part) = part(&mutants, commit.trim());
    println!("part {} of {PARTS}; `cargo xtask soak mutants` tries all", number + 1);
    let summary = try_all(checkout, part)?;
    Ok(format!("{summary} (part {} of {PARTS})", number + 1))
}

/// The part of the mutants that a commit's hash chooses, with its number. Neighbours share builds, so
/// a part is a run of them.
fn part<'m, M>(mutants: &'m [M], commit: &str) -> (usize, &'m [M]) {
    let digit = commit.bytes().next_back().and_then(|digit| char::from(digit).to_digit(16));
    let number = digit.unwrap_or_default() as usize % PARTS;
    let bound = |number: usize| mutants.len() * number / PARTS;
    (number, mutants.get(bound(number)..bound(number + 1)).unwrap_or_default())
}

fn try_all(checkout: &Checkout, mutants: &[Mutant]) -> Result<String, Failure> {
    if mutants.is_empty() {
        return Ok("no mutants yet".to_owned());
    }
    let count = thread::available_parallelism().map_or(1, usize::from).min(TREES_MAX);
    let trees = (0..count.min(mutants.len()))
        .map(|number| ScratchTree::new(checkout, number))
        .collect::<Result<Vec<_>, _>>()?;
    let programs: BTreeSet<&TestProgram> = mutants.iter().map(|one| &one.program).collect();
    distribute(&trees, programs, |tree, program| tree.baseline(program, mutants))?;
    println!("{:<9} {:>8}  mutant", "verdict", "time");
    let caught = distribute(&trees, mutants, judge)?;
    let survived = caught.iter().filter(|caught| !**caught).count();
    if survived > 0 {
        return Err(Failure::new(format!("{survived} of {} mutants survived", mutants.len())));
    }
    Ok(format!("{} mutants caught", mutants.len()))
}

/// Tries one mutant and prints the verdict. Returns whether it was caught.
fn judge(tree: &ScratchTree, mutant: &Mutant) -> Result<bool, Failure> {
    let begin = Instant::now();
    let verdict = tree.judge(mutant)?;
    let took = begin.elapsed().as_secs_f64();
    let caught = matches!(verdict, Verdict::Caught(_));
    let (word, why) = match verdict {
        Verdict::Caught(how) => ("caught", format!("{how}: {}", mutant.lesson)),
        Verdict::Survived(why) => ("SURVIVED", why),
    };
    println!("{word:<9} {took:>6.1} s  {}: {why}", mutant.name);
    Ok(caught)
}

/// Runs `work` once for each item, with one thread per scratch tree, and stops at the first
/// failure.
///
/// Neighbouring items need similar builds, so each tree should get neighbours. Every other thread
/// therefore takes its items from the end of the list.
fn distribute<W: Sync, T: Send, R: Send>(
    trees: &[W],
    items: impl IntoIterator<Item = T>,
    work: impl Fn(&W, T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let left = Mutex::new(items.into_iter().collect::<VecDeque<T>>());
    let take = |number: usize| {
        let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
        if number.is_multiple_of(2) { left.pop_front() } else { left.pop_back() }
    };
    let run = |number: usize, tree: &W| {
        let mut results = Vec::new();
        while let Some(item) = take(number) {
            results.push(work(tree, item).inspect_err(|_| {
                left.lock().unwrap_or_else(PoisonError::into_inner).clear();
            })?);
        }
        Ok::<Vec<R>, Failure>(results)
    };
    let run = &run;
    thread::scope(|scope| {
        let threads: Vec<_> = (trees.iter().enumerate())
            .map(|(number, tree)| scope.spawn(move || run(number, tree)))
            .collect();
        // Join all of them before we look at the results, because the scope panics if a thread
        // that was not joined has panicked.
        let joined: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        let mut results = Vec::new();
        for one in joined {
            let panicked = |_| Err(Failure::new("a thread that tries mutants panicked"));
            results.extend(one.unwrap_or_else(panicked)?);
        }
        Ok(results)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mutant_is_in_one_part() {
        let mutants: Vec<usize> = (0..91).collect();
        let parts =
            ["0f8", "a9", "2", "3", "4", "5d", "e", "7"].map(|commit| part(&mutants, commit));
        assert_eq!(parts.map(|(number, _)| number), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(parts.map(|(_, part)| part).concat(), mutants);
        assert_eq!(part(&mutants, "").0, 0);
    }

    #[test]
    fn each_item_is_tried_once() {
        let mut tried = distribute(&[(), ()], 0..10, |(), item| Ok(item)).unwrap();
        tried.sort_unstable();
        assert_eq!(tried, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_ends_the_run() {
        let fail = |_: &(), item| match item {
            3 => Err(Failure::new("three")),
            item => Ok(item),
        };
        assert_eq!(distribute(&[()], 0..10, fail).unwrap_err().to_string(), "three");
        let panics = |_: &(), _| -> Result<(), Failure> { panic!("on purpose") };
        assert!(distribute(&[(), ()], 0..2, panics).is_err());
    }
}
