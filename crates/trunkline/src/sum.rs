//! `trunkline sum`: an integer column of a table in a stopped data directory, added up by a
//! sequential scan.
//!
//! The column is named by its place in a row: `abalance` of `pgbench_accounts` is the third
//! attribute, at byte 8. The command is there to compare scans with a server's `SELECT
//! sum(abalance) FROM pgbench_accounts`, and is not listed in the help.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;
use trunkline_aio::sync::Arc;
use trunkline_engine::job::End;
use trunkline_engine::prewarm::{Choice, select};
use trunkline_engine::seq_scan::SeqScanOptions;
use trunkline_engine::settings::Settings;
use trunkline_format::Fork;
use trunkline_sample::FixedColumn;
use trunkline_sample::column_sum::{SumReport, sum};

use crate::cli::Global;
use crate::cluster::{DatabaseArgs, Named};
use crate::exit::{Exit, Failure, message};
use crate::instance;
use crate::output::{human_bytes, print, print_json, rate};
use crate::pooled::{self, JsonStreams};
use crate::verify::{self, JsonIo, relative};
use crate::watch::{self, Watch};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct SumArgs {
    /// The table, as database and file number: 5/16384, or 1663/5/16384 with its tablespace; or
    /// by its name, with -d or as database.schema.table.
    #[arg(value_name = "RELATION")]
    relation: PathBuf,

    #[command(flatten)]
    database: DatabaseArgs,

    /// Where the int4 begins in a row's data, in bytes, if no column before it is null.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(..=8156))]
    offset: u16,

    /// The column's number, from 1 [default: as if every column before it were an int4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1600))]
    attnum: Option<u16>,

    /// Parallel workers beside the leader, 0 to 64.
    #[arg(long, value_name = "N", default_value = "0",
        value_parser = clap::value_parser!(u32).range(0..=64))]
    workers: u32,
}

/// Runs the command.
pub(crate) fn run(global: &Global, settings: &Settings, args: &SumArgs) -> Result<Exit, Failure> {
    let dir = verify::open(global)?;
    let names = std::slice::from_ref(&args.relation);
    let names = match Named::of(&dir, settings, &args.database, names)? {
        Named::These(names) if names.len() == 1 => names,
        _ => return Err(Failure::usage("one table is summed, and not the partitions of another")),
    };
    let selection = select(&dir, &Choice { names, ..Choice::default() })?;
    for problem in &selection.problems {
        let path = relative(&problem.path, dir.path());
        message("warning", format_args!("{path}: {}", problem.kind));
    }
    let trouble = selection.problems.iter().any(|problem| problem.kind.is_finding());
    let Some(target) = selection.targets.first().filter(|target| target.fork == Fork::Main) else {
        return Err(Failure::usage("a table's main fork is needed"));
    };
    let buffers = settings.shared_buffers();
    let engine = pooled::open(settings, buffers)?;
    let cluster = engine.cluster_of(dir.clone());
    let relation = cluster.storage().relation(target.locator, Fork::Main);
    let aio = engine.aio();
    let column =
        FixedColumn { number: args.attnum.unwrap_or(args.offset / 4 + 1), offset: args.offset };
    let said = aio.method_status().fallbacks.len();
    let watch = Arc::new(Watch::new(watch::interrupt()?, global));
    let options = SeqScanOptions::of(settings, args.workers);
    let outcome = sum(engine.pool(), &relation, column, options, Arc::clone(&watch) as _);
    watch.clear();
    instance::report_fallbacks(&aio.method_status().fallbacks[said..]);
    let report = outcome?;
    dir.recheck()?;
    pooled::report_warnings(&report.scan.warnings, report.scan.warnings_lost);
    report_doubts(&report);
    let method = aio.method_status().used.name();
    let direct = settings.io_direct_data();
    if global.json {
        print_json(&Json::new(&report, args.workers, method, direct))?;
    } else {
        print(&text(&report, args.workers, method, direct))?;
    }
    let exit = if report.is_exact() && !trouble { Exit::Good } else { Exit::Findings };
    Ok(watch.ended(report.scan.end, exit))
}

/// Says what is not in the sum.
fn report_doubts(report: &SumReport) {
    let total = &report.total;
    if total.in_doubt > 0 {
        let text = "rows are in doubt and not summed: only the commit log knows whether they are \
                    visible";
        message("warning", format_args!("{} {text}", total.in_doubt));
        message("hint", "VACUUM (FREEZE) the table before the server is stopped");
    }
    if total.elsewhere > 0 {
        let text = "rows are not summed: a column before it is null, or they have fewer columns";
        message("warning", format_args!("{} {text}", total.elsewhere));
    }
    if let Some((block, item)) = report.corrupt {
        let text = "no sound row with this column; there may be more";
        message("warning", format_args!("block {block}, line pointer {item}: {text}"));
    }
}

fn text(report: &SumReport, workers: u32, method: &str, direct: bool) -> String {
    let total = &report.total;
    let mut text = String::new();
    let lines = [
        ("Sum", total.sum.to_string()),
        ("Rows", total.rows.to_string()),
        ("Nulls", total.nulls.to_string()),
        ("In doubt", total.in_doubt.to_string()),
        ("Workers", workers.to_string()),
        ("Buffers", {
            let counts = &report.scan.counts;
            format!("shared hit={} read={}", counts.hits, counts.read_blocks)
        }),
    ];
    for (name, value) in lines {
        let _ = writeln!(text, "{:10}{value}", format!("{name}:"));
    }
    let _ = writeln!(
        text,
        "{} in {:.2} s, {}, {method} {}, {}",
        human_bytes(report.scan.bytes()),
        report.scan.elapsed.as_secs_f64(),
        rate(report.scan.bytes_per_second()),
        if direct { "direct" } else { "buffered" },
        report.scan.strategy.context(),
    );
    text.push_str(&pooled::stream_lines(&report.scan.streams));
    text
}

#[derive(Serialize)]
struct Json {
    schema: u32,
    command: &'static str,
    complete: bool,
    exact: bool,
    sum: i64,
    rows: u64,
    nulls: u64,
    in_doubt: u64,
    elsewhere: u64,
    corrupt: Option<(u32, u16)>,
    workers: u32,
    blocks: u64,
    bytes: u64,
    seconds: f64,
    bytes_per_second: f64,
    io_method: &'static str,
    io_direct: bool,
    context: &'static str,
    shared_hit_blocks: u64,
    shared_read_blocks: u64,
    warnings: u64,
    streams: JsonStreams,
    io: JsonIo,
}

impl Json {
    fn new(report: &SumReport, workers: u32, method: &'static str, direct: bool) -> Json {
        let total = &report.total;
        Json {
            schema: 1,
            command: "sum",
            complete: report.scan.end == End::Complete,
            exact: report.is_exact(),
            sum: total.sum,
            rows: total.rows,
            nulls: total.nulls,
            in_doubt: total.in_doubt,
            elsewhere: total.elsewhere,
            corrupt: report.corrupt,
            workers,
            blocks: report.scan.blocks,
            bytes: report.scan.bytes(),
            seconds: report.scan.elapsed.as_secs_f64(),
            bytes_per_second: report.scan.bytes_per_second(),
            io_method: method,
            io_direct: direct,
            context: report.scan.strategy.context(),
            shared_hit_blocks: report.scan.counts.hits,
            shared_read_blocks: report.scan.counts.read_blocks,
            warnings: report.scan.warnings.len() as u64 + report.scan.warnings_lost,
            streams: JsonStreams::new(&report.scan.streams),
            io: JsonIo::new(&report.scan.io),
        }
    }
}
