//! `trunkline verify`: every page of a data directory, checked, and on request what the pages hold.
//!
//! ```text
//!   verify                    pages alone: what pg_checksums --check counts, and more
//!   verify --rows --indexes   then tables and indexes, as the catalog describes them (--deep: both)
//!   verify -d DB [NAME...]    nothing but a database, or relations of it
//!   verify DB.SCHEMA.NAME     the same
//! ```
//! What is wrong goes to standard output, one a line, then a summary that reads like the one of
//! `pg_checksums --check`, with the same numbers.

mod contents;
mod scope;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use trunkline_aio::Aio;
use trunkline_aio::sync::Arc;
use trunkline_engine::datadir::{DataDir, OpenOptions, ProblemKind};
use trunkline_engine::file_scan::ReadOptions;
use trunkline_engine::job::{End, IoSummary};
use trunkline_engine::settings::Settings;
use trunkline_engine::verify::{
    ContentReport, Finding, FindingKind, Options, VerifyReport, verify_scope,
};

use crate::cli::Global;
use crate::cluster::DatabaseArgs;
use crate::exit::{Exit, Failure, message};
use crate::instance;
use crate::output::{human_bytes, print, print_json, rate};
use crate::pooled;
use crate::watch::{self, Watch};
use contents::JsonContents;
use scope::{Scope, name_relations};

/// Mounts whose windows have room beside the pool.
const MOUNTS_PLANNED: usize = 2;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// Tables, indexes or TOAST tables of a database; a table comes with its TOAST table and its
    /// indexes [default: everything].
    #[arg(value_name = "NAME")]
    names: Vec<OsString>,

    /// Checks rows too: every value by its type, long values in TOAST, the visibility map. Long
    /// values that no row names are no finding, but a note.
    #[arg(long)]
    rows: bool,

    /// Checks B-tree indexes too: order and links of their pages, every row against them, and that
    /// unique ones are.
    #[arg(long)]
    indexes: bool,

    /// Checks both, rows and indexes.
    #[arg(long)]
    deep: bool,

    /// Tables whose contents are checked at a time.
    #[arg(long, short = 'j', value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: u32,
}

impl VerifyArgs {
    fn rows(&self) -> bool {
        self.rows || self.deep
    }

    fn indexes(&self) -> bool {
        self.indexes || self.deep
    }
}

/// Runs the command.
pub(crate) fn run(
    global: &Global,
    settings: &Settings,
    args: &VerifyArgs,
) -> Result<Exit, Failure> {
    let dir = open(global)?;
    if !dir.control().checksums() {
        message("warning", "data checksums are off in this cluster; pages are checked otherwise");
    }
    let scope = Scope::of(&dir, settings, &args.database, &args.names)?;
    let deep = args.rows() || args.indexes();
    let aio = match deep {
        false => instance::start(settings)?,
        true => {
            let windows = ReadOptions::of(settings).region_bytes(MOUNTS_PLANNED);
            pooled::start(settings, settings.shared_buffers(), windows)?
        }
    };
    let said = aio.method_status().fallbacks.len();
    let interrupt = watch::interrupt()?;
    let watch = Arc::new(Watch::new(interrupt.clone(), global));
    let options = Options::of(settings);
    let outcome = verify_scope(&aio, &dir, scope.pages, options, Arc::clone(&watch) as _);
    watch.clear();
    let mut contents = None;
    if deep && matches!(&outcome, Ok(report) if report.end == End::Complete) {
        let watch = Arc::new(Watch::new(interrupt, global));
        let only = scope.only;
        let checked = contents::verify(&aio, &dir, settings, args, only, Arc::clone(&watch) as _);
        watch.clear();
        contents = Some(checked);
    }
    instance::report_fallbacks(&aio.method_status().fallbacks[said..]);
    let mut report = outcome?;
    name_relations(&mut report, &dir, settings);
    let contents = contents.transpose()?;
    let root = dir.path();
    for note in &report.notes {
        message("note", format_args!("{}: {}", relative(&note.path, root), note.kind));
    }
    for skipped in contents.iter().flat_map(|contents| &contents.skipped) {
        message("note", format_args!("{}: {}", skipped.relation, skipped.reason));
    }
    for orphans in contents.iter().flat_map(|contents| &contents.orphans) {
        contents::note_of(orphans);
    }
    for finding in &report.findings {
        if let FindingKind::File(ProblemKind::Dangling { target }) = &finding.kind {
            message("hint", elsewhere(target));
        }
    }
    if global.json {
        print_json(&Json::new(&report, contents.as_ref(), root, &aio, settings))?;
    } else {
        let mut text = text(&report, root, &aio, settings);
        if let Some(contents) = &contents {
            text.push_str(&contents::text(contents, root));
        }
        print(&text)?;
    }
    let more = contents.as_ref().map_or(0, |contents| contents.findings_total);
    let exit = if report.findings_total() + more == 0 { Exit::Good } else { Exit::Findings };
    let end = contents.as_ref().map_or(report.end, |contents| contents.end);
    Ok(watch.ended(end, exit))
}

/// Opens the data directory that the options name, with its warnings on standard error.
pub(crate) fn open(global: &Global) -> Result<DataDir, Failure> {
    let options = OpenOptions { force_unclean: global.force_unclean };
    let dir = DataDir::open(global.require_pgdata()?, options)?;
    let dir = dir.with_tablespaces(&global.tablespace_mapping)?;
    for warning in dir.warnings() {
        message("warning", warning);
    }
    Ok(dir)
}

/// What to do about a tablespace whose link leads to `target`, where nothing is.
pub(crate) fn elsewhere(target: &Path) -> String {
    format!("-T {}=NEWDIR says where the tablespace is now", target.display())
}

/// A path below the data directory as the user knows it.
pub(crate) fn relative(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

fn text(report: &VerifyReport, root: &Path, aio: &Aio, settings: &Settings) -> String {
    let mut text = String::new();
    list(&mut text, &report.findings, report.findings_omitted(), root);
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

/// Findings, one a line, and an empty line behind them.
fn list(text: &mut String, findings: &[Finding], omitted: u64, root: &Path) {
    for finding in findings {
        if let Some(relation) = &finding.relation {
            let _ = write!(text, "{relation}: ");
        }
        let _ = writeln!(text, "{}: {finding}", relative(&finding.path, root));
    }
    if omitted > 0 {
        let _ = writeln!(text, "… and {omitted} more");
    }
    if !text.is_empty() {
        text.push('\n');
    }
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
    /// What was asked for beyond single pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    contents: Option<JsonContents>,
}

#[derive(Serialize)]
struct JsonFinding {
    #[serde(skip_serializing_if = "Option::is_none")]
    relation: Option<String>,
    file: String,
    block: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line_pointer: Option<u16>,
    kind: &'static str,
    text: String,
}

impl JsonFinding {
    fn new(finding: &Finding, root: &Path) -> JsonFinding {
        JsonFinding {
            relation: finding.relation.as_deref().map(str::to_owned),
            file: relative(&finding.path, root),
            block: finding.block,
            line_pointer: finding.item,
            kind: finding.kind.name(),
            text: finding.kind.to_string(),
        }
    }
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
    fn new(
        report: &VerifyReport,
        contents: Option<&ContentReport>,
        root: &Path,
        aio: &Aio,
        settings: &Settings,
    ) -> Json {
        let finding = |finding: &Finding| JsonFinding::new(finding, root);
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
            contents: contents.map(|contents| JsonContents::new(contents, root)),
        }
    }
}
