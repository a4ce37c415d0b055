//! Options of `trunkline copy`: what to copy, where to, and in which format.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::ValueEnum;
use trunkline_engine::copy::{Format, FormatError, LineFormat};

use super::text_args::TextArgs;
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
    /// Table, materialized view or catalog: SCHEMA.TABLE, or DATABASE.SCHEMA.TABLE.
    #[arg(value_name = "TABLE", required_unless_present = "all", conflicts_with = "all")]
    pub(super) table: Option<OsString>,

    #[command(flatten)]
    pub(super) database: DatabaseArgs,

    /// Copy every table of the database except the system catalogs. Each table is written to its
    /// own file in the directory given by -o. Files that already exist are not overwritten.
    #[arg(long, requires = "output", conflicts_with = "columns")]
    pub(super) all: bool,

    /// File to write instead of standard output, or the directory for --all. An existing file is
    /// replaced when the copy is complete; an existing pipe or device is written to directly.
    #[arg(short = 'o', long, value_name = "PATH")]
    pub(super) output: Option<PathBuf>,

    /// Print the ctid of each row as the first column.
    #[arg(long)]
    pub(super) ctid: bool,

    /// Columns to print, in this order [default: all columns except generated ones, as COPY table;
    /// with ctid or state, also stored generated columns, as COPY (SELECT ctid, * ...)].
    #[arg(long, value_name = "NAME,...")]
    pub(super) columns: Vec<OsString>,

    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
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

    /// Leave out the rows of partitions and inheritance children.
    #[arg(long, conflicts_with = "all")]
    pub(super) only: bool,

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

    /// Skip damaged rows and report them at the end.
    #[arg(long)]
    pub(super) keep_going: bool,

    /// Number of tables that --all copies at the same time [default: number of processors].
    #[arg(short = 'j', long, value_name = "N", value_parser = number(1..=64_u32))]
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

    /// Whether to print xmin, xmax and state.
    pub(super) fn shows_state(&self) -> bool {
        self.rows != RowsArg::Visible && !self.no_state
    }

    /// Whether lines begin with system columns, so that the table can't be loaded from them.
    pub(super) fn shows_system_columns(&self) -> bool {
        self.ctid || self.shows_state()
    }
}
