//! `trunkline inspect clog` and `inspect multixact`: what became of transactions, and who shares a
//! row's lock.
//!
//! Without a number, what the cluster has of them; with numbers, one line for each.

use std::fs;

use serde::Serialize;
use trunkline_aio::sync::Arc;
use trunkline_engine::datadir::DataDir;
use trunkline_engine::settings::Settings;
use trunkline_engine::transactions::Transactions;
use trunkline_format::transam::{FIRST_NORMAL_XID, XidStatus, commit_log, precedes};

use crate::cli::Global;
use crate::cluster::Cluster;
use crate::exit::{Exit, Failure, message};
use crate::output::{self, Table};
use crate::verify;

/// Transactions that are counted at most, from the newest back.
const COUNTED_MAX: u32 = 10_000_000;

/// Options of the subject.
#[derive(Debug, clap::Args)]
pub(crate) struct ClogArgs {
    /// Transactions, as xmin and xmax show them; by default all are counted.
    #[arg(value_name = "XID")]
    xids: Vec<u32>,
}

/// Options of the subject.
#[derive(Debug, clap::Args)]
pub(crate) struct MultixactArgs {
    /// Multixacts, as xmax shows them where a row says so; by default which there are.
    #[arg(value_name = "MULTIXACT")]
    multis: Vec<u32>,
}

fn open(
    global: &Global,
    settings: &Settings,
) -> Result<(DataDir, Cluster, Arc<Transactions>), Failure> {
    let dir = verify::open(global)?;
    let cluster = Cluster::aside(&dir, settings)?;
    let transactions = Arc::clone(cluster.catalog.transactions());
    Ok((dir, cluster, transactions))
}

#[derive(Serialize)]
struct JsonFate {
    xid: u32,
    fate: String,
    file: String,
    byte: u64,
    bit: u32,
}

#[derive(Serialize)]
struct JsonClog {
    oldest: u32,
    next: u64,
    /// From the newest back, as many as were counted.
    counted: u64,
    committed: u64,
    aborted: u64,
    in_progress: u64,
    sub_committed: u64,
}

/// `inspect clog`.
pub(super) fn clog(global: &Global, settings: &Settings, args: &ClogArgs) -> Result<Exit, Failure> {
    let (dir, mut cluster, transactions) = open(global, settings)?;
    let session = cluster.backend.session();
    if args.xids.is_empty() {
        let checkpoint = &dir.control().checkpoint;
        let (oldest, next) = (checkpoint.oldest_xid, checkpoint.next_xid);
        let mut report = JsonClog {
            oldest,
            next,
            counted: 0,
            committed: 0,
            aborted: 0,
            in_progress: 0,
            sub_committed: 0,
        };
        let mut xid = next as u32;
        while report.counted < u64::from(COUNTED_MAX) {
            xid = xid.wrapping_sub(1);
            if xid < FIRST_NORMAL_XID || precedes(xid, oldest) {
                break;
            }
            report.counted += 1;
            match transactions.fate(session, xid).map_err(Failure::cannot_run)? {
                XidStatus::Committed => report.committed += 1,
                XidStatus::Aborted => report.aborted += 1,
                XidStatus::InProgress => report.in_progress += 1,
                XidStatus::SubCommitted => report.sub_committed += 1,
            }
        }
        return show(global, &report, |report| {
            let lines = [
                ("oldest", report.oldest.to_string()),
                ("next", report.next.to_string()),
                ("counted", report.counted.to_string()),
                ("committed", report.committed.to_string()),
                ("aborted", report.aborted.to_string()),
                ("in progress", report.in_progress.to_string()),
                ("sub-committed", report.sub_committed.to_string()),
            ];
            lines.iter().map(|(name, value)| format!("{name:<15}{value}\n")).collect()
        });
    }
    let (mut fates, mut exit) = (Vec::new(), Exit::Good);
    let next = dir.control().checkpoint.next_xid as u32;
    // Otherwise there may have been more since the checkpoint.
    let is_last = dir.control().is_clean();
    let prepared = prepared(&dir);
    for &xid in &args.xids {
        if is_last && xid >= FIRST_NORMAL_XID && !precedes(xid, next) {
            let text = format!("transaction {xid} does not exist yet: the next one is {next}");
            message("error", text);
            exit = Exit::Findings;
            continue;
        }
        let fate = match xid {
            0 => "none".to_owned(),
            1 => "committed: the bootstrap transaction".to_owned(),
            2 => "committed: the mark of frozen rows".to_owned(),
            _ => match transactions.fate(session, xid) {
                Ok(XidStatus::InProgress) if prepared.contains(&xid) => "prepared".to_owned(),
                Ok(fate) => fate.to_string(),
                Err(error) => error.to_string(),
            },
        };
        let place = commit_log::place(xid);
        let file =
            format!("{}/{}", commit_log::DIRECTORY, commit_log::segment_name(place.segment()));
        fates.push(JsonFate { xid, fate, file, byte: place.offset(), bit: xid % 4 * 2 });
    }
    show(global, &fates, |fates| {
        let mut table = Table::new(&[">xid", "fate", "file", ">byte", ">bit"]);
        for fate in fates {
            table.row(vec![
                fate.xid.to_string(),
                fate.fate.clone(),
                fate.file.clone(),
                fate.byte.to_string(),
                fate.bit.to_string(),
            ]);
        }
        table.render()
    })?;
    Ok(exit)
}

/// The transactions that are prepared, as far as the directory tells: each has a file there, whose
/// name ends with the number.
fn prepared(dir: &DataDir) -> Vec<u32> {
    let entries = fs::read_dir(dir.path().join("pg_twophase")).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let number = |name: String| {
        let low = name.get(name.len().checked_sub(8)?..)?;
        u32::from_str_radix(low, 16).ok()
    };
    names.filter_map(number).collect()
}

#[derive(Serialize)]
struct JsonRange {
    oldest: u32,
    next: u32,
    next_member: u64,
}

#[derive(Serialize)]
struct JsonMember {
    multixact: u32,
    xid: u32,
    status: String,
    fate: String,
}

/// `inspect multixact`.
pub(super) fn multixact(
    global: &Global,
    settings: &Settings,
    args: &MultixactArgs,
) -> Result<Exit, Failure> {
    let (dir, mut cluster, transactions) = open(global, settings)?;
    let session = cluster.backend.session();
    if args.multis.is_empty() {
        let checkpoint = &dir.control().checkpoint;
        let report = JsonRange {
            oldest: checkpoint.oldest_multi,
            next: checkpoint.next_multi,
            next_member: checkpoint.next_multi_offset,
        };
        return show(global, &report, |report| {
            format!(
                "{:<15}{}\n{:<15}{}\n{:<15}{}\n",
                "oldest", report.oldest, "next", report.next, "next member", report.next_member
            )
        });
    }
    let (mut members, mut exit) = (Vec::new(), Exit::Good);
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
            let fate = transactions.fate(session, xid);
            let fate = fate.map_or_else(|error| error.to_string(), |fate| fate.to_string());
            members.push(JsonMember { multixact, xid, status, fate });
        }
    }
    show(global, &members, |members| {
        let mut table = Table::new(&[">multixact", ">xid", "status", "fate"]);
        for member in members {
            table.row(vec![
                member.multixact.to_string(),
                member.xid.to_string(),
                member.status.clone(),
                member.fate.clone(),
            ]);
        }
        table.render()
    })?;
    Ok(exit)
}

fn show<T: Serialize + ?Sized>(
    global: &Global,
    report: &T,
    text: impl FnOnce(&T) -> String,
) -> Result<Exit, Failure> {
    if global.json {
        output::print_json(&report)?;
    } else {
        output::print(&text(report))?;
    }
    Ok(Exit::Good)
}
