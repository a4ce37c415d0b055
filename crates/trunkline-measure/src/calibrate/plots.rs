//! **Plots** of a calibration.

use super::durable_sweep::DurableSweep;
use super::findings::DeviceFindings;
use super::limit::Limit;
use super::step::Step;
use crate::latency::Percentiles;
use crate::plot::{Line, Plot};

/// The plots that the findings allow.
pub(super) fn plots(found: &DeviceFindings) -> Vec<Plot> {
    let all = [
        depth("IOPS against depth, random reads of 8 kB", "I/Os per second", found, |step| {
            step.ios_per_second.median
        }),
        depth("GB/s against depth, random reads of 8 kB", "GB/s", found, |step| {
            step.bytes_per_second.median / 1e9
        }),
        latency(found),
        writes(found),
        beside_writes(found),
        sizes(found),
        durable(found, DurableSweep::Sessions),
        durable(found, DurableSweep::Size),
    ];
    let mut plots: Vec<Plot> = all.into_iter().flatten().collect();
    plots.extend(series(found));
    plots
}

fn depth(title: &str, unit: &str, found: &DeviceFindings, value: fn(&Step) -> f64) -> Option<Plot> {
    let point = |step: &Step| (f64::from(step.depth), value(step));
    let points: Vec<(f64, f64)> = found.depths.iter().map(point).collect();
    let mark = knee(found).map(|step| (f64::from(step.depth), value(step), "knee".to_owned()));
    (!points.is_empty()).then(|| Plot {
        title: title.to_owned(),
        x_label: "reads in flight".into(),
        y_label: unit.to_owned(),
        log_x: true,
        lines: vec![Line::solid("random reads", 0, points)],
        marks: mark.into_iter().collect(),
        ..Plot::default()
    })
}

/// Latency percentiles against load.
fn latency(found: &DeviceFindings) -> Option<Plot> {
    let line = |name: &str, colour: usize, of: fn(&Percentiles) -> Option<f64>| {
        let point = |step: &Step| Some((step.ios_per_second.median, of(&step.micros?)? / 1e3));
        Line::solid(name, colour, found.depths.iter().filter_map(point).collect())
    };
    let lines = vec![
        line("median", 0, |times| Some(times.p50)),
        line("99th percentile", 1, |times| times.p99),
        line("99.9th percentile", 2, |times| times.p999),
    ];
    let mark = knee(found).and_then(|step| {
        let text = format!("knee: {} in flight", step.depth);
        Some((step.ios_per_second.median, step.micros?.p50 / 1e3, text))
    });
    lines.iter().any(|line| !line.points.is_empty()).then(|| Plot {
        title: "Latency against load, random reads of 8 kB".into(),
        x_label: "I/Os per second".into(),
        y_label: "ms".into(),
        log_y: true,
        lines,
        marks: mark.into_iter().collect(),
        ..Plot::default()
    })
}

/// The first measured depth at or above the knee.
fn knee(found: &DeviceFindings) -> Option<&Step> {
    let knee = found.concurrency?.knee;
    found.depths.iter().find(|step| f64::from(step.depth) >= knee)
}

/// A line with a point for each step.
fn through(steps: &[Step], name: &str, colour: usize, point: fn(&Step) -> (f64, f64)) -> Line {
    Line::solid(name, colour, steps.iter().map(point).collect())
}

fn sizes(found: &DeviceFindings) -> Option<Plot> {
    let point = |step: &Step| (f64::from(step.size) / 1024.0, step.bytes_per_second.median / 1e9);
    let lines = [
        through(&found.sizes, "reads", 0, point),
        through(&found.sequential_writes, "writes", 1, point),
    ];
    let title = "GB/s against size, in order, 16 in flight";
    drawn(lines.into()).map(|lines| Plot {
        title: with_credit(title, found.bandwidth.as_ref(), !found.sequential_writes.is_empty()),
        x_label: "kB of an I/O".into(),
        y_label: "GB/s".into(),
        log_x: true,
        lines,
        ..Plot::default()
    })
}

/// Rates of loads that write, beside those of reads alone.
fn writes(found: &DeviceFindings) -> Option<Plot> {
    let point = |step: &Step| (f64::from(step.depth), step.ios_per_second.median);
    if found.mixed_depths.is_empty() && found.random_writes.is_empty() {
        return None;
    }
    let lines = vec![
        through(&found.depths, "reads", 0, point),
        through(&found.mixed_depths, "70 % reads", 1, point),
        through(&found.random_writes, "writes", 2, point),
    ];
    let title = "IOPS against depth, random reads and writes of 8 kB";
    drawn(lines).map(|lines| Plot {
        title: with_credit(title, found.iops.as_ref(), true),
        x_label: "I/Os in flight".into(),
        y_label: "I/Os per second".into(),
        log_x: true,
        lines,
        ..Plot::default()
    })
}

/// What writes do to the latency of reads.
fn beside_writes(found: &DeviceFindings) -> Option<Plot> {
    if found.mixed_depths.is_empty() {
        return None;
    }
    let line = |name: &str, colour, steps: &[Step], of: fn(&Percentiles) -> Option<f64>| {
        let point = |step: &Step| Some((f64::from(step.depth), of(&step.micros?)? / 1e3));
        Line::solid(name, colour, steps.iter().filter_map(point).collect())
    };
    let lines = vec![
        line("median, reads only", 0, &found.depths, |times| Some(times.p50)),
        line("median, 30 % writes", 1, &found.mixed_depths, |times| Some(times.p50)),
        line("99th percentile, 30 % writes", 2, &found.mixed_depths, |times| times.p99),
    ];
    drawn(lines).map(|lines| Plot {
        title: with_credit("Latency of reads beside writes, 8 kB", found.iops.as_ref(), true),
        x_label: "I/Os in flight".into(),
        y_label: "ms".into(),
        log_x: true,
        log_y: true,
        lines,
        ..Plot::default()
    })
}

/// The title of a plot that has both reads and writes. Reads at rising depth and size come before the
/// long run in which a credit ends, and loads that write come after it.
fn with_credit(title: &str, limit: Option<&Limit>, has_writes: bool) -> String {
    let has_burst = limit.is_some_and(|limit| limit.burst.is_some());
    let note = if has_burst && has_writes { " (only reads alone had credit)" } else { "" };
    format!("{title}{note}")
}

fn durable(found: &DeviceFindings, sweep: DurableSweep) -> Option<Plot> {
    let (title, x_label) = match sweep {
        DurableSweep::Sessions => ("Durable writes of 8 kB against sessions", "sessions"),
        DurableSweep::Size => ("Durable writes of one session against size", "kB of a write"),
    };
    let steps = sweep.steps(found);
    let method = &steps.first()?.method;
    let line = |name: &str, colour, of: fn(&Percentiles) -> Option<f64>| {
        let point = |step: &Step| Some((f64::from(sweep.place(step)), of(&step.micros?)? / 1e3));
        Line::solid(name, colour, steps.iter().filter_map(point).collect())
    };
    let lines = vec![
        line("median", 0, |times| Some(times.p50)),
        line("99th percentile", 1, |times| times.p99),
    ];
    drawn(lines).map(|lines| Plot {
        title: format!("{title}, {method}"),
        x_label: x_label.to_owned(),
        y_label: "ms".into(),
        log_x: true,
        log_y: true,
        lines,
        ..Plot::default()
    })
}

/// The lines that have points, if there are any.
fn drawn(lines: Vec<Line>) -> Option<Vec<Line>> {
    let lines: Vec<Line> = lines.into_iter().filter(|line| !line.points.is_empty()).collect();
    (!lines.is_empty()).then_some(lines)
}

/// The long runs, on which the steady state is judged.
fn series(found: &DeviceFindings) -> Vec<Plot> {
    let limits = [&found.bandwidth, &found.iops];
    let drawn = found.series.iter().zip(limits).filter(|(series, _)| !series.points.is_empty());
    let plot = |(series, limit): (&super::findings::Series, &Option<Limit>)| {
        let mut lines = vec![Line::solid(&series.name, 0, series.points.clone())];
        let ends = series.points.first().zip(series.points.last());
        if let (Some(limit), Some((first, last))) = (limit, ends) {
            let level = limit.sustained.median;
            let verdict = if limit.steady { "sustained, steady" } else { "sustained, not steady" };
            let points = vec![(first.0, level), (last.0, level)];
            lines.push(Line::solid(verdict, 1, points));
        }
        Plot {
            title: format!("Steady state: {}", series.name),
            x_label: "seconds".into(),
            y_label: series.unit.clone(),
            lines,
            ..Plot::default()
        }
    };
    drawn.map(plot).collect()
}
