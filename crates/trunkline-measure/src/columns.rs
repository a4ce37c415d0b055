//! **Columns** of a report, as texts: the CSV file and the table of the page print these, so their
//! numbers are equal.

use crate::error::MeasureError;
use crate::latency::Percentiles;
use crate::report::{Measurement, Report, SlowDisk};
use crate::versus::{OverDefaults, Versus};

/// A column: its name, and its text for a case of a report.
type Column = (&'static str, fn(&Report, &Measurement) -> String);

/// All columns, in order. Numbers are printed with as many digits as in JSON.
pub(crate) const COLUMNS: [Column; 54] = [
    ("system", |_, case| case.key.system.clone()),
    ("workload", |_, case| case.key.workload.clone()),
    ("scan", |_, case| case.key.scan.clone()),
    ("selectivity_percent", |_, case| optional(case.key.selectivity_percent)),
    ("io_method", |_, case| case.key.io_method.clone()),
    ("io_workers", |_, case| number(case.key.io_workers)),
    ("io_direct", |_, case| case.key.io_direct.to_string()),
    ("cache", |_, case| case.key.cache_name().to_owned()),
    ("concurrency", |_, case| number(case.key.concurrency)),
    ("combine_blocks", |_, case| number(case.key.combine_blocks)),
    ("sessions", |_, case| case.key.sessions.to_string()),
    ("repetitions", |_, case| case.repetitions.to_string()),
    ("steady", |_, case| case.steady.to_string()),
    ("ended", |_, case| case.ended.name().to_owned()),
    ("seconds", |_, case| case.seconds.median.to_string()),
    ("seconds_low", |_, case| optional(case.seconds.low)),
    ("seconds_high", |_, case| optional(case.seconds.high)),
    ("cpu_seconds", |_, case| optional(case.cpu_seconds)),
    ("blocks", |_, case| case.blocks.to_string()),
    ("hits", |_, case| case.hits.to_string()),
    ("ios", |_, case| case.ios.map_or(String::new(), |ios| ios.to_string())),
    ("ios_per_second", |_, case| optional(case.ios_per_second)),
    ("bytes_per_second", |_, case| case.bytes_per_second.to_string()),
    ("in_flight", |_, case| optional(case.in_flight)),
    ("device_seconds", |_, case| optional(case.device_seconds)),
    ("wait_seconds", |_, case| optional(case.wait_seconds)),
    ("device_count", |_, case| count(case.device_micros)),
    ("device_p50_micros", |_, case| time(case.device_micros, |times| Some(times.p50))),
    ("device_p99_micros", |_, case| time(case.device_micros, |times| times.p99)),
    ("device_p999_micros", |_, case| time(case.device_micros, |times| times.p999)),
    ("wait_count", |_, case| count(case.wait_micros)),
    ("wait_p50_micros", |_, case| time(case.wait_micros, |times| Some(times.p50))),
    ("wait_p99_micros", |_, case| time(case.wait_micros, |times| times.p99)),
    ("wait_p999_micros", |_, case| time(case.wait_micros, |times| times.p999)),
    ("cached_percent", |_, case| optional(case.cached_percent)),
    ("cache_held", |_, case| case.cache_held.map(|held| held.to_string()).unwrap_or_default()),
    ("against_ratio", |_, case| optional(case.against.map(|change| change.ratio.median))),
    ("against_low", |_, case| optional(case.against.map(|change| change.ratio.low))),
    ("against_high", |_, case| optional(case.against.map(|change| change.ratio.high))),
    ("against", |_, case| {
        case.against.map_or(String::new(), |change| change.ratio.verdict().to_owned())
    }),
    ("server_io_method", |_, case| versus(case, |it| it.io_method.clone())),
    ("server_io_workers", |_, case| versus(case, |it| number(it.io_workers))),
    ("server_ratio", |_, case| versus(case, |it| it.ratio.median.to_string())),
    ("server_low", |_, case| versus(case, |it| it.ratio.low.to_string())),
    ("server_high", |_, case| versus(case, |it| it.ratio.high.to_string())),
    ("plan", |_, case| case.plan.clone().unwrap_or_default()),
    ("defaults_ratio", |_, case| over_defaults(case, |it| it.ratio.median.to_string())),
    ("defaults_low", |_, case| over_defaults(case, |it| it.ratio.low.to_string())),
    ("defaults_high", |_, case| over_defaults(case, |it| it.ratio.high.to_string())),
    ("defaults_pairs", |_, case| over_defaults(case, |it| it.pairs.to_string())),
    ("defaults_verdict", |_, case| over_defaults(case, |it| it.verdict_name().to_owned())),
    ("slow_disk", |report, _| disk(report, |disk| disk.profile.clone())),
    ("slow_disk_error_1_percent", |report, _| disk(report, |disk| optional(disk.error_percent(1)))),
    ("slow_disk_error_64_percent", |report, _| {
        disk(report, |disk| optional(disk.error_percent(64)))
    }),
];

fn optional(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn number(value: Option<u32>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn over_defaults(case: &Measurement, of: fn(&OverDefaults) -> String) -> String {
    case.over_defaults.as_ref().map(of).unwrap_or_default()
}

fn versus(case: &Measurement, of: fn(&Versus) -> String) -> String {
    case.versus.as_ref().map(of).unwrap_or_default()
}

fn disk(report: &Report, of: fn(&SlowDisk) -> String) -> String {
    report.slow_disk.as_ref().map(of).unwrap_or_default()
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
        let cells = COLUMNS.map(|(_, text)| text(report, case));
        writer.write_record(cells).map_err(|error| fail(&error))?;
    }
    let bytes = writer.into_inner().map_err(|error| fail(&error))?;
    String::from_utf8(bytes).map_err(|error| fail(&error))
}
