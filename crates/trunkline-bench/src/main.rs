//! Benchmarks of the I/O core and of the buffer pool, compared with bare loops.
//!
//! ```text
//!   rows ──▶ pairs: reference, contender, contender, reference, … ──▶ statistics ──▶ report
//!              bare ◀─┘          └─▶ handles, pooled, or the engine's verification
//!              data: valid pages in segments, written once; work: the same list for both
//! ```
//!
//! Each row of the benchmark table alternates between two halves: a baseline (called `reference` in
//! the code and in the reports), and a contender that performs the same I/O through trunkline. Run
//! it with `cargo run --release -p trunkline-bench -- sequential random --dir DIR`.
//! `docs/benchmarks.md` has the results; `results.rs` says how it is made.

#![deny(unsafe_code)]

mod assignments;
mod bare;
mod command_line;
mod costs;
mod data;
mod failure;
mod group;
mod handles;
mod machine;
mod pairs;
mod pooled;
mod report;
mod results;
mod rows;
mod threads;
mod work;
mod workload_runs;

use clap::Parser;
use clap::builder::{PossibleValue, PossibleValuesParser};
use failure::Result;
use group::Group;
use results::Results;
use rows::{Needs, ROWS, Row, RunOptions};
use std::path::PathBuf;
use std::process::ExitCode;
use trunkline_aio::MethodKind;

/// Stands for all rows on the command line.
const ALL: &str = "all";

/// Measures trunkline's I/O core and buffer pool against bare loops.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Rows to measure. `all` leaves out rows that need --lag-dir or --group unless those are
    /// given, and `checkpoint-spread` unless `checkpoint_timeout` is set.
    #[arg(value_parser = row_names(), default_value = "all")]
    rows: Vec<String>,

    #[command(flatten)]
    options: RunOptions,

    /// `pool-memory` starts this program with it, for one scan.
    #[arg(long, hide = true, value_parser = parse_method)]
    one_scan: Option<MethodKind>,

    /// The control group to enter first.
    #[arg(long, hide = true)]
    enter: Option<PathBuf>,

    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,

    /// Also write the results of each row to FOLDER/ROW.json.
    #[arg(long, value_name = "FOLDER")]
    save: Option<PathBuf>,

    /// Measure nothing, but print the page made of the results saved in this folder.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["rows", "save", "json"])]
    page: Option<PathBuf>,
}

/// The names of all rows, and `all`.
fn row_names() -> PossibleValuesParser {
    let name = |row: &Row| PossibleValue::new(row.name).help(row.measures);
    let all = PossibleValue::new(ALL).help("All of them");
    PossibleValuesParser::new(ROWS.iter().map(name).chain([all]))
}

/// The rows to run, in the order the user named them.
fn chosen(arguments: &Arguments) -> Vec<&'static Row> {
    let named = |name: &String| ROWS.iter().find(|row| row.name == name);
    if !arguments.rows.iter().any(|name| name == ALL) {
        return arguments.rows.iter().filter_map(named).collect();
    }
    let possible = |row: &&Row| match row.needs {
        Needs::Nothing => true,
        Needs::LagDir => arguments.options.lag_dir.is_some(),
        Needs::Group => arguments.options.group.is_some(),
        Needs::Timeout => {
            assignments::contain(&arguments.options.assignments, "checkpoint_timeout")
        }
    };
    ROWS.iter().filter(possible).collect()
}

fn parse_method(text: &str) -> std::result::Result<MethodKind, String> {
    let all = [MethodKind::Sync, MethodKind::Worker, MethodKind::IoUring];
    all.into_iter().find(|method| method.name() == text).ok_or_else(|| format!("no method {text}"))
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("trunkline-bench: {error}");
            ExitCode::from(3)
        }
    }
}

fn run(mut arguments: Arguments) -> Result<()> {
    if let Some(group) = &arguments.enter {
        Group::enter(group)?;
    }
    if let Some(folder) = &arguments.page {
        print!("{}", results::page(folder)?);
        return Ok(());
    }
    std::fs::create_dir_all(&arguments.options.dir)?;
    let wanted = chosen(&arguments);
    arguments.options.settings = assignments::read(&arguments.options.assignments, &wanted)?;
    let bench = &arguments.options;
    if let Some(method) = arguments.one_scan {
        println!("{}", rows::one_scan(bench, method)?);
        return Ok(());
    }
    let mut results = Results::begin(machine::describe(&bench.dir));
    if !arguments.json {
        println!("{}\n\n`{}`\n", results.machine, results.command);
    }
    for row in wanted {
        let report = row.run(bench)?;
        if !arguments.json {
            println!("{report}");
        }
        results.rows.push(report);
        if let Some(folder) = &arguments.save {
            results.save_last(folder)?;
        }
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&results)?);
    }
    Ok(())
}
