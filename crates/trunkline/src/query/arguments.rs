//! Options of `trunkline query`.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{ValueEnum, ValueHint};
use trunkline_aio::facade::env;

use crate::exit::Failure;
use crate::options::Global;

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table with aligned columns, as in psql.
    Aligned,
    /// Values between bars, as psql -A.
    Unaligned,
    /// Comma-separated values with a header, as COPY ... (FORMAT csv, HEADER).
    Csv,
    /// An array of objects for each statement.
    Json,
    /// One JSON object per line.
    Ndjson,
}

/// How queries are explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Explain {
    /// Their plan; they are not executed.
    Plan,
    /// Their plan with counts, pages, reads and times, after they were executed.
    Analyze,
}

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct QueryArgs {
    /// Statements to execute, separated by semicolons.
    #[arg(value_name = "SQL", conflicts_with = "file", required_unless_present = "file")]
    pub(super) sql: Option<String>,

    /// Read the statements from a file; - is standard input.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,

    /// Database [default: $PGDATABASE, or else postgres].
    #[arg(short = 'd', long, value_name = "DATABASE")]
    pub(super) dbname: Option<OsString>,

    /// How to print rows [default: aligned; with --json, ndjson].
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Print only the rows, without names of columns and without the number of rows.
    #[arg(short, long)]
    pub(super) tuples_only: bool,

    /// Print each column of a row on a line of its own.
    #[arg(short = 'x', long)]
    pub(super) expanded: bool,

    /// Text for null [default: empty]; JSON has a null of its own.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(super) null: String,

    /// Write the rows to a file, which gets its name when they are complete; - is standard output.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Print the plan of each query instead of its rows. With analyze, execute it, and also print
    /// rows, pages, reads and times.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, value_name = "KIND")]
    #[arg(default_missing_value = "plan")]
    pub(super) explain: Option<Explain>,

    /// Print how long each statement took.
    #[arg(long)]
    pub(super) timing: bool,

    /// Show the SQLSTATE of errors.
    #[arg(long)]
    pub(super) verbose: bool,

    /// Directory for temporary files of statements that exceed work_mem [default: $TMPDIR, or else
    /// /tmp].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    temporary_directory: Option<PathBuf>,
}

impl QueryArgs {
    /// How rows are printed.
    ///
    /// # Errors
    /// [`Exit::Usage`](crate::exit::Exit::Usage): the other options don't go with it.
    pub(super) fn format(&self, global: &Global) -> Result<Format, Failure> {
        let default = if global.json { Format::Ndjson } else { Format::Aligned };
        let format = self.format.unwrap_or(default);
        let is_text = matches!(format, Format::Aligned | Format::Unaligned);
        if self.expanded && !is_text {
            let text = "--expanded requires the format aligned or unaligned";
            return Err(Failure::usage(text));
        }
        let is_json = matches!(format, Format::Json | Format::Ndjson);
        if is_json && !self.null.is_empty() {
            return Err(Failure::usage("--null has no effect on JSON"));
        }
        Ok(format)
    }

    /// The text of the statements.
    ///
    /// # Errors
    /// The file can't be read, or isn't UTF-8.
    pub(super) fn text(&self) -> Result<String, Failure> {
        let (bytes, name) = match &self.file {
            None => return Ok(self.sql.clone().unwrap_or_default()),
            Some(path) if path == Path::new("-") => {
                let mut bytes = Vec::new();
                let read = io::stdin().lock().read_to_end(&mut bytes);
                (read.map(|_| bytes), "standard input".to_owned())
            }
            Some(path) => (fs::read(path), format!("\"{}\"", path.display())),
        };
        let bytes = bytes
            .map_err(|error| Failure::cannot_run(format!("could not read {name}: {error}")))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Failure::cannot_run(format!("{name} is not valid UTF-8")))?;
        // Editors on Windows put a mark in front of UTF-8.
        Ok(text.strip_prefix('\u{FEFF}').map_or_else(|| text.clone(), str::to_owned))
    }

    /// The file for the rows; `None` is standard output.
    pub(super) fn output(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// Where statements put what doesn't fit into memory.
    pub(super) fn temporary_directory(&self) -> PathBuf {
        let given = self.temporary_directory.clone();
        let of_environment = || env::var("TMPDIR").filter(|path| !path.is_empty());
        given.or_else(|| of_environment().map(PathBuf::from)).unwrap_or_else(|| "/tmp".into())
    }
}
