//! `trunkline`: PostgreSQL's storage engine on the command line.
//!
//! Data goes to standard output, messages to standard error, and the exit code says how it went
//! ([`exit`]). The command line is the only place that reads the environment; from here on
//! everything is passed down as settings. A command is a module of its own that is given the parsed
//! [`cli`] and returns an [`exit::Exit`]. What several commands share: [`output`] for tables and
//! sizes, [`instance`] for I/O, [`watch`] for bars and Ctrl-C.
#![forbid(unsafe_code)]

mod cli;
mod exit;
mod inspect;
mod instance;
mod interrupt;
mod output;
mod progress;
mod verify;
mod watch;

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
    let settings = cli.settings()?;
    match &cli.command {
        Command::Inspect(subject) => inspect::run(&cli.global, subject),
        Command::Verify { .. } => verify::run(&cli.global, &settings),
    }
}
