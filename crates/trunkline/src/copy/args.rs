//! Options of `trunkline copy`: what to copy, where to, and in which format.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use trunkline_engine::copy::{Format, FormatError, LineFormat};

use super::text_args::TextArgs;
use crate::exit::Failure;
use crate::number::number;
use crate::options::DatabaseArgs;

/// Which row versions to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RowsArg {
    /// Row versions that a query sees.
    Visible,
    /// Row versions that were deleted or updated and not yet vacuumed.
    Dead,
    /// All row versions: live, dead, aborted and in doubt.
    All,
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// Tab-separated, as COPY ... (FORMAT text).
    Text,
    /// Comma-separated, as COPY ... (FORMAT csv).
    Csv,
}

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct CopyArgs {
    /// Table, materialized view or catalog: SCHEMA.TABLE, or DATABASE.SCHEMA.TABLE. With several
    /// names, each table is written to its own file in the directory given by -o.
    #[arg(value_name = "TABLE", conflicts_with = "all")]
    pub(super) tables: Vec<OsString>,

    #[command(flatten)]
    pub(super) database: DatabaseArgs,

    /// Copy every table of the database except the system catalogs. Each table is written to its
    /// own file in the directory given by -o. Files that already exist are not overwritten. The
    /// directory also gets a script, load.sql. Run psql -f load.sql in it to create the tables in a
    /// server, load their rows and set sequences. The script doesn't restore generated columns,
    /// constraints, defaults, indexes, views or large objects. If something could not be copied,
    /// the script says so at its end and fails. It is not written with --ctid, or if xmin, xmax and
    /// state are printed.
    #[arg(long)]
    pub(super) all: bool,

    /// Copy the tables that match, each to its own file as with --all. Patterns are those of
    /// pg_dump without regular expressions: * stands for any characters, ? for one, and "..." for
    /// itself. A pattern without a schema matches in public only. A partitioned table stands for
    /// its partitions. Can be repeated, and combined with names.
    #[arg(short = 't', long = "table", value_name = "PATTERN")]
    #[arg(conflicts_with = "all")]
    pub(super) patterns: Vec<OsString>,

    /// Copy the tables of the schemas that match, each to its own file as with --all. Can be
    /// repeated.
    #[arg(short = 'n', long = "schema", value_name = "PATTERN")]
    #[arg(conflicts_with_all = ["all", "tables", "patterns"])]
    pub(super) schemas: Vec<OsString>,

    /// With --all or -n, leave out the schemas that match. Can be repeated.
    #[arg(short = 'N', long = "exclude-schema", value_name = "PATTERN")]
    #[arg(conflicts_with_all = ["tables", "patterns"])]
    pub(super) exclude_schemas: Vec<OsString>,

    /// Leave out the tables that match, and the partitions of those that are partitioned. Can be
    /// repeated.
    #[arg(long = "exclude-table", value_name = "PATTERN")]
    pub(super) exclude_tables: Vec<OsString>,

    /// File to write instead of standard output, or the directory if several tables are copied. An
    /// existing file is replaced when the copy is complete; an existing pipe or device is written
    /// to directly. If rows are missing, the file is called PATH.incomplete. "-" is standard output.
    #[arg(short = 'o', long, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Print the ctid of each row as the first column.
    #[arg(long)]
    pub(super) ctid: bool,

    /// Columns to print, in this order [default: all columns except generated ones, as COPY table;
    /// with ctid or state, also stored generated columns, as COPY (SELECT ctid, * ...)].
    #[arg(long, value_name = "NAME,...")]
    pub(super) columns: Vec<OsString>,

    /// Output format.
    #[arg(long, value_enum, ignore_case = true, default_value = "text")]
    pub(super) format: FormatArg,

    /// Character between values [default: a tab for text, a comma for csv].
    #[arg(long, value_name = "CHARACTER", allow_hyphen_values = true)]
    pub(super) delimiter: Option<OsString>,

    /// Text that stands for null [default: \N for text, nothing for csv].
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) null: Option<OsString>,

    /// Print a header line with the column names.
    #[arg(long)]
    pub(super) header: bool,

    /// Row versions to print. If they are not only the visible ones, each is printed with its xmin,
    /// xmax and state, unless --no-state is given. If a row version is not live, some of its values
    /// may already have been removed, for example from TOAST. These values are printed as nulls,
    /// and a note at the end shows how many there were.
    #[arg(long, value_enum, default_value = "visible")]
    pub(super) rows: RowsArg,

    /// With --rows dead or --rows all, leave out xmin, xmax and state, so that COPY ... FROM can
    /// load the rows.
    #[arg(long)]
    pub(super) no_state: bool,

    /// Continue when something can't be copied, such as a damaged row, a table whose file is
    /// missing, or a foreign partition. Each is reported at once and counted at the end, and the
    /// exit status is 1.
    #[arg(long)]
    pub(super) keep_going: bool,

    /// Number of tables to copy into a directory at the same time [default: number of processors].
    #[arg(short = 'j', long, value_name = "N", value_parser = number(1..=64_u32))]
    #[arg(allow_negative_numbers = true)]
    pub(super) jobs: Option<u32>,

    #[command(flatten)]
    pub(super) text: TextArgs,
}

impl CopyArgs {
    /// The format with its delimiter and null string.
    pub(super) fn line_format(&self) -> Result<LineFormat, FormatError> {
        let format = match self.format {
            FormatArg::Text => Format::Text,
            FormatArg::Csv => Format::Csv,
        };
        let bytes = |text: &Option<OsString>| text.as_ref().map(|it| it.as_bytes().to_vec());
        LineFormat::new(format, bytes(&self.delimiter).as_deref(), bytes(&self.null).as_deref())
    }

    /// The file or directory to write, or `None` for standard output.
    pub(super) fn output(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| path.as_os_str() != "-")
    }

    /// Whether each table is copied to its own file in a directory. Otherwise one table is copied.
    pub(super) fn copies_many(&self) -> bool {
        self.all || self.tables.len() > 1 || !self.patterns.is_empty() || !self.schemas.is_empty()
    }

    /// Whether to write a script that loads the copies. System columns can't be loaded.
    pub(super) fn writes_script(&self) -> bool {
        self.copies_many() && !self.shows_system_columns()
    }

    /// Checks combinations of options that depend on the number of tables.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let refuse = |text: &str, hint: &str| Err(Failure::usage(text).with_hint(hint));
        if !self.copies_many() {
            let excludes = !self.exclude_schemas.is_empty() || !self.exclude_tables.is_empty();
            return match (self.tables.is_empty(), excludes) {
                (true, true) => refuse("no tables given", "use --all to copy all the others"),
                (true, false) => refuse("no tables given", "name some, or use --all, -n or -t"),
                (false, true) => {
                    refuse("there is nothing to exclude from one table", "use --all, -n or -t")
                }
                (false, false) => Ok(()),
            };
        }
        if self.output().is_none() {
            return refuse("several tables are written to a directory", "use -o DIRECTORY");
        }
        if !self.columns.is_empty() {
            return refuse("--columns is for one table", "copy the tables one by one");
        }
        Ok(())
    }

    /// Whether to print xmin, xmax and state.
    pub(super) fn shows_state(&self) -> bool {
        self.rows != RowsArg::Visible && !self.no_state
    }

    /// Whether lines begin with system columns, so that the table can't be loaded from them.
    pub(super) fn shows_system_columns(&self) -> bool {
        self.ctid || self.shows_state()
    }
}
