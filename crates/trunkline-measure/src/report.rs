//! **Reports**: what was measured, where, and how; stored as JSON.
//!
//! All numbers are rounded here, once. CSV and the page print the same numbers.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::MeasureError;
use crate::estimate::Estimate;
use crate::latency::{IoTimes, Percentiles};
use crate::machine::Machine;
use crate::repetition::RepetitionRule;
use crate::rounding::rounded;
use crate::sample::Sample;
use crate::workload::{Cache, Case};

/// Version of the JSON format.
const SCHEMA: u32 = 1;

/// A finished measurement, or the part of it that was done before it was interrupted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// Version of this format.
    pub schema: u32,
    /// `bench`.
    pub command: String,
    /// The exact command line.
    pub command_line: String,
    /// Version of the program.
    pub program: String,
    /// When it began, in seconds since 1970.
    pub started: i64,
    /// Where it ran.
    pub machine: Machine,
    /// The table.
    pub table: MeasuredTable,
    /// Buffers of the pool.
    pub shared_buffers: u32,
    /// Seed of the block lists.
    pub seed: u64,
    /// When a case was repeated often enough.
    pub rule: RepetitionRule,
    /// Whether all cases were measured or skipped for a reason.
    pub complete: bool,
    /// The results.
    pub measurements: Vec<Measurement>,
    /// Cases without a result.
    pub skipped: Vec<Skipped>,
}

/// The table that was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredTable {
    /// Its name.
    pub name: String,
    /// Its length.
    pub blocks: u32,
    /// Rows of a page in its middle. Selectivities refer to it.
    pub rows_per_page: u32,
}

/// Identifies a case: two runs compare cases with equal keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Key {
    /// The workload's name.
    pub workload: String,
    /// The kind of scan or the order of blocks; empty if there is only one.
    pub scan: String,
    /// For scans whose length depends on it.
    pub selectivity_percent: Option<f64>,
    /// `sync`, `worker` or `io_uring`.
    pub io_method: String,
    /// Whether I/O bypasses the page cache.
    pub io_direct: bool,
    /// The state of the page cache; none if nothing is read from files.
    pub cache: Option<Cache>,
    /// I/Os in flight for each session.
    pub concurrency: u32,
    /// Largest I/O in blocks.
    pub combine_blocks: u32,
    /// Concurrent sessions.
    pub sessions: usize,
}

/// The result of one case. Times and counts are those of one repetition; if they differ between
/// repetitions, they are medians.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measurement {
    /// The case.
    #[serde(flatten)]
    pub key: Key,
    /// Number of repetitions, not counting the warm-up.
    pub repetitions: usize,
    /// Whether the interval is narrow enough.
    pub steady: bool,
    /// Elapsed time: median and 95 % interval.
    pub seconds: Estimate,
    /// CPU time of all threads.
    pub cpu_seconds: f64,
    /// Blocks requested or written.
    pub blocks: u64,
    /// Of these, found in the pool or in flight already.
    pub hits: u64,
    /// Reads or writes.
    pub ios: u64,
    /// I/Os per second.
    pub ios_per_second: f64,
    /// Bytes of these I/Os per second.
    pub bytes_per_second: f64,
    /// Mean number of I/Os in flight at submission.
    pub in_flight: f64,
    /// Time in the device, summed over I/Os, which overlap.
    pub device_seconds: f64,
    /// Time that sessions slept for I/O.
    pub wait_seconds: f64,
    /// Device time of single I/Os in microseconds.
    pub device_micros: Option<Percentiles>,
    /// Time that sessions slept for single I/Os, in microseconds. I/Os that were complete before
    /// the session needed them are not included.
    pub wait_micros: Option<Percentiles>,
    /// Largest part of the table that was in the page cache when a repetition began, in percent.
    pub cached_percent: Option<f64>,
    /// Seconds of each repetition, in order.
    pub samples: Vec<f64>,
    /// Comparison with a stored run.
    pub against: Option<Change>,
}

/// The time of a case relative to its time in a stored run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// New time divided by old time, with at least 95 % confidence.
    pub ratio: Estimate,
}

impl Change {
    /// Whether the interval excludes that nothing has changed, and in which direction.
    pub fn verdict(&self) -> &'static str {
        match self.ratio {
            Estimate { high, .. } if high < 1.0 => "faster",
            Estimate { low, .. } if low > 1.0 => "slower",
            _ => "no difference",
        }
    }
}

/// A case that couldn't be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    /// The case.
    #[serde(flatten)]
    pub key: Key,
    /// Why.
    pub reason: String,
}

impl Key {
    pub(crate) fn of(case: &Case) -> Self {
        Self {
            workload: case.workload.name().to_owned(),
            scan: case.scan_name().to_owned(),
            selectivity_percent: case.selectivity_percent(),
            io_method: case.method.name().to_owned(),
            io_direct: case.direct,
            cache: case.cache,
            concurrency: case.concurrency,
            combine_blocks: case.combine,
            sessions: case.sessions,
        }
    }

    /// `direct` or `buffered`.
    pub fn mode(&self) -> &'static str {
        if self.io_direct { "direct" } else { "buffered" }
    }

    /// The name of the cache state, or nothing.
    pub fn cache_name(&self) -> &'static str {
        self.cache.map_or("", Cache::name)
    }
}

impl Measurement {
    /// Summarizes the repetitions of a case.
    pub(crate) fn of(case: &Case, samples: &[Sample], cached: Option<f64>, steady: bool) -> Self {
        let median = |value: &dyn Fn(&Sample) -> f64, places| {
            rounded(Estimate::of(samples.iter().map(value).collect()).median, places)
        };
        let seconds: Vec<f64> = samples.iter().map(|sample| rounded(sample.seconds, 6)).collect();
        let Estimate { median: middle, low, high } = Estimate::of(seconds.clone());
        let mut times = IoTimes::default();
        samples.iter().for_each(|sample| times.add(sample.times.clone()));
        Self {
            key: Key::of(case),
            repetitions: samples.len(),
            steady,
            seconds: Estimate {
                median: rounded(middle, 6),
                low: rounded(low, 6),
                high: rounded(high, 6),
            },
            cpu_seconds: median(&|sample| sample.cpu_seconds, 6),
            blocks: median(&|sample| sample.blocks as f64, 0) as u64,
            hits: median(&|sample| sample.hits as f64, 0) as u64,
            ios: median(&|sample| sample.ios as f64, 0) as u64,
            ios_per_second: median(&|sample| sample.ios as f64 / sample.seconds.max(1e-9), 0),
            bytes_per_second: median(
                &|sample| sample.io_bytes as f64 / sample.seconds.max(1e-9),
                0,
            ),
            in_flight: median(&|sample| sample.in_flight, 2),
            device_seconds: median(&|sample| sample.device_seconds, 6),
            wait_seconds: median(&|sample| sample.wait_seconds, 6),
            device_micros: times.device(),
            wait_micros: times.wait(),
            cached_percent: cached.map(|part| rounded(part * 100.0, 1)),
            samples: seconds,
            against: None,
        }
    }
}

impl Report {
    /// The version of new reports.
    pub(crate) const SCHEMA: u32 = SCHEMA;

    /// Reads a stored report.
    ///
    /// # Errors
    /// [`MeasureError::File`] or [`MeasureError::Stored`].
    pub fn load(path: &Path) -> Result<Self, MeasureError> {
        let stored = |reason: String| MeasureError::Stored { path: path.to_owned(), reason };
        let text =
            std::fs::read_to_string(path).map_err(|error| MeasureError::file(path, error))?;
        // The version first: another version may lack fields, which would be a misleading message.
        #[derive(Deserialize)]
        struct Version {
            schema: u32,
        }
        let version: Version = serde_json::from_str(&text)
            .map_err(|error| stored(format!("is not a report of trunkline bench: {error}")))?;
        if version.schema != SCHEMA {
            return Err(stored(format!("has schema {}, expected {SCHEMA}", version.schema)));
        }
        serde_json::from_str(&text).map_err(|error| stored(error.to_string()))
    }

    /// The report as JSON.
    ///
    /// # Errors
    /// None in practice: all of its parts can be written.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Compares each case with the same case of a stored run. Returns what makes the comparison
    /// doubtful, in words.
    pub fn compare(&mut self, stored: &Report) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.table != stored.table {
            let size = |table: &MeasuredTable| format!("{} ({} blocks)", table.name, table.blocks);
            let (now, then) = (size(&self.table), size(&stored.table));
            doubts.push(format!("the stored run measured {then}, this one {now}"));
        }
        if self.machine != stored.machine {
            doubts.push(format!(
                "the stored run is of another machine: {}",
                stored.machine.summary()
            ));
        }
        if (self.shared_buffers, self.seed) != (stored.shared_buffers, stored.seed) {
            doubts.push("the stored run has other shared_buffers or another seed".to_owned());
        }
        let mut unmatched = 0;
        for measurement in &mut self.measurements {
            let then = stored.measurements.iter().find(|then| then.key == measurement.key);
            let ratio = then.and_then(|then| Estimate::ratio(&measurement.samples, &then.samples));
            measurement.against = ratio.map(|Estimate { median, low, high }| Change {
                ratio: Estimate {
                    median: rounded(median, 4),
                    low: rounded(low, 4),
                    high: rounded(high, 4),
                },
            });
            unmatched += usize::from(ratio.is_none());
        }
        if unmatched > 0 {
            doubts.push(format!(
                "{unmatched} cases can't be compared: they are not in the stored run, or one of \
                 the runs has fewer than {} repetitions",
                RepetitionRule::REPETITIONS_MIN
            ));
        }
        doubts
    }
}
