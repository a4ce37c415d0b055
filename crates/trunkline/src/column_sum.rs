//! `trunkline sum`: adds up an integer column of a table with a sequential scan.
//!
//! The command isn't listed in the help, because its only purpose is to compare our scan speed with
//! that of a server running `SELECT sum(abalance) FROM pgbench_accounts`. The column is given by
//! its offset in the row. For example, `abalance` is the third attribute of `pgbench_accounts` and
//! starts at byte 8. We don't read the commit log, so rows without hint bits are counted as "in
//! doubt" and left out of the sum.

use std::fmt::{Display, Write as _};
use std::path::PathBuf;

use serde::Serialize;
use trunkline_engine::job::End;
use trunkline_engine::prewarm::{Choice, select};
use trunkline_engine::seq_scan::SeqScanOptions;
use trunkline_format::Fork;
use trunkline_sample::FixedColumn;
use trunkline_sample::column_sum::{SumReport, sum};

use crate::data_dir::{self, relative};
use crate::exit::{Exit, Failure, message};
use crate::interrupt::Interrupt;
use crate::io_instance::IoInstance;
use crate::io_stats;
use crate::monitor::run_job;
use crate::named_files::FileSelection;
use crate::number::number;
use crate::options::{Context, DatabaseArgs};
use crate::output::{cache_mode, fields, object, print_report, throughput};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct ColumnSumArgs {
    /// Table to sum. It can be given as a database OID and a file number, such as 5/16384; as
    /// 1663/5/16384, which includes the tablespace OID; or by name, with -d or as
    /// database.schema.table.
    #[arg(value_name = "RELATION")]
    relation: PathBuf,

    #[command(flatten)]
    database: DatabaseArgs,

    /// Offset of the int4 column in a row's data, in bytes, if no column before it is null.
    #[arg(long, value_name = "BYTES", value_parser = number(0..=8156_u16))]
    offset: u16,

    /// Number of the column, from 1 [default: as if every column before it were an int4].
    #[arg(long, value_name = "N", value_parser = number(1..=1600_u16))]
    attnum: Option<u16>,

    /// Number of parallel workers in addition to the leader, 0 to 64.
    #[arg(long, value_name = "N", default_value = "0", value_parser = number(0..=64_u32))]
    workers: u32,
}

/// Runs the command.
pub(crate) fn run(context: &Context<'_>, args: &ColumnSumArgs) -> Result<Exit, Failure> {
    let Context { global, settings, .. } = context;
    let dir = data_dir::open(context)?;
    let names = std::slice::from_ref(&args.relation);
    let names = match FileSelection::resolve(&dir, settings, &args.database, names, None)? {
        FileSelection::Listed(names) if names.len() == 1 => names,
        _ => {
            return Err(Failure::usage("the relation must be a single table with rows of its own"));
        }
    };
    let selection = select(&dir, &Choice { names, ..Choice::default() })?;
    for problem in &selection.problems {
        let path = relative(&problem.path, dir.path());
        message("warning", format_args!("{path}: {}", problem.kind));
    }
    let has_findings = selection.problems.iter().any(|problem| problem.kind.is_finding());
    let Some(target) = selection.targets.first().filter(|target| target.fork == Fork::Main) else {
        return Err(Failure::usage("the main fork of a table is required"));
    };
    let (io, engine) = IoInstance::with_engine(settings, settings.shared_buffers())?;
    let relation = engine.cluster_of(dir.clone()).storage().relation(target.locator, Fork::Main);
    let column =
        FixedColumn { number: args.attnum.unwrap_or(args.offset / 4 + 1), offset: args.offset };
    let interrupt = Interrupt::install()?;
    let options = SeqScanOptions::of(settings, args.workers);
    let report = run_job(global, &interrupt, &io, |observer| {
        sum(engine.pool(), &relation, column, options, observer)
    })?;
    dir.recheck()?;
    io_stats::report_warnings(&report.scan.warnings, report.scan.warnings_lost);
    report_skipped_rows(&report);
    let (method, direct) = (io.method_name(), settings.io_direct_data());
    let json = json(&report, args.workers, method, direct);
    print_report(global, &json, || text(&report, args.workers, method, direct))?;
    let exit = if report.is_exact() && !has_findings { Exit::Good } else { Exit::Findings };
    Ok(interrupt.exit_after(report.scan.end, exit))
}

/// Warns about rows that we had to leave out of the sum. The result can't be compared with the
/// server's in that case, so the exit code is [`Exit::Findings`].
fn report_skipped_rows(report: &SumReport) {
    let total = &report.total;
    if total.in_doubt > 0 {
        let text = "rows were not summed: without hint bits their visibility is unknown";
        message("warning", format_args!("{} {text}", total.in_doubt));
        message("hint", "run VACUUM (FREEZE) on the table before stopping the server");
    }
    if total.elsewhere > 0 {
        let text = "rows were not summed: they have null values before the column, or too few \
                    columns";
        message("warning", format_args!("{} {text}", total.elsewhere));
    }
    if let Some((block, item)) = report.corrupt {
        let text = "invalid row, or the column is missing; there may be more";
        message("warning", format_args!("block {block}, line pointer {item}: {text}"));
    }
}

fn text(report: &SumReport, workers: u32, method: &str, direct: bool) -> String {
    let (total, scan) = (&report.total, &report.scan);
    let counts = format!("shared hit={} read={}", scan.counts.hits, scan.counts.read_blocks);
    let lines: [(&str, &dyn Display); _] = [
        ("Sum", &total.sum),
        ("Rows", &total.rows),
        ("Nulls", &total.nulls),
        ("In doubt", &total.in_doubt),
        ("Workers", &workers),
        ("Buffers", &counts),
    ];
    let throughput = throughput(scan.bytes(), scan.elapsed.as_secs_f64());
    let (cache, context) = (cache_mode(direct), scan.strategy.context());
    let mut text = fields(10, &lines);
    let _ = writeln!(text, "{throughput}, {method} {cache}, {context}");
    text.push_str(&io_stats::stream_lines(&scan.streams));
    text
}

fn json(report: &SumReport, workers: u32, method: &str, direct: bool) -> impl Serialize {
    let (total, scan) = (&report.total, &report.scan);
    object! {
        schema: 1,
        command: "sum",
        complete: scan.end == End::Complete,
        exact: report.is_exact(),
        sum: total.sum,
        rows: total.rows,
        nulls: total.nulls,
        in_doubt: total.in_doubt,
        elsewhere: total.elsewhere,
        corrupt: report.corrupt,
        workers: workers,
        blocks: scan.blocks,
        bytes: scan.bytes(),
        seconds: scan.elapsed.as_secs_f64(),
        bytes_per_second: scan.bytes_per_second(),
        io_method: method,
        io_direct: direct,
        context: scan.strategy.context(),
        shared_hit_blocks: scan.counts.hits,
        shared_read_blocks: scan.counts.read_blocks,
        warnings: scan.warnings.len() as u64 + scan.warnings_lost,
        streams: io_stats::streams_json(&scan.streams),
        io: io_stats::io_json(&scan.io),
    }
}
