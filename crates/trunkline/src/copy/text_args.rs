//! Options of `trunkline copy` that affect how values are printed.

use trunkline_format::text_output::{ByteaOutput, IntervalStyle};

use crate::options::one_of;

/// Values of `IntervalStyle`.
pub(super) const INTERVAL_STYLES: [(&str, IntervalStyle); 4] = [
    ("postgres", IntervalStyle::Postgres),
    ("postgres_verbose", IntervalStyle::PostgresVerbose),
    ("sql_standard", IntervalStyle::SqlStandard),
    ("iso_8601", IntervalStyle::Iso8601),
];

/// Values of `bytea_output`.
pub(super) const BYTEA_OUTPUTS: [(&str, ByteaOutput); 2] =
    [("hex", ByteaOutput::Hex), ("escape", ByteaOutput::Escape)];

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
    #[arg(value_parser = one_of(INTERVAL_STYLES.map(|(name, _)| name)))]
    pub(super) intervalstyle: Option<String>,

    /// Format of bytea [default: the database's].
    #[arg(long, value_name = "FORMAT", value_parser = one_of(BYTEA_OUTPUTS.map(|(name, _)| name)))]
    pub(super) bytea_output: Option<String>,

    /// Digits of floating-point numbers: 1 to 3 for the shortest exact form, -15 to 0 for fewer
    /// digits [default: the database's].
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(super) extra_float_digits: Option<String>,
}
