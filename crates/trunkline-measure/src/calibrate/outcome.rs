//! **Outcome** of a calibration: what was found and which settings follow, stored as JSON, with its
//! numbers as CSV.

use serde::{Deserialize, Serialize};

use super::comparison::Case;
use super::findings::DeviceFindings;
use super::line::Lines;
use super::step::Step;
use crate::error::MeasureError;
use crate::latency::Percentiles;
use crate::machine::Machine;

/// Version of the JSON format.
pub(crate) const SCHEMA: u32 = 1;

/// A finished calibration, or the part of it that was done before it was interrupted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Calibrated {
    /// Version of this format.
    pub schema: u32,
    /// `calibrate`.
    pub command: String,
    /// The exact command line.
    pub command_line: String,
    /// Version of the program.
    pub program: String,
    /// When it began, in seconds since 1970.
    pub started: i64,
    /// Where it ran.
    pub machine: Machine,
    /// The directory whose file system was measured.
    pub directory: String,
    /// How long it was meant to take, in seconds.
    pub seconds: u64,
    /// The I/O method of all loads that don't compare methods.
    pub io_method: String,
    /// Why reads don't bypass the page cache, if they don't.
    pub buffered_because: Option<String>,
    /// Whether everything was measured or skipped for a reason.
    pub complete: bool,
    /// The numbers.
    pub found: DeviceFindings,
    /// The settings for each target.
    pub settings: Vec<Lines>,
}

impl Calibrated {
    /// The report as JSON.
    ///
    /// # Errors
    /// None in practice: all of its parts can be written.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// All steps and cases as CSV, one a line.
    ///
    /// # Errors
    /// [`MeasureError::Text`].
    pub fn to_csv(&self) -> Result<String, MeasureError> {
        let fail = |error: &dyn std::fmt::Display| MeasureError::Text(error.to_string());
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(COLUMNS).map_err(|error| fail(&error))?;
        for row in rows(&self.found) {
            writer.write_record(row).map_err(|error| fail(&error))?;
        }
        let bytes = writer.into_inner().map_err(|error| fail(&error))?;
        String::from_utf8(bytes).map_err(|error| fail(&error))
    }
}

/// The columns of CSV and of the page's table.
pub(crate) const COLUMNS: [&str; 14] = [
    "work",
    "mode",
    "method",
    "depth",
    "bytes",
    "ios_per_second",
    "ios_per_second_low",
    "ios_per_second_high",
    "bytes_per_second",
    "p50_micros",
    "p99_micros",
    "p999_micros",
    "steady",
    "seconds",
];

/// The cells of everything that was measured.
pub(crate) fn rows(found: &DeviceFindings) -> Vec<Vec<String>> {
    // A report of an older version has no other mixed load.
    let mixed = found.mixed.iter().filter(|_| found.mixed_depths.is_empty());
    let single = [&found.fill, &found.latency];
    let steps = single.into_iter().flatten().chain(&found.sizes).chain(&found.depths).chain(mixed);
    let steps = steps.chain(&found.mixed_depths);
    let steps = steps.chain(&found.random_writes).chain(&found.sequential_writes);
    let steps = steps.chain(&found.durable_sessions).chain(&found.durable_sizes).map(step);
    let cases = [
        ("random read, in turn", &found.in_flight),
        ("buffered read in order", &found.combined),
        ("cold read", &found.methods),
        ("durable write", &found.durable),
        ("durable write beside page writes", &found.flush),
    ];
    let cases =
        cases.into_iter().flat_map(|(work, cases)| cases.iter().map(move |it| case(work, it)));
    steps.chain(cases).collect()
}

fn step(step: &Step) -> Vec<String> {
    let rate = step.ios_per_second;
    let mut row = vec![
        step.work.clone(),
        step.mode.clone(),
        step.method.clone(),
        step.depth.to_string(),
        step.size.to_string(),
        rate.median.to_string(),
        rate.low.to_string(),
        rate.high.to_string(),
        step.bytes_per_second.median.to_string(),
    ];
    row.extend(times(step.micros));
    row.extend([step.steady.to_string(), step.seconds.to_string()]);
    row
}

fn case(work: &str, case: &Case) -> Vec<String> {
    // The value of a flush setting is a percentile, which has columns of its own.
    let is_rate = work != "durable write beside page writes";
    let rate = |value: f64| if is_rate { value.to_string() } else { String::new() };
    let mut row = vec![
        work.to_owned(),
        String::new(),
        case.name.clone(),
        case.depth.to_string(),
        String::new(),
        rate(case.value.median),
        rate(case.value.low),
        rate(case.value.high),
        String::new(),
    ];
    row.extend(times(case.micros));
    row.extend([String::new(), String::new()]);
    row
}

fn times(times: Option<Percentiles>) -> [String; 3] {
    times.map_or_else(Default::default, |Percentiles { p50, p99, p999, .. }| {
        [Some(p50), p99, p999]
            .map(|micros| micros.map(|micros| micros.to_string()).unwrap_or_default())
    })
}
