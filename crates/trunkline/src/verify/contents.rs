//! The second half of `trunkline verify`: what tables and indexes hold.
//!
//! It runs when every page was looked at, through a pool, and its findings name relations.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use trunkline_aio::Aio;
use trunkline_aio::sync::Arc;
use trunkline_engine::datadir::DataDir;
use trunkline_engine::job::{End, Observer};
use trunkline_engine::settings::Settings;
use trunkline_engine::verify::{ContentOptions, ContentReport, Only, Orphans, verify_contents};

use super::{JsonFinding, JsonIo, VerifyArgs, list};
use crate::exit::{Failure, message};
use crate::output::{human_bytes, rate};
use crate::pooled;

/// Verifies what was asked for.
pub(super) fn verify(
    aio: &Aio,
    dir: &DataDir,
    settings: &Settings,
    args: &VerifyArgs,
    only: Option<Vec<Only>>,
    observer: Arc<dyn Observer>,
) -> Result<ContentReport, Failure> {
    let engine = pooled::engine(aio, settings, settings.shared_buffers())?;
    let cluster = engine.cluster_of(dir.clone());
    let options = ContentOptions {
        workers: args.jobs,
        only,
        ..ContentOptions::of(settings, args.rows(), args.indexes())
    };
    Ok(verify_contents(engine.pool(), dir, cluster.storage(), &options, observer)?)
}

/// Says that there are long values that no row names.
pub(super) fn note_of(orphans: &Orphans) {
    let Orphans { relation, values, chunks, bytes, first } = orphans;
    message(
        "note",
        format_args!(
            "{relation}: no row names {values} of the long values in TOAST, {} in {chunks} chunks; \
             the first is {first}",
            human_bytes(*bytes)
        ),
    );
    message("hint", "VACUUM FULL gives that room back, if no rows were lost");
}

fn omitted(report: &ContentReport) -> u64 {
    report.findings_total - report.findings.len() as u64
}

/// Findings and counts.
pub(super) fn text(report: &ContentReport, root: &Path) -> String {
    let mut findings = String::new();
    list(&mut findings, &report.findings, omitted(report), root);
    let mut text = format!("\n{findings}");
    let _ = writeln!(
        text,
        "{}",
        match report.end {
            End::Complete => "Verification of contents completed",
            End::Cancelled | End::Abandoned =>
                "Verification of contents interrupted; what was done until then:",
        }
    );
    let lines = [
        ("Tables", report.tables),
        ("Visible rows", report.rows),
        ("B-tree indexes", report.indexes),
        ("Index entries", report.entries),
        ("Findings", report.findings_total),
    ];
    for (name, value) in lines {
        let _ = writeln!(text, "{:33}{value}", format!("{name}:"));
    }
    let seconds = report.elapsed.as_secs_f64();
    let bytes_per_second = report.bytes() as f64 / seconds.max(1e-9);
    let bytes = human_bytes(report.bytes());
    let _ = writeln!(text, "{bytes} in {seconds:.2} s, {}", rate(bytes_per_second));
    text
}

/// The same for programs.
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
    /// Not among the findings.
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

/// Of one table.
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
            findings: report
                .findings
                .iter()
                .map(|finding| JsonFinding::new(finding, root))
                .collect(),
            findings_omitted: omitted(report),
            skipped: skipped.collect(),
            long_values_without_rows: report.orphans.iter().map(JsonOrphans::new).collect(),
            bytes: report.bytes(),
            seconds: report.elapsed.as_secs_f64(),
            io: JsonIo::new(&report.io),
        }
    }
}
