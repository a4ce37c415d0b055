//! The report on rows and indexes, which are checked after the pages, through a buffer pool. Unlike
//! page findings, these findings always include their relation, because we needed the catalog to
//! find the table in the first place.

use std::path::Path;

use serde::Serialize;
use trunkline_engine::job::End;
use trunkline_engine::verify::{ContentReport, Orphans};

use super::findings::{self, JsonFinding};
use crate::exit::message;
use crate::io_stats::JsonIo;
use crate::output::{fields, human_bytes, throughput};

/// Notes that a TOAST table holds values that no row refers to.
pub(super) fn report_orphans(orphans: &Orphans) {
    let Orphans { relation, values, chunks, bytes, first } = orphans;
    message(
        "note",
        format_args!(
            "{relation}: {values} TOAST values are not referenced by any row ({} in {chunks} \
             chunks; the first is {first})",
            human_bytes(*bytes)
        ),
    );
    message("hint", "VACUUM FULL reclaims the space, if no rows were lost");
}

fn omitted(report: &ContentReport) -> u64 {
    report.findings_total - report.findings.len() as u64
}

/// Findings and counts.
pub(super) fn text(report: &ContentReport, root: &Path) -> String {
    let findings = findings::list(&report.findings, omitted(report), root);
    let end = match report.end {
        End::Complete => "Verification of contents completed",
        End::Cancelled | End::Abandoned => "Verification of contents interrupted; partial results:",
    };
    let lines = [
        ("Tables", report.tables),
        ("Visible rows", report.rows),
        ("B-tree indexes", report.indexes),
        ("Index entries", report.entries),
        ("Findings", report.findings_total),
    ];
    let lines = lines.map(|(name, count)| (name, count.to_string()));
    let throughput = throughput(report.bytes(), report.elapsed.as_secs_f64());
    format!("\n{findings}{end}\n{}{throughput}\n", fields(33, &lines))
}

/// The report as JSON.
#[derive(Serialize)]
pub(super) struct JsonContents {
    complete: bool,
    tables: u64,
    rows: u64,
    indexes: u64,
    index_entries: u64,
    findings: Vec<JsonFinding>,
    findings_omitted: u64,
    skipped: Vec<JsonSkipped>,
    /// Notes, not findings.
    long_values_without_rows: Vec<JsonOrphans>,
    bytes: u64,
    seconds: f64,
    io: JsonIo,
}

#[derive(Serialize)]
struct JsonSkipped {
    relation: String,
    reason: String,
}

/// The values of one TOAST table that no row refers to.
#[derive(Serialize)]
struct JsonOrphans {
    relation: String,
    values: u64,
    chunks: u64,
    bytes: u64,
    first_value: u32,
}

impl JsonOrphans {
    fn new(orphans: &Orphans) -> JsonOrphans {
        let Orphans { ref relation, values, chunks, bytes, first: first_value } = *orphans;
        JsonOrphans { relation: relation.to_string(), values, chunks, bytes, first_value }
    }
}

impl JsonContents {
    pub(super) fn new(report: &ContentReport, root: &Path) -> JsonContents {
        let skipped = report.skipped.iter().map(|skipped| JsonSkipped {
            relation: skipped.relation.to_string(),
            reason: skipped.reason.clone(),
        });
        JsonContents {
            complete: report.end == End::Complete,
            tables: report.tables,
            rows: report.rows,
            indexes: report.indexes,
            index_entries: report.entries,
            findings: findings::json(&report.findings, root),
            findings_omitted: omitted(report),
            skipped: skipped.collect(),
            long_values_without_rows: report.orphans.iter().map(JsonOrphans::new).collect(),
            bytes: report.bytes(),
            seconds: report.elapsed.as_secs_f64(),
            io: JsonIo::new(&report.io),
        }
    }
}
