//! What a copy says when it is over: what was left out, and on request its counts.
//!
//! Everything but JSON goes to standard error, since the rows are on standard output.

use std::fmt::Write as _;

use serde::Serialize;
use trunkline_engine::copy::CopyReport;
use trunkline_engine::job::End;
use trunkline_format::BLOCK_SIZE;

use crate::exit::message;
use crate::output::{human_bytes, rate};
use crate::pooled::{self, JsonStreams};
use crate::verify::JsonIo;

/// Names what was left out.
pub(super) fn report_findings(report: &CopyReport) {
    for (table, finding) in &report.findings {
        message("warning", format_args!("{table}: {finding}"));
    }
    let omitted = report.findings_total - report.findings.len() as u64;
    if omitted > 0 {
        message("warning", format_args!("… and {omitted} more"));
    }
}

/// Says how many values are nulls only because they are gone.
pub(super) fn report_gone(report: &CopyReport) {
    if report.values_gone > 0 {
        let text = "values of row versions that are not live are gone, and printed as nulls";
        message("note", format_args!("{} {text}", report.values_gone));
    }
}

/// What a copy has come to.
pub(super) struct Shown<'r> {
    pub(super) report: &'r CopyReport,
    pub(super) method: &'static str,
    pub(super) direct: bool,
    pub(super) present: usize,
}

impl Shown<'_> {
    pub(super) fn text(&self) -> String {
        let report = self.report;
        let mut text = String::new();
        let lines = [
            ("Outputs", report.tasks.to_string()),
            ("There already", self.present.to_string()),
            ("Rows", report.rows.to_string()),
            ("Left out", report.findings_total.to_string()),
        ];
        for (name, value) in lines {
            let _ = writeln!(text, "{:15}{value}", format!("{name}:"));
        }
        let seconds = report.elapsed.as_secs_f64();
        let bytes = (report.blocks + report.toast_streams.pages) * BLOCK_SIZE as u64;
        let _ = writeln!(
            text,
            "{} of tables and TOAST to {} of rows in {seconds:.2} s, {}, {} {}",
            human_bytes(bytes),
            human_bytes(report.bytes),
            rate(bytes as f64 / seconds.max(1e-9)),
            self.method,
            if self.direct { "direct" } else { "buffered" },
        );
        text.push_str(&pooled::stream_lines(&report.streams));
        text
    }

    pub(super) fn json(&self) -> impl Serialize + use<> {
        let report = self.report;
        Json {
            schema: 1,
            command: "copy",
            complete: report.end == End::Complete,
            outputs: report.tasks,
            present: self.present,
            rows: report.rows,
            bytes: report.bytes,
            blocks: report.blocks,
            findings: report.findings_total,
            values_gone: report.values_gone,
            warnings: report.warnings.len() as u64 + report.warnings_lost,
            seconds: report.elapsed.as_secs_f64(),
            io_method: self.method,
            io_direct: self.direct,
            streams: JsonStreams::new(&report.streams),
            toast_streams: JsonStreams::new(&report.toast_streams),
            io: JsonIo::new(&report.io),
        }
    }
}

#[derive(Serialize)]
struct Json {
    schema: u32,
    command: &'static str,
    complete: bool,
    outputs: usize,
    present: usize,
    rows: u64,
    bytes: u64,
    blocks: u64,
    findings: u64,
    values_gone: u64,
    warnings: u64,
    seconds: f64,
    io_method: &'static str,
    io_direct: bool,
    streams: JsonStreams,
    toast_streams: JsonStreams,
    io: JsonIo,
}
