//! `trunkline verify`: every page of a data directory, checked.
//!
//! Bad blocks go to standard output, one a line, then a summary that reads like the one of
//! `pg_checksums --check`, with the same numbers.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use trunkline_aio::Aio;
use trunkline_aio::sync::Arc;
use trunkline_engine::datadir::{DataDir, OpenOptions};
use trunkline_engine::scan::{End, IoSummary};
use trunkline_engine::settings::Settings;
use trunkline_engine::verify::{Options, VerifyReport, verify};

use crate::cli::Global;
use crate::exit::{Exit, Failure, message};
use crate::instance;
use crate::output::{human_bytes, print, print_json, rate};
use crate::watch::{self, Watch};

/// Runs the command.
pub(crate) fn run(global: &Global, settings: &Settings) -> Result<Exit, Failure> {
    let dir = open(global)?;
    if !dir.control().checksums() {
        message("warning", "data checksums are off in this cluster; pages are checked otherwise");
    }
    let aio = instance::start(settings)?;
    let said = aio.method_status().fallbacks.len();
    let watch = Arc::new(Watch::new(watch::interrupt()?, global));
    let options = Options::of(settings);
    let outcome = verify(&aio, &dir, options, Arc::clone(&watch) as _);
    watch.clear();
    instance::report_fallbacks(&aio.method_status().fallbacks[said..]);
    let report = outcome?;
    let root = dir.path();
    for note in &report.notes {
        message("note", format_args!("{}: {}", relative(&note.path, root), note.kind));
    }
    if global.json {
        print_json(&Json::new(&report, root, &aio, settings))?;
    } else {
        print(&text(&report, root, &aio, settings))?;
    }
    let exit = if report.findings_total() == 0 { Exit::Good } else { Exit::Findings };
    Ok(watch::ended(report.end, exit))
}

/// Opens the data directory that the options name, with its warnings on standard error.
pub(crate) fn open(global: &Global) -> Result<DataDir, Failure> {
    let options = OpenOptions { force_unclean: global.force_unclean };
    let dir = DataDir::open(global.require_pgdata()?, options)?;
    for warning in dir.warnings() {
        message("warning", warning);
    }
    Ok(dir)
}

/// A path below the data directory as the user knows it.
pub(crate) fn relative(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

fn text(report: &VerifyReport, root: &Path, aio: &Aio, settings: &Settings) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        let _ = writeln!(text, "{}: {finding}", relative(&finding.path, root));
    }
    if report.findings_omitted() > 0 {
        let _ = writeln!(text, "… and {} more", report.findings_omitted());
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "{}",
        match report.end {
            End::Complete => "Verification completed",
            End::Cancelled | End::Abandoned =>
                "Verification interrupted; what was done until then:",
        }
    );
    let lines = [
        ("Files scanned", report.files.to_string()),
        ("Blocks scanned", report.blocks.to_string()),
        ("Bad checksums", report.bad_checksums.to_string()),
        ("Bad pages with a right checksum", report.beyond_checksums.to_string()),
        ("Other findings", report.other_findings.to_string()),
        (
            "Data checksum version",
            match report.checksum_version {
                0 => "0 (off: pages were checked without)".to_owned(),
                version => version.to_string(),
            },
        ),
    ];
    for (name, value) in lines {
        let _ = writeln!(text, "{:33}{value}", format!("{name}:"));
    }
    text.push_str(&io_lines(report, aio, settings));
    text
}

fn io_lines(report: &VerifyReport, aio: &Aio, settings: &Settings) -> String {
    let IoSummary { reads, bytes, cached, in_flight, waits, wait_time, .. } = report.io;
    let way = if settings.io_direct_data() { "direct" } else { "buffered" };
    let mut text = format!(
        "{} in {:.2} s, {}, {} {way}\n",
        human_bytes(report.bytes()),
        report.elapsed.as_secs_f64(),
        rate(report.bytes_per_second()),
        aio.method_status().used,
    );
    let average = bytes.checked_div(reads).unwrap_or_default();
    let _ = write!(
        text,
        "{reads} reads of {} on average, {in_flight:.1} in flight, {waits} waits for {:.2} s",
        human_bytes(average),
        wait_time.as_secs_f64(),
    );
    if cached > 0 {
        let _ = write!(text, ", {cached} answered by the cache at once");
    }
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Json {
    schema: u32,
    command: &'static str,
    directory: String,
    complete: bool,
    files_scanned: u64,
    blocks_scanned: u64,
    bad_checksums: u64,
    bad_pages_with_right_checksum: u64,
    other_findings: u64,
    data_checksum_version: u32,
    findings: Vec<JsonFinding>,
    findings_omitted: u64,
    bytes: u64,
    seconds: f64,
    bytes_per_second: f64,
    io_method: &'static str,
    io_direct: bool,
    io: JsonIo,
}

#[derive(Serialize)]
struct JsonFinding {
    file: String,
    block: Option<u32>,
    kind: &'static str,
    text: String,
}

/// The I/O of a job, for programs.
#[derive(Serialize)]
pub(crate) struct JsonIo {
    reads: u64,
    bytes: u64,
    cached: u64,
    in_flight_mean: f64,
    waits: u64,
    wait_seconds: f64,
    device_seconds: f64,
    retried: u64,
}

impl JsonIo {
    pub(crate) fn new(io: &IoSummary) -> JsonIo {
        JsonIo {
            reads: io.reads,
            bytes: io.bytes,
            cached: io.cached,
            in_flight_mean: io.in_flight,
            waits: io.waits,
            wait_seconds: io.wait_time.as_secs_f64(),
            device_seconds: io.device_time.as_secs_f64(),
            retried: io.retried,
        }
    }
}

impl Json {
    fn new(report: &VerifyReport, root: &Path, aio: &Aio, settings: &Settings) -> Json {
        let finding = |finding: &trunkline_engine::verify::Finding| JsonFinding {
            file: relative(&finding.path, root),
            block: finding.block,
            kind: finding.kind.name(),
            text: finding.kind.to_string(),
        };
        Json {
            schema: 1,
            command: "verify",
            directory: root.display().to_string(),
            complete: report.end == End::Complete,
            files_scanned: report.files,
            blocks_scanned: report.blocks,
            bad_checksums: report.bad_checksums,
            bad_pages_with_right_checksum: report.beyond_checksums,
            other_findings: report.other_findings,
            data_checksum_version: report.checksum_version,
            findings: report.findings.iter().map(finding).collect(),
            findings_omitted: report.findings_omitted(),
            bytes: report.bytes(),
            seconds: report.elapsed.as_secs_f64(),
            bytes_per_second: report.bytes_per_second(),
            io_method: aio.method_status().used.name(),
            io_direct: settings.io_direct_data(),
            io: JsonIo::new(&report.io),
        }
    }
}
