//! **Start of a large pool**: the time until its first page, and what its memory costs the first
//! scan.
//!
//! Memory that another program has just freed may be fragmented. On a virtual machine, the
//! hypervisor may have taken it back. Before a run on such memory, this row therefore allocates as
//! much as the pool in small pages, frees it, and waits about as long as a hypervisor does.

use super::comparison::{Body, Comparison, Experiment, Measured, Row, Stage};
use super::options::{BLOCK, COMBINED, CONCURRENCY, METHODS, buffers, methods};
use crate::data::Data;
use crate::failure::Result;
use crate::handles::Setup;
use crate::pairs::{Half, Pairs, measure};
use crate::pooled::{PoolSetup, Pooled};
use crate::report::{Names, Target};
use crate::work::{Done, Work};
use std::time::Duration;
use trunkline_aio::MethodKind;
use trunkline_aio::facade::Futex;
use trunkline_engine::pool::Strategy;

/// Ratio of pool size to table size.
const TIMES: u64 = 3;

/// The small pool has this part of the table.
const SMALL: u64 = 128;

pub(super) const POOL_START: Row = Row {
    name: "pool-start",
    measures: "The first page and the first scan through a large pool",
    question: "What does the memory of a large pool cost a program that has just started?",
    about: "Starting a pool and reading a single page is compared with the same in a small pool. \
            Starting a pool and scanning a table is compared with the same directly afterwards, in \
            memory that is still at hand. Before the contender, another program has used and freed \
            as much memory as the pool has.",
    body: Body::Lines(&[first_pages, first_scans]),
    ..Row::COLD
};

fn first_pages(_: &Stage<'_>) -> Result<Vec<Comparison>> {
    let line = |method| {
        let setting = format!("first page, pool of {TIMES} tables");
        let names = Names::new(setting, method, format!("pool of 1/{SMALL} of one"));
        Comparison::new(names, Target { millis: Some(50.0), ..Target::NONE }, FirstPage(method))
    };
    Ok(METHODS.map(line).into())
}

fn first_scans(_: &Stage<'_>) -> Result<Vec<Comparison>> {
    let line = |method| {
        let names = Names::new("direct, scan in freed memory", method, "directly after another");
        Comparison::new(names, Target::rate(1.0 / 1.1), FirstScan(method))
    };
    Ok(methods(true).map(line).collect())
}

/// Starting a pool and reading one page, with this I/O method.
struct FirstPage(MethodKind);

impl Experiment for FirstPage {
    fn measure(&self, stage: &Stage<'_>, _: &Names) -> Result<Measured> {
        let data = stage.data()?;
        let large = data.bytes * TIMES;
        let pairs = Pairs::run(stage.bench.pairs as usize, |half, _| {
            if half == Half::Reference {
                return measure(|| start_and_read(data, self.0, data.bytes / SMALL, BLOCK.into()));
            }
            use_and_free(large);
            measure(|| start_and_read(data, self.0, large, BLOCK.into()))
        })?;
        let elapsed = pairs.medians(|sample| sample.elapsed * 1e3).contender;
        let gigabytes = large as f64 / f64::from(1 << 30);
        let note =
            format!("{}: first page of a pool of {gigabytes:.1} GB after {elapsed:.1} ms", self.0);
        Ok(Measured { pairs, notes: vec![note] })
    }
}

/// Starting a pool and scanning the whole table into it, with this I/O method.
struct FirstScan(MethodKind);

impl Experiment for FirstScan {
    fn measure(&self, stage: &Stage<'_>, _: &Names) -> Result<Measured> {
        let data = stage.data()?;
        let large = data.bytes * TIMES;
        let scan = || start_and_read(data, self.0, large, data.bytes);
        stage.pairs(|half, _| {
            match half {
                Half::Contender => use_and_free(large),
                Half::Reference => scan().map(drop)?,
            }
            data.evict()?;
            measure(scan)
        })
    }
}

/// Starts a pool of `pool` bytes, and reads that many bytes of the data through it.
fn start_and_read(data: &Data, method: MethodKind, pool: u64, bytes: u64) -> Result<Done> {
    let io = Setup::new(method, true, CONCURRENCY, COMBINED);
    let setup = PoolSetup::scan(io, buffers(pool, 1), Strategy::Normal);
    Pooled::open(data, setup, 1)?.run(&[Work::whole(bytes, u64::from(COMBINED).min(bytes) as u32)])
}

/// Uses as much memory as another program may have, and frees it.
fn use_and_free(bytes: u64) {
    drop(std::hint::black_box(vec![1_u8; bytes as usize]));
    // A second for each gigabyte, so that tests on small files do not wait.
    Futex::new(0).wait(0, Some(Duration::from_nanos(bytes)));
}
