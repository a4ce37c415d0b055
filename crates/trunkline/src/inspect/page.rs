//! `trunkline inspect page`: decodes a page of a relation, or lists its history.
//!
//! ```text
//!   NAME  ─▶ FILE               by the catalog, if it is a name rather than a file
//!   FILE BLOCK ─▶ PageAddress   segment file, fork and block
//!              ─▶ Place         cluster and relation, if it is a file of a data directory
//!              ─▶ Source        the file, or the log: then the page is built from its records
//!              ─▶ Report        header, checksum, verdict, line pointers, tuple headers
//!   --history  ─▶ History       the records of the log that are about the page
//! ```
//! A checksum mismatch is a finding only if the cluster has checksums enabled, which is recorded in
//! the control file. We look for the control file in the directories above the given file, and then
//! in the data directory given by `-D`. If there is no control file, we treat a non-zero checksum
//! field as a sign that checksums are enabled.

mod address;
mod history;
mod place;
mod report;
mod source;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use trunkline_engine::datadir::read_control_file;
use trunkline_format::Fork;

use super::relation_file;
use crate::exit::{Exit, Failure};
use crate::number::number;
use crate::options::{Context, DatabaseArgs, Global, fork};
use crate::output::print_report;
use address::PageAddress;
use place::Place;
use report::Report;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct PageArgs {
    #[command(flatten)]
    database: DatabaseArgs,

    /// Relation by name, such as public.accounts, or by file numbers, such as 5/16384; or a file,
    /// such as base/5/16384_vm. Only a name requires the catalog, and so a stopped cluster.
    #[arg(value_name = "RELATION|FILE")]
    relation: OsString,

    /// Block number in the relation, counted across all segments [default: the first block of the
    /// file].
    #[arg(value_parser = number(0..=u32::MAX))]
    block: Option<u32>,

    /// Fork of the relation [default: main, or the fork of the file].
    #[arg(long, value_parser = fork())]
    fork: Option<Fork>,

    /// List the records of the log that are about the page, one per line as inspect wal prints them,
    /// instead of the page: from the start of replay, or of a cluster that was shut down, from the
    /// oldest segment of pg_wal and --wal. Records marked with * rebuild the page.
    #[arg(long)]
    history: bool,
}

pub(super) fn run(context: &Context<'_>, args: &PageArgs) -> Result<Exit, Failure> {
    let PageArgs { database, relation, block, fork, history } = args;
    let found = relation_file::find(context, database, relation, *fork, *history)?;
    let mut address = PageAddress::find(&found.path, *block)?;
    let place = Place::find(context, found, *history)?;
    if *history {
        return history::run(context, place, address);
    }
    let (page, source) = source::read(context, place.as_ref(), &mut address)?;
    let cluster = cluster_checksums(context.global, &address.path);
    let report = Report::of(address, &page, source, cluster);
    print_report(context.global, &report.json(), || report.text())?;
    Ok(if report.has_finding() { Exit::Findings } else { Exit::Good })
}

/// Returns whether checksums are enabled in the cluster that the file belongs to. Returns `None` if
/// we can't find the control file, or if we can't decode it.
fn cluster_checksums(global: &Global, file: &Path) -> Option<bool> {
    let above = file.canonicalize().unwrap_or_default();
    let candidates = above.ancestors().skip(1).chain(global.pgdata().map(PathBuf::as_path));
    let control =
        candidates.map(|directory| directory.join("global/pg_control")).find(|p| p.exists());
    control.and_then(|path| read_control_file(&path).ok()).map(|control| control.checksums())
}
