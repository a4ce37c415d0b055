//! Command-line options shared by several commands.
//!
//! [`Global`] options may be given either before or after the command. Each I/O option corresponds
//! to a PostgreSQL setting. We keep its value as text and let the engine's settings table parse it,
//! so that units, ranges and error messages are the same as PostgreSQL's.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, Args, Command, ValueHint};
use trunkline_aio::facade::env;
use trunkline_engine::catalog::QualifiedName;
use trunkline_engine::settings::Settings;
use trunkline_format::Fork;

use crate::exit::Failure;
use crate::replay_options::ReplayArgs;
use crate::text_settings::{TEXT_SETTINGS, parse_text_setting};

/// Options of every command. They have a section of their own in the help, because clap would
/// otherwise mix them with the options of the command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Global {
    /// Data directory.
    // An empty PGDATA is as good as none, so the parser must accept it.
    #[arg(short = 'D', long, env = "PGDATA", value_name = "DIR", global = true)]
    #[arg(value_parser = OsStringValueParser::new().map(PathBuf::from))]
    #[arg(value_hint = ValueHint::DirPath)]
    pgdata: Option<PathBuf>,

    /// Read a tablespace from NEWDIR instead of OLDDIR, which is where its link in pg_tblspc
    /// points. May be repeated, but all of these options must come before the command or all of
    /// them after it.
    #[arg(short = 'T', long, value_name = "OLDDIR=NEWDIR", global = true)]
    #[arg(value_parser = OsStringValueParser::new().try_map(parse_mapping))]
    pub(crate) tablespace_mapping: Vec<(PathBuf, PathBuf)>,

    /// Print JSON, one object per line; messages too, on standard error. copy prints rows only in
    /// the formats of COPY, so it takes this only together with -o.
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Show no progress bar, not even on a terminal.
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,

    /// Continue even if a server is running or the cluster was not shut down cleanly.
    #[arg(long, global = true)]
    pub(crate) force_unclean: bool,

    #[command(flatten)]
    pub(crate) replay: ReplayArgs,

    /// Print help; -? does the same.
    #[arg(short = 'h', short_alias = '?', long = "help", global = true, action = ArgAction::Help)]
    _help: Option<bool>,
}

impl Global {
    /// The data directory, if `-D` or `$PGDATA` names one.
    pub(crate) fn pgdata(&self) -> Option<&PathBuf> {
        self.pgdata.as_ref().filter(|path| !path.as_os_str().is_empty())
    }

    /// The data directory.
    ///
    /// # Errors
    /// [`Exit::Usage`](crate::exit::Exit::Usage) if neither `-D` nor `$PGDATA` names one.
    pub(crate) fn require_pgdata(&self) -> Result<&PathBuf, Failure> {
        self.pgdata().ok_or_else(|| {
            Failure::usage("no data directory given").with_hint("use -D DIR, or set PGDATA")
        })
    }

    /// Whether a progress bar may be drawn.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.json && !self.no_progress
    }
}

/// The context that is passed to every command. It consists of the global options and of the
/// settings that result from the whole command line.
pub(crate) struct Context<'c> {
    pub(crate) global: &'c Global,
    pub(crate) settings: Settings,
    /// The settings given by `-c` that affect how values are printed, or all settings of a session,
    /// keyed by lower-case name.
    pub(crate) text_settings: BTreeMap<String, String>,
    /// Number of buffers, if the pool size is set by an option. Some commands have their own
    /// default.
    pub(crate) buffers: Option<u32>,
    /// The engine's settings that the command line sets, even if to their defaults. Names are in lower
    /// case.
    pub(crate) given: BTreeSet<String>,
}

/// PostgreSQL's settings for I/O.
///
/// We declare these options once for the program and again for each command, instead of using
/// clap's global options. If a global option may be repeated, clap drops the values given before
/// the command.
#[derive(Debug, Args)]
#[command(next_help_heading = "I/O")]
pub(crate) struct IoArgs {
    /// I/O method [default: worker].
    #[arg(long, value_name = "METHOD", value_parser = one_of(["sync", "worker", "io_uring"]))]
    io_method: Option<String>,

    /// Bypass the operating system's cache for the listed kinds of files.
    #[arg(long, value_name = "LIST", value_parser = one_of(["data"]))]
    io_direct: Option<String>,

    /// Number of I/Os to keep in flight, 0 to 1000 [default: 16].
    #[arg(long, value_name = "N")]
    effective_io_concurrency: Option<String>,

    /// Largest size of an I/O, in blocks or with a unit, up to 1MB [default: 128kB].
    #[arg(long, value_name = "SIZE")]
    io_combine_limit: Option<String>,

    /// Set a PostgreSQL setting by name. May be repeated; --help lists the settings.
    #[arg(short = 'c', value_name = "NAME=VALUE", long_help = settings_help())]
    settings: Vec<String>,
}

impl IoArgs {
    /// Applies the options: first all `-c` options in order, then the named options. If the command
    /// has a session, a setting that isn't one of the engine is left to it.
    ///
    /// # Errors
    /// [`Exit::Usage`](crate::exit::Exit::Usage) with PostgreSQL's message.
    pub(crate) fn apply(&self, settings: &mut Settings, has_session: bool) -> Result<(), Failure> {
        let is_of_engine = |assignment: &&String| other_setting(assignment, has_session).is_none();
        for assignment in self.settings.iter().filter(is_of_engine) {
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
        // PostgreSQL silently limits io_combine_limit to io_max_combine_limit. But if the user sets
        // the limit with a command-line option, that should always take effect, so we raise the
        // maximum as well.
        if self.io_combine_limit.is_some() && !self.mentions("io_max_combine_limit") {
            let mut raised = settings.clone();
            raised.set("io_max_combine_limit", &settings.show("io_combine_limit")?)?;
            if raised.io_combine_limit() > settings.io_combine_limit() {
                *settings = raised;
            }
        }
        Ok(())
    }

    /// Returns the settings assigned by `-c` that aren't the engine's, in the given order: those that
    /// affect how values are printed, or all settings of a session. Names are in lower case.
    pub(crate) fn text_settings(
        &self,
        has_session: bool,
    ) -> impl Iterator<Item = (String, String)> {
        let assignments = self.settings.iter();
        assignments.filter_map(move |assignment| other_setting(assignment, has_session))
    }

    /// The engine's settings that the options assign, whatever the values. Names are in lower case.
    pub(crate) fn assigned(&self) -> impl Iterator<Item = String> {
        let assignments = self.settings.iter().filter_map(|assignment| {
            let (name, _) = assignment.split_once('=')?;
            Some(name.replace('-', "_").to_ascii_lowercase())
        });
        let named = [
            ("io_method", &self.io_method),
            ("io_direct", &self.io_direct),
            ("effective_io_concurrency", &self.effective_io_concurrency),
            ("io_combine_limit", &self.io_combine_limit),
        ];
        let named = named.into_iter().filter(|(_, value)| value.is_some());
        assignments.chain(named.map(|(name, _)| name.to_owned()))
    }

    /// Whether a `-c` assigns `name`.
    pub(crate) fn mentions(&self, name: &str) -> bool {
        self.settings.iter().any(|assignment| {
            assignment
                .split_once('=')
                .is_some_and(|(left, _)| left.replace('-', "_").eq_ignore_ascii_case(name))
        })
    }
}

/// The name in lower case and the value of a setting that isn't one of the engine. Without a session,
/// only the settings that affect how values are printed are known.
fn other_setting(assignment: &str, has_session: bool) -> Option<(String, String)> {
    if !has_session {
        return parse_text_setting(assignment).map(|(name, value)| (name, value.to_owned()));
    }
    let (name, value) = assignment.split_once('=')?;
    let name = name.replace('-', "_").to_ascii_lowercase();
    let is_of_engine = Settings::default().show(&name).is_ok();
    (!is_of_engine).then(|| (name, value.to_owned()))
}

/// The options of a command that does I/O, but doesn't let the user choose the size of the buffer
/// pool.
#[derive(Debug, Args)]
pub(crate) struct WithIo<A: Args> {
    #[command(flatten)]
    pub(crate) args: A,
    #[command(flatten)]
    pub(crate) io: IoArgs,
}

/// The options of a command that uses a buffer pool.
#[derive(Debug, Args)]
pub(crate) struct WithPool<A: Args> {
    #[command(flatten)]
    pub(crate) args: A,
    #[command(flatten)]
    pub(crate) pool: PoolArgs,
    #[command(flatten)]
    pub(crate) io: IoArgs,
}

/// Options of commands that use a buffer pool.
#[derive(Debug, Args)]
pub(crate) struct PoolArgs {
    /// Size of the buffer pool, in blocks or with a unit, at least 16 blocks [default: 128MB].
    #[arg(long, value_name = "SIZE", help_heading = "I/O")]
    pub(crate) shared_buffers: Option<String>,
}

/// Changes the help of `--shared-buffers` for a command with another default.
pub(crate) fn with_default_pool(command: Command, default: &str) -> Command {
    command.mut_arg("shared_buffers", |arg| {
        let text = arg.get_help().map(ToString::to_string).unwrap_or_default();
        arg.help(text.replace("128MB", default))
    })
}

/// Hides global options that mean nothing to a command. They are still accepted, because they may
/// stand before the command.
pub(crate) fn without_options(command: Command, global: &[Arg]) -> Command {
    command.args(global.iter().map(|arg| arg.clone().hide(true)))
}

/// The long help of `-c`.
fn settings_help() -> String {
    let names = |names: Vec<&str>| names.join(", ");
    format!(
        "Set a PostgreSQL setting by name. May be repeated. The settings are {}; and, if the \
         command is copy, {}",
        names(Settings::default().iter().map(|(spec, _)| spec.name).collect()),
        names(TEXT_SETTINGS.iter().map(|(name, _)| *name).collect()),
    )
}

/// A parser that passes every value on, but knows which ones to list in help and completions. The
/// engine judges the values, so that the messages are PostgreSQL's.
#[derive(Clone)]
pub(crate) struct Listed<P> {
    parser: P,
    values: Vec<&'static str>,
}

impl<P: TypedValueParser> TypedValueParser for Listed<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<P::Value, clap::Error> {
        self.parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.values.iter().map(|value| PossibleValue::new(*value))))
    }
}

/// A parser for a setting with these values.
pub(crate) fn one_of<const N: usize>(values: [&'static str; N]) -> Listed<StringValueParser> {
    Listed { parser: StringValueParser::new(), values: values.to_vec() }
}

/// A parser for forks.
pub(crate) fn fork() -> impl TypedValueParser<Value = Fork> {
    let parser = StringValueParser::new().try_map(|text| parse_fork(&text));
    Listed { parser, values: vec!["main", "fsm", "vm", "init"] }
}

/// The database in which names are looked up.
#[derive(Debug, Args)]
pub(crate) struct DatabaseArgs {
    /// Database to look up names in [default: $PGDATABASE]; not needed for names of the form
    /// DATABASE.SCHEMA.TABLE.
    #[arg(short = 'd', long, value_name = "DATABASE")]
    pub(crate) dbname: Option<OsString>,
}

impl DatabaseArgs {
    /// Returns the database given by the option. If the option is missing, returns the database of
    /// the first name in `names` that includes one, or else the one in the environment.
    ///
    /// # Errors
    /// [`Exit::Usage`](crate::exit::Exit::Usage) if there is neither.
    pub(crate) fn of<'n>(
        &self,
        names: impl IntoIterator<Item = &'n OsString>,
    ) -> Result<Vec<u8>, Failure> {
        if let Some(name) = &self.dbname {
            return Ok(name.as_bytes().to_vec());
        }
        let database_of = |name: &OsString| QualifiedName::parse(name.as_bytes()).ok()?.database;
        let name = names.into_iter().find_map(database_of).or_else(DatabaseArgs::default_name);
        name.ok_or_else(|| {
            Failure::usage("no database given")
                .with_hint("use -d DATABASE or DATABASE.SCHEMA.TABLE, or set PGDATABASE")
        })
    }

    /// `$PGDATABASE`, as in all of PostgreSQL's client programs.
    ///
    /// It says where to look up a name. Unlike `-d`, it doesn't restrict a command without names to
    /// one database: a forgotten variable must not make `verify` skip the others.
    pub(crate) fn default_name() -> Option<Vec<u8>> {
        let name = env::var("PGDATABASE").filter(|name| !name.is_empty())?;
        Some(name.into_vec())
    }
}

/// The message is that of `pg_prewarm`.
fn parse_fork(text: &str) -> Result<Fork, &'static str> {
    let found = Fork::ALL.into_iter().find(|fork| fork.to_string() == text);
    found.ok_or("invalid fork name; valid fork names are main, fsm, vm and init")
}

/// Parses `OLDDIR=NEWDIR`.
fn parse_mapping(text: OsString) -> Result<(PathBuf, PathBuf), &'static str> {
    let bytes = text.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=');
    let (old, new) = at.and_then(|at| bytes.split_at_checked(at)).unwrap_or_default();
    let [old, new] =
        [old, new.get(1..).unwrap_or_default()].map(|path| PathBuf::from(OsStr::from_bytes(path)));
    match old.is_absolute() && new.is_absolute() {
        true => Ok((old, new)),
        // pg_dump's -T excludes a table.
        false if at.is_none() => {
            Err("expected OLDDIR=NEWDIR; to leave tables out of a copy, use --exclude-table")
        }
        false => Err("expected OLDDIR=NEWDIR, both of them absolute paths"),
    }
}
