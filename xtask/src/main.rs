//! **xtask**: the single entry point for developers,
//! `cargo xtask ci | tidy | fixtures | mutants | soak`.
//!
//! Everything that CI runs is a subcommand, so a developer can repeat it with the same command.
//! xtask must build in seconds on a fresh machine, so it depends only on `syn` and on
//! `proc-macro2`, which `syn` uses too.
#![forbid(unsafe_code)]

mod ci;
mod failure;
mod fixtures;
mod invocation;
mod mutants;
mod soak;
mod tally;
mod tidy;
mod tree;

use std::process::ExitCode;

use failure::Failure;

const USAGE: &str = "\
usage: cargo xtask <command>

  ci [PART] [--fast]  everything a change must pass; PART is engine, sql or all (the default),
                     and --fast leaves out docs, loom and mutants
  tidy [--verbose]   the rules of STYLE.md that a machine can check
  tidy words [PATH]  list banned words below PATH, with counts for each folder
  tidy circles [CRATE]  list circles between files, and arrows against xtask/order/
  fixtures           unpack and build the PostgreSQL clusters that tests read
  mutants [NAME...]  bring back known bugs, one at a time; a test must fail for each
  soak NAME          a check that takes too long for ci; adds a line to docs/soak.md

environment: CARGO_TARGET_DIR       where builds, fixtures and scratch copies go (default: target)
             TRUNKLINE_FIXTURES     the folder with pg18.tar.zst, pg19.tar.zst and make.sh
             TRUNKLINE_FIXTURE_DIR  set by ci for the tests: the folder with pg15 to pg19, shop15 to shop18
             CI=true                a fixture that cannot be made is a failure
             DEBIAN_MIRROR          where soak bare-root gets Debian from (default: debootstrap's)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn dispatch(args: &[&str]) -> Result<(), Failure> {
    match args {
        ["ci", args @ ..] => run_ci(args),
        ["tidy"] => tidy::run(&tree::Checkout::find()?, false),
        ["tidy", "words"] => tidy::list_words(&tree::Checkout::find()?, ""),
        ["tidy", "words", folder] => tidy::list_words(&tree::Checkout::find()?, folder),
        ["tidy", "circles"] => tidy::list_circles(&tree::Checkout::find()?, ""),
        ["tidy", "circles", package] => tidy::list_circles(&tree::Checkout::find()?, package),
        ["tidy", "--verbose"] => tidy::run(&tree::Checkout::find()?, true),
        ["fixtures"] => fixtures::run(&tree::Checkout::find()?),
        ["mutants", names @ ..] if names.iter().all(|name| !name.starts_with('-')) => {
            mutants::run(&tree::Checkout::find()?, names).map(|summary| println!("{summary}"))
        }
        ["soak", args @ ..] => soak::run(&tree::Checkout::find()?, args),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(Failure::usage(USAGE)),
    }
}

/// `ci`, with a part and a depth in this order.
fn run_ci(args: &[&str]) -> Result<(), Failure> {
    let (depth, args) = match args {
        [args @ .., "--fast"] => (ci::Depth::Fast, args),
        args => (ci::Depth::Full, args),
    };
    let part = match args {
        [] | ["all"] => ci::Part::All,
        ["engine"] => ci::Part::Engine,
        ["sql"] => ci::Part::Sql,
        _ => return Err(Failure::usage(USAGE)),
    };
    ci::run(&tree::Checkout::find()?, part, depth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_are_usage_errors() {
        for args in [
            &[][..],
            &["unknown"],
            &["ci", "--slow"],
            &["ci", "engine", "sql"],
            &["tidy", "x"],
            &["mutants", "-n"],
            &["soak"],
        ] {
            let failure = dispatch(args).expect_err("must be refused");
            assert_eq!(failure.exit_code(), 2, "{args:?}");
        }
    }
}
