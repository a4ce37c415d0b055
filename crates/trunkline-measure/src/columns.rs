//! **Columns** of a report, as texts: the CSV file and the table of the page print these, so their
//! numbers are equal.

use crate::error::MeasureError;
use crate::latency::Percentiles;
use crate::report::{Measurement, Report};

/// A column: its name, and its text for a case.
type Column = (&'static str, fn(&Measurement) -> String);

/// All columns, in order. Numbers are printed with as many digits as in JSON.
pub(crate) const COLUMNS: [Column; 38] = [
    ("workload", |case| case.key.workload.clone()),
    ("scan", |case| case.key.scan.clone()),
    ("selectivity_percent", |case| optional(case.key.selectivity_percent)),
    ("io_method", |case| case.key.io_method.clone()),
    ("io_direct", |case| case.key.io_direct.to_string()),
    ("cache", |case| case.key.cache_name().to_owned()),
    ("concurrency", |case| case.key.concurrency.to_string()),
    ("combine_blocks", |case| case.key.combine_blocks.to_string()),
    ("sessions", |case| case.key.sessions.to_string()),
    ("repetitions", |case| case.repetitions.to_string()),
    ("steady", |case| case.steady.to_string()),
    ("ended", |case| case.ended.name().to_owned()),
    ("seconds", |case| case.seconds.median.to_string()),
    ("seconds_low", |case| optional(case.seconds.low)),
    ("seconds_high", |case| optional(case.seconds.high)),
    ("cpu_seconds", |case| case.cpu_seconds.to_string()),
    ("blocks", |case| case.blocks.to_string()),
    ("hits", |case| case.hits.to_string()),
    ("ios", |case| case.ios.to_string()),
    ("ios_per_second", |case| case.ios_per_second.to_string()),
    ("bytes_per_second", |case| case.bytes_per_second.to_string()),
    ("in_flight", |case| case.in_flight.to_string()),
    ("device_seconds", |case| case.device_seconds.to_string()),
    ("wait_seconds", |case| case.wait_seconds.to_string()),
    ("device_count", |case| count(case.device_micros)),
    ("device_p50_micros", |case| time(case.device_micros, |times| Some(times.p50))),
    ("device_p99_micros", |case| time(case.device_micros, |times| times.p99)),
    ("device_p999_micros", |case| time(case.device_micros, |times| times.p999)),
    ("wait_count", |case| count(case.wait_micros)),
    ("wait_p50_micros", |case| time(case.wait_micros, |times| Some(times.p50))),
    ("wait_p99_micros", |case| time(case.wait_micros, |times| times.p99)),
    ("wait_p999_micros", |case| time(case.wait_micros, |times| times.p999)),
    ("cached_percent", |case| optional(case.cached_percent)),
    ("cache_held", |case| case.cache_held.map(|held| held.to_string()).unwrap_or_default()),
    ("against_ratio", |case| optional(case.against.map(|change| change.ratio.median))),
    ("against_low", |case| optional(case.against.map(|change| change.ratio.low))),
    ("against_high", |case| optional(case.against.map(|change| change.ratio.high))),
    ("against", |case| case.against.map_or(String::new(), |change| change.verdict().to_owned())),
];

fn optional(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn count(times: Option<Percentiles>) -> String {
    times.map(|times| times.count.to_string()).unwrap_or_default()
}

fn time(times: Option<Percentiles>, of: fn(Percentiles) -> Option<f64>) -> String {
    optional(times.and_then(of))
}

/// The report as CSV, with a line of names.
///
/// # Errors
/// [`MeasureError::Text`] never in practice: memory can be written to.
pub fn to_csv(report: &Report) -> Result<String, MeasureError> {
    let fail = |error: &dyn std::fmt::Display| MeasureError::Text(error.to_string());
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS.map(|(name, _)| name)).map_err(|error| fail(&error))?;
    for case in &report.measurements {
        let cells = COLUMNS.map(|(_, text)| text(case));
        writer.write_record(cells).map_err(|error| fail(&error))?;
    }
    let bytes = writer.into_inner().map_err(|error| fail(&error))?;
    String::from_utf8(bytes).map_err(|error| fail(&error))
}
