//! Options of a copy.
//!
//! [`TextSettings`] contains the server settings that affect the output. [`CopyOptions`] controls
//! the copy itself.

use trunkline_aio::facade::Arc;
use trunkline_format::text_output::{ByteaOutput, IntervalStyle, TextOptions, TimeZone};

use super::escape::{Format, LineFormat};
use super::line::Extras;
use crate::catalog::Database;
use crate::heap::RowFilter;
use crate::pool::Policy;
use crate::read_stream::StreamOptions;
use crate::settings::Settings;

/// Server settings that affect how values are printed. To compare our output with a server's, use
/// that server's settings.
#[derive(Clone)]
pub struct TextSettings {
    /// The server's major version. A few types changed their text between versions.
    pub major: u32,
    /// `TimeZone`.
    pub zone: Arc<dyn TimeZone>,
    /// `extra_float_digits`.
    pub extra_float_digits: i8,
    /// `bytea_output`.
    pub bytea_output: ByteaOutput,
    /// `IntervalStyle`.
    pub interval_style: IntervalStyle,
}

impl TextSettings {
    /// Combines the settings with a database's catalog, which has the names for `regclass` values
    /// and enums.
    pub(super) fn options<'a>(&'a self, database: &'a Database) -> TextOptions<'a> {
        TextOptions {
            major: self.major,
            catalog: database,
            zone: &*self.zone,
            extra_float_digits: self.extra_float_digits,
            bytea_output: self.bytea_output,
            interval_style: self.interval_style,
        }
    }
}

/// What to copy, and how.
#[derive(Clone)]
pub struct CopyOptions {
    /// The output format.
    pub format: LineFormat,
    /// Whether the first line contains the column names.
    pub header: bool,
    /// System columns to print before the columns of the table.
    pub extras: Extras,
    /// Which row versions to copy.
    pub rows: RowFilter,
    /// Settings for the text of values.
    pub text: TextSettings,
    /// Whether to continue after damaged pages, rows and values. Otherwise the first damage ends
    /// the copy.
    pub keep_going: bool,
    /// Worker threads, at least 1. Each works on its own task; we don't split a single table.
    pub threads: u32,
    /// How each worker reads. The strategy is chosen by the size of the table.
    pub stream: StreamOptions,
    /// What to do with damaged pages.
    pub policy: Policy,
}

impl CopyOptions {
    /// Options for visible rows in the text format, with one worker that reads as configured in the
    /// settings.
    pub fn of(settings: &Settings, text: TextSettings) -> Self {
        Self {
            format: Format::Text.into(),
            header: false,
            extras: Extras::default(),
            rows: RowFilter::Visible,
            text,
            keep_going: false,
            threads: 1,
            stream: StreamOptions { sequential: true, ..StreamOptions::of(settings) },
            policy: Policy::of(settings),
        }
    }
}
