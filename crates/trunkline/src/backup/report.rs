//! What `trunkline backup verify` prints: findings, counts of each part, and the verdict.

use std::fmt::{Display, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use trunkline_engine::job::End;

use super::files::FilesReport;
use super::finding::Finding;
use super::log::LogReport;
use super::manifest::Manifest;
use crate::output::{fields, human_bytes, object};
use crate::verify::CheckedPages;

/// How many findings of files are listed.
const FINDINGS_LISTED: usize = 1000;

/// What was found. A part that could not be checked is `None`.
pub(super) struct Report {
    root: PathBuf,
    pub(super) manifest: Option<Manifest>,
    pub(super) files: Option<FilesReport>,
    /// `None` also if the files need no log.
    pub(super) log: Option<LogReport>,
    pub(super) pages: Option<CheckedPages>,
    /// Findings of the manifest and of the log.
    pub(super) findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(root: &Path) -> Report {
        let root = root.to_owned();
        Report { root, manifest: None, files: None, log: None, pages: None, findings: Vec::new() }
    }

    /// All findings but those about pages.
    fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().chain(self.files.iter().flat_map(|files| &files.findings))
    }

    pub(super) fn findings_total(&self) -> u64 {
        let of_pages = self.pages.as_ref().map_or(0, |pages| pages.report().findings_total());
        self.findings().count() as u64 + of_pages
    }

    /// Files and directories that we had no permission to read.
    pub(super) fn denied(&self) -> u64 {
        let of_files = self.files.as_ref().map_or(0, |files| files.denied);
        // Files of relations are read again for their pages.
        of_files.max(self.pages.as_ref().map_or(0, |pages| pages.report().denied))
    }

    /// Whether everything was checked, and nothing was found.
    fn restores(&self) -> bool {
        let is_checked = self.files.is_some() && self.pages.as_ref().is_some_and(is_complete);
        is_checked && self.findings_total() == 0
    }

    fn omitted(&self) -> usize {
        self.findings().count().saturating_sub(FINDINGS_LISTED)
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for finding in self.findings().take(FINDINGS_LISTED) {
            let _ = writeln!(text, "{finding}");
        }
        if self.omitted() > 0 {
            let _ = writeln!(text, "… and {} more", self.omitted());
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text += &self.file_lines();
        text += &self.log_lines();
        match &self.pages {
            Some(pages) => {
                let _ = write!(text, "\n{}", pages.text());
            }
            None => text += &fields(33, &[("Pages", &"not checked")]),
        }
        let _ = writeln!(text, "\n{}", self.verdict());
        text
    }

    fn file_lines(&self) -> String {
        let (Some(manifest), Some(files)) = (&self.manifest, &self.files) else {
            return fields(33, &[("Files", &"not checked, for want of a valid backup_manifest")]);
        };
        let lines: [(&str, &dyn Display); _] = [
            ("Version of backup_manifest", &manifest.version),
            ("Files in backup_manifest", &files.listed),
            ("Files with compared checksums", &files.compared),
            ("Bytes read for checksums", &human_bytes(files.bytes)),
            ("Findings in files", &files.findings.len()),
        ];
        fields(33, &lines)
    }

    fn log_lines(&self) -> String {
        let Some(log) = &self.log else { return fields(33, &[("Log", &"not replayed")]) };
        let consistent = match log.consistent {
            Some(place) => place.to_string(),
            None => "not reached".to_owned(),
        };
        let lines: [(&str, &dyn Display); _] = [
            ("Log begins at", &log.start),
            ("Files consistent at", &consistent),
            ("Log ends at", &log.end),
            ("Records", &log.records),
            ("Segments", &log.segments),
            ("Recycled segments behind it", &log.unused),
        ];
        fields(33, &lines)
    }

    /// Pages about which the verdict says nothing, since only a server can replay their records.
    fn unchecked(&self) -> String {
        let Some(pages) = self.pages.as_ref().map(CheckedPages::report) else {
            return String::new();
        };
        let indexes = pages.unchecked.len();
        match pages.pages_unchecked() {
            0 => String::new(),
            1 => "; 1 page of an index could not be checked".to_owned(),
            count if indexes == 1 => format!("; {count} pages of an index could not be checked"),
            count => format!("; {count} pages of {indexes} indexes could not be checked"),
        }
    }

    /// The last line.
    fn verdict(&self) -> String {
        let place = match &self.log {
            Some(LogReport { consistent: Some(consistent), end, .. }) => {
                format!(": consistent at {consistent}, log complete to {end}")
            }
            _ => String::new(),
        };
        match (self.findings_total(), self.restores()) {
            (_, true) => format!("this backup restores{place}{}", self.unchecked()),
            (0, false) => "this backup was not checked completely".to_owned(),
            (1, false) => "this backup is damaged or incomplete: 1 finding".to_owned(),
            (total, false) => format!("this backup is damaged or incomplete: {total} findings"),
        }
    }

    pub(super) fn json(&self) -> impl Serialize {
        let files = self.manifest.as_ref().zip(self.files.as_ref()).map(|(manifest, files)| {
            object! {
                manifest_version: manifest.version,
                system_identifier: manifest.system_identifier,
                files: files.listed,
                checksums_compared: files.compared,
                bytes: files.bytes,
                permission_denied: files.denied,
                findings: files.findings.len(),
            }
        });
        let log = self.log.map(|log| {
            object! {
                start: log.start.to_string(),
                consistent: log.consistent.map(|place| place.to_string()),
                end: log.end.to_string(),
                records: log.records,
                segments: log.segments,
                recycled_segments: log.unused,
            }
        });
        object! {
            schema: 1,
            command: "backup verify",
            directory: self.root.display().to_string(),
            restores: self.restores(),
            verdict: self.verdict(),
            findings_total: self.findings_total(),
            findings: self.findings().take(FINDINGS_LISTED).collect::<Vec<_>>(),
            findings_omitted: self.omitted(),
            manifest: files,
            log: log,
            pages: self.pages.as_ref().map(CheckedPages::json),
        }
    }
}

fn is_complete(pages: &CheckedPages) -> bool {
    pages.report().end == End::Complete
}
