//! `trunkline inspect clog` and `inspect multixact`: print the status of transactions, and the
//! members of multixacts.
//!
//! If the user gives transaction or multixact ids, the commands print one line for each id. Without
//! any ids, they print a summary of the cluster. Transaction ids are compared modulo 2^32, as
//! everywhere in PostgreSQL.

use std::fmt::Display;

use serde::Serialize;
use trunkline_aio::facade::Arc;
use trunkline_engine::datadir::DataDir;
use trunkline_engine::transactions::{StatusPages, TransactionError, Transactions};
use trunkline_format::heap_tuple::{BOOTSTRAP_XID, FROZEN_XID};
use trunkline_format::transam::{FIRST_NORMAL_XID, XidStatus, commit_log, precedes};

use crate::catalog_session::CatalogSession;
use crate::data_dir;
use crate::exit::{Exit, Failure, message, plain};
use crate::number::number;
use crate::options::Context;
use crate::output::{Column, object, print_report, print_rows, properties};

/// Maximum number of transactions that the summary counts, from the newest back.
const COUNTED_MAX: u32 = 10_000_000;

/// Options of `inspect clog`.
#[derive(Debug, clap::Args)]
pub(crate) struct ClogArgs {
    /// Transaction ids, as in xmin and xmax [default: count the transactions by status].
    #[arg(value_name = "XID", value_parser = number(0..=u32::MAX))]
    xids: Vec<u32>,
}

/// Options of `inspect multixact`.
#[derive(Debug, clap::Args)]
pub(crate) struct MultixactArgs {
    /// Multixact ids, as in xmax of rows with the flag "xmax is multi" [default: print the range
    /// of multixacts that exist].
    #[arg(value_name = "MULTIXACT", value_parser = number(0..=u32::MAX))]
    multis: Vec<u32>,
}

/// We read transaction status through a catalog session, so the cluster must have been shut down.
fn open(context: &Context<'_>) -> Result<(DataDir, CatalogSession, Arc<Transactions>), Failure> {
    let dir = data_dir::open(context)?;
    let session = CatalogSession::open_with_sync_io(&dir, &context.settings)?;
    let transactions = Arc::clone(session.catalog.transactions());
    Ok((dir, session, transactions))
}

/// One transaction, and where its status is stored.
#[derive(Serialize)]
struct ClogEntry {
    xid: u32,
    fate: String,
    file: String,
    byte: u64,
    bit: u32,
}

#[derive(Default, Serialize)]
struct ClogSummary {
    oldest: u32,
    next: u64,
    /// Number of transactions counted, from the newest back.
    counted: u64,
    committed: u64,
    aborted: u64,
    in_progress: u64,
    sub_committed: u64,
    /// Number of transactions whose part of the commit log is missing.
    unknown: u64,
}

/// `inspect clog`.
pub(super) fn clog(context: &Context<'_>, args: &ClogArgs) -> Result<Exit, Failure> {
    let (dir, mut catalog_session, transactions) = open(context)?;
    let session = catalog_session.backend.session();
    let mut pages = StatusPages::default();
    if args.xids.is_empty() {
        let checkpoint = &dir.control().checkpoint;
        let (oldest, next) = (checkpoint.oldest_xid, checkpoint.next_xid);
        let mut report = ClogSummary { oldest, next, ..ClogSummary::default() };
        // We count backwards from the newest transaction, so that in a huge cluster the summary at
        // least covers the recent transactions. Transaction ids wrap around, so the comparison with
        // `oldest` must be circular.
        let mut xid = next as u32;
        let mut reported = None;
        while report.counted < u64::from(COUNTED_MAX) {
            xid = xid.wrapping_sub(1);
            if xid < FIRST_NORMAL_XID || precedes(xid, oldest) {
                break;
            }
            report.counted += 1;
            match transactions.fate(session, &mut pages, xid) {
                Ok(XidStatus::Committed) => report.committed += 1,
                Ok(XidStatus::Aborted) => report.aborted += 1,
                Ok(XidStatus::InProgress) => report.in_progress += 1,
                Ok(XidStatus::SubCommitted) => report.sub_committed += 1,
                Err(error) => {
                    let file = error.file_fault().map(|fault| fault.path.clone());
                    if file.is_none() {
                        return Err(Failure::cannot_run(error));
                    }
                    // Print only one message for each file, about its newest transaction.
                    if file != reported {
                        message("error", error);
                        reported = file;
                    }
                    report.unknown += 1;
                }
            }
        }
        let lines: [(&str, &dyn Display); _] = [
            ("oldest", &report.oldest),
            ("next", &report.next),
            ("counted", &report.counted),
            ("committed", &report.committed),
            ("aborted", &report.aborted),
            ("in progress", &report.in_progress),
            ("sub-committed", &report.sub_committed),
            ("unknown", &report.unknown),
        ];
        print_report(context.global, &report, || properties(15, &lines))?;
        return Ok(if report.unknown == 0 { Exit::Good } else { Exit::Findings });
    }
    let (mut statuses, mut exit) = (Vec::new(), Exit::Good);
    let next = dir.control().checkpoint.next_xid as u32;
    // After a crash, `next` may be too low, because more transactions may have started after the
    // checkpoint that recorded it.
    let next_is_exact = dir.control().is_clean();
    let prepared = dir.prepared_xids().map_err(Failure::cannot_run)?;
    for &xid in &args.xids {
        if next_is_exact && xid >= FIRST_NORMAL_XID && !precedes(xid, next) {
            let text = format!("transaction {xid} does not exist yet; the next one is {next}");
            message("error", text);
            exit = Exit::Findings;
            continue;
        }
        let fate = match xid {
            0 => "invalid transaction id".to_owned(),
            1 => "committed: the bootstrap transaction".to_owned(),
            2 => "committed: FrozenTransactionId".to_owned(),
            // The commit log can't distinguish between a prepared transaction and a transaction
            // that was running when the server crashed. Both are "in progress".
            _ => match transactions.fate(session, &mut pages, xid) {
                Ok(XidStatus::InProgress) if prepared.contains(&xid) => "prepared".to_owned(),
                Ok(fate) => fate.to_string(),
                Err(error) => unknown(&error, &mut exit),
            },
        };
        let place = commit_log::place(xid);
        let file =
            format!("{}/{}", commit_log::DIRECTORY, commit_log::segment_name(place.segment()));
        statuses.push(ClogEntry { xid, fate, file, byte: place.offset(), bit: xid % 4 * 2 });
    }
    if statuses.is_empty() {
        return Ok(exit);
    }
    let columns: [Column<ClogEntry>; _] = [
        (">xid", |entry| entry.xid.to_string()),
        ("status", |entry| entry.fate.clone()),
        ("file", |entry| entry.file.clone()),
        (">byte", |entry| entry.byte.to_string()),
        (">bit", |entry| entry.bit.to_string()),
    ];
    print_rows(context.global, &statuses, &columns)?;
    Ok(exit)
}

/// Returns the text to print in place of an unknown status. It names the file that is missing or
/// that ends before the page.
fn unknown(error: &TransactionError, exit: &mut Exit) -> String {
    *exit = Exit::Findings;
    plain(error)
}

#[derive(Serialize)]
struct MultixactMember {
    multixact: u32,
    xid: u32,
    status: String,
    fate: String,
}

/// `inspect multixact`.
pub(super) fn multixact(context: &Context<'_>, args: &MultixactArgs) -> Result<Exit, Failure> {
    let (dir, mut catalog_session, transactions) = open(context)?;
    let session = catalog_session.backend.session();
    if args.multis.is_empty() {
        let checkpoint = &dir.control().checkpoint;
        let (oldest, next) = (checkpoint.oldest_multi, checkpoint.next_multi);
        let next_member = checkpoint.next_multi_offset;
        let json = object! { oldest: oldest, next: next, next_member: next_member };
        print_report(context.global, &json, || {
            properties(15, &[("oldest", &oldest), ("next", &next), ("next member", &next_member)])
        })?;
        return Ok(Exit::Good);
    }
    let (mut members, mut exit) = (Vec::new(), Exit::Good);
    let mut pages = StatusPages::default();
    for &multixact in &args.multis {
        let found = match transactions.members(session, multixact) {
            Ok(found) => found,
            Err(error) => {
                message("error", error);
                exit = Exit::Findings;
                continue;
            }
        };
        for member in found {
            let xid = member.xid;
            let status = match member.status {
                Ok(status) => status.to_string(),
                Err(byte) => format!("unknown ({byte})"),
            };
            let fate = match xid {
                BOOTSTRAP_XID | FROZEN_XID => XidStatus::Committed.to_string(),
                _ => match transactions.fate(session, &mut pages, xid) {
                    Ok(fate) => fate.to_string(),
                    Err(error) => unknown(&error, &mut exit),
                },
            };
            members.push(MultixactMember { multixact, xid, status, fate });
        }
    }
    if members.is_empty() {
        return Ok(exit);
    }
    let columns: [Column<MultixactMember>; _] = [
        (">multixact", |member| member.multixact.to_string()),
        (">xid", |member| member.xid.to_string()),
        ("lock", |member| member.status.clone()),
        ("status", |member| member.fate.clone()),
    ];
    print_rows(context.global, &members, &columns)?;
    Ok(exit)
}
