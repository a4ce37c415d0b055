//! **The plots of a report**: the ones that storage engineers ask for first.
//!
//! ```text
//!   time against selectivity       method × scan, linear and logarithmic
//!   I/Os and bytes per second      against I/Os in flight, if several were measured
//!   latency against load           percentiles, with the knee marked
//!   time of each repetition        where a case isn't steady, and once for each workload
//! ```
//! Cases in one plot differ only in what the plot shows. All other conditions are in its title. With
//! a server, its lines are dashed. It has buffered I/O only, which plots of direct I/O show too. If
//! only the server has worked, its lines are alone.

use crate::plot::{Line, Plot};
use crate::report::{Key, Measurement, Report};

/// All plots, with a heading for each workload's.
pub(crate) fn plots(report: &Report) -> Vec<Plot> {
    let all = &report.measurements;
    let mut plots = Vec::new();
    let free = |key: &Key| Key { selectivity_percent: None, ..key.clone() };
    let all_groups = groups(all, |key| named(&free(key), "io_method"));
    let is_ours = |group: &[&Measurement]| !group[0].key.is_of_server();
    for mut group in all_groups.clone() {
        let key = free(&group[0].key);
        if key.is_of_server() {
            // It is in the plot of the same scan of ours, if there is one.
            let is_shown =
                |own: &Vec<&Measurement>| is_ours(own) && is_of_plot(&key, &free(&own[0].key));
            if all_groups.iter().any(is_shown) {
                continue;
            }
        } else {
            let is_peer =
                |case: &&Measurement| case.key.is_of_server() && is_of_plot(&free(&case.key), &key);
            group.extend(all.iter().filter(is_peer));
        }
        plots.extend(against_selectivity(&group, all));
    }
    for group in groups(all, |key| Key { concurrency: None, ..named(key, "io_method") }) {
        plots.extend(against_concurrency(&group));
    }
    for group in groups(all, |key| Key { concurrency: None, ..key.clone() }) {
        plots.extend(against_load(&group));
    }
    let mut shown: Vec<&str> = Vec::new();
    for group in groups(all, |key| named(key, "io_method")) {
        let workload = group[0].key.workload.as_str();
        if !shown.contains(&workload) || group.iter().any(|case| !case.steady) {
            shown.push(workload);
            plots.push(repetitions(&group));
        }
    }
    plots
}

/// The key with another method's name, so that all methods are in one group.
fn named(key: &Key, method: &str) -> Key {
    Key { io_method: method.to_owned(), io_workers: None, ..key.clone() }
}

/// Groups cases whose keys are equal after `of` has removed what may differ.
fn groups(all: &[Measurement], of: impl Fn(&Key) -> Key) -> Vec<Vec<&Measurement>> {
    let mut groups: Vec<(Key, Vec<&Measurement>)> = Vec::new();
    for case in all {
        let key = of(&case.key);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(case),
            None => groups.push((key, vec![case])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// One line for each method of each system, from cases that are in the order of their x.
fn by_method(
    group: &[&Measurement],
    point: impl Fn(&Measurement) -> Option<(f64, f64)>,
) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for case in group {
        let Some(point) = point(case) else { continue };
        let name = line_name(&case.key);
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => {
                let (points, colour) = (vec![point], colour(&case.key, &lines));
                lines.push(Line { name, points, colour, dashed: case.key.is_of_server() });
            }
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines
}

/// The colour of a method, which is that of ours for the server's method of the same name. Further
/// numbers of workers have colours of their own.
fn colour(key: &Key, lines: &[Line]) -> usize {
    let is_worker = |line: &&Line| line.dashed && line.name.contains("worker");
    match (key.io_method.as_str(), key.is_of_server()) {
        ("sync", _) => 0,
        ("worker", true) => match lines.iter().filter(is_worker).count() {
            0 => 1,
            others => 3 + others,
        },
        ("worker", false) => 1,
        ("io_uring", _) => 2,
        ("settings", true) => 4,
        _ => 3,
    }
}

/// The colour of lines that show sequential scans for comparison.
const SEQUENTIAL: usize = 7;

/// The method, after the system if that isn't ours.
fn line_name(key: &Key) -> String {
    match key.is_of_server() {
        true => format!("{}, {}", key.system, key.method()),
        false => key.method(),
    }
}

/// Whether a case is in the plots of a key: it differs in the method only, or it is a server's,
/// whose mode and system differ too.
fn is_of_plot(case: &Key, plot: &Key) -> bool {
    let same = |key: &Key| match case.is_of_server() {
        true => Key {
            system: plot.system.clone(),
            io_direct: plot.io_direct,
            concurrency: case.concurrency.or(plot.concurrency),
            combine_blocks: case.combine_blocks.or(plot.combine_blocks),
            ..named(key, "io_method")
        },
        false => named(key, "io_method"),
    };
    same(case) == named(plot, "io_method")
}

/// Workload, scan and conditions, without what `hidden` names.
fn title(key: &Key, hidden: &[&str]) -> String {
    let parts = [
        ("workload", key.workload.clone()),
        ("scan", key.scan.clone()),
        (
            "selectivity",
            key.selectivity_percent.map(|percent| format!("{percent} %")).unwrap_or_default(),
        ),
        ("io_method", key.io_method.clone()),
        ("mode", key.mode().to_owned()),
        ("cache", key.cache_name().to_owned()),
        ("concurrency", key.concurrency.map(|it| format!("concurrency {it}")).unwrap_or_default()),
        ("combine", key.combine_blocks.map(|it| format!("combine {it}")).unwrap_or_default()),
        (
            "sessions",
            if key.sessions == 1 { String::new() } else { format!("{} sessions", key.sessions) },
        ),
    ];
    let shown = parts.into_iter().filter(|(name, text)| !hidden.contains(name) && !text.is_empty());
    let mut words: Vec<String> = shown.map(|(_, text)| text).collect();
    words.dedup();
    words.join(", ")
}

fn against_selectivity(group: &[&Measurement], all: &[Measurement]) -> Vec<Plot> {
    let time = |case: &Measurement| Some((case.key.selectivity_percent?, case.seconds.median));
    let mut lines = by_method(group, time);
    if lines.iter().all(|line| line.points.len() < 2) {
        return Vec::new();
    }
    // A sequential scan takes the same time for every range. It shows where the planner would
    // switch.
    let first = &group[0].key;
    let scan = Key { scan: "sequential".to_owned(), selectivity_percent: None, ..first.clone() };
    let ends = lines.iter().flat_map(|line| &line.points).map(|point| point.0);
    let ends =
        ends.fold((f64::INFINITY, 0.0), |ends: (f64, f64), x| (ends.0.min(x), ends.1.max(x)));
    for dashed in [false, true] {
        let sequential = all
            .iter()
            .filter(|case| case.key.is_of_server() == dashed && is_of_plot(&case.key, &scan));
        let fastest = sequential.min_by(|a, b| a.seconds.median.total_cmp(&b.seconds.median));
        if let Some(case) = fastest {
            let (seconds, name) = (case.seconds.median, line_name(&case.key));
            let points = vec![(ends.0, seconds), (ends.1, seconds)];
            let name = format!("sequential scan, {name}");
            lines.push(Line { name, points, colour: SEQUENTIAL, dashed });
        }
    }
    let plot = |log_y: bool| Plot {
        title: title(first, &["io_method", "selectivity"]),
        x_label: "rows selected, %".to_owned(),
        y_label: if log_y { "seconds, logarithmic" } else { "seconds" }.to_owned(),
        log_x: true,
        log_y,
        lines: lines.clone(),
        marks: Vec::new(),
    };
    vec![plot(false), plot(true)]
}

fn against_concurrency(group: &[&Measurement]) -> Vec<Plot> {
    let plot = |y_label: &str, y: fn(&Measurement) -> Option<f64>| Plot {
        title: title(&group[0].key, &["io_method", "concurrency"]),
        x_label: "I/Os in flight, mean at submission".to_owned(),
        y_label: y_label.to_owned(),
        log_x: true,
        lines: by_method(group, |case| Some((case.in_flight?.max(1.0), y(case)?))),
        ..Plot::default()
    };
    let plots = [
        plot("I/Os per second", |case| case.ios_per_second),
        plot("GB per second", |case| Some(case.bytes_per_second / 1e9)),
    ];
    let varies = plots[1].lines.iter().any(|line| line.points.len() > 1);
    if varies { plots.to_vec() } else { Vec::new() }
}

/// Device time against throughput, for one method at several depths. The knee is where throughput
/// divided by latency is largest (L. Kleinrock's *power*): more I/Os in flight then add more latency
/// than throughput.
fn against_load(group: &[&Measurement]) -> Option<Plot> {
    let mut cases: Vec<&&Measurement> =
        group.iter().filter(|case| case.device_micros.is_some()).collect();
    if cases.len() < 3 {
        return None;
    }
    cases.sort_by_key(|case| case.key.concurrency);
    let line = |name: &str, colour: usize, of: fn(&Measurement) -> Option<f64>| {
        let point = |case: &&&Measurement| Some((case.ios_per_second?, of(case)?));
        let points = cases.iter().filter_map(point).collect();
        Line { name: name.to_owned(), points, colour, dashed: false }
    };
    let mut lines = vec![
        line("p50", 0, |case| Some(case.device_micros?.p50)),
        line("p99", 1, |case| case.device_micros?.p99),
        line("p99.9", 2, |case| case.device_micros?.p999),
    ];
    let power = |case: &Measurement| {
        let rate = case.ios_per_second.unwrap_or_default();
        case.device_micros.map_or(0.0, |times| rate / times.p50.max(1e-3))
    };
    lines.retain(|line| !line.points.is_empty());
    // At an end of the range, the largest power may be beyond it.
    let powers: Vec<f64> = cases.iter().map(|case| power(case)).collect();
    let knee = (1..powers.len() - 1)
        .filter(|&at| powers.iter().enumerate().all(|(other, &it)| other == at || it < powers[at]))
        .map(|at| cases[at])
        .next();
    let mark = knee.and_then(|knee| {
        let text = format!("knee: concurrency {}", knee.key.concurrency?);
        Some((knee.ios_per_second?, knee.device_micros?.p50, text))
    });
    let title = title(&group[0].key, &["concurrency"]);
    let last = cases.last().and_then(|case| case.key.concurrency).unwrap_or_default();
    Some(Plot {
        title: match mark {
            Some(_) => title,
            None => format!("{title}; no knee up to concurrency {last}"),
        },
        x_label: "I/Os per second".to_owned(),
        y_label: "device time, µs, logarithmic".to_owned(),
        log_y: true,
        lines,
        marks: mark.into_iter().collect(),
        ..Plot::default()
    })
}

/// Time of each repetition, so that a trend is visible, such as burst credit that is used up.
fn repetitions(group: &[&Measurement]) -> Plot {
    let mut lines: Vec<Line> = Vec::new();
    for case in group {
        let colour = colour(&case.key, &lines);
        lines.push(Line {
            name: format!(
                "{}{}",
                line_name(&case.key),
                if case.steady { "" } else { ", not steady" }
            ),
            points: (1..).zip(&case.samples).map(|(x, &y): (u32, _)| (f64::from(x), y)).collect(),
            colour,
            dashed: case.key.is_of_server(),
        });
    }
    Plot {
        title: title(&group[0].key, &["io_method"]),
        x_label: "repetition".to_owned(),
        y_label: "seconds".to_owned(),
        lines,
        ..Plot::default()
    }
}
