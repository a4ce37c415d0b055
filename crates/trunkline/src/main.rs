//! `trunkline`: PostgreSQL's storage engine on the command line.
//!
//! Data is written to standard output and messages to standard error; the exit code reports the
//! outcome ([`exit`]). This is the only crate that reads environment variables. The library crates
//! take settings instead, so that a program that embeds them is never affected by its environment.
//!
//! The program does the work of PostgreSQL's client tools and offline utilities (`pg_checksums`,
//! `pg_amcheck`, `pg_prewarm`, `pg_controldata`), but it never connects to a server. Where one of
//! those tools offers the same function, our output uses its wording and its numbers, and we exit
//! with an error under the same conditions.
//!
//! Each command is a module with a function `run`, which takes the parsed options ([`cli`],
//! [`options`]) and returns an [`exit::Exit`]. All commands use the same modules for common tasks:
//! [`io_instance`] starts the engine, [`catalog_session`] and [`named_files`] look up names,
//! [`monitor`] shows progress and handles Ctrl-C, and [`output`] prints text and JSON.
#![forbid(unsafe_code)]

mod backup;
mod bench;
mod calibrate;
mod catalog_session;
mod cli;
mod column_sum;
mod completions;
mod config_file;
mod copy;
mod data_dir;
mod demo;
mod doctor;
mod encoding;
mod escape;
mod exit;
mod help_text;
mod init;
mod inspect;
mod interrupt;
mod io_instance;
mod io_stats;
mod log_reading;
mod man;
mod memory_available;
mod moment;
mod monitor;
mod mount;
mod named_files;
mod number;
mod options;
mod output;
mod place;
mod prewarm;
mod progress;
#[cfg(feature = "sql")]
mod query;
mod recover;
mod replay_options;
mod report_files;
#[cfg(feature = "sql")]
mod serve;
mod slow_disk;
mod tables;
mod text_settings;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use trunkline_aio::facade::env;

use crate::cli::{Cli, Command};
use crate::exit::{Exit, Failure};

fn main() -> ExitCode {
    // Look for the option ourselves: an invalid command line is reported in that form too.
    if std::env::args_os().skip(1).take_while(|arg| arg != "--").any(|arg| arg == "--json") {
        exit::print_messages_as_json();
    }
    let cli = match Cli::parse_args(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => return cli::report(error),
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
    // We parse the settings for every command. A misspelt setting is therefore always an error,
    // even if the command does no I/O.
    let context = cli.context()?;
    match &cli.command {
        Command::Init(args) => init::run(&context, args),
        Command::Recover(command) => recover::run(&context, &command.args),
        Command::Inspect(command) => inspect::run(&context, command),
        Command::Verify(command) => verify::run(&context, &command.args),
        Command::Backup(command) => backup::run(&context, command),
        Command::Copy(command) => copy::run(&context, &command.args),
        Command::Tables(command) => tables::run(&context, &command.args),
        Command::Prewarm(command) => prewarm::run(&context, &command.args),
        #[cfg(feature = "sql")]
        Command::Query(command) => query::run(&context, &command.args),
        #[cfg(feature = "sql")]
        Command::Serve(command) => serve::run(&context, &command.args),
        Command::Sum(command) => column_sum::run(&context, &command.args),
        Command::Doctor(command) => doctor::run(&context, &command.args),
        Command::ProbeRings(args) => doctor::probe_rings(args),
        Command::Bench(command) => bench::run(&context, &command.args),
        Command::Calibrate(args) => calibrate::run(&context, args),
        Command::Demo(command) => demo::run(&context, &command.args, cache_directory()),
        Command::SlowDisk(args) => slow_disk::run(&context, args),
        Command::SlowDiskHelper(args) => slow_disk::run_helper(args),
        Command::Completions(args) => completions::run(&cli::command(), args),
        Command::Man(args) => man::run(cli::command(), args),
    }
}

/// The user's cache directory, as the XDG base directory specification defines it.
fn cache_directory() -> Option<PathBuf> {
    let given = env::var("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    given.or_else(|| env::var("HOME").map(|home| PathBuf::from(home).join(".cache")))
}
