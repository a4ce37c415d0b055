//! Options that several commands have, and where their values go.
//!
//! Those that every command has stand in [`Global`] and may be written before or behind the command.
//! Those for I/O are PostgreSQL's settings; they are kept as text and checked by the table of
//! settings, so that their errors, units and bounds are the same here and everywhere else.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::Args;
use clap::builder::TypedValueParser;
use trunkline_engine::settings::Settings;

use crate::exit::Failure;

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

    /// Sets any of PostgreSQL's settings for I/O, buffers and pages by its name, and for copy those
    /// of values, such as TimeZone; may be repeated.
    #[arg(short = 'c', value_name = "NAME=VALUE")]
    settings: Vec<String>,
}

impl IoArgs {
    /// Sets what was written, first every `-c` in order, then the options with names of their own.
    ///
    /// # Errors
    /// [`Exit::Usage`](crate::exit::Exit::Usage) with PostgreSQL's message.
    pub(super) fn apply(&self, settings: &mut Settings) -> Result<(), Failure> {
        let of_engine = |assignment: &&String| value_setting(assignment).is_none();
        for assignment in self.settings.iter().filter(of_engine) {
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

    /// What every `-c` in order says of the text of values: names in lower case, and values.
    pub(super) fn value_settings(&self) -> impl Iterator<Item = (String, String)> {
        let found = self.settings.iter().filter_map(|assignment| value_setting(assignment));
        found.map(|(name, value)| (name, value.to_owned()))
    }

    /// Whether a `-c` sets `name`.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.settings.iter().any(|assignment| {
            assignment
                .split_once('=')
                .is_some_and(|(left, _)| left.replace('-', "_").eq_ignore_ascii_case(name))
        })
    }
}

/// The name in lower case and the value, if an assignment is of a setting that shows in the text of
/// values, which the engine does not have.
fn value_setting(assignment: &str) -> Option<(String, &str)> {
    let (name, value) = assignment.split_once('=')?;
    let name = name.replace('-', "_").to_ascii_lowercase();
    crate::copy::is_value_setting(&name).then_some((name, value))
}

impl Global {
    /// The data directory.
    ///
    /// # Errors
    /// [`Exit::Usage`](crate::exit::Exit::Usage) if neither `-D` nor `$PGDATA` names one.
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
