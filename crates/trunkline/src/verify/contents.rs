//! Reports the findings in rows and indexes, which are checked through a buffer pool once the page
//! check has finished. Unlike page findings, these always include the name of the relation, because
//! we had to read the catalog to find the table in the first place.

use std::fmt::Display;
use std::path::Path;

use serde::Serialize;
use trunkline_engine::job::End;
use trunkline_engine::verify::{ContentReport, Orphans};

use super::findings;
use crate::exit::{message, plain};
use crate::io_stats::io_json;
use crate::output::{fields, human_bytes, object, throughput};

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

/// The engine lists only the first findings, but counts all of them.
fn omitted(report: &ContentReport) -> u64 {
    let listed: u64 = report.findings.iter().map(|finding| 1 + finding.more).sum();
    report.findings_total.saturating_sub(listed)
}

/// Findings and counts.
pub(super) fn text(report: &ContentReport, root: &Path) -> String {
    let findings = findings::list(&report.findings, omitted(report), root);
    let end = match report.end {
        End::Complete => "Verification of contents completed",
        End::Cancelled | End::Abandoned => "Verification of contents interrupted; partial results:",
    };
    let lines: [(&str, &dyn Display); _] = [
        ("Tables", &report.tables),
        ("Visible rows", &report.rows),
        ("B-tree indexes", &report.indexes),
        ("Index entries", &report.entries),
        ("Findings", &report.findings_total),
    ];
    let throughput = throughput(report.bytes(), report.elapsed.as_secs_f64());
    format!("\n{findings}{end}\n{}{throughput}\n", fields(33, &lines))
}

/// The report as JSON.
pub(super) fn json(report: &ContentReport, root: &Path) -> impl Serialize {
    let skipped = report.skipped.iter().map(|skipped| {
        object! { relation: skipped.relation.to_string(), reason: plain(&skipped.reason) }
    });
    // These are notes, not findings.
    let orphans = report.orphans.iter().map(|orphans| {
        let Orphans { relation, values, chunks, bytes, first } = orphans;
        object! {
            relation: relation.to_string(),
            values: values,
            chunks: chunks,
            bytes: bytes,
            first_value: first,
        }
    });
    object! {
        complete: report.end == End::Complete,
        tables: report.tables,
        rows: report.rows,
        indexes: report.indexes,
        index_entries: report.entries,
        findings: findings::json(&report.findings, root),
        findings_omitted: omitted(report),
        skipped: skipped.collect::<Vec<_>>(),
        long_values_without_rows: orphans.collect::<Vec<_>>(),
        bytes: report.bytes(),
        seconds: report.elapsed.as_secs_f64(),
        io: io_json(&report.io),
    }
}
