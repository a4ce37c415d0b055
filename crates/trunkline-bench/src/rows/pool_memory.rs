//! **Memory limit**: a direct I/O scan of a table four times as large as the memory available to
//! the process.
//!
//! The baseline is the same scan without the limit. With direct I/O only the pool needs memory, so
//! the limit should cost nothing. A control group enforces the limit. Each half of a pair runs in
//! a new process of this program, which first enters the group and then measures itself. A process
//! that enters later wouldn't be limited, because memory stays charged to the group in which it
//! was allocated.

use super::{COMBINED, CONCURRENCY, RunOptions, buffers, pool_half, way};
use crate::Result;
use crate::group::Group;
use crate::handles::Setup;
use crate::pairs::{Pairs, measure};
use crate::pooled::{PoolSetup, Pooled};
use crate::report::{Line, Report, Target};
use crate::work::{Done, Work};
use std::path::Path;
use std::process::Command;
use trunkline_aio::MethodKind;
use trunkline_engine::pool::Strategy;

/// Ratio of table size to memory limit.
const TIMES: u64 = 4;

pub(super) fn run(bench: &RunOptions<'_>) -> Result<Report> {
    let data = bench.data()?;
    let group = Group::make(bench.group, data.bytes / TIMES)?;
    let mut lines = Vec::new();
    for method in [MethodKind::IoUring, MethodKind::Worker] {
        let setting = format!("{}, memory 1/{TIMES} of the table", way(true));
        if !bench.wants(&setting, method.name()) {
            continue;
        }
        let mut reference = |_: &()| again(bench, None, method);
        let mut contender = |_: &()| again(bench, Some(group.path()), method);
        let mut prepare = || data.evict();
        let target = Target { rate: Some(0.9), ..Target::default() };
        let pairs = Pairs::run(bench.pairs, |_| (), &mut prepare, &mut reference, &mut contender)?;
        lines.push(Line::new(setting, method.name(), "no limit", &pairs, target));
    }
    let notes = vec![format!("{}; {}", group.describe(), data.coldness())];
    Ok(Report { row: "pool-memory: a limit", notes, lines, costs: Vec::new() })
}

/// Runs one scan in a new process of this program, and parses the measurements it prints.
fn again(bench: &RunOptions<'_>, group: Option<&Path>, method: MethodKind) -> Result<Done> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--dir").arg(bench.dir).arg("--size").arg(bench.bytes.to_string());
    command.arg("--one-scan").arg(method.name());
    if let Some(group) = group {
        command.arg("--enter").arg(group);
    }
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the process that scans: {}, {}", output.status, errors.trim()).into());
    }
    let numbers =
        said.split_whitespace().map(str::parse).collect::<std::result::Result<Vec<f64>, _>>()?;
    let &[elapsed, cpu, bytes] = &numbers[..] else {
        return Err(format!("the process that scans said {said:?}").into());
    };
    let operations = (bytes / f64::from(COMBINED)) as u64;
    Ok(Done { operations, bytes: bytes as u64, took: Some((elapsed, cpu)), ..Done::default() })
}

/// Entry point of the child process: runs one scan and returns elapsed seconds, CPU seconds and
/// bytes as text.
pub(crate) fn one_scan(bench: &RunOptions<'_>, method: MethodKind) -> Result<String> {
    let data = bench.data()?;
    let io = Setup::new(method, true, CONCURRENCY, COMBINED);
    let strategy = Strategy::BulkRead;
    // The pool is a sixteenth of the table, which is a quarter of the limit.
    let setup = PoolSetup { strategy, scan: true, ..PoolSetup::new(io, buffers(data.bytes, 16)) };
    let mut pooled = Pooled::open(&data, setup, 1)?;
    if pooled.method() != method {
        return Err(format!("{method} is not available here").into());
    }
    pool_half(&data, &pooled)?;
    let count = (data.bytes / u64::from(COMBINED)).max(1) as usize;
    let work = Work::sequential(0, count, COMBINED, data.bytes);
    let sample = measure(|| pooled.run(&work))?;
    Ok(format!("{} {} {}", sample.elapsed, sample.cpu, sample.done.bytes))
}
