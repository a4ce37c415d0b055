//! `trunkline`: PostgreSQL's storage engine on the command line.
//!
//! Data goes to standard output, messages to standard error, and the exit code says how it went
//! ([`exit`]). The command line is the only place that reads the environment; from here on
//! everything is passed down as settings. A command is a module of its own that is given the parsed
//! [`cli`] and returns an [`exit::Exit`]. What several commands share: [`output`] for tables and
//! sizes, [`progress`] for bars, [`interrupt`] for Ctrl-C.
#![forbid(unsafe_code)]

mod cli;
mod exit;
mod inspect;
#[cfg_attr(not(test), expect(dead_code, reason = "for the commands that run long"))]
mod interrupt;
mod output;
#[cfg_attr(not(test), expect(dead_code, reason = "for the commands that run long"))]
mod progress;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::exit::{Exit, Failure};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return cli::report(&error),
    };
    match run(&cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            failure.report();
            failure.exit.into()
        }
    }
}

fn run(cli: &Cli) -> Result<Exit, Failure> {
    // Checked for every command: a typing error must not pass because this command does no I/O.
    cli.settings()?;
    match &cli.command {
        Command::Inspect(subject) => inspect::run(&cli.global, subject),
    }
}
