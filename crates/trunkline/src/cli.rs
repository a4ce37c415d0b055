//! The command line: commands, options and where their values come from.
//!
//! A command is a variant of [`Command`] with the options of its module; what `inspect` can look at is
//! a [`Subject`]. Options that several commands have are in `options`: those of every command, and
//! those for I/O, which become settings.

mod options;
mod subject;

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use trunkline_engine::settings::Settings;

pub(crate) use self::options::Global;
use self::options::IoArgs;
pub(crate) use self::subject::Subject;
use crate::copy::CopyArgs;
use crate::demo::DemoArgs;
use crate::exit::{Exit, Failure, message};
use crate::pooled::PoolArgs;
use crate::prewarm::PrewarmArgs;
use crate::sum::SumArgs;
use crate::tables::TablesArgs;
use crate::verify::VerifyArgs;

const EXAMPLES: &str = "\
Examples:
  trunkline inspect control -D /var/lib/postgresql/18/main   what the control file says
  trunkline inspect page base/5/1259                         the first page of a relation file
  trunkline inspect page --json base/5/1259.1 131072         a page by its block number, as JSON
  trunkline inspect tuple -D DIR -d bench public.t '(0,1)'   a row version, column by column
  trunkline inspect btree -D DIR -d bench public.t_pkey      an index, level by level
  trunkline tables -D DIR -d bench                           the tables of a database
  trunkline copy -D DIR -d bench public.accounts             its rows, as COPY … TO STDOUT prints them
  trunkline demo                                             what this machine makes of each method
  trunkline prewarm -D DIR 5/16384 --shared-buffers 1GB      a table into a pool: what fits, how fast
  trunkline verify -D /backup/main --io-method io_uring      every page of a stopped cluster
  trunkline verify -D DIR -d bench --deep                    a database's pages, rows and indexes
";

const AFTER: &str = "\
Exit codes: 0 good, 1 something is wrong with the data, 2 wrong usage, 3 cannot run,
130 interrupted, 143 terminated.
Nothing is ever written into a data directory.";

/// PostgreSQL data directories, read at the speed of the device without a server.
#[derive(Debug, Parser)]
#[command(name = "trunkline", version, before_help = EXAMPLES, after_help = AFTER)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(flatten)]
    io: IoArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows what is in a file, decoded.
    #[command(subcommand)]
    Inspect(Subject),
    /// Reads every page of a data directory and checks it, as pg_checksums --check does, and more;
    /// on request rows and indexes too.
    Verify {
        #[command(flatten)]
        args: VerifyArgs,
        #[command(flatten)]
        pool: PoolArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// Prints the rows of a table as COPY … TO STDOUT does, or puts those of every table into files.
    Copy {
        #[command(flatten)]
        args: Box<CopyArgs>,
        #[command(flatten)]
        pool: PoolArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// Lists the databases of a stopped cluster, or the tables of one, from its files alone.
    Tables {
        #[command(flatten)]
        args: TablesArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// Brings relations into a buffer pool or into the operating system's cache, as pg_prewarm does.
    ///
    /// The pool ends with the command: mode "buffer" shows what fits into it, whether the pages are
    /// sound, and how fast they can be had. What "read" and "prefetch" leave behind stays.
    Prewarm {
        #[command(flatten)]
        args: PrewarmArgs,
        #[command(flatten)]
        pool: PoolArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// Makes a table, prewarms it and sums a column of it by every method, buffered and direct.
    Demo {
        #[command(flatten)]
        args: DemoArgs,
        #[command(flatten)]
        pool: PoolArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// Sums an integer column of a table, told where it lies in a row: to compare scans with a
    /// server's.
    #[command(hide = true)]
    Sum {
        #[command(flatten)]
        args: SumArgs,
        #[command(flatten)]
        pool: PoolArgs,
        #[command(flatten)]
        io: IoArgs,
    },
}

impl Cli {
    /// The settings that the options ask for: those before the command, then those behind it; of
    /// each, first every `-c` in order, then the options with names of their own.
    ///
    /// # Errors
    /// [`Exit::Usage`] with PostgreSQL's message.
    pub(crate) fn settings(&self) -> Result<Settings, Failure> {
        let mut settings = Settings::default();
        self.io.apply(&mut settings)?;
        self.command.io().apply(&mut settings)?;
        if let Some(size) = self.command.shared_buffers() {
            settings.set("shared_buffers", size)?;
        }
        Ok(settings)
    }

    /// What every `-c` says of the text of values: names in lower case, and values.
    ///
    /// # Errors
    /// [`Exit::Usage`] if the command prints none.
    pub(crate) fn value_settings(&self) -> Result<BTreeMap<String, String>, Failure> {
        let io = [&self.io, self.command.io()];
        let found: BTreeMap<_, _> = io.into_iter().flat_map(IoArgs::value_settings).collect();
        match (found.keys().next(), &self.command) {
            (Some(name), command) if !matches!(command, Command::Copy { .. }) => {
                let text = format!("parameter \"{name}\" has no effect on this command");
                Err(Failure::usage(text).with_hint("copy prints values"))
            }
            _ => Ok(found),
        }
    }

    /// Whether the size of the pool was asked for.
    pub(crate) fn sets_shared_buffers(&self) -> bool {
        let io = [&self.io, self.command.io()];
        self.command.shared_buffers().is_some()
            || io.into_iter().any(|io| io.mentions("shared_buffers"))
    }
}

impl Command {
    fn io(&self) -> &IoArgs {
        match self {
            Command::Inspect(subject) => subject.io(),
            Command::Verify { io, .. }
            | Command::Copy { io, .. }
            | Command::Tables { io, .. }
            | Command::Prewarm { io, .. }
            | Command::Demo { io, .. }
            | Command::Sum { io, .. } => io,
        }
    }

    fn shared_buffers(&self) -> Option<&str> {
        match self {
            Command::Prewarm { pool, .. }
            | Command::Copy { pool, .. }
            | Command::Verify { pool, .. }
            | Command::Demo { pool, .. }
            | Command::Sum { pool, .. } => pool.shared_buffers.as_deref(),
            Command::Inspect(_) | Command::Tables { .. } => None,
        }
    }
}

/// Prints what clap has to say: help and version to standard output, errors to standard error.
pub(crate) fn report(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return match error.print() {
            Ok(()) => Exit::Good.into(),
            Err(error) => {
                let failure = Failure::output(&error);
                failure.report();
                failure.exit.into()
            }
        };
    }
    let text = error.render().to_string();
    match text.strip_prefix("error: ") {
        Some(text) => message("error", text.trim_end()),
        // Help, since nothing was asked for.
        None => message("error", format_args!("no command given\n\n{}", text.trim_end())),
    }
    Exit::Usage.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_become_settings() {
        let cli = Cli::try_parse_from([
            "trunkline",
            "-c",
            "io-workers=4",
            "inspect",
            "control",
            "-c",
            "io_method=sync",
            "--io-method",
            "io_uring",
            "--io-combine-limit",
            "1MB",
        ])
        .expect("valid");
        let settings = cli.settings().expect("valid");
        assert_eq!(settings.io_method().name(), "io_uring");
        assert_eq!(settings.io_max_workers(), 4);
        assert_eq!(settings.io_combine_limit(), 128);
    }
}
