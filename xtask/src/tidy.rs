//! **tidy**: checks the rules of STYLE.md that a machine can check, in every file of the tree.
//!
//! A rule is a function that maps the in-memory files to findings; the reason for the rule is
//! declared next to it. Most rules work on text, with comments and literals blanked out where only
//! code matters. This is imprecise but sufficient, because rustc and clippy enforce the rules that
//! need types. The module rules parse Rust with `syn`. `tidy/tests.rs` contains bad samples that
//! each rule must detect, because a check that can't fail isn't a check.

mod code;
mod dependencies;
mod documents;
mod facade;
mod finding;
mod graph;
mod layout;
mod modules;
mod paths;
mod shape;
mod sources;
#[cfg(test)]
mod tests;
mod unsafety;
mod words;

use std::collections::BTreeSet;

use crate::failure::Failure;
use crate::tree::Checkout;
use finding::{Finding, Findings};
use sources::Sources;

/// A check, its name and the reason for it.
struct Rule {
    name: &'static str,
    because: &'static str,
    check: fn(&Sources, &mut Findings),
}

/// All rules, in report order.
const RULES: &[Rule] = &[
    Rule {
        name: "file-length",
        because: "a file that does not fit in a reader's head must be split by noun before it grows that long",
        check: shape::file_length,
    },
    Rule {
        name: "function-length",
        because: "a function is read in one piece",
        check: shape::function_length,
    },
    Rule {
        name: "white-space",
        because: "diffs show changes of meaning only",
        check: shape::white_space,
    },
    Rule {
        name: "leftovers",
        because: "an open question is answered or filed as an issue before it is merged",
        check: shape::leftovers,
    },
    Rule {
        name: "machine-path",
        because: "the tree works on every machine",
        check: shape::machine_path,
    },
    Rule {
        name: "expect-not-allow",
        because: "an expectation has a reason, and disappears when it no longer holds",
        check: shape::expect_not_allow,
    },
    Rule {
        name: "header",
        because: "a file opens with its story: which problem, which data",
        check: layout::header,
    },
    Rule {
        name: "no-mod-rs",
        because: "a file is named by what is in it",
        check: layout::no_mod_rs,
    },
    Rule {
        name: "depth",
        because: "a tree of two levels of folders fits on one screen",
        check: layout::depth,
    },
    Rule {
        name: "unsafe",
        because: "unsafe code is read again and again, so it lives in few places",
        check: unsafety::confined,
    },
    Rule {
        name: "crate-attribute",
        because: "the compiler refuses unsafe code more reliably than a reviewer",
        check: unsafety::crate_attribute,
    },
    Rule {
        name: "sleep",
        because: "waiting for time hides a missing event: wait on a state",
        check: facade::sleep,
    },
    Rule {
        name: "facade",
        because: "what goes round the façade, the scheduler and loom cannot see",
        check: facade::bypass,
    },
    Rule {
        name: "dependencies",
        because: "a crate is cut for a dependency, an unsafe policy or purity; an extra arrow undoes the cut",
        check: dependencies::direction,
    },
    Rule {
        name: "module-order",
        because: "a lower module that knows a higher one is a cycle, and cycles are tested as one lump",
        check: modules::order,
    },
    Rule {
        name: "circles",
        because: "files that need each other can only be understood and tested as one lump",
        check: modules::circles,
    },
    Rule {
        name: "architecture",
        because: "a map that names what is gone misleads more than no map",
        check: documents::architecture,
    },
    Rule {
        name: "readme",
        because: "two commands are all that a newcomer needs",
        check: documents::readme,
    },
    Rule {
        name: "citations",
        because: "a link that leads nowhere wastes a reader's time",
        check: documents::citations,
    },
    Rule {
        name: "outside",
        because: "a reader of the repository has nothing but the repository",
        check: documents::outside,
    },
    Rule {
        name: "words",
        because: "the field's own words let a reader recognise the thing at once",
        check: words::banned,
    },
    Rule {
        name: "decision-length",
        because: "a long decision is not read twice",
        check: documents::decision_length,
    },
];

/// The `tidy` subcommand: prints all findings, and fails if there are any.
pub(crate) fn run(checkout: &Checkout, verbose: bool) -> Result<(), Failure> {
    let sources = Sources::load(checkout)?;
    let found = check(&sources);
    for finding in &found {
        println!("{finding}");
    }
    let broken: BTreeSet<&str> = found.iter().map(|finding| finding.rule).collect();
    for rule in RULES.iter().filter(|rule| broken.contains(rule.name)) {
        println!("{}: because {}", rule.name, rule.because);
    }
    if verbose {
        shape::notes(&sources).iter().for_each(|note| println!("note: {note}"));
    }
    if found.is_empty() {
        println!("tidy: {} files, {} rules, no findings", sources.files.len(), RULES.len());
        return Ok(());
    }
    Err(Failure::new(format!("tidy: {} findings of {} rules", found.len(), broken.len())))
}

/// The `tidy words` subcommand: lists banned phrases below a directory, and fails if there are
/// any.
pub(crate) fn list_words(checkout: &Checkout, folder: &str) -> Result<(), Failure> {
    let sources = Sources::load(checkout)?;
    words::list(&sources, folder);
    let mut findings = Findings { rule: "words", found: Vec::new() };
    words::banned(&sources, &mut findings);
    findings.found.retain(|finding| finding.path.starts_with(folder));
    if findings.found.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("tidy words: {} findings", findings.found.len())))
}

/// The `tidy circles` subcommand: lists dependency cycles and references to higher layers.
pub(crate) fn list_circles(checkout: &Checkout, package: &str) -> Result<(), Failure> {
    modules::list(&Sources::load(checkout)?, package);
    Ok(())
}

fn check(sources: &Sources) -> Vec<Finding> {
    let mut all = Vec::new();
    for rule in RULES {
        let mut findings = Findings { rule: rule.name, found: Vec::new() };
        (rule.check)(sources, &mut findings);
        findings.found.sort();
        all.append(&mut findings.found);
    }
    all
}
