//! What a checkpoint costs who reads meanwhile: random blocks of another table through the same pool,
//! by two sessions, with a checkpoint under way and without one.
//!
//! No block is read twice in a run, so every read goes to the file. The reference reads as long as
//! the checkpoints before have taken.

use super::checkpoint_table::{Order, Table};
use super::{Bench, METHODS, Names, random_list, way};
use crate::Result;
use crate::data::{Data, RELATION};
use crate::pairs::{Pairs, cpu_seconds};
use crate::report::{Line, Target};
use crate::statistics::Estimate;
use crate::work::Done;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};
use trunkline_aio::MethodKind;
use trunkline_aio::sync::Arc;
use trunkline_aio::sync::atomic::{AtomicBool, Ordering};
use trunkline_engine::pool::{Backend, BackendType};
use trunkline_engine::storage::{
    DEFAULT_TABLESPACE, FileTable, KernelFiles, Layout, Relation, RelationLocator, Storage,
};
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, Oid};

/// Sessions that read.
const READERS: usize = 2;
/// How long the first reference reads.
const FIRST: Duration = Duration::from_secs(1);

/// A line for each method and way, and a note on each with the latencies.
pub(super) fn compare_all(
    bench: &Bench<'_>,
    table: &mut Table,
    pages: u32,
    lines: &mut Vec<Line>,
    notes: &mut Vec<String>,
) -> Result<()> {
    let data = bench.data()?;
    let blocks = Order::Sequential.pages(pages);
    for direct in [false, true] {
        for method in METHODS {
            let names = Names {
                setting: format!("{}, reads meanwhile", way(direct)),
                contender: format!("{method}, checkpoint"),
                reference: "no checkpoint".into(),
            };
            if bench.wants(&names.setting, &names.contender) {
                compare(bench, table, &data, &blocks, direct, method, names, lines, notes)?;
            }
        }
    }
    Ok(())
}

/// Latencies of a side, in microseconds: the median of each run's, and of each run's 99th percentile.
#[derive(Debug, Default)]
struct Latencies {
    medians: Vec<f64>,
    slowest: Vec<f64>,
}

impl Latencies {
    fn add(&mut self, mut micros: Vec<f32>) {
        micros.sort_unstable_by(f32::total_cmp);
        let at =
            |part: usize| micros.get(micros.len() * part / 100).copied().map_or(0.0, f64::from);
        self.medians.push(at(50));
        self.slowest.push(at(99));
    }

    fn text(&self) -> String {
        let median = |values: &[f64]| Estimate::of(values.to_vec()).median;
        let (half, most) = (median(&self.medians), median(&self.slowest));
        format!("median {half:.0} µs, p99 {most:.0} µs")
    }
}

#[expect(clippy::too_many_arguments, reason = "one caller, which has just named them all")]
fn compare(
    bench: &Bench<'_>,
    table: &mut Table,
    data: &Data,
    blocks: &[BlockNo],
    direct: bool,
    method: MethodKind,
    names: Names,
    lines: &mut Vec<Line>,
    notes: &mut Vec<String>,
) -> Result<()> {
    table.switch(method, direct)?;
    let other = reads_of(table, data, direct);
    let backends = (0..READERS).map(|_| table.pool.backend(BackendType::Client));
    let backends = RefCell::new(backends.collect::<std::result::Result<Vec<_>, _>>()?);
    let pool = table.pool.clone();
    let table = RefCell::new(table);
    let (alone, during) = (RefCell::new(Latencies::default()), RefCell::new(Latencies::default()));
    let last = Cell::new(FIRST);
    let next = |round| {
        let work = random_list(data, round, data.blocks() as usize);
        work.offsets.iter().map(|at| (at / BLOCK_SIZE as u64) as BlockNo).collect::<Vec<_>>()
    };
    let mut prepare = || {
        pool.evict_relation(&other, 0);
        table.borrow_mut().dirty(blocks)?;
        data.evict()
    };
    let mut reference = |list: &Vec<BlockNo>| {
        let until = Instant::now() + last.get();
        let enough = move || Instant::now() >= until;
        let (done, micros) = read(&mut backends.borrow_mut(), &other, list, &enough, || Ok(()))?;
        alone.borrow_mut().add(micros);
        Ok(done)
    };
    let mut contender = |list: &Vec<BlockNo>| {
        let over = AtomicBool::new(false);
        let mut table = table.borrow_mut();
        let meanwhile = || {
            let started = Instant::now();
            let ended = table.checkpoint(blocks.len());
            over.store(true, Ordering::SeqCst);
            last.set(started.elapsed());
            ended.map(drop)
        };
        let enough = || over.load(Ordering::SeqCst);
        let (done, micros) = read(&mut backends.borrow_mut(), &other, list, &enough, meanwhile)?;
        during.borrow_mut().add(micros);
        Ok(done)
    };
    let pairs = Pairs::run(bench.pairs, next, &mut prepare, &mut reference, &mut contender)?;
    table.borrow_mut().checkpoint_all()?;
    notes.push(format!(
        "reads, {}, {method}: {}; during a checkpoint of {:.1} s {}",
        way(direct),
        alone.borrow().text(),
        last.get().as_secs_f64(),
        during.borrow().text(),
    ));
    let target = Target::default();
    lines.push(Line::new(names.setting, names.contender, names.reference, &pairs, target));
    pool.evict_relation(&other, 0);
    Ok(())
}

/// The data that other rows read, in the table's pool.
fn reads_of(table: &Table, data: &Data, direct: bool) -> Relation {
    let layout = Layout { checksums: true, tablespace_directory: String::new() };
    let files = Arc::new(FileTable::new(64));
    let system = Arc::new(KernelFiles::new(&table.aio));
    let storage = Storage::new(&data.root, layout, files, system, direct);
    let (tablespace, database) = (DEFAULT_TABLESPACE, Oid(5));
    storage.relation(RelationLocator { tablespace, database, relfilenode: RELATION }, Fork::Main)
}

/// Reads blocks of the list, each session a part of it, until it is enough, while something else is
/// done; the reads, and how long each took.
fn read(
    backends: &mut [Backend],
    relation: &Relation,
    list: &[BlockNo],
    enough: &(dyn Fn() -> bool + Sync),
    meanwhile: impl FnOnce() -> Result<()>,
) -> Result<(Done, Vec<f32>)> {
    let (cpu, started) = (cpu_seconds(), Instant::now());
    let part = list.len().div_ceil(backends.len());
    let (micros, elapsed) = std::thread::scope(|scope| {
        let parts = backends.iter_mut().zip(list.chunks(part));
        let start = |(backend, part): (_, &'_ [BlockNo])| {
            let (backend, part): (&mut Backend, Vec<BlockNo>) = (backend, part.to_vec());
            scope.spawn(move || read_part(backend, relation, &part, enough))
        };
        let threads: Vec<_> = parts.map(start).collect();
        let done = meanwhile();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().map_err(|_| "a thread panicked")??);
        }
        done?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>((all, started.elapsed().as_secs_f64()))
    })?;
    let operations = micros.len() as u64;
    let took = Some((elapsed, cpu_seconds() - cpu));
    Ok((
        Done { operations, bytes: operations * BLOCK_SIZE as u64, took, ..Done::default() },
        micros,
    ))
}

fn read_part(
    backend: &mut Backend,
    relation: &Relation,
    blocks: &[BlockNo],
    enough: &dyn Fn() -> bool,
) -> Result<Vec<f32>> {
    let mut micros = Vec::with_capacity(blocks.len());
    for &block in blocks {
        if enough() {
            break;
        }
        let started = Instant::now();
        drop(backend.read(relation, block)?);
        micros.push(started.elapsed().as_secs_f32() * 1e6);
    }
    backend.show_counts();
    Ok(micros)
}

impl Table {
    /// A checkpoint of whatever is dirty.
    pub(super) fn checkpoint_all(&mut self) -> Result<()> {
        let options = trunkline_engine::checkpoint::CheckpointOptions::default();
        trunkline_engine::checkpoint::checkpoint(&self.pool, &mut self.backend, options, |_| {})?;
        Ok(())
    }
}
