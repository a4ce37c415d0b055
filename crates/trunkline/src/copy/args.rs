//! Options of `trunkline copy`: what to copy, where to, and in which format.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;

use super::text_args::TextArgs;
use crate::number::number;
use crate::options::DatabaseArgs;

/// Which row versions to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RowsArg {
    /// Row versions that a query sees.
    Visible,
    /// All row versions, with xmin, xmax and state.
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

    /// File to write instead of standard output, or the directory for --all. An existing pipe or
    /// device is written to directly.
    #[arg(short = 'o', long, value_name = "PATH")]
    pub(super) output: Option<PathBuf>,

    /// Print the ctid of each row as the first column.
    #[arg(long)]
    pub(super) ctid: bool,

    /// Columns to print, in this order [default: all columns except generated ones, as COPY table;
    /// with --ctid or --rows all, also stored generated columns, as COPY (SELECT ctid, * ...)].
    #[arg(long, value_name = "NAME,...")]
    pub(super) columns: Vec<OsString>,

    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub(super) format: FormatArg,

    /// Print a header line with the column names.
    #[arg(long)]
    pub(super) header: bool,

    /// Leave out the rows of partitions and inheritance children.
    #[arg(long, conflicts_with = "all")]
    pub(super) only: bool,

    /// Row versions to print: only the visible ones, or all of them with xmin, xmax and state. If a
    /// row version is not live, some of its values may already have been removed, for example from
    /// TOAST. These values are printed as nulls, and a note at the end shows how many there were.
    #[arg(long, value_enum, default_value = "visible")]
    pub(super) rows: RowsArg,

    /// Skip damaged rows and report them at the end.
    #[arg(long)]
    pub(super) keep_going: bool,

    /// Number of tables that --all copies at the same time [default: number of processors].
    #[arg(short = 'j', long, value_name = "N", value_parser = number(1..=64_u32))]
    pub(super) jobs: Option<u32>,

    #[command(flatten)]
    pub(super) text: TextArgs,
}
