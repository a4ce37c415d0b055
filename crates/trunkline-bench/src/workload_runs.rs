//! **Workload runs**: stored reports of `trunkline bench`, as a part of the page of results.
//!
//! ```text
//!   trunkline bench … --save docs/benchmarks/workloads/NAME.json ──▶ a section of the page
//! ```
//! `trunkline bench` compares I/O methods with each other and with a PostgreSQL server on the
//! user's own files, while this program compares the engine with bare loops. The page has both.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use trunkline_measure::{Measurement, Report, Times};

use crate::command_line::without_paths;
use crate::failure::Result;

/// The folder of the reports, in that of the results.
const FOLDER: &str = "workloads";

/// The sections of all reports, in the order of their names. Empty if there are none.
pub(crate) fn sections(folder: &Path) -> Result<String> {
    let folder = folder.join(FOLDER);
    let mut text = String::new();
    if !folder.exists() {
        return Ok(text);
    }
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths: std::io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    for path in paths {
        let report = Report::load(&path).map_err(|error| error.to_string())?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        section(&name, &report, &mut text)?;
    }
    Ok(text)
}

fn section(name: &str, report: &Report, text: &mut String) -> std::fmt::Result {
    writeln!(text, "\n## Workloads of `trunkline bench`: {name}\n")?;
    let table = &report.table;
    writeln!(text, "- {}, {}", report.program, report.machine.summary())?;
    writeln!(
        text,
        "- {}: {} blocks, {} rows per page",
        table.name, table.blocks, table.rows_per_page
    )?;
    if let Some(disk) = &report.slow_disk {
        writeln!(text, "- slow disk {}", disk.summary())?;
    }
    if !report.complete {
        writeln!(text, "- interrupted: some cases are missing")?;
    }
    best(report, text)?;
    configurations(report, text)?;
    cases(report, text)?;
    for (reason, count) in report.skipped_groups() {
        writeln!(text, "\nNot measured, {count} cases: {reason}.")?;
    }
    let command = without_paths(report.command_line.split(' ').map(str::to_owned));
    writeln!(text, "\n```\n{command}\n```")
}

/// Our fastest method against the server's.
fn best(report: &Report, text: &mut String) -> std::fmt::Result {
    let Some(server) = report.server.as_ref().filter(|_| !report.best.is_empty()) else {
        return Ok(());
    };
    writeln!(
        text,
        "\nThe fastest methods, and trunkline's time divided by that of {}:\n\n\
         | workload | scan | rows % | depth | trunkline | server | ratio |\n\
         |---|---|---|---|---|---|---|",
        server.name
    )?;
    for best in &report.best {
        let percent = best.selectivity_percent.map(|percent| percent.to_string());
        let ratio = best.versus.as_ref().map(|versus| {
            let ratio = versus.ratio;
            let verdict = versus.ratio.verdict();
            format!("{:.2} [{:.2}–{:.2}], {verdict}", ratio.median, ratio.low, ratio.high)
        });
        writeln!(
            text,
            "| {} | {} | {} | {} | {}, {} | {}, {} | {} |",
            best.workload,
            best.scan,
            percent.unwrap_or_default(),
            best.concurrency,
            best.ours,
            millis(best.seconds),
            best.server,
            millis(best.server_seconds),
            ratio.unwrap_or_else(|| "too few pairs".to_owned())
        )?;
    }
    Ok(())
}

/// A server with the settings of a file against itself with its defaults.
fn configurations(report: &Report, text: &mut String) -> std::fmt::Result {
    let Some(server) = report.server.as_ref().filter(|it| !it.configurations.is_empty()) else {
        return Ok(());
    };
    writeln!(text, "\n| setting | defaults | settings |\n|---|---|---|")?;
    for (name, values) in server.compared_settings() {
        writeln!(text, "| {name} | {} |", values.join(" | "))?;
    }
    writeln!(
        text,
        "\n| workload | scan | rows % | defaults | settings | ratio | pairs | |\n\
         |---|---|---|---|---|---|---|---|"
    )?;
    for (defaults, settings) in report.settings_pairs() {
        let percent = defaults.key.selectivity_percent.map(|percent| percent.to_string());
        let over = settings.over_defaults.as_ref();
        let ratio = over.map(|over| {
            let ratio = over.ratio;
            format!(
                "{:.2} [{:.2}–{:.2}] | {} | {}",
                ratio.median,
                ratio.low,
                ratio.high,
                over.pairs,
                over.verdict_name()
            )
        });
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            defaults.key.workload,
            defaults.key.scan,
            percent.unwrap_or_default(),
            millis(defaults.seconds.median),
            millis(settings.seconds.median),
            ratio.unwrap_or_else(|| "| | too few pairs".to_owned())
        )?;
    }
    Ok(())
}

fn cases(report: &Report, text: &mut String) -> std::fmt::Result {
    writeln!(
        text,
        "\n| system | workload | scan | rows % | method | mode | cache | depth | time | repetitions |\n\
         |---|---|---|---|---|---|---|---|---|---|"
    )?;
    for Measurement { key, seconds, repetitions, steady, .. } in &report.measurements {
        let percent = key.selectivity_percent.map(|percent| percent.to_string());
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {repetitions}{} |",
            key.system,
            key.workload,
            key.scan,
            percent.unwrap_or_default(),
            key.method(),
            key.mode(),
            key.cache_name(),
            key.concurrency.map(|depth| depth.to_string()).unwrap_or_default(),
            interval(seconds),
            if *steady { "" } else { ", not steady" }
        )?;
    }
    Ok(())
}

fn interval(times: &Times) -> String {
    match (times.low, times.high) {
        (Some(low), Some(high)) => {
            format!("{} [{}–{}]", millis(times.median), millis(low), millis(high))
        }
        _ => millis(times.median),
    }
}

fn millis(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1e3)
}
