//! `trunkline`: PostgreSQL's storage engine on the command line.
//!
//! Data goes to standard output, messages to standard error, and the exit code says how it went
//! ([`exit`]). The command line is the only place that reads the environment; from here on
//! everything is passed down as settings. A command is a module of its own that is given the parsed
//! [`cli`] and returns an [`exit::Exit`]. What several commands share: [`output`] for tables and
//! sizes, [`instance`] for I/O, [`pooled`] for buffer pools, [`watch`] for bars and Ctrl-C.
#![forbid(unsafe_code)]

mod cli;
mod cluster;
mod copy;
mod demo;
mod exit;
mod inspect;
mod instance;
mod interrupt;
mod output;
mod pooled;
mod prewarm;
mod progress;
mod sum;
mod tables;
mod verify;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use trunkline_aio::sync::env;

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
    let values = cli.value_settings()?;
    match &cli.command {
        Command::Inspect(subject) => inspect::run(&cli.global, &settings, subject),
        Command::Verify { args, .. } => verify::run(&cli.global, &settings, args),
        Command::Copy { args, .. } => {
            let pool = cli.sets_shared_buffers().then(|| settings.shared_buffers());
            copy::run(&cli.global, &settings, &values, args, pool)
        }
        Command::Tables { args, .. } => tables::run(&cli.global, &settings, args),
        Command::Prewarm { args, .. } => prewarm::run(&cli.global, &settings, args),
        Command::Sum { args, .. } => sum::run(&cli.global, &settings, args),
        Command::Demo { args, .. } => {
            let pool = cli.sets_shared_buffers().then(|| settings.shared_buffers());
            demo::run(&cli.global, &settings, args, pool, cache_directory())
        }
    }
}

/// Where this user's programs keep what can be made again, by the rules of the XDG base directories.
fn cache_directory() -> Option<PathBuf> {
    let given = env::var("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    given.or_else(|| env::var("HOME").map(|home| PathBuf::from(home).join(".cache")))
}
