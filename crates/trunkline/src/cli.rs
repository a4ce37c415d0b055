//! The command line: commands, and the settings that result from their options.
//!
//! Each command is a variant of [`Command`]; its options are defined in the command's own module.
//! Options that several commands have in common are in [`crate::options`]. Note that clap turns the
//! doc comments on these types into help texts.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use trunkline_engine::settings::Settings;

use crate::column_sum::ColumnSumArgs;
use crate::completions::CompletionsArgs;
use crate::copy::CopyArgs;
use crate::demo::DemoArgs;
use crate::exit::{Exit, Failure};
use crate::inspect::InspectCommand;
use crate::man::ManArgs;
use crate::options::{Context, Global, IoArgs, PoolArgs, WithIo, WithPool};
use crate::prewarm::PrewarmArgs;
use crate::tables::TablesArgs;
use crate::verify::VerifyArgs;

/// The version of the program and the commit that it was built from.
const VERSION: &str = env!("TRUNKLINE_VERSION");

const AFTER_HELP: &str = "\
Examples:
  trunkline tables -D DIR -d bench --sort size             list the tables of a database
  trunkline copy -D DIR -d bench public.accounts           print a table as COPY ... TO STDOUT does
  trunkline verify -D /backup/main --io-method io_uring    check every page of a stopped cluster
  trunkline verify -D DIR -d bench --deep                  check a database, rows and indexes too
  trunkline prewarm -D DIR 5/16384 --shared-buffers 1GB    load a table into a buffer pool
  trunkline inspect control -D DIR                         print the control file
  trunkline inspect page -D DIR -d bench public.t 3        decode a page of a table
  trunkline inspect page --json base/5/1259.1 131072       decode a page of a file, as JSON
  trunkline inspect tuple -D DIR -d bench public.t '(0,1)' decode a row version column by column
  trunkline inspect btree -D DIR -d bench public.t_pkey    describe an index level by level
  trunkline demo                                           compare I/O methods on this machine

Exit status:
  0 good, 1 something is wrong with the data, 2 wrong usage, 3 cannot run, 130 interrupted,
  141 the reader of the output is gone, 143 terminated

trunkline never writes to a data directory.";

/// trunkline reads the data directory of a stopped PostgreSQL cluster (version 15 to 19) directly,
/// without a server. It lists and copies tables, checks pages, rows and indexes, and prewarms
/// relations, using asynchronous and direct I/O.
#[derive(Debug, Parser)]
#[command(name = "trunkline", version = VERSION, after_help = AFTER_HELP)]
#[command(disable_help_flag = true)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(flatten)]
    io: IoArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A command and its options.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Decode and print the contents of a file.
    #[command(subcommand)]
    Inspect(InspectCommand),
    /// Check every page of a data directory, as pg_checksums --check does but more thoroughly, and
    /// optionally also check rows and indexes.
    Verify(WithPool<VerifyArgs>),
    /// Print the rows of a table as COPY ... TO STDOUT does, or copy every table into a file.
    Copy(Box<WithPool<CopyArgs>>),
    /// List the databases of a stopped cluster, or the tables of a database.
    Tables(WithIo<TablesArgs>),
    /// Load relations into a buffer pool or into the operating system's cache, as pg_prewarm does.
    ///
    /// The buffer pool goes away when the command ends. Mode "buffer" therefore only shows how much
    /// of the data fits into the pool, how fast it can be read, and whether the pages are valid.
    /// Modes "read" and "prefetch" leave the data in the operating system's cache.
    Prewarm(WithPool<PrewarmArgs>),
    /// Compare I/O methods on this machine.
    ///
    /// Creates a pgbench_accounts table and prewarms and scans it with each I/O method, both
    /// buffered and direct. Then changes a copy of the table, writes it out with checkpoints, and
    /// prints the timings.
    Demo(WithPool<DemoArgs>),
    /// Print a script that completes trunkline's commands and options in a shell.
    ///
    /// For bash: source <(trunkline completions bash). For zsh: write it to a file _trunkline in a
    /// directory of $fpath. For fish: write it to ~/.config/fish/completions/trunkline.fish.
    Completions(CompletionsArgs),
    /// Print the manual page, or write one page for each command into a directory.
    Man(ManArgs),
    /// Sum an integer column of a table, given by its offset in the row. This can be used to
    /// compare the speed of our scans with a server's.
    #[command(hide = true)]
    Sum(WithPool<ColumnSumArgs>),
}

impl Cli {
    /// Returns the options and settings for the command. An option given after the command
    /// overrides the same option before it. If both `-c` and a named option such as `--io-method`
    /// are given on the same side of the command, the named option wins.
    ///
    /// # Errors
    /// [`Exit::Usage`] with PostgreSQL's message if a setting is invalid. The same error is
    /// returned if `-c` sets a parameter that controls how values are printed, but the command
    /// doesn't print any values.
    pub(crate) fn context(&self) -> Result<Context<'_>, Failure> {
        let (command_io, pool) = self.command.shared_options();
        let shared_buffers = pool.and_then(|pool| pool.shared_buffers.as_deref());
        let io = [Some(&self.io), command_io].into_iter().flatten();
        let mut settings = Settings::default();
        for io in io.clone() {
            io.apply(&mut settings)?;
        }
        if let Some(size) = shared_buffers {
            settings.set("shared_buffers", size)?;
        }
        let text_settings: BTreeMap<_, _> = io.clone().flat_map(IoArgs::text_settings).collect();
        if let Some(name) = text_settings.keys().next()
            && !matches!(self.command, Command::Copy(_))
        {
            let text = format!("parameter \"{name}\" has no effect on this command");
            return Err(Failure::usage(text).with_hint("only copy prints values"));
        }
        let sets_buffers =
            shared_buffers.is_some() || io.clone().any(|io| io.mentions("shared_buffers"));
        let buffers = sets_buffers.then(|| settings.shared_buffers());
        Ok(Context { global: &self.global, settings, text_settings, buffers })
    }
}

impl Command {
    /// The options that the command shares with others.
    fn shared_options(&self) -> (Option<&IoArgs>, Option<&PoolArgs>) {
        match self {
            Command::Inspect(command) => (Some(command.io()), None),
            Command::Tables(command) => (Some(&command.io), None),
            Command::Copy(command) => (Some(&command.io), Some(&command.pool)),
            Command::Verify(WithPool { pool, io, .. })
            | Command::Prewarm(WithPool { pool, io, .. })
            | Command::Demo(WithPool { pool, io, .. })
            | Command::Sum(WithPool { pool, io, .. }) => (Some(io), Some(pool)),
            Command::Completions(_) | Command::Man(_) => (None, None),
        }
    }
}

/// Prints clap's output: help and version to standard output, errors to standard error.
///
/// We don't let clap print its messages and exit by itself. Our messages must start with the
/// program's name, and we must handle a closed pipe in the same way as for all other output.
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
        Some(text) => Failure::usage(text.trim_end()).report(),
        // Without a command clap reports the help text as the error.
        None => Failure::usage(format_args!("no command given\n\n{}", text.trim_end())).report(),
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
    fn options_override_settings_given_by_name() {
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
        let settings = cli.context().expect("valid").settings;
        assert_eq!(settings.io_method().name(), "io_uring");
        assert_eq!(settings.io_max_workers(), 4);
        assert_eq!(settings.io_combine_limit(), 128);
    }
}
