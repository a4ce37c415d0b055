//! `trunkline verify`: checks every page of a data directory, and optionally rows and indexes.
//!
//! ```text
//!   verify                    pages, and whether files are missing or too short
//!   verify --files-only       pages only: what pg_checksums --check counts, and more
//!   verify --rows --indexes   then rows and indexes, as the catalog describes them (--deep: both)
//!   verify -d DB [NAME...]    only a database, or relations in it
//!   verify DB.SCHEMA.NAME     the same
//!   verify --wal              the log instead of the files: its records, and what redo makes of them
//! ```
//! Findings are printed to standard output, one per line. They are followed by a summary, which has
//! the same lines and numbers as the output of `pg_checksums --check`.
//!
//! We always check pages first, reading whole files with large reads that bypass the pool. After
//! that, if the user has asked for it, we check rows and indexes. These are read through a buffer
//! pool, because the pages are needed in a different order and more than once. If the user
//! interrupts the page check, we don't start the second part.
//!
//! Pages of a crashed directory for whose records we have no redo rule are not checked. That is a warning for
//! each relation, and a count in the summary. It is no finding, since a server has the rules.
//!
//! If we lack the permission to read a file, we don't know whether it is valid or damaged. The
//! command then exits with 3, whatever else it has found.

mod contents;
mod findings;
mod log;
mod pages;
mod scope;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;
use trunkline_engine::datadir::{DataDir, ProblemKind};
use trunkline_engine::job::End;
use trunkline_engine::settings::Settings;
use trunkline_engine::verify::{
    ContentOptions, ContentReport, FindingKind, Only, Options, Scope as PageScope, VerifyReport,
    verify_contents, verify_scope, verify_with_catalogs,
};

use crate::catalog_session::catalog_files;
use crate::data_dir::{self, moved_tablespace_hint, relative};
use crate::exit::{Exit, Failure, first_warnings, message};
use crate::interrupt::Interrupt;
use crate::io_instance::{IoInstance, read_window_bytes};
use crate::monitor::run_job;
use crate::number::number;
use crate::options::{Context, DatabaseArgs};
use crate::output::print_report;
use crate::replay_options::{LOG_CHECK, ReplayArgs};
use pages::PagesOutput;
use scope::{Scope, name_relations};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// Tables, indexes or TOAST tables to check. If a table is given, its TOAST table and its
    /// indexes are checked too [default: everything].
    #[arg(value_name = "NAME")]
    names: Vec<OsString>,

    /// Check only the pages that exist, as pg_checksums does. Without this option, the files are
    /// also compared with the catalogs: a missing file or directory, or a missing end of a table, is
    /// a finding.
    #[arg(long, conflicts_with_all = ["rows", "indexes", "deep"])]
    files_only: bool,

    /// Also check rows: every value according to its type, TOAST values, and the visibility map. If
    /// no row refers to a TOAST value, this is reported as a note and not as a finding.
    #[arg(long)]
    rows: bool,

    /// Also check B-tree indexes: the order and links of their pages, that every row has its index
    /// entries, and uniqueness.
    #[arg(long)]
    indexes: bool,

    /// Check both rows and indexes.
    #[arg(long)]
    deep: bool,

    /// Number of tables whose rows and indexes are checked at the same time.
    #[arg(long, short = 'j', value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    #[arg(value_parser = number(1..=64_u32))]
    jobs: u32,
}

impl VerifyArgs {
    /// Options that mean nothing for a check of the log.
    fn refuse_with_log(&self, replay: &ReplayArgs) -> Result<(), Failure> {
        if let Some(name) = replay.given_besides(&[LOG_CHECK]) {
            return Err(Failure::usage(format_args!("{name} can't be used with {LOG_CHECK}")));
        }
        let is_given = self.files_only
            || self.checks_contents()
            || !self.names.is_empty()
            || self.database.dbname.is_some();
        match is_given {
            true => {
                Err(Failure::usage("--wal without a directory checks the log and nothing else"))
            }
            false => Ok(()),
        }
    }

    fn checks_contents(&self) -> bool {
        self.rows || self.indexes || self.deep
    }

    fn content_options(&self, settings: &Settings, only: Option<Vec<Only>>) -> ContentOptions {
        let (rows, indexes) = (self.rows || self.deep, self.indexes || self.deep);
        let options = ContentOptions::of(settings, rows, indexes);
        // These checks exclude --files-only, so we have already compared the files.
        ContentOptions { workers: self.jobs, only, catalogs_compared: true, ..options }
    }
}

/// The check of all pages of a directory, for commands that check more than that.
pub(crate) struct CheckedPages {
    report: VerifyReport,
    root: PathBuf,
    method: &'static str,
    direct: bool,
}

impl CheckedPages {
    /// Does what the command does without options: checks all pages, and whether files are missing or
    /// too short.
    pub(crate) fn check(
        context: &Context<'_>,
        dir: &DataDir,
        interrupt: &Interrupt,
    ) -> Result<CheckedPages, Failure> {
        let Context { global, settings, .. } = context;
        let io = IoInstance::for_files(settings)?;
        let catalogs = catalog_files(dir, settings, &PageScope::Everything, false)?;
        let report = run_job(global, interrupt, &io, |observer| {
            let compared = (PageScope::Everything, catalogs);
            verify_with_catalogs(io.aio(), dir, compared, Options::of(settings), observer)
        })?;
        report_notes(&report, None, dir.path());
        let (root, direct) = (dir.path().to_owned(), settings.io_direct_data());
        Ok(CheckedPages { report, root, method: io.method_name(), direct })
    }

    pub(crate) fn report(&self) -> &VerifyReport {
        &self.report
    }

    /// Findings, counts and I/O.
    pub(crate) fn text(&self) -> String {
        self.output().text()
    }

    /// The same as JSON.
    pub(crate) fn json(&self) -> impl Serialize {
        self.output().json(None)
    }

    fn output(&self) -> PagesOutput<'_> {
        let CheckedPages { report, root, method, direct } = self;
        PagesOutput { report, files_only: false, root, method, direct: *direct }
    }
}

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, args: &VerifyArgs) -> Result<Exit, Failure> {
    let Context { global, settings, .. } = context;
    if global.replay.checks_log() {
        args.refuse_with_log(&global.replay)?;
        return log::run(context);
    }
    let dir = data_dir::open(context)?;
    if !dir.control().checksums() {
        let text = "data checksums are not enabled in this cluster; only page contents are checked";
        message("warning", text);
    }
    let scope = Scope::of(&dir, settings, &args.database, &args.names)?;
    // The page check runs before we create the pool, but it uses the same memory. If we are going
    // to check rows or indexes as well, we need enough memory for the pool.
    let io = match args.checks_contents() {
        false => IoInstance::for_files(settings)?,
        true => {
            let windows = read_window_bytes(settings);
            IoInstance::for_pool(settings, settings.shared_buffers(), windows)?
        }
    };
    let catalogs = match args.files_only {
        true => None,
        false => Some(catalog_files(&dir, settings, &scope.pages, args.checks_contents())?),
    };
    let interrupt = Interrupt::install()?;
    let options = Options::of(settings);
    let mut pages = run_job(global, &interrupt, &io, |observer| match catalogs {
        Some(catalogs) => {
            let compared = (scope.pages, catalogs);
            verify_with_catalogs(io.aio(), &dir, compared, options, observer)
        }
        None => verify_scope(io.aio(), &dir, scope.pages, options, observer),
    })?;
    let mut contents = None;
    if args.checks_contents() && pages.end == End::Complete {
        let engine = io.engine(settings, settings.shared_buffers())?;
        let cluster = engine.cluster_of(dir.clone());
        let options = args.content_options(settings, scope.only);
        contents = Some(run_job(global, &interrupt, &io, |observer| {
            verify_contents(engine.pool(), &dir, cluster.storage(), &options, observer)
        }));
    }
    if args.files_only {
        name_relations(&mut pages, &dir, settings);
    }
    // If we can't check the contents at all, we must still print the report about the pages.
    let (contents, failure) = match contents.transpose() {
        Ok(contents) => (contents, None),
        Err(failure) => (None, Some(failure)),
    };
    report_notes(&pages, contents.as_ref(), dir.path());
    let output = PagesOutput {
        report: &pages,
        files_only: args.files_only,
        root: dir.path(),
        method: io.method_name(),
        direct: settings.io_direct_data(),
    };
    print_report(global, &output.json(contents.as_ref()), || {
        let contents = contents.as_ref().map(|contents| contents::text(contents, dir.path()));
        output.text() + &contents.unwrap_or_default()
    })?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    let end = contents.as_ref().map_or(pages.end, |contents| contents.end);
    let more = contents.as_ref().map_or(0, |contents| contents.findings_total);
    let total = pages.findings_total() + more;
    if pages.denied > 0 && end == End::Complete {
        // If we can't read a table's file, its rows are another finding about the same file, and so
        // are the values in a TOAST table.
        let denied = pages.findings.iter().filter(|finding| finding.kind.is_denied());
        let denied: BTreeSet<&Path> = denied.map(|finding| &*finding.path).collect();
        let again = contents.iter().flat_map(|contents| &contents.findings);
        let again = again.filter(|finding| denied.contains(finding.file_at_fault()));
        let again: u64 = again.map(|finding| 1 + finding.more).sum();
        return Err(Failure::denied(pages.denied, total.saturating_sub(pages.denied + again)));
    }
    let exit = if total == 0 { Exit::Good } else { Exit::Findings };
    Ok(interrupt.exit_after(end, exit))
}

/// Prints notes to standard error: things worth knowing that aren't findings.
fn report_notes(pages: &VerifyReport, contents: Option<&ContentReport>, root: &Path) {
    // The JSON report lists all of these.
    let doubtful = pages.catalogs.as_ref().map_or(&[][..], |catalogs| &catalogs.doubtful);
    first_warnings(doubtful.iter().map(|doubtful| {
        format!("{}: {}: {doubtful}", doubtful.relation, relative(&doubtful.path, root))
    }));
    first_warnings(pages.unchecked.iter().map(|unchecked| {
        let name = unchecked.relation.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        format!("{name}{}: {unchecked}", relative(&unchecked.path, root))
    }));
    for note in &pages.notes {
        message("note", format_args!("{}: {}", relative(&note.path, root), note.kind));
    }
    for skipped in contents.iter().flat_map(|contents| &contents.skipped) {
        message("note", format_args!("{}: {}", skipped.relation, skipped.reason));
    }
    for orphans in contents.iter().flat_map(|contents| &contents.orphans) {
        contents::report_orphans(orphans);
    }
    for finding in &pages.findings {
        if let FindingKind::File(ProblemKind::Dangling { target }) = &finding.kind {
            message("hint", moved_tablespace_hint(target));
        }
    }
}
