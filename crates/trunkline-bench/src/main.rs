//! Benchmarks of the I/O core and of the buffer pool, compared with bare loops.
//!
//! ```text
//!   rows ──▶ pairs: reference, contender, contender, reference, … ──▶ statistics ──▶ report
//!              bare ◀─┘          └─▶ handles, pooled, or the engine's verification
//!              data: valid pages in segments, written once; work: the same list for both
//! ```
//!
//! Each row of the benchmark table alternates between a baseline (`reference` in the code and in
//! the reports) and a contender that performs the same I/O through trunkline. Run it with `cargo
//! run --release -p trunkline-bench -- sequential random --dir DIR`. `docs/benchmarks.md` explains
//! the results.

#![deny(unsafe_code)]

mod assignments;
mod bare;
mod costs;
mod data;
mod group;
mod handles;
mod machine;
mod pairs;
mod pooled;
mod report;
mod rows;
mod statistics;
mod work;

use clap::Parser;
use group::Group;
use rows::{Row, RunOptions};
use std::path::PathBuf;
use std::process::ExitCode;
use trunkline_aio::MethodKind;

/// Errors are only ever printed, so a boxed error is enough.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Result of a row, or of one step of a row.
type Result<T> = std::result::Result<T, Failure>;

/// Measures trunkline's I/O core and buffer pool against bare loops.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Rows to measure. `all` leaves out rows that need --lag-dir or --group unless those are given, and
    /// `checkpoint-spread` unless `checkpoint_timeout` is set.
    #[arg(value_enum, default_value = "all")]
    rows: Vec<Row>,

    /// Folder for the data, which takes about --size and stays for the next run.
    #[arg(long, default_value = "target/bench")]
    dir: PathBuf,

    /// Folder on a slow device, for `lag` and `pool-lag`.
    #[arg(long)]
    lag_dir: Option<PathBuf>,

    /// Parent control group for `pool-memory`; the default is the root of cgroup version 2.
    #[arg(long)]
    group: Option<PathBuf>,

    /// `pool-memory` starts this program with it, for one scan.
    #[arg(long, hide = true, value_parser = parse_method)]
    one_scan: Option<MethodKind>,

    /// The control group to enter first.
    #[arg(long, hide = true)]
    enter: Option<PathBuf>,

    /// Size of the data: a number of bytes, or of kB, MB or GB (powers of 1024).
    #[arg(long, default_value = "2GB", value_parser = parse_size)]
    size: u64,

    /// How much `checkpoint` and `checkpoint-spread` make dirty, in a table twice as large and a pool with
    /// room for it.
    #[arg(long, default_value = "3GB", value_parser = parse_size)]
    bytes: u64,

    /// Pairs of each comparison.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u64).range(1..1000))]
    pairs: u64,

    /// Measure only lines with this text in setting and variant, for example `direct, depth 16, io_uring`.
    #[arg(long, default_value = "")]
    only: String,

    /// A PostgreSQL setting for the rows that write. Refused if no chosen row reads it. May be repeated.
    ///
    /// checkpoint: checkpoint_flush_after, io_max_combine_limit; checkpoint-spread: also
    /// checkpoint_timeout and checkpoint_completion_target; bgwriter, bgwriter-paced: bgwriter_* and
    /// io_max_combine_limit; extend: file_extend_method and backend_flush_after.
    #[arg(short = 'c', value_name = "NAME=VALUE")]
    settings: Vec<String>,

    /// Keep the table of the rows that write for the next run that needs one of its size.
    #[arg(long)]
    keep: bool,

    /// Let the references of `checkpoint` write a few buffers in the processor's cache again and again,
    /// instead of as much memory as they write.
    #[arg(long)]
    hot_reference: bool,

    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

fn parse_size(text: &str) -> std::result::Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match &text[digits.len()..] {
        "" | "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        other => return Err(format!("unit {other}: B, kB, MB or GB")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{text} is not a size"))?;
    number.checked_mul(unit).ok_or_else(|| format!("{text} is too large"))
}

fn parse_method(text: &str) -> std::result::Result<MethodKind, String> {
    let all = [MethodKind::Sync, MethodKind::Worker, MethodKind::IoUring];
    all.into_iter().find(|method| method.name() == text).ok_or_else(|| format!("no method {text}"))
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("trunkline-bench: {error}");
            ExitCode::from(3)
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    if let Some(group) = &arguments.enter {
        Group::enter(group)?;
    }
    std::fs::create_dir_all(&arguments.dir)?;
    let mut wanted = arguments.rows.clone();
    if wanted.contains(&Row::All) {
        wanted = Row::EACH.to_vec();
        wanted.retain(|&row| !row.needs_lag() || arguments.lag_dir.is_some());
        wanted.retain(|&row| row != Row::PoolMemory || arguments.group.is_some());
        let timed = assignments::contain(&arguments.settings, "checkpoint_timeout");
        wanted.retain(|&row| row != Row::CheckpointSpread || timed);
    }
    let settings = assignments::read(&arguments.settings, &wanted)?;
    let bench = RunOptions {
        dir: &arguments.dir,
        lag_dir: arguments.lag_dir.as_deref(),
        group: arguments.group.as_deref(),
        bytes: arguments.size,
        dirty: arguments.bytes,
        pairs: usize::try_from(arguments.pairs)?,
        only: &arguments.only,
        settings: &settings,
        keep: arguments.keep,
        hot_reference: arguments.hot_reference,
    };
    if let Some(method) = arguments.one_scan {
        println!("{}", rows::one_scan(&bench, method)?);
        return Ok(());
    }
    let machine = machine::describe(&arguments.dir);
    let command: Vec<String> = std::env::args().skip(1).collect();
    let command = format!("trunkline-bench {}", command.join(" "));
    let mut reports = Vec::new();
    if !arguments.json {
        println!("{machine}\n\n`{command}`\n");
    }
    for row in wanted {
        let report = row.run(&bench)?;
        if arguments.json {
            reports.push(report.json());
        } else {
            println!("{report}");
        }
    }
    if arguments.json {
        let all = serde_json::json!({
            "schema": 1, "machine": machine, "command": command, "rows": reports,
        });
        println!("{}", serde_json::to_string_pretty(&all)?);
    }
    Ok(())
}
