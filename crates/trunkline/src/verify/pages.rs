//! The report on pages: findings, and a summary in the words of `pg_checksums --check`.

use std::fmt::{Display, Write as _};
use std::path::Path;

use serde::Serialize;
use trunkline_engine::job::{End, IoSummary};
use trunkline_engine::verify::{ContentReport, Skipped, VerifyReport};

use super::{contents, findings};
use crate::data_dir::relative;
use crate::exit::plain;
use crate::io_stats::io_json;
use crate::output::{cache_mode, fields, human_bytes, object, throughput};

/// A report, and the I/O that was used.
#[derive(Clone, Copy)]
pub(super) struct PagesOutput<'r> {
    pub(super) report: &'r VerifyReport,
    /// The data directory.
    pub(super) root: &'r Path,
    /// Whether the files were deliberately not compared with the catalogs.
    pub(super) files_only: bool,
    pub(super) method: &'static str,
    pub(super) direct: bool,
}

/// How many pages were not checked, if any.
fn report_unchecked(report: &VerifyReport) -> Option<String> {
    let (pages, relations) = (report.pages_unchecked(), report.unchecked.len());
    let why = "no redo rules for their index methods";
    let plural = if relations == 1 { "" } else { "s" };
    (pages > 0).then(|| format!("{pages} in {relations} relation{plural} ({why})"))
}

impl PagesOutput<'_> {
    pub(super) fn text(&self) -> String {
        let report = self.report;
        let mut text = findings::list(&report.findings, report.findings_omitted(), self.root);
        text.push_str(match report.end {
            End::Complete => "Verification completed\n",
            End::Cancelled | End::Abandoned => "Verification interrupted; partial results:\n",
        });
        let version = match report.checksum_version {
            0 => "0 (off; pages were checked without checksums)".to_owned(),
            version => version.to_string(),
        };
        let lines: [(&str, &dyn Display); _] = [
            ("Files scanned", &report.files),
            ("Blocks scanned", &report.blocks),
            ("Bad checksums", &report.bad_checksums),
            ("Bad pages with correct checksum", &report.beyond_checksums),
            ("Other findings", &report.other_findings),
            ("Data checksum version", &version),
        ];
        text.push_str(&fields(33, &lines));
        if let Some(unchecked) = report_unchecked(report) {
            text.push_str(&fields(33, &[("Pages not checked", &unchecked)]));
        }
        text.push_str(&self.catalog_lines());
        text.push_str(&self.io_lines());
        text
    }

    /// What was compared with the catalogs, and what nothing proves.
    fn catalog_lines(&self) -> String {
        let (unproven, doubtful);
        let lines: &[(&str, &dyn Display)] = match &self.report.catalogs {
            Some(catalogs) => {
                let why = "no index refers to all pages of these relations; --json lists them";
                unproven = match catalogs.unproven.len() {
                    // The reason follows.
                    count if count == 0 || !catalogs.lengths_compared => count.to_string(),
                    count => format!("{count} ({why})"),
                };
                doubtful = catalogs.doubtful.len();
                &[
                    ("Relations in the catalogs", &catalogs.relations),
                    ("Lengths unproven", &unproven),
                    ("Lengths doubtful", &doubtful),
                ]
            }
            None if self.files_only => &[("Relations in the catalogs", &"not compared")],
            None => &[],
        };
        let mut text = fields(33, lines);
        for Skipped { relation, reason } in self.report.catalogs.iter().flat_map(|all| &all.skipped)
        {
            let _ = writeln!(text, "Not compared: {relation}: {}", plain(reason));
        }
        text
    }

    /// The lines after the summary of `pg_checksums`: throughput and I/O statistics.
    fn io_lines(&self) -> String {
        let report = self.report;
        let IoSummary { reads, bytes, cached, in_flight, waits, wait_time, .. } = report.io;
        let mut text = format!(
            "{}, {} {}\n",
            throughput(report.bytes(), report.elapsed.as_secs_f64()),
            self.method,
            cache_mode(self.direct),
        );
        let average = bytes.checked_div(reads).unwrap_or_default();
        let _ = write!(
            text,
            "{reads} reads, average size {}, {in_flight:.1} in flight, {waits} waits for {:.2} s",
            human_bytes(average),
            wait_time.as_secs_f64(),
        );
        if cached > 0 {
            let _ = write!(text, ", {cached} served from the page cache");
        }
        text.push('\n');
        text
    }

    pub(super) fn json(self, contents: Option<&ContentReport>) -> impl Serialize {
        let report = self.report;
        // The report on rows and indexes, if they were checked.
        let contents = contents.map(|contents| contents::json(contents, self.root));
        let catalogs = report.catalogs.as_ref().map(|catalogs| {
            let skipped = catalogs.skipped.iter().map(|skipped| {
                object! { relation: skipped.relation.to_string(), reason: plain(&skipped.reason) }
            });
            let unproven = catalogs.unproven.iter().map(ToString::to_string);
            let doubtful = catalogs.doubtful.iter().map(|doubtful| {
                object! {
                    relation: doubtful.relation.to_string(),
                    file: relative(&doubtful.path, self.root),
                    blocks: doubtful.found,
                    relpages: doubtful.pages,
                }
            });
            object! {
                relations: catalogs.relations,
                lengths_unproven: catalogs.unproven.len(),
                relations_unproven: unproven.collect::<Vec<_>>(),
                lengths_doubtful: doubtful.collect::<Vec<_>>(),
                skipped: skipped.collect::<Vec<_>>(),
            }
        });
        let unchecked = report.unchecked.iter().map(|unchecked| {
            let relation = unchecked.relation.as_deref().map(str::to_owned);
            object! {
                #[serde(flatten)]
                relation: relation.map(|relation| object! { relation: relation }),
                file: relative(&unchecked.path, self.root),
                pages: unchecked.pages,
                first_block: unchecked.block,
                text: plain(&unchecked.reason),
            }
        });
        object! {
            schema: 1,
            command: "verify",
            directory: self.root.display().to_string(),
            complete: report.end == End::Complete,
            files_scanned: report.files,
            blocks_scanned: report.blocks,
            bad_checksums: report.bad_checksums,
            bad_pages_with_right_checksum: report.beyond_checksums,
            other_findings: report.other_findings,
            pages_not_checked: report.pages_unchecked(),
            relations_not_checked: unchecked.collect::<Vec<_>>(),
            permission_denied: report.denied,
            catalogs: catalogs,
            data_checksum_version: report.checksum_version,
            findings: findings::json(&report.findings, self.root),
            findings_omitted: report.findings_omitted(),
            bytes: report.bytes(),
            seconds: report.elapsed.as_secs_f64(),
            bytes_per_second: report.bytes_per_second(),
            io_method: self.method,
            io_direct: self.direct,
            io: io_json(&report.io),
            #[serde(flatten)]
            contents: contents.map(|contents| object! { contents: contents }),
        }
    }
}
