//! **Report**: a Markdown table for people, JSON for programs.
//!
//! Each line of the report compares one contender with one baseline. It shows the median of each,
//! their ratios with confidence intervals, and a verdict for each bound of the line's target.

use crate::costs::{self, Cost};
use crate::pairs::{Latencies, Pairs, Sample, Sides};
use serde::{Deserialize, Serialize};
use std::fmt;
use trunkline_measure::Estimate;

/// The targets for a line. Unless its comment says otherwise, a bound applies to the median. `None`
/// means that there is no bound.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Target {
    /// Minimum ratio of the contender's rate to the baseline's.
    pub(crate) rate: Option<f64>,
    /// Minimum lower end of the rate ratio's confidence interval. Stricter than `rate`: noise
    /// can't make it pass.
    pub(crate) rate_low: Option<f64>,
    /// Maximum ratio of the contender's CPU time per operation to the baseline's.
    pub(crate) cpu: Option<f64>,
    /// Minimum mean number of reads in flight at the device.
    pub(crate) in_flight: Option<f64>,
    /// Maximum time of one of the contender's runs, in milliseconds.
    pub(crate) millis: Option<f64>,
}

impl Target {
    /// No bounds: the line is for information.
    pub(crate) const NONE: Self =
        Self { rate: None, rate_low: None, cpu: None, in_flight: None, millis: None };

    /// Only a minimum rate ratio.
    pub(crate) const fn rate(least: f64) -> Self {
        Self { rate: Some(least), ..Self::NONE }
    }
}

/// What the report calls a comparison.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Names {
    pub(crate) setting: String,
    pub(crate) contender: String,
    pub(crate) reference: String,
}

impl Names {
    pub(crate) fn new(
        setting: impl fmt::Display,
        contender: impl fmt::Display,
        reference: impl fmt::Display,
    ) -> Self {
        Self {
            setting: setting.to_string(),
            contender: contender.to_string(),
            reference: reference.to_string(),
        }
    }
}

/// One line: a comparison of one contender with one baseline. Its fields are those of the JSON
/// report.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Line {
    #[serde(flatten)]
    names: Names,
    #[serde(rename = "operations_per_second")]
    rate: Sides<f64>,
    #[serde(rename = "megabytes_per_second")]
    megabytes: Sides<f64>,
    #[serde(rename = "cpu_micros_per_operation")]
    cpu_micros: Sides<f64>,
    rate_ratio: Estimate,
    cpu_ratio: Estimate,
    /// Means, for a contender that counts them.
    in_flight: Option<f64>,
    at_storage: Option<f64>,
    #[serde(rename = "latency_micros")]
    latencies: Option<Latencies>,
    #[serde(rename = "targets")]
    verdicts: Vec<Verdict>,
}

/// A bound of the line's target, and whether the line meets it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Verdict {
    bound: String,
    met: bool,
}

impl Line {
    pub(crate) fn new(names: Names, pairs: &Pairs, target: Target) -> Self {
        let (rate_ratio, cpu_ratio) = (pairs.ratio(Sample::rate), pairs.ratio(Sample::cpu_micros));
        let median = |value: fn(&Sample) -> Option<f64>| {
            let median = pairs.medians(|sample| value(sample).unwrap_or(f64::NAN)).contender;
            (!median.is_nan()).then_some(median)
        };
        let at_storage = median(|sample| sample.done.at_storage);
        let verdict = |(name, sign, bound, value): (&str, char, Option<f64>, f64)| {
            let bound = bound?;
            let met = if sign == '≥' { value >= bound } else { value <= bound };
            Some(Verdict { bound: format!("{name} {sign} {bound:.2}"), met })
        };
        let bounds = [
            ("rate", '≥', target.rate, rate_ratio.median),
            ("rate's interval", '≥', target.rate_low, rate_ratio.low),
            ("CPU", '≤', target.cpu, cpu_ratio.median),
            ("at storage", '≥', target.in_flight, at_storage.unwrap_or(f64::NAN)),
            ("ms", '≤', target.millis, pairs.medians(|s| s.elapsed * 1e3).contender),
        ];
        let line = Self {
            names,
            rate: pairs.medians(Sample::rate),
            megabytes: pairs.medians(|s| s.done.bytes as f64 / s.elapsed / 1e6),
            cpu_micros: pairs.medians(Sample::cpu_micros),
            rate_ratio,
            cpu_ratio,
            in_flight: median(|sample| sample.done.in_flight),
            at_storage,
            latencies: pairs.latencies(),
            verdicts: bounds.into_iter().filter_map(verdict).collect(),
        };
        eprintln!("{line}");
        line
    }
}

/// The report of one benchmark row.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The row's name on the command line.
    pub(crate) row: String,
    /// The heading.
    pub(crate) question: String,
    pub(crate) about: String,
    pub(crate) notes: Vec<String>,
    pub(crate) lines: Vec<Line>,
    /// Costs per page, for a row that has no baseline.
    pub(crate) costs: Vec<Cost>,
}

const HEADER: &str = "| setting | variant | reference | rate, reference's | ratio | CPU µs, reference's | ratio | in flight, at storage | target |
|---|---|---|---|---|---|---|---|---|";

const TIMED_HEADER: &str = "| setting | variant | reference | rate, reference's | ratio | median and p99 µs, reference's | ratio of p99 | CPU µs, reference's | ratio | in flight, at storage | target |
|---|---|---|---|---|---|---|---|---|---|---|";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { row, question, about, .. } = self;
        writeln!(f, "## {question}\n\n{about} Row `{row}`.\n")?;
        self.notes.iter().try_for_each(|note| writeln!(f, "- {note}"))?;
        writeln!(f)?;
        if !self.costs.is_empty() {
            writeln!(f, "{}", costs::HEADER)?;
            return self.costs.iter().try_for_each(|cost| writeln!(f, "{cost}"));
        }
        // The latency column appears only if some line has latencies.
        let timed = self.lines.iter().any(|line| line.latencies.is_some());
        writeln!(f, "{}", if timed { TIMED_HEADER } else { HEADER })?;
        self.lines.iter().try_for_each(|line| {
            line.write(f, timed)?;
            f.write_str("\n")
        })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, self.latencies.is_some())
    }
}

impl Line {
    /// Formats the line as a table row, with latency columns if `timed`.
    fn write(&self, f: &mut fmt::Formatter<'_>, timed: bool) -> fmt::Result {
        let Names { setting, contender, reference } = &self.names;
        write!(f, "| {setting} | {contender} | {reference} | ")?;
        write!(f, "{}/s", Count(self.rate.contender))?;
        if self.megabytes.contender > 0.0 {
            write!(f, " ({:.0} MB/s)", self.megabytes.contender)?;
        }
        write!(f, ", {}/s", Count(self.rate.reference))?;
        if self.megabytes.reference > 0.0 {
            write!(f, " ({:.0})", self.megabytes.reference)?;
        }
        write!(f, " | {}", Ratio(self.rate_ratio))?;
        match self.latencies {
            Some(Latencies { reference, contender, p99_ratio }) => {
                write!(f, " | {:.0} and {:.0}, ", contender.median, contender.p99)?;
                write!(f, "{:.0} and {:.0}", reference.median, reference.p99)?;
                write!(f, " | {}", Ratio(p99_ratio))?;
            }
            None if timed => f.write_str(" | – | –")?,
            None => {}
        }
        let Sides { reference, contender } = self.cpu_micros;
        write!(f, " | {contender:.1}, {reference:.1}")?;
        write!(f, " | {} | ", Ratio(self.cpu_ratio))?;
        match (self.in_flight, self.at_storage) {
            (None, None) => f.write_str("–")?,
            (ours, device) => write!(f, "{}, {}", Mean(ours), Mean(device))?,
        }
        if self.verdicts.is_empty() {
            return f.write_str(" | – |");
        }
        let texts = self.verdicts.iter().map(|Verdict { bound, met }| {
            format!("{bound} {}", if *met { "ok" } else { "**missed**" })
        });
        write!(f, " | {} |", texts.collect::<Vec<_>>().join(", "))
    }
}

/// A mean that not every contender counts.
struct Mean(Option<f64>);

impl fmt::Display for Mean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(mean) => write!(f, "{mean:.1}"),
            None => f.write_str("–"),
        }
    }
}

struct Ratio(Estimate);

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Estimate { median, low, high } = self.0;
        write!(f, "{median:.2} [{low:.2}–{high:.2}]")
    }
}

struct Count(f64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= 1e5 {
            write!(f, "{:.0}k", self.0 / 1e3)
        } else if self.0 >= 1e4 {
            write!(f, "{:.1}k", self.0 / 1e3)
        } else {
            write!(f, "{:.0}", self.0)
        }
    }
}
