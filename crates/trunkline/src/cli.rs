//! The command line: commands, and the settings that result from their options.
//!
//! Each command is a variant of [`Command`]; its options are defined in the command's own module.
//! Options that several commands have in common are in [`crate::options`]. Note that clap turns the
//! doc comments on these types into help texts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
use trunkline_engine::settings::Settings;

use crate::backup::BackupCommand;
use crate::bench::BenchArgs;
use crate::calibrate::CalibrateArgs;
use crate::column_sum::ColumnSumArgs;
use crate::completions::CompletionsArgs;
use crate::copy::{self, CopyArgs};
use crate::demo::DemoArgs;
use crate::doctor::{DoctorArgs, ProbeRingsArgs};
use crate::exit::{Exit, Failure};
use crate::help_text;
use crate::init::InitArgs;
use crate::inspect::InspectCommand;
use crate::man::ManArgs;
use crate::options::{
    Context, Global, IoArgs, PoolArgs, WithIo, WithPool, with_default_pool, without_options,
};
use crate::prewarm::PrewarmArgs;
#[cfg(feature = "sql")]
use crate::query::QueryArgs;
use crate::recover::RecoverArgs;
#[cfg(feature = "sql")]
use crate::serve::ServeArgs;
use crate::slow_disk::{HelperArgs, SlowDiskArgs};
use crate::tables::TablesArgs;
use crate::verify::VerifyArgs;

const LONG_ABOUT: &str = "\
trunkline reads the data directory of a stopped PostgreSQL cluster (version 15 to 19) directly, \
without a server. It lists and copies tables, checks pages, rows and indexes, and prewarms \
relations, using asynchronous and direct I/O. It never writes to a data directory that it \
did not create.";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "trunkline", version = help_text::VERSION, after_help = help_text::after_help())]
#[command(about = "Read the data directory of a stopped PostgreSQL cluster without a server")]
#[command(long_about = LONG_ABOUT)]
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
    /// Check the pages of a data directory, and optionally its rows and indexes.
    ///
    /// The counts are those of pg_checksums --check, but other damage is found too, and files that
    /// are missing or too short.
    Verify(WithPool<VerifyArgs>),
    /// Create a cluster that a PostgreSQL 18 server can start, recover and check.
    ///
    /// The cluster has no catalogs yet, so neither a server nor trunkline can run queries on it. It is
    /// for programs that write to it with trunkline's libraries. Nothing is overwritten.
    Init(InitArgs),
    /// Recover a cluster that trunkline init has made, after a crash of a program that wrote to it.
    ///
    /// The write-ahead log is applied to the files, as a server does when it starts after a crash, and
    /// the cluster is left shut down. Any other directory is refused: trunkline reads those with their log
    /// replayed in memory, and never writes to them.
    Recover(WithIo<RecoverArgs>),
    /// Check base backups.
    #[command(subcommand)]
    Backup(Box<BackupCommand>),
    /// Print a table as COPY ... TO STDOUT does, or copy tables into files.
    Copy(Box<WithPool<CopyArgs>>),
    /// List the databases of a stopped cluster, or the tables of a database.
    Tables(WithIo<TablesArgs>),
    /// Load relations into a buffer pool or into the operating system's cache, as pg_prewarm does.
    ///
    /// The buffer pool goes away when the command ends. Mode "buffer" therefore only shows how much
    /// of the data fits into the pool, how fast it can be read, and whether the pages are valid.
    /// Modes "read" and "prefetch" leave the data in the operating system's cache.
    Prewarm(WithPool<PrewarmArgs>),
    /// Execute SQL statements and print their rows.
    ///
    /// All statements run in one session, one after the other, and the first error ends the command.
    /// Nothing can be written. Rows and messages are those of psql. Exit status 1 means that a
    /// statement failed.
    #[cfg(feature = "sql")]
    Query(Box<WithPool<QueryArgs>>),
    /// Serve SQL to psql and drivers, over PostgreSQL's protocol.
    ///
    /// Nothing can be written. Clients on this machine connect through a unix socket, which only takes
    /// the user that runs the server, and root. Roles and privileges of the cluster aren't enforced.
    /// SIGINT and SIGTERM end all sessions and then the server.
    #[cfg(feature = "sql")]
    Serve(Box<WithPool<ServeArgs>>),
    /// Find out which kinds of I/O work here, why others don't, and whether a server would start.
    ///
    /// Tries io_uring, direct I/O and atomic writes on the file systems of the data directory, or of
    /// the current directory. Predicts whether PostgreSQL 18 and 19 would start with each I/O method,
    /// with the configuration of the cluster, the settings given with -c, and the limits of this
    /// shell. Each line is good, limited or missing, with the reason and the fix. Exit status 1 means
    /// that something is missing that the configuration or an option asks for. A server may be
    /// running. Nothing is written into a cluster.
    Doctor(WithIo<DoctorArgs>),
    /// Measure a table with every I/O method, repeatedly, and report statistics and plots.
    ///
    /// Reads a table of a stopped cluster, or a generated one. Each case is repeated until the
    /// confidence interval of its median is narrow. --io-method and --io-direct restrict the
    /// comparison. Not available yet: the same work on a PostgreSQL server, and simulated slow disks.
    Bench(Box<WithPool<BenchArgs>>),
    /// Measure a device until it is steady, and print settings for PostgreSQL 18, 19 and trunkline.
    ///
    /// Reads and writes a scratch file of its own on the file system of DIR, which may be the data
    /// directory of a running server or any other directory: random, sequential, mixed and durable
    /// I/O at rising depth and size. Notices burst credit that runs out. Each setting is a line for
    /// postgresql.conf with its measurement, its confidence, and what the default would lose.
    /// Settings without a measured gain keep their default. The scratch file has no name, so nothing
    /// is left even after kill -9, and nothing is ever written into a cluster. A busy device is
    /// slowed down for a few minutes.
    Calibrate(Box<CalibrateArgs>),
    /// Compare I/O methods on this machine.
    ///
    /// Creates a pgbench_accounts table and prewarms and scans it with each I/O method, both
    /// buffered and direct. Then changes a copy of the table, writes it out with checkpoints, and
    /// prints the timings.
    Demo(WithPool<DemoArgs>),
    /// Mount a directory as a slow disk, for any program.
    ///
    /// Reads and writes below MOUNT take as long as on the disk that the profile describes, unless
    /// the page cache serves them. The command runs until SIGINT or SIGTERM, then unmounts. First it
    /// measures how exactly this machine keeps the latency. Other programs must not change DIR
    /// meanwhile. Unless you are root, it needs fusermount3, and only you have access.
    SlowDisk(SlowDiskArgs),
    /// Print a script that completes trunkline's commands and options in a shell.
    ///
    /// For bash: source <(trunkline completions bash). For zsh: write it to a file _trunkline in a
    /// directory of $fpath. For fish: write it to ~/.config/fish/completions/trunkline.fish.
    Completions(CompletionsArgs),
    /// Print the manual page, or write one page for each command into a directory.
    Man(ManArgs),
    /// Measure or unmount a slow disk, for slow-disk.
    #[command(hide = true)]
    SlowDiskHelper(HelperArgs),
    /// Open io_uring rings and print what works, for doctor.
    #[command(hide = true)]
    ProbeRings(ProbeRingsArgs),
    /// Sum an integer column of a table, given by its offset in the row. This can be used to
    /// compare the speed of our scans with a server's.
    #[command(hide = true)]
    Sum(WithPool<ColumnSumArgs>),
}

/// Global options that mean nothing to a command that doesn't read a data directory.
const OF_DATA_DIRECTORY: [&str; 3] = ["pgdata", "tablespace_mapping", "force_unclean"];

/// Global options that mean nothing to a command that replays no log. Two of these commands have a
/// `--scratch` of their own.
const OF_REPLAY: [&str; 5] = ["wal", "until", "replay_memory", "allow_incomplete", "no_replay"];

/// Global options that mean nothing to a command whose argument is the directory, and which judges all
/// of it.
const OF_READING: [&str; 5] = ["pgdata", "force_unclean", "until", "allow_incomplete", "no_replay"];

/// Global options that, in addition, mean nothing to a command that only prints a text.
const OF_REPORT: [&str; 2] = ["json", "no_progress"];

/// The whole command line, with the help that differs between commands.
pub(crate) fn command() -> clap::Command {
    let command = Cli::command();
    let global = |ids: &[&str]| -> Vec<Arg> {
        let of_ids = |arg: &&Arg| ids.contains(&arg.get_id().as_str());
        command.get_arguments().filter(of_ids).cloned().collect()
    };
    let (of_log, of_moment) = (global(&["wal", "until"]), global(&["until"]));
    let (of_report, of_reading) = (global(&OF_REPORT), global(&OF_READING));
    let (of_replay, scratch) = (global(&OF_REPLAY), global(&["scratch"]));
    let without_scratch = [&of_replay[..], &scratch].concat();
    let of_data_directory = [&global(&OF_DATA_DIRECTORY)[..], &without_scratch].concat();
    let of_recovery =
        [&global(&OF_DATA_DIRECTORY)[..], &of_log, &global(&["allow_incomplete", "no_replay"])]
            .concat();
    let without_all = |text| without_options(without_options(text, &of_data_directory), &of_report);
    command
        .mut_subcommand("backup", |backup| {
            backup.mut_subcommand("verify", |it| without_options(it, &of_reading))
        })
        .mut_subcommand("copy", |it| with_default_pool(it, &format!("{}MB", copy::BUFFERS / 128)))
        .mut_subcommand("demo", |demo| {
            let demo = with_default_pool(demo, "the size of the table, if memory allows");
            without_options(demo, &of_data_directory)
        })
        .mut_subcommand("init", |it| without_options(it, &of_data_directory))
        .mut_subcommand("recover", |it| without_options(it, &of_recovery))
        .mut_subcommand("inspect", |inspect| {
            let inspect =
                inspect.mut_subcommand("control", |it| without_options(it, &without_scratch));
            inspect.mut_subcommand("wal", |it| without_options(it, &of_moment))
        })
        .mut_subcommand("doctor", |it| without_options(it, &without_scratch))
        .mut_subcommand("calibrate", |it| without_options(it, &of_replay))
        .mut_subcommand("slow-disk", |it| without_options(it, &of_data_directory))
        .mut_subcommand("completions", without_all)
        .mut_subcommand("man", without_all)
}

impl Cli {
    /// Parses the command line.
    ///
    /// # Errors
    /// What clap prints: help, the version, or an error.
    pub(crate) fn parse_args(args: impl IntoIterator<Item = OsString>) -> clap::error::Result<Cli> {
        let mut matches = command().try_get_matches_from(args)?;
        // These commands could be mistaken for commands that do something with the data directory.
        // PGDATA may be set, though.
        if let Some((name @ ("completions" | "demo" | "init" | "man" | "slow-disk"), given)) =
            matches.subcommand()
            && given.value_source("pgdata") == Some(ValueSource::CommandLine)
        {
            let text = format!("unexpected argument '--pgdata': {name} reads no data directory");
            return Err(command().error(ErrorKind::UnknownArgument, text));
        }
        if let Some((name @ ("backup" | "recover"), given)) = matches.subcommand() {
            let by_option = given.value_source("pgdata") == Some(ValueSource::CommandLine);
            let of_backup = given.subcommand().filter(|_| name == "backup");
            let has_argument = of_backup.is_none_or(|(_, given)| given.contains_id("directory"));
            match (has_argument, by_option) {
                (true, true) => {
                    let text = format!(
                        "unexpected argument '--pgdata': {name} takes its directory as an argument"
                    );
                    return Err(command().error(ErrorKind::UnknownArgument, text));
                }
                (false, false) => {
                    // $PGDATA names a server's data directory, so it is never used as the backup.
                    let text = "no backup given: use backup verify DIR";
                    return Err(command().error(ErrorKind::MissingRequiredArgument, text));
                }
                _ => {}
            }
        }
        Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command()))
    }

    /// Returns the options and settings for the command. An option given after the command
    /// overrides the same option before it. If both `-c` and a named option such as `--io-method`
    /// are given on the same side of the command, the named option wins.
    ///
    /// # Errors
    /// [`Exit::Usage`] with PostgreSQL's message if a setting is invalid. The same error is
    /// returned if `-c` sets a parameter that controls how values are printed, but the command
    /// doesn't print any values.
    pub(crate) fn context(&self) -> Result<Context<'_>, Failure> {
        if let Some(allowed) = self.command.replay_options_allowed()
            && let Some(name) = self.global.replay.given_besides(allowed)
        {
            return Err(Failure::usage(format_args!("{name} has no effect on this command")));
        }
        let (command_io, pool) = self.command.shared_options();
        let shared_buffers = pool.and_then(|pool| pool.shared_buffers.as_deref());
        let io = [Some(&self.io), command_io].into_iter().flatten();
        let mut settings = Settings::default();
        let has_session = self.command.has_session();
        for io in io.clone() {
            io.apply(&mut settings, has_session)?;
        }
        if let Some(size) = shared_buffers {
            settings.set("shared_buffers", size)?;
        }
        let text_settings = io.clone().flat_map(|io| io.text_settings(has_session));
        let text_settings: BTreeMap<_, _> = text_settings.collect();
        if let Some(name) = text_settings.keys().next()
            && !has_session
            && !matches!(self.command, Command::Copy(_))
        {
            let text = format!("parameter \"{name}\" has no effect on this command");
            return Err(Failure::usage(text).with_hint("only copy prints values"));
        }
        let sets_buffers =
            shared_buffers.is_some() || io.clone().any(|io| io.mentions("shared_buffers"));
        let buffers = sets_buffers.then(|| settings.shared_buffers());
        let mut given: BTreeSet<String> = io.clone().flat_map(IoArgs::assigned).collect();
        if sets_buffers {
            given.insert("shared_buffers".to_owned());
        }
        // One of the names of the worker settings stands for both others.
        let bounds = ["io_min_workers", "io_max_workers"];
        if given.contains("io_workers") {
            given.extend(bounds.map(str::to_owned));
        } else if bounds.iter().any(|bound| given.contains(*bound)) {
            given.insert("io_workers".to_owned());
        }
        // A large --io-combine-limit raises the maximum.
        let maximum = "io_max_combine_limit";
        if settings.show(maximum)? != Settings::default().show(maximum)? {
            given.insert(maximum.to_owned());
        }
        Ok(Context { global: &self.global, settings, text_settings, buffers, given })
    }
}

impl Command {
    /// Whether the command opens a session, which has settings of its own.
    fn has_session(&self) -> bool {
        match self {
            #[cfg(feature = "sql")]
            Command::Query(_) | Command::Serve(_) => true,
            // It takes all settings of a server.
            Command::Doctor(_) => true,
            _ => false,
        }
    }

    /// Which options of a replay a command takes. `None` if it reads a cluster through its log, and so
    /// judges them itself.
    fn replay_options_allowed(&self) -> Option<&'static [&'static str]> {
        match self {
            Command::Inspect(command) => command.replay_options_allowed(),
            Command::Bench(command) if command.args.reads_cluster() => None,
            Command::Bench(_)
            | Command::Doctor(_)
            | Command::Calibrate(_)
            | Command::Demo(_)
            | Command::SlowDisk(_)
            | Command::SlowDiskHelper(_)
            | Command::Init(_)
            | Command::Recover(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::ProbeRings(_) => Some(&[]),
            _ => None,
        }
    }

    /// The options that the command shares with others.
    fn shared_options(&self) -> (Option<&IoArgs>, Option<&PoolArgs>) {
        match self {
            Command::Inspect(command) => (Some(command.io()), None),
            Command::Backup(command) => {
                let (io, pool) = command.options();
                (Some(io), Some(pool))
            }
            Command::Tables(command) => (Some(&command.io), None),
            Command::Doctor(command) => (Some(&command.io), None),
            Command::Recover(command) => (Some(&command.io), None),
            Command::Bench(command) => (Some(&command.io), Some(&command.pool)),
            Command::Copy(command) => (Some(&command.io), Some(&command.pool)),
            #[cfg(feature = "sql")]
            Command::Query(command) => (Some(&command.io), Some(&command.pool)),
            #[cfg(feature = "sql")]
            Command::Serve(command) => (Some(&command.io), Some(&command.pool)),
            Command::Verify(WithPool { pool, io, .. })
            | Command::Prewarm(WithPool { pool, io, .. })
            | Command::Demo(WithPool { pool, io, .. })
            | Command::Sum(WithPool { pool, io, .. }) => (Some(io), Some(pool)),
            Command::Calibrate(_)
            | Command::SlowDisk(_)
            | Command::SlowDiskHelper(_)
            | Command::Init(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::ProbeRings(_) => (None, None),
        }
    }
}

/// Prints clap's output: help and version to standard output, errors to standard error.
///
/// We don't let clap print its messages and exit by itself. Our messages must start with the
/// program's name, and we must handle a closed pipe in the same way as for all other output.
pub(crate) fn report(mut error: clap::Error) -> ExitCode {
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
    // clap suggests `-- -x` wherever a command has positional arguments. Nearly always, `-x` was
    // meant as an option.
    if let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested) {
        tips.retain(|tip| !tip.to_string().starts_with("to pass "));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
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

    #[test]
    fn command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_setting_given_with_its_default_is_given() {
        let cli = Cli::try_parse_from([
            "trunkline",
            "-c",
            "IO-Workers=3",
            "inspect",
            "control",
            "--io-method",
            "worker",
        ])
        .expect("valid");
        let given = cli.context().expect("valid").given;
        let expected = ["io_max_workers", "io_method", "io_min_workers", "io_workers"];
        assert_eq!(given.iter().collect::<Vec<_>>(), expected);
    }

    #[cfg(feature = "sql")]
    #[test]
    fn options_of_tcp_need_an_address() {
        let parse = |args: &[&str]| {
            let start = ["trunkline", "serve", "-D", "data"];
            Cli::try_parse_from(start.iter().chain(args)).map(|_| ()).map_err(|error| error.kind())
        };
        let missing = Err(ErrorKind::MissingRequiredArgument);
        assert_eq!(parse(&["--password-file", "f"]), missing);
        assert_eq!(parse(&["--tls-cert", "c", "--tls-key", "k"]), missing);
        assert_eq!(parse(&["--listen", "127.0.0.1"]), missing);
        let address = ["--listen", "127.0.0.1", "--password-file", "f"];
        assert_eq!(parse(&address), Ok(()));
        assert_eq!(parse(&[&address[..], &["--tls-cert", "c"]].concat()), missing);
        let all = [&address[..], &["--tls-cert", "c", "--tls-key", "k"]].concat();
        assert_eq!(parse(&all), Ok(()));
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
