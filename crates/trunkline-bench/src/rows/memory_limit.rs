//! **Memory limit**: a direct I/O scan of a table four times as large as the memory available to
//! the process.
//!
//! The baseline is the same scan without the limit. With direct I/O only the pool needs memory, so
//! the limit should cost nothing. A control group enforces the limit. Each half of a pair runs in a
//! new process of this program, which first enters the group and then measures itself. It must
//! enter the group before it allocates any memory, because memory stays charged to the group in
//! which it was allocated.

use super::comparison::{Experiment, Measured, Stage};
use super::options::{COMBINED, CONCURRENCY, RunOptions, buffers};
use crate::data::Data;
use crate::failure::Result;
use crate::handles::Setup;
use crate::pairs::{Half, measure};
use crate::pooled::{PoolSetup, Pooled};
use crate::report::Names;
use crate::work::{Done, Work};
use std::path::Path;
use std::process::Command;
use trunkline_aio::MethodKind;
use trunkline_engine::pool::Strategy;

/// Ratio of table size to memory limit.
pub(super) const TIMES: u64 = 4;

/// A scan with this I/O method, with and without the limit.
pub(super) struct MemoryLimit(pub(super) MethodKind);

impl Experiment for MemoryLimit {
    fn measure(&self, stage: &Stage<'_>, _: &Names) -> Result<Measured> {
        let data = stage.data()?;
        let group = stage.group(data.bytes / TIMES)?;
        stage.pairs(|half, _| {
            data.evict()?;
            let limit = (half == Half::Contender).then(|| group.path());
            measure(|| again(stage.bench, limit, self.0))
        })
    }
}

/// Runs one scan in a new process of this program, and parses the measurements it prints.
fn again(bench: &RunOptions, group: Option<&Path>, method: MethodKind) -> Result<Done> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--dir").arg(&bench.dir).arg("--size").arg(bench.bytes.to_string());
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
pub(crate) fn one_scan(bench: &RunOptions, method: MethodKind) -> Result<String> {
    let data = Data::prepare(&bench.dir, bench.bytes)?;
    let io = Setup::new(method, true, CONCURRENCY, COMBINED);
    // The pool is a sixteenth of the table, which is a quarter of the limit.
    let setup = PoolSetup::scan(io, buffers(data.bytes, 16), Strategy::BulkRead);
    let mut pooled = Pooled::open(&data, setup, 1)?;
    if pooled.method() != method {
        return Err(format!("{method} is not available here").into());
    }
    data.evict()?;
    let sample = measure(|| pooled.run(&[Work::whole(data.bytes, COMBINED)]))?;
    Ok(format!("{} {} {}", sample.elapsed, sample.cpu, sample.done.bytes))
}
