//! **Reports**: what was measured, where, and how; stored as JSON.
//!
//! All numbers are rounded here, once. CSV and the page print the same numbers.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::MeasureError;
use crate::estimate::Estimate;
use crate::latency::{IoTimes, Percentiles};
use crate::machine::Machine;
use crate::repetition::{Ended, RepetitionRule};
use crate::rounding::{SECONDS_PLACES, rounded};
use crate::sample::{Details, Sample};
use crate::server::ServerMethod;
use crate::versus::{Best, OverDefaults, Versus};
use crate::workload::{Cache, Case};

/// What we call ourselves in reports.
const OURS: &str = "trunkline";

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
    /// Smallest number of worker threads.
    pub io_min_workers: u32,
    /// Largest number of worker threads.
    pub io_max_workers: u32,
    /// The slow disk that the table was on.
    pub slow_disk: Option<SlowDisk>,
    /// The server that it is compared with.
    pub server: Option<MeasuredServer>,
    /// Seed of the block lists.
    pub seed: u64,
    /// When a case was repeated often enough.
    pub rule: RepetitionRule,
    /// Whether all cases were measured, or are not available on this machine.
    pub complete: bool,
    /// The stored run that this one is compared with.
    pub against: Option<Against>,
    /// The results.
    pub measurements: Vec<Measurement>,
    /// For each piece of work, our fastest method and the server's.
    pub best: Vec<Best>,
    /// Cases without a result.
    pub skipped: Vec<Skipped>,
}

/// A stored run that a report is compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// Its file.
    pub path: String,
    /// When it began, in seconds since 1970.
    pub started: i64,
    /// What differs between the runs apart from the cases, and what can't be compared.
    pub doubts: Vec<String>,
}

/// A simulated disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlowDisk {
    /// Its values, as `--slow-disk` takes them.
    pub profile: String,
    /// How exactly this machine kept its latency before the measurement.
    pub accuracy: Vec<DiskAccuracy>,
}

/// Reads of a simulated disk.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DiskAccuracy {
    /// Reads in flight.
    pub in_flight: u32,
    /// Median of their times in microseconds.
    pub median_micros: f64,
    /// The 99th percentile.
    pub p99_micros: f64,
    /// How much the median differs from the latency, in percent; none without a latency.
    pub error_percent: Option<f64>,
}

impl SlowDisk {
    /// Its values and the errors of its latency, for reports.
    pub fn summary(&self) -> String {
        let error = |one: &DiskAccuracy| {
            let error = one.error_percent.map(|error| format!("{error:+} %"));
            format!("{} with {} in flight", error.as_deref().unwrap_or("no latency"), one.in_flight)
        };
        let errors: Vec<String> = self.accuracy.iter().map(error).collect();
        format!("{}; error of its latency: {}", self.profile, errors.join(", "))
    }

    /// The error of the median with this many reads in flight, in percent.
    pub fn error_percent(&self, in_flight: u32) -> Option<f64> {
        self.accuracy.iter().find(|one| one.in_flight == in_flight)?.error_percent
    }
}

/// A server, and how it was set up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredServer {
    /// Name and version.
    pub name: String,
    /// Its settings, except for those of its methods or configurations.
    pub settings: Vec<(String, String)>,
    /// Its configurations, if two of them are compared.
    #[serde(default)]
    pub configurations: Vec<MeasuredConfiguration>,
    /// Its second table. The first one is the report's.
    pub linear_10: MeasuredTable,
}

/// One of the configurations of a server that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredConfiguration {
    /// Its name, which its cases have as their method.
    pub name: String,
    /// The lines of the user, which it differs in.
    pub lines: Vec<(String, String)>,
    /// What the running server showed for these settings and others that matter.
    pub shown: Vec<(String, String)>,
}

impl MeasuredServer {
    /// The settings in which its configurations differ, and those in the user's lines: the name, and
    /// what each configuration has shown. A name that the server doesn't show is left out.
    pub fn compared_settings(&self) -> Vec<(String, Vec<String>)> {
        let all = &self.configurations;
        let names = all.iter().flat_map(|it| &it.shown).map(|(name, _)| name);
        let mut rows: Vec<(String, Vec<String>)> = Vec::new();
        for name in names {
            let values: Vec<String> = all.iter().map(|it| it.value(name).to_owned()).collect();
            let is_line = all.iter().any(|it| it.lines.iter().any(|line| line.0 == *name));
            let differs = values.windows(2).any(|two| two[0] != two[1]);
            if (is_line || differs) && rows.iter().all(|row| row.0 != *name) {
                rows.push((name.clone(), values));
            }
        }
        rows
    }
}

impl MeasuredConfiguration {
    fn value(&self, name: &str) -> &str {
        self.shown.iter().find(|one| one.0 == name).map_or("", |one| one.1.as_str())
    }
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
    /// The system that did the work: `trunkline`, or a server such as `PostgreSQL 18.6`.
    pub system: String,
    /// The workload's name.
    pub workload: String,
    /// The kind of scan or the order of blocks; empty if there is only one.
    pub scan: String,
    /// For scans whose length depends on it.
    pub selectivity_percent: Option<f64>,
    /// `sync`, `worker` or `io_uring`; `none` for a server that has no choice. `defaults` or
    /// `settings` for a configuration of a server.
    pub io_method: String,
    /// Worker processes of a server whose method has them.
    pub io_workers: Option<u32>,
    /// Whether I/O bypasses the page cache.
    pub io_direct: bool,
    /// The state of the page cache; none if nothing is read from files.
    pub cache: Option<Cache>,
    /// I/Os in flight for each session. None for a configuration of a server, which has its own.
    pub concurrency: Option<u32>,
    /// Largest I/O in blocks. None for a configuration of a server.
    pub combine_blocks: Option<u32>,
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
    /// Why it was not repeated any more.
    pub ended: Ended,
    /// Elapsed time: median and 95 % interval.
    pub seconds: Times,
    /// CPU time of all threads. This and the following numbers of I/Os aren't known of a server.
    pub cpu_seconds: Option<f64>,
    /// Blocks requested or written.
    pub blocks: u64,
    /// Of these, found in the pool or in flight already.
    pub hits: u64,
    /// Reads or writes.
    pub ios: Option<u64>,
    /// I/Os per second.
    pub ios_per_second: Option<f64>,
    /// Bytes of these I/Os per second. For a server, those of blocks that it didn't have.
    pub bytes_per_second: f64,
    /// Mean number of I/Os in flight at submission.
    pub in_flight: Option<f64>,
    /// Time in the device, summed over I/Os, which overlap.
    pub device_seconds: Option<f64>,
    /// Time that sessions waited for I/O, or executed it themselves, summed over sessions.
    pub wait_seconds: Option<f64>,
    /// Device time of single I/Os in microseconds.
    pub device_micros: Option<Percentiles>,
    /// Time that sessions slept for single I/Os, in microseconds. I/Os that were complete before
    /// the session needed them are not included. With `sync`, sessions execute each I/O themselves,
    /// so this is the device time.
    pub wait_micros: Option<Percentiles>,
    /// Part of the table that was in the page cache when a repetition began, in percent: the largest
    /// one of cold cases, and the smallest one of cached cases. None if it is unknown.
    pub cached_percent: Option<f64>,
    /// Whether the page cache was as cold or as warm as it should be. None if that is unknown, or if
    /// nothing is read from files.
    pub cache_held: Option<bool>,
    /// Seconds of each repetition, in order.
    pub samples: Vec<f64>,
    /// Comparison with a stored run.
    pub against: Option<Change>,
    /// Comparison with the server's case of the same method.
    pub versus: Option<Versus>,
    /// For a server with the user's settings, the comparison with its defaults.
    pub over_defaults: Option<OverDefaults>,
    /// The nodes of the plan that the server's planner chose, if none was forced.
    pub plan: Option<String>,
}

/// A median of times in seconds, with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The median.
    pub median: f64,
    /// The lower end of the interval. None if there are too few repetitions for one.
    pub low: Option<f64>,
    /// The upper end of the interval.
    pub high: Option<f64>,
}

impl Times {
    fn of(seconds: &[f64], rule: &RepetitionRule) -> Self {
        let interval = rule.interval(seconds);
        Self {
            median: rounded(Estimate::of(seconds.to_vec()).median, SECONDS_PLACES),
            low: interval.map(|interval| rounded(interval.low, SECONDS_PLACES)),
            high: interval.map(|interval| rounded(interval.high, SECONDS_PLACES)),
        }
    }
}

/// The time of a case relative to its time in a stored run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// New time divided by old time, with at least 95 % confidence.
    pub ratio: Estimate,
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
    /// `server` is the name of the server, if there is one.
    pub(crate) fn of(case: &Case, server: &str) -> Self {
        let (system, io_method) = match case.server {
            None => (OURS, case.method.name()),
            Some(method) => (server, method.name()),
        };
        Self {
            system: system.to_owned(),
            workload: case.workload.name().to_owned(),
            scan: case.scan_name().to_owned(),
            selectivity_percent: case.selectivity_percent(),
            io_method: io_method.to_owned(),
            io_workers: case.server.and_then(ServerMethod::workers),
            io_direct: case.direct,
            cache: case.cache,
            concurrency: (!case.has_own_sizes()).then_some(case.concurrency),
            combine_blocks: (!case.has_own_sizes()).then_some(case.combine),
            sessions: case.sessions,
        }
    }

    /// Whether a server did the work.
    pub fn is_of_server(&self) -> bool {
        self.system != OURS
    }

    /// The method with its number of workers, such as `worker 12`.
    pub fn method(&self) -> String {
        match self.io_workers {
            Some(number) => format!("{} {number}", self.io_method),
            None => self.io_method.clone(),
        }
    }

    /// The system and its method, for messages.
    pub fn how(&self) -> String {
        match self.is_of_server() {
            true => format!("{}, {}", self.system, self.method()),
            false => format!("{}, {}", self.io_method, self.mode()),
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

/// What a case has yielded so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Repetitions {
    /// One for each repetition, without its histograms.
    samples: Vec<Sample>,
    /// The time of each in seconds, as it is stored.
    pub(crate) seconds: Vec<f64>,
    /// The histograms of all repetitions.
    times: IoTimes,
    /// The part of the table in the page cache that was farthest from the wanted state.
    cached: Option<f64>,
}

impl Repetitions {
    /// Whether the page cache was in this state whenever a repetition began, if that is known.
    pub(crate) fn is_held(&self, cache: Option<Cache>) -> Option<bool> {
        cache.zip(self.cached).map(|(cache, part)| cache.is_held(part))
    }

    /// Adds a repetition. `cached` is unknown for all of them or for none.
    pub(crate) fn add(&mut self, mut sample: Sample, cache: Option<Cache>, cached: Option<f64>) {
        // The histograms are large. A case may have a thousand repetitions.
        self.times.add(std::mem::take(&mut sample.times));
        self.seconds.push(rounded(sample.seconds, SECONDS_PLACES));
        self.samples.push(sample);
        self.cached = match (cache, cached, self.cached) {
            (Some(cache), Some(new), Some(old)) => Some(cache.worse(new, old)),
            (_, new, _) => new,
        };
    }
}

impl Measurement {
    /// Summarizes the repetitions of a case. Returns `None` if there are none.
    pub(crate) fn of(
        key: Key,
        repetitions: &Repetitions,
        rule: &RepetitionRule,
        ended: Ended,
    ) -> Option<Self> {
        let Repetitions { samples, seconds, times, cached } = repetitions;
        if samples.is_empty() {
            return None;
        }
        let median = |value: &dyn Fn(&Sample) -> f64, places| {
            rounded(Estimate::of(samples.iter().map(value).collect()).median, places)
        };
        let known = samples.iter().all(|sample| sample.details.is_some());
        let detail = |value: &dyn Fn(&Details, &Sample) -> f64, places| {
            let value = |sample: &Sample| value(&sample.details.unwrap_or_default(), sample);
            known.then(|| median(&value, places))
        };
        Some(Self {
            cache_held: repetitions.is_held(key.cache),
            key,
            repetitions: samples.len(),
            steady: ended == Ended::Steady,
            ended,
            seconds: Times::of(seconds, rule),
            cpu_seconds: detail(&|details, _| details.cpu_seconds, 6),
            blocks: median(&|sample| sample.blocks as f64, 0) as u64,
            hits: median(&|sample| sample.hits as f64, 0) as u64,
            ios: detail(&|details, _| details.ios as f64, 0).map(|ios| ios as u64),
            ios_per_second: detail(
                &|details, sample| details.ios as f64 / sample.seconds.max(1e-9),
                0,
            ),
            bytes_per_second: median(
                &|sample| sample.io_bytes as f64 / sample.seconds.max(1e-9),
                0,
            ),
            in_flight: detail(&|details, _| details.in_flight, 2),
            device_seconds: detail(&|details, _| details.device_seconds, 6),
            wait_seconds: detail(&|details, _| details.wait_seconds, 6),
            device_micros: times.device(),
            wait_micros: times.wait(),
            cached_percent: cached.map(|part| rounded(part * 100.0, 1)),
            samples: seconds.clone(),
            against: None,
            versus: None,
            over_defaults: None,
            plan: plans(samples),
        })
    }
}

impl Measurement {
    /// The name of the cache state of cases that have the same one, with a mark if the page cache
    /// wasn't in it before one of them.
    pub fn cache_cell(cases: &[&Self]) -> String {
        let is_held = cases.iter().all(|case| case.cache_held != Some(false));
        let name = cases.first().map_or("", |case| case.key.cache_name());
        format!("{name}{}", if is_held { "" } else { "!" })
    }
}

/// The plans that a server's planner chose. Nothing changes the tables or their statistics, so there
/// should be one.
fn plans(samples: &[Sample]) -> Option<String> {
    let mut plans: Vec<&str> = samples.iter().filter_map(|sample| sample.plan.as_deref()).collect();
    plans.sort_unstable();
    plans.dedup();
    (!plans.is_empty()).then(|| plans.join(" or "))
}

impl Report {
    /// The version of new reports.
    pub(crate) const SCHEMA: u32 = 2;

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
        if version.schema != Self::SCHEMA {
            let text = format!("has schema {}, expected {}", version.schema, Self::SCHEMA);
            return Err(stored(text));
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

    /// Compares each case with the same case of a stored run, which was read from `path`. Returns
    /// warnings, which the report keeps.
    pub fn compare(&mut self, stored: &Report, path: &Path) -> Vec<String> {
        let mut doubts = self.differences(stored);
        let mut unmatched = 0;
        for measurement in &mut self.measurements {
            let then = stored.measurements.iter().find(|then| then.key == measurement.key);
            let ratio = then.and_then(|then| {
                self.rule.ratio(&measurement.samples, &stored.rule, &then.samples)
            });
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
        self.against = Some(Against {
            path: path.display().to_string(),
            started: stored.started,
            doubts: doubts.clone(),
        });
        doubts
    }

    /// What differs between two runs apart from their cases.
    fn differences(&self, stored: &Report) -> Vec<String> {
        let size = |table: &MeasuredTable| {
            format!(
                "{} ({} blocks, {} rows per page)",
                table.name, table.blocks, table.rows_per_page
            )
        };
        let disk = |report: &Report| {
            report.slow_disk.as_ref().map_or("none".to_owned(), |disk| disk.profile.clone())
        };
        let lines = |report: &Report| {
            let all = report.server.iter().flat_map(|server| &server.configurations);
            let lines =
                all.flat_map(|it| &it.lines).map(|(name, value)| format!("{name} = {value}"));
            let lines = lines.collect::<Vec<_>>().join(", ");
            if lines.is_empty() { "none".to_owned() } else { lines }
        };
        let pairs = |report: &Report| {
            let mut pairs = vec![
                ("table".to_owned(), size(&report.table)),
                ("shared_buffers".to_owned(), report.shared_buffers.to_string()),
                ("seed".to_owned(), report.seed.to_string()),
                ("io_min_workers".to_owned(), report.io_min_workers.to_string()),
                ("io_max_workers".to_owned(), report.io_max_workers.to_string()),
                ("slow disk".to_owned(), disk(report)),
                ("settings of the server".to_owned(), lines(report)),
                ("program".to_owned(), report.program.clone()),
            ];
            pairs.extend(report.machine.facts().map(|(name, text)| (name.to_lowercase(), text)));
            pairs
        };
        let both = pairs(self).into_iter().zip(pairs(stored));
        both.filter(|(new, old)| new.1 != old.1)
            .map(|((name, new), (_, old))| {
                format!("{name} differs: {new}; in the stored run: {old}")
            })
            .collect()
    }

    /// The cases of a server with its defaults, each with the same case of the user's settings.
    pub fn settings_pairs(&self) -> Vec<(&Measurement, &Measurement)> {
        let named = |key: &Key, method: ServerMethod| Key {
            io_method: method.name().to_owned(),
            ..key.clone()
        };
        let [defaults, settings] = ServerMethod::CONFIGURATIONS;
        let mut pairs = Vec::new();
        for case in self.measurements.iter().filter(|it| it.key.io_method == defaults.name()) {
            let key = named(&case.key, settings);
            let other = self.measurements.iter().find(|other| other.key == key);
            pairs.extend(other.map(|other| (case, other)));
        }
        pairs
    }

    /// Why cases have no result: each reason with the workload, the method and mode, and the number
    /// of cases.
    pub fn skipped_groups(&self) -> Vec<(String, usize)> {
        let mut groups: Vec<(String, usize)> = Vec::new();
        for Skipped { key, reason } in &self.skipped {
            let text = format!("{}, {}: {reason}", key.workload, key.how());
            match groups.iter_mut().find(|(known, _)| *known == text) {
                Some((_, count)) => *count += 1,
                None => groups.push((text, 1)),
            }
        }
        groups
    }

    /// Warnings about cases whose page cache was not as cold or as warm as it should be.
    pub fn cache_warnings(&self) -> Vec<String> {
        let count = |held: Option<bool>| {
            let reads = |case: &&Measurement| case.key.cache.is_some() && case.cache_held == held;
            self.measurements.iter().filter(reads).count()
        };
        let mut warnings = Vec::new();
        let (broken, unknown) = (count(Some(false)), count(None));
        if broken > 0 {
            warnings.push(format!(
                "{broken} cases did not begin with the page cache as cold or cached as asked for: \
                 the file system may keep everything, or the table may be larger than memory"
            ));
        }
        if unknown > 0 {
            warnings.push(format!(
                "the page cache of {unknown} cases is unknown: the kernel shows it only if you own the \
                 table's files or may write them"
            ));
        }
        warnings
    }
}
