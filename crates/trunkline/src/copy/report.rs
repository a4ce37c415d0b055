//! The report on a copy: skipped rows on standard error, and counts on standard output if the rows
//! go to files.

use std::fmt::{self, Display, Write as _};
use std::path::PathBuf;

use serde::Serialize;
use trunkline_engine::copy::CopyReport;
use trunkline_engine::datadir::DataDir;
use trunkline_engine::job::End;
use trunkline_format::BLOCK_SIZE;

use super::partial_file::incomplete;
use crate::exit::{message, warnings};
use crate::io_stats;
use crate::output::{cache_mode, fields, human_bytes, object, rate};

/// Prints a warning for each row or block that was skipped. For rows that were skipped because a
/// file is missing, there is only one warning per table and file.
pub(super) fn report_findings(report: &CopyReport) {
    let mut unknown = 0;
    for rows in &report.unknown_rows {
        message("warning", format_args!("{}: {rows}", rows.table));
        unknown += rows.rows;
    }
    let listed = report.findings.iter().map(|(table, finding)| format!("{table}: {finding}"));
    warnings(listed, report.findings_total - unknown - report.findings.len() as u64);
}

/// What was skipped, such as `3 rows, 1 page or file`.
fn skipped(report: &CopyReport) -> String {
    let rows = match report.findings_total - report.pages_unreadable {
        1 => "1 row".to_owned(),
        count => format!("{count} rows"),
    };
    match report.pages_unreadable {
        0 => rows,
        1 => format!("{rows}, 1 page or file"),
        count => format!("{rows}, {count} pages or files"),
    }
}

/// Warns about each file that was written although rows are missing in it, and returns the number
/// of these files. `paths` are the names that the files of the tasks get if they are complete.
pub(super) fn warn_of_incomplete_files(report: &CopyReport, paths: &[PathBuf]) -> usize {
    let written = paths.iter().zip(&report.rows_of_tasks).filter(|(_, rows)| rows.is_some());
    let lacking = written.filter(|(path, _)| !path.exists());
    let files: Vec<PathBuf> = lacking.map(|(path, _)| incomplete(path)).collect();
    for file in &files {
        message("warning", format_args!("rows are missing in \"{}\"", file.display()));
    }
    files.len()
}

/// Notes how many values were printed as nulls because they no longer exist.
pub(super) fn report_missing_values(report: &CopyReport) {
    if report.values_gone > 0 {
        let text = "values of row versions that are not live no longer exist; printed as nulls";
        message("note", format_args!("{} {text}", report.values_gone));
    }
}

/// Numbers of tables and sequences that can't be copied. Each was reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LeftOut {
    pub(super) tables: usize,
    pub(super) sequences: usize,
}

impl LeftOut {
    pub(super) fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tables {
            1 => f.write_str("1 table")?,
            count => write!(f, "{count} tables")?,
        }
        match self.sequences {
            0 => Ok(()),
            1 => f.write_str(", 1 sequence"),
            count => write!(f, ", {count} sequences"),
        }
    }
}

/// A report, and the I/O that was used.
pub(super) struct CopyOutput<'r> {
    pub(super) report: &'r CopyReport,
    pub(super) dir: &'r DataDir,
    pub(super) method: &'static str,
    pub(super) direct: bool,
    /// Number of tables whose files already existed.
    pub(super) present: usize,
    /// Number of files that were written although rows are missing in them.
    pub(super) incomplete: usize,
    pub(super) left_out: LeftOut,
    /// Whether there may be more tables to copy, because catalogs are damaged.
    pub(super) may_lack_tables: bool,
    /// The name of the script that loads the copies, if it was written.
    pub(super) script: Option<&'static str>,
    /// Whether no table, row or setting was left out.
    pub(super) nothing_missing: bool,
}

impl CopyOutput<'_> {
    pub(super) fn text(&self) -> String {
        let report = self.report;
        let left_out = match self.may_lack_tables {
            true => format!("{}; there may be more, because catalogs are damaged", self.left_out),
            false => self.left_out.to_string(),
        };
        let written = match self.incomplete {
            0 => report.tasks.to_string(),
            count => format!("{}, {count} of them incomplete", report.tasks),
        };
        let skipped = skipped(report);
        // The rate is the read rate: rows in text format may be larger or smaller than their pages.
        let mut lines: Vec<(&str, &dyn Display)> = vec![
            ("Files written", &written),
            ("Files kept", &self.present),
            ("Rows", &report.rows),
            ("Skipped", &skipped),
            ("Left out", &left_out),
        ];
        if let Some(script) = &self.script {
            lines.push(("Script", script));
        }
        let mut text = fields(15, &lines);
        let seconds = report.elapsed.as_secs_f64();
        let bytes = (report.blocks + report.toast_streams.pages) * BLOCK_SIZE as u64;
        let _ = writeln!(
            text,
            "{} of tables and TOAST read, {} of rows written in {seconds:.2} s, {}, {} {}",
            human_bytes(bytes),
            human_bytes(report.bytes),
            rate(bytes as f64 / seconds.max(1e-9)),
            self.method,
            cache_mode(self.direct),
        );
        text.push_str(&io_stats::stream_lines(&report.streams));
        text
    }

    pub(super) fn json(&self) -> impl Serialize {
        let report = self.report;
        object! {
            schema: 1,
            command: "copy",
            complete: report.end == End::Complete && self.nothing_missing,
            unclean: !self.dir.is_clean(),
            outputs: report.tasks,
            present: self.present,
            incomplete: self.incomplete,
            may_lack_tables: self.may_lack_tables,
            left_out: self.left_out.tables,
            sequences_left_out: self.left_out.sequences,
            script: self.script,
            rows: report.rows,
            bytes: report.bytes,
            blocks: report.blocks,
            findings: report.findings_total,
            pages_unreadable: report.pages_unreadable,
            values_gone: report.values_gone,
            warnings: (self.dir.warnings().len() + report.warnings.len()) as u64
                + report.warnings_lost,
            seconds: report.elapsed.as_secs_f64(),
            io_method: self.method,
            io_direct: self.direct,
            streams: io_stats::streams_json(&report.streams),
            toast_streams: io_stats::streams_json(&report.toast_streams),
            io: io_stats::io_json(&report.io),
        }
    }
}
