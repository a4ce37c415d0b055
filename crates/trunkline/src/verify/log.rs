//! `trunkline verify --wal`: checks the write-ahead log of a data directory.
//!
//! ```text
//!   pg_wal ─▶ LogReader ─▶ LogCheck ─▶ findings, counts by operation
//!                │
//!                ╰ the end of the log: is anything missing behind it?
//! ```
//! Like `inspect wal`, it looks at nothing but the log and the control file, so a server may be
//! running, and the directory may have crashed. Consistency images are in a log if the server had
//! `wal_consistency_checking`; without them, the check still applies every record to those pages
//! which it knows.

use std::fmt::Display;
use std::path::Path;

use serde::Serialize;
use trunkline_engine::datadir::read_control_file;
use trunkline_engine::log_check::{LogCheck, LogFinding, LogReport};
use trunkline_format::Lsn;
use trunkline_format::wal::{LogEvent, LogReader};

use crate::exit::{Exit, Failure, plain};
use crate::interrupt::Interrupt;
use crate::log_reading::{ClusterLog, note_overwritten, of_cluster, read};
use crate::options::Context;
use crate::output::{Column, fields, object, print_report, table};

pub(super) fn run(context: &Context<'_>) -> Result<Exit, Failure> {
    let Context { global, settings, .. } = context;
    let root = global.require_pgdata()?;
    let ClusterLog { files: segments, torn } = of_cluster(root, &[], None)?;
    // Only hints depend on this. `of_cluster` has warned if the control file is missing.
    let control = read_control_file(&root.join("global/pg_control"));
    let hints_are_logged =
        control.is_ok_and(|control| control.checksums() || control.wal_log_hints);
    let from = segments.start(None)?;
    let mut reader = LogReader::new(segments.identity(), from);
    let mut check = LogCheck::new(hints_are_logged, settings.shared_buffers() as usize);
    let interrupt = Interrupt::install()?;
    let stop = read(&mut reader, &segments, None, &mut |event| {
        match event {
            LogEvent::Record(found) => check.apply(&found),
            LogEvent::Overwritten { record, page } => note_overwritten(record, page),
            LogEvent::End(_) => {}
        }
        match interrupt.requested() {
            true => Err(interrupt.failure()),
            false => Ok(()),
        }
    })?;
    let report = check.finish();
    let to = reader.position();
    print_report(global, &json(&report, root, from, to), || text(&report, from, to))?;
    let end = stop.verdict(None, &segments, &torn)?;
    Ok(if report.findings_total > 0 { Exit::Findings } else { end })
}

/// A line of the table of operations.
#[derive(Serialize)]
struct Line {
    operation: String,
    records: u64,
    compared: u64,
    different: u64,
    without_image: u64,
    restored: u64,
    without_base: u64,
    not_supported: u64,
}

const COLUMNS: [Column<Line>; 8] = [
    ("operation", |line| line.operation.clone()),
    (">records", |line| line.records.to_string()),
    (">compared", |line| line.compared.to_string()),
    (">different", |line| line.different.to_string()),
    (">without image", |line| line.without_image.to_string()),
    (">restored", |line| line.restored.to_string()),
    (">without base", |line| line.without_base.to_string()),
    (">not supported", |line| line.not_supported.to_string()),
];

fn lines(report: &LogReport) -> Vec<Line> {
    let lines = report.operations.iter().map(|((manager, operation), counts)| Line {
        operation: match &*manager.to_string() {
            "Generic" => "Generic".to_owned(),
            manager => format!("{manager}/{operation}"),
        },
        records: counts.records,
        compared: counts.compared,
        different: counts.different,
        without_image: counts.uncompared,
        restored: counts.restored,
        without_base: counts.without_base,
        not_supported: counts.not_supported,
    });
    lines.collect()
}

fn text(report: &LogReport, from: Lsn, to: Lsn) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        text += &format!("{}\n", plain(finding));
    }
    let omitted = report.findings_total - report.findings.len() as u64;
    if omitted > 0 {
        text += &format!("… and {omitted} more\n");
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let total = report.total();
    let counts: [(&str, &dyn Display); _] = [
        ("Log checked", &format!("{from} to {to}")),
        ("Records", &total.records),
        ("Pages compared with images", &total.compared),
        ("Different pages", &total.different),
        ("Pages changed, without an image", &total.uncompared),
        ("Pages restored from images", &total.restored),
        ("Pages without a base", &total.without_base),
        ("Pages without a redo rule", &total.not_supported),
        ("Map bits ahead of the log", &report.bits_ahead),
    ];
    text += &fields(33, &counts);
    text + "\n" + &table(&lines(report), &COLUMNS)
}

fn json(report: &LogReport, root: &Path, from: Lsn, to: Lsn) -> impl Serialize {
    let finding = |finding: &LogFinding| {
        object! {
            position: finding.position.to_string(),
            operation: format!("{}/{}", finding.manager, finding.operation),
            reference: finding.reference,
            relation: finding.relation.to_string(),
            fork: finding.fork.to_string(),
            block: finding.block,
            text: plain(finding.kind),
        }
    };
    let total = report.total();
    object! {
        schema: 1,
        command: "verify --wal",
        directory: root.display().to_string(),
        from: from.to_string(),
        to: to.to_string(),
        records: total.records,
        compared: total.compared,
        different: total.different,
        without_image: total.uncompared,
        restored: total.restored,
        without_base: total.without_base,
        not_supported: total.not_supported,
        map_bits_ahead: report.bits_ahead,
        findings_total: report.findings_total,
        findings: report.findings.iter().map(finding).collect::<Vec<_>>(),
        operations: lines(report),
    }
}
