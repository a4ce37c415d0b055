//! **Report**: a Markdown table for people, JSON for programs.
//!
//! Each line compares one contender with one baseline. It shows both medians, their ratios with
//! confidence intervals, and a verdict for each bound of the line's target.

use crate::costs::{self, Cost};
use crate::pairs::{Latencies, Pairs, operations_rate};
use crate::statistics::{Estimate, Latency};
use serde_json::{Value, json};
use std::fmt;

/// Targets of a line. A bound applies to the median unless its comment says otherwise; `None`
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
}

/// One line: a comparison of one contender with one baseline.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    setting: String,
    contender: String,
    reference: String,
    rate: (f64, f64),
    megabytes: (f64, f64),
    cpu_micros: (f64, f64),
    rate_ratio: Estimate,
    cpu_ratio: Estimate,
    in_flight: f64,
    at_storage: f64,
    latencies: Option<Latencies>,
    target: Target,
}

impl Line {
    pub(crate) fn new(
        setting: impl Into<String>,
        contender: impl Into<String>,
        reference: impl Into<String>,
        pairs: &Pairs,
        target: Target,
    ) -> Self {
        let line = Self {
            setting: setting.into(),
            contender: contender.into(),
            reference: reference.into(),
            rate: pairs.medians(operations_rate),
            megabytes: pairs.medians(|s| s.done.bytes as f64 / s.elapsed / 1e6),
            cpu_micros: pairs.medians(|s| s.cpu * 1e6 / s.done.operations as f64),
            rate_ratio: pairs.rate_ratio(),
            cpu_ratio: pairs.cpu_ratio(),
            in_flight: pairs.medians(|s| s.done.in_flight.unwrap_or(f64::NAN)).1,
            at_storage: pairs.medians(|s| s.done.at_storage.unwrap_or(f64::NAN)).1,
            latencies: pairs.latencies(),
            target,
        };
        eprintln!("{line}");
        line
    }

    /// The bounds that are set, each with its verdict.
    fn verdicts(&self) -> Vec<(String, bool)> {
        let Target { rate, rate_low, cpu, in_flight } = self.target;
        let least = |name: &str, bound: Option<f64>, value: f64| {
            bound.map(|bound| (format!("{name} ≥ {bound:.2}"), value >= bound))
        };
        let most = |name: &str, bound: Option<f64>, value: f64| {
            bound.map(|bound| (format!("{name} ≤ {bound:.2}"), value <= bound))
        };
        [
            least("rate", rate, self.rate_ratio.median),
            least("rate's interval", rate_low, self.rate_ratio.low),
            most("CPU", cpu, self.cpu_ratio.median),
            least("at storage", in_flight, self.at_storage),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn json(&self) -> Value {
        let estimate = |e: Estimate| json!({"median": e.median, "low": e.low, "high": e.high});
        let pair = |(reference, contender): (f64, f64)| json!({"reference": reference, "contender": contender});
        let verdicts = self.verdicts().into_iter();
        let latencies = self.latencies.map(|of| {
            let latency = |of: Latency| json!({"median": of.median, "p99": of.p99});
            json!({
                "reference": latency(of.reference),
                "contender": latency(of.contender),
                "p99_ratio": estimate(of.p99_ratio),
            })
        });
        let targets = verdicts.map(|(bound, met)| json!({"bound": bound, "met": met}));
        json!({
            "setting": self.setting,
            "contender": self.contender,
            "reference": self.reference,
            "operations_per_second": pair(self.rate),
            "megabytes_per_second": pair(self.megabytes),
            "cpu_micros_per_operation": pair(self.cpu_micros),
            "rate_ratio": estimate(self.rate_ratio),
            "cpu_ratio": estimate(self.cpu_ratio),
            "in_flight": self.in_flight,
            "at_storage": self.at_storage,
            "latency_micros": latencies,
            "targets": targets.collect::<Vec<_>>(),
        })
    }
}

/// The report of one benchmark row: a heading, lines and notes.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) row: &'static str,
    pub(crate) notes: Vec<String>,
    pub(crate) lines: Vec<Line>,
    /// Costs per page, for a row that has no baseline.
    pub(crate) costs: Vec<Cost>,
}

impl Report {
    /// The report as one JSON object.
    pub(crate) fn json(&self) -> Value {
        let lines: Vec<Value> = self.lines.iter().map(Line::json).collect();
        let costs: Vec<Value> = self.costs.iter().map(Cost::json).collect();
        json!({"row": self.row, "notes": self.notes, "lines": lines, "costs": costs})
    }
}

const HEADER: &str = "| setting | variant | reference | rate, reference's | ratio | CPU µs, reference's | ratio | in flight, at storage | target |
|---|---|---|---|---|---|---|---|---|";

const TIMED_HEADER: &str = "| setting | variant | reference | rate, reference's | ratio | median and p99 µs, reference's | ratio of p99 | CPU µs, reference's | ratio | in flight, at storage | target |
|---|---|---|---|---|---|---|---|---|---|---|";

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## {}\n", self.row)?;
        self.notes.iter().try_for_each(|note| writeln!(f, "{note}\n"))?;
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
        let (reference, rate) = (Count(self.rate.0), Count(self.rate.1));
        write!(f, "| {} | {} | {} | ", self.setting, self.contender, self.reference)?;
        write!(f, "{rate}/s")?;
        if self.megabytes.1 > 0.0 {
            write!(f, " ({:.0} MB/s)", self.megabytes.1)?;
        }
        write!(f, ", {reference}/s")?;
        if self.megabytes.0 > 0.0 {
            write!(f, " ({:.0})", self.megabytes.0)?;
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
        let (reference, cpu) = self.cpu_micros;
        write!(f, " | {cpu:.1}, {reference:.1}")?;
        write!(f, " | {} | ", Ratio(self.cpu_ratio))?;
        if self.in_flight.is_nan() {
            f.write_str("–")?;
        } else {
            write!(f, "{:.1}, {:.1}", self.in_flight, self.at_storage)?;
        }
        let verdicts = self.verdicts();
        if verdicts.is_empty() {
            return f.write_str(" | – |");
        }
        let texts = verdicts
            .into_iter()
            .map(|(bound, met)| format!("{bound} {}", if met { "ok" } else { "**missed**" }));
        write!(f, " | {} |", texts.collect::<Vec<_>>().join(", "))
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
