//! The command line: commands, options and where their values come from.
//!
//! Options that every command has stand in [`Global`] and may be written before or behind the
//! command. Those for I/O are PostgreSQL's settings; they are kept as text and checked by the table
//! of settings, so that their errors, units and bounds are the same here and everywhere else.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::TypedValueParser;
use clap::{Args, Parser, Subcommand};
use trunkline_engine::settings::Settings;

use crate::copy::CopyArgs;
use crate::demo::DemoArgs;
use crate::exit::{Exit, Failure, message};
use crate::inspect::{BtreeArgs, ClogArgs, MultixactArgs, RelmapArgs, ToastArgs, TupleArgs};
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
130 interrupted.
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

/// What to look at.
#[derive(Debug, Subcommand)]
pub(crate) enum Subject {
    /// The control file, as pg_controldata prints it.
    Control {
        /// The control file; by default global/pg_control of the data directory.
        file: Option<PathBuf>,
        #[command(flatten)]
        io: IoArgs,
    },
    /// One page of a relation file: header, checksum, line pointers, tuple headers.
    Page {
        /// A file of a relation, such as base/5/16384 or base/5/16384_vm.
        file: PathBuf,
        /// Number of the block within the relation, counted over all its segments; by default the
        /// file's first.
        block: Option<u32>,
        #[command(flatten)]
        io: IoArgs,
    },
    /// One row version of a table: its header, its state, and each column as it is stored.
    Tuple {
        #[command(flatten)]
        args: TupleArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// A B-tree index: its levels, or one of its pages with the keys as text.
    Btree {
        #[command(flatten)]
        args: BtreeArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// What became of transactions.
    Clog {
        #[command(flatten)]
        args: ClogArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// The members of multixacts: transactions that hold a row together.
    Multixact {
        #[command(flatten)]
        args: MultixactArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// The relation map: which files the first catalogs are in.
    Relmap {
        #[command(flatten)]
        args: RelmapArgs,
        #[command(flatten)]
        io: IoArgs,
    },
    /// The chunks of a long value.
    Toast {
        #[command(flatten)]
        args: ToastArgs,
        #[command(flatten)]
        io: IoArgs,
    },
}

impl Subject {
    fn io(&self) -> &IoArgs {
        match self {
            Subject::Control { io, .. }
            | Subject::Page { io, .. }
            | Subject::Tuple { io, .. }
            | Subject::Btree { io, .. }
            | Subject::Clog { io, .. }
            | Subject::Multixact { io, .. }
            | Subject::Relmap { io, .. }
            | Subject::Toast { io, .. } => io,
        }
    }
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// The data directory.
    #[arg(short = 'D', long, env = "PGDATA", value_name = "DIR", global = true)]
    pub(crate) pgdata: Option<PathBuf>,

    /// Looks for a tablespace in another directory than its link in pg_tblspc says; may be repeated,
    /// if all are before the command or all behind it.
    #[arg(short = 'T', long, value_name = "OLDDIR=NEWDIR", global = true)]
    #[arg(value_parser = clap::builder::OsStringValueParser::new().try_map(parse_mapping))]
    pub(crate) tablespace_mapping: Vec<(PathBuf, PathBuf)>,

    /// Prints JSON, one object a line.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Shows no progress, not even on a terminal.
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,

    /// Goes on although a server runs or the cluster was not shut down cleanly.
    #[arg(long, global = true)]
    pub(crate) force_unclean: bool,
}

/// PostgreSQL's settings for I/O.
///
/// They stand beside the program's name and beside each command, and not among the global options:
/// of a global option that may be repeated, clap would drop what comes before the command.
#[derive(Debug, Args)]
#[command(next_help_heading = "I/O")]
pub(crate) struct IoArgs {
    /// Who carries out I/O: sync, worker or io_uring [default: worker].
    #[arg(long, value_name = "METHOD")]
    io_method: Option<String>,

    /// Reads past the operating system's cache: data.
    #[arg(long, value_name = "LIST")]
    io_direct: Option<String>,

    /// I/Os kept in flight, 0 to 1000 [default: 16].
    #[arg(long, value_name = "N")]
    effective_io_concurrency: Option<String>,

    /// Largest I/O, in blocks or with a unit, up to 1MB [default: 128kB].
    #[arg(long, value_name = "SIZE")]
    io_combine_limit: Option<String>,

    /// Sets any setting by its PostgreSQL name; may be repeated.
    #[arg(short = 'c', value_name = "NAME=VALUE")]
    settings: Vec<String>,
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

impl IoArgs {
    fn apply(&self, settings: &mut Settings) -> Result<(), Failure> {
        for assignment in &self.settings {
            settings.set_assignment(assignment)?;
        }
        let named = [
            ("io_method", &self.io_method),
            ("io_direct", &self.io_direct),
            ("effective_io_concurrency", &self.effective_io_concurrency),
            ("io_combine_limit", &self.io_combine_limit),
        ];
        for (name, value) in named {
            if let Some(value) = value {
                settings.set(name, value)?;
            }
        }
        // PostgreSQL cuts the limit at io_max_combine_limit without a word; who writes the option
        // means it.
        if self.io_combine_limit.is_some() && !self.mentions("io_max_combine_limit") {
            let mut raised = settings.clone();
            raised.set("io_max_combine_limit", &settings.show("io_combine_limit")?)?;
            if raised.io_combine_limit() > settings.io_combine_limit() {
                *settings = raised;
            }
        }
        Ok(())
    }

    /// Whether a `-c` sets `name`.
    fn mentions(&self, name: &str) -> bool {
        self.settings.iter().any(|assignment| {
            assignment
                .split_once('=')
                .is_some_and(|(left, _)| left.replace('-', "_").eq_ignore_ascii_case(name))
        })
    }
}

impl Global {
    /// The data directory.
    ///
    /// # Errors
    /// [`Exit::Usage`] if neither `-D` nor `$PGDATA` names one.
    pub(crate) fn require_pgdata(&self) -> Result<&PathBuf, Failure> {
        self.pgdata.as_ref().filter(|path| *path.as_os_str() != *OsString::new()).ok_or_else(|| {
            Failure::usage("no data directory given").with_hint("use -D DIR, or set PGDATA")
        })
    }
}

/// The two directories of `OLDDIR=NEWDIR`.
fn parse_mapping(text: OsString) -> Result<(PathBuf, PathBuf), &'static str> {
    let bytes = text.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=');
    let (old, new) = at.and_then(|at| bytes.split_at_checked(at)).unwrap_or_default();
    let [old, new] =
        [old, new.get(1..).unwrap_or_default()].map(|path| PathBuf::from(OsStr::from_bytes(path)));
    match old.is_absolute() && new.is_absolute() {
        true => Ok((old, new)),
        false => Err("expected two absolute directories, OLDDIR=NEWDIR"),
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
