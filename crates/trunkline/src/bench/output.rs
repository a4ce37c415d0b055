//! The report of `bench` on a terminal.

use std::fmt::Write as _;

use trunkline_format::BLOCK_SIZE;
use trunkline_measure::{
    Cache, Ended, Estimate, Measurement, OverDefaults, Percentiles, Report, SlowDisk, Versus,
};

use crate::exit::message;
use crate::output::{Table, human_bytes, rate};

/// Prints why cases have no result, once for each reason.
pub(super) fn report_skipped(report: &Report) {
    for (text, count) in report.skipped_groups() {
        message("note", format_args!("{count} cases not measured: {text}"));
    }
}

/// The report as text.
pub(super) fn text(report: &Report) -> String {
    let table = &report.table;
    let mut text = format!(
        "Table: {}, {} blocks ({}), {} rows per page\nMachine: {}\n{}\n",
        table.name,
        table.blocks,
        human_bytes(u64::from(table.blocks) * BLOCK_SIZE as u64),
        table.rows_per_page,
        report.machine.summary(),
        disk(report),
    );
    text += &rows(report);
    text += &best(report);
    text += &settings(report);
    let unsteady = report.measurements.iter().filter(|case| !case.steady).count();
    let _ = writeln!(
        text,
        "\ntime: median of n repetitions, with its 95 % confidence interval. device: time of single \
         I/Os in the device,\nwait: time that a session slept for one; p50/p99/p99.9 in µs, if there \
         are enough I/Os. Not steady (*):\n{unsteady} of {} cases{}.",
        report.measurements.len(),
        endings(report)
    );
    if report.measurements.iter().any(|case| case.cache_held == Some(false)) {
        text += "cache!: the page cache was not in this state when a repetition began. Settings get no \
                 verdict then.\n";
    }
    text
}

/// Why the cases that aren't steady were not repeated any more.
fn endings(report: &Report) -> String {
    let mut text = String::new();
    for (ended, why) in [
        (Ended::Repetitions, "after --repetitions"),
        (Ended::Time, "after --max-time"),
        (Ended::Interrupted, "interrupted"),
        (Ended::Failed, "failed"),
    ] {
        let count = report.measurements.iter().filter(|case| case.ended == ended).count();
        if count > 0 {
            let _ =
                write!(text, "{}{count} ended {why}", if text.is_empty() { "; " } else { ", " });
        }
    }
    text
}

/// The slow disk, and how exactly this machine kept its latency.
fn disk(report: &Report) -> String {
    let line = |disk: &SlowDisk| format!("Slow disk: {}\n", disk.summary());
    report.slow_disk.as_ref().map(line).unwrap_or_default()
}

/// The fastest method of each system.
fn best(report: &Report) -> String {
    let Some(server) = report.server.as_ref().filter(|_| !report.best.is_empty()) else {
        return String::new();
    };
    let mut table = Table::new(&[
        "workload",
        "scan",
        ">rows %",
        "cache",
        ">depth",
        ">blocks",
        "trunkline",
        ">time",
        "server",
        ">time",
        ">ratio",
        ">interval",
        ">pairs",
        "",
    ]);
    for best in &report.best {
        let versus = best.versus.as_ref();
        let known = |of: fn(&Versus) -> String| versus.map_or("–".to_owned(), of);
        table.row(vec![
            best.workload.clone(),
            best.scan.clone(),
            best.selectivity_percent.map(|percent| percent.to_string()).unwrap_or_default(),
            best.cache.map_or("", Cache::name).to_owned(),
            best.concurrency.to_string(),
            best.combine_blocks.to_string(),
            best.ours.clone(),
            format!("{:.2} ms", best.seconds * 1e3),
            best.server.clone(),
            format!("{:.2} ms", best.server_seconds * 1e3),
            known(|it| format!("×{:.2}", it.ratio.median)),
            known(|it| format!("{:.2}..{:.2}", it.ratio.low, it.ratio.high)),
            known(|it| it.pairs.to_string()),
            versus.map_or("too few pairs", |it| it.ratio.verdict()).to_owned(),
        ]);
    }
    format!(
        "\nFastest methods, and our time divided by that of {} (median of pairs, 95 % interval):\n{}",
        server.name,
        table.render()
    )
}

/// The server's configurations: what differs between them, and how fast they are.
fn settings(report: &Report) -> String {
    let Some(server) = report.server.as_ref().filter(|it| !it.configurations.is_empty()) else {
        return String::new();
    };
    let mut shown = Table::new(&["setting", "defaults", "settings"]);
    for (name, values) in server.compared_settings() {
        shown.row([vec![name], values].concat());
    }
    let mut table = Table::new(&[
        "workload",
        "scan",
        ">rows %",
        "cache",
        ">defaults",
        ">settings",
        ">ratio",
        ">interval",
        ">pairs",
        "",
        "plan",
    ]);
    for (defaults, settings) in report.settings_pairs() {
        let over = settings.over_defaults.as_ref();
        let known = |of: fn(&OverDefaults) -> String| over.map_or("–".to_owned(), of);
        let percent = defaults.key.selectivity_percent.map(|percent| percent.to_string());
        table.row(vec![
            defaults.key.workload.clone(),
            defaults.key.scan.clone(),
            percent.unwrap_or_default(),
            Measurement::cache_cell(&[defaults, settings]),
            format!("{:.2} ms", defaults.seconds.median * 1e3),
            format!("{:.2} ms", settings.seconds.median * 1e3),
            known(|it| format!("×{:.2}", it.ratio.median)),
            known(|it| format!("{:.2}..{:.2}", it.ratio.low, it.ratio.high)),
            known(|it| it.pairs.to_string()),
            over.map_or("too few pairs", OverDefaults::verdict_name).to_owned(),
            plans(defaults, settings),
        ]);
    }
    format!(
        "\nWhat {} showed after its start, for the settings of the file and others that differ:\n{}\n\
         Its time with the settings divided by that with its defaults (median of pairs, 95 % \
         interval;\nfaster: below 1, not slower: up to 1.05, slower: above 1.05):\n{}",
        server.name,
        shown.render(),
        table.render()
    )
}

/// The plans that the planner chose in each configuration, or the common one.
fn plans(defaults: &Measurement, settings: &Measurement) -> String {
    match (&defaults.plan, &settings.plan) {
        (Some(one), Some(other)) if one != other => format!("{one}; settings: {other}"),
        (one, _) => one.clone().unwrap_or_default(),
    }
}

fn rows(report: &Report) -> String {
    let compared = report.measurements.iter().any(|case| case.against.is_some());
    let has_server = report.server.is_some();
    let mut headings = vec![
        "workload",
        "scan",
        ">rows %",
        "io_method",
        "mode",
        "cache",
        ">depth",
        ">blocks",
        ">sess",
        ">time",
        ">interval",
        ">rate",
        ">I/O/s",
        ">in flight",
        ">device",
        ">wait",
        ">n",
    ];
    if has_server {
        headings.insert(0, "system");
        headings.push("server");
    }
    if compared {
        headings.push("against");
    }
    let mut table = Table::new(&headings);
    for case in &report.measurements {
        let mut cells = cells(case);
        if has_server {
            cells.insert(0, case.key.system.clone());
            cells.push(versus(case));
        }
        if compared {
            cells.push(against(case));
        }
        table.row(cells);
    }
    table.render()
}

fn cells(case: &Measurement) -> Vec<String> {
    let key = &case.key;
    let percent = key.selectivity_percent.map(|percent| percent.to_string());
    vec![
        key.workload.clone(),
        key.scan.clone(),
        percent.unwrap_or_default(),
        key.method(),
        key.mode().to_owned(),
        Measurement::cache_cell(&[case]),
        number(key.concurrency),
        number(key.combine_blocks),
        key.sessions.to_string(),
        format!("{:.2} ms", case.seconds.median * 1e3),
        case.seconds
            .low
            .zip(case.seconds.high)
            .map_or("–".to_owned(), |(low, high)| format!("{:.2}..{:.2}", low * 1e3, high * 1e3)),
        rate(case.bytes_per_second),
        case.ios_per_second.map_or("–".to_owned(), |rate| format!("{rate:.0}")),
        case.in_flight.map_or("–".to_owned(), |count| format!("{count:.1}")),
        times(case.device_micros),
        times(case.wait_micros),
        format!("{}{}", case.repetitions, if case.steady { "" } else { "*" }),
    ]
}

fn number(value: Option<u32>) -> String {
    value.map_or("–".to_owned(), |value| value.to_string())
}

fn times(times: Option<Percentiles>) -> String {
    let micros = |time: Option<f64>| time.map_or("–".to_owned(), |micros| format!("{micros:.0}"));
    times.map_or("–".to_owned(), |Percentiles { p50, p99, p999, .. }| {
        format!("{p50:.0}/{}/{}", micros(p99), micros(p999))
    })
}

/// How the time compares with the server's, or that of its settings with that of its defaults:
/// `×0.52 (0.49..0.55) of worker 12, faster`.
fn versus(case: &Measurement) -> String {
    if let Some(over) = &case.over_defaults {
        let Estimate { median, low, high } = over.ratio;
        let verdict = over.verdict_name();
        return format!("×{median:.2} ({low:.2}..{high:.2}) of defaults, {verdict}");
    }
    let Some(versus) = &case.versus else { return "–".to_owned() };
    let Estimate { median, low, high } = versus.ratio;
    let workers = versus.io_workers.map(|number| format!(" {number}")).unwrap_or_default();
    let method = &versus.io_method;
    format!("×{median:.2} ({low:.2}..{high:.2}) of {method}{workers}, {}", versus.ratio.verdict())
}

/// How the time compares with that of the stored run: `×0.52 (0.49..0.55) faster`.
fn against(case: &Measurement) -> String {
    case.against.map_or("–".to_owned(), |change| {
        let ratio = change.ratio;
        format!(
            "×{:.2} ({:.2}..{:.2}) {}",
            ratio.median,
            ratio.low,
            ratio.high,
            change.ratio.verdict()
        )
    })
}
