//! Options of `trunkline copy` that affect how values are printed.

use crate::options::one_of;

/// Options that affect how values are printed.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output of values")]
pub(crate) struct TextArgs {
    /// Time zone for timestamptz [default: the database's].
    #[arg(long, value_name = "ZONE")]
    pub(super) timezone: Option<String>,

    /// Style of dates; only ISO is supported [default: the database's].
    #[arg(long, value_name = "STYLE")]
    pub(super) datestyle: Option<String>,

    /// Style of intervals [default: the database's].
    #[arg(long, value_name = "STYLE")]
    #[arg(value_parser = one_of(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]))]
    pub(super) intervalstyle: Option<String>,

    /// Format of bytea [default: the database's].
    #[arg(long, value_name = "FORMAT", value_parser = one_of(&["hex", "escape"]))]
    pub(super) bytea_output: Option<String>,

    /// Digits of floating-point numbers: 1 to 3 for the shortest exact form, -15 to 0 for fewer
    /// digits [default: the database's].
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(super) extra_float_digits: Option<String>,
}
