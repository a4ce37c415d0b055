//! Sessions that must evict changed pages: a table twice as large as the pool, half of all operations
//! changes, at random; with a background writer and without one.
//!
//! An operation reads one page and looks at it, or locks it exclusively, changes it and marks it
//! dirty. With PostgreSQL's defaults the writer writes 500 pages a second at most, far fewer than such a
//! load makes dirty; `-c bgwriter_lru_maxpages=…` and its kin change that. The second variant is as
//! eager as makes sense. Said of each: which part of the pages that had to be written the sessions did
//! not have to write themselves, having found clean buffers.

use super::checkpoint_table::{Table, change};
use super::{Bench, METHODS, Names, buffers, way};
use crate::Result;
use crate::pairs::{Pairs, cpu_seconds};
use crate::report::{Line, Report, Target};
use crate::statistics::Estimate;
use crate::work::{Done, Random};
use std::cell::RefCell;
use std::time::{Duration, Instant};
use trunkline_aio::{MethodKind, Operation};
use trunkline_engine::checkpoint::{BackgroundWriter, BackgroundWriterSettings};
use trunkline_engine::pool::{Backend, BackendType};
use trunkline_engine::storage::Relation;
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// The table at most.
const BYTES_MAX: u64 = 1 << 30;
/// Sessions.
const SESSIONS: usize = 4;
/// Operations of a session in one half of a pair, at most.
const OPERATIONS: u32 = 10_000;

/// How the background writer is set.
#[derive(Debug, Clone, Copy)]
struct Variant {
    name: &'static str,
    settings: BackgroundWriterSettings,
}

fn variants(bench: &Bench<'_>) -> [Variant; 2] {
    let settings = BackgroundWriterSettings::of(bench.settings);
    let eager = BackgroundWriterSettings {
        delay: Duration::from_millis(10),
        max_pages: 1000,
        multiplier: 4.0,
        ..settings
    };
    [
        Variant { name: "writer as set", settings },
        Variant { name: "writer every 10 ms, 1000 pages", settings: eager },
    ]
}

pub(super) fn run(bench: &Bench<'_>) -> Result<Report> {
    let bytes = bench.bytes.min(BYTES_MAX);
    let mut table = Table::make(bench, bytes, buffers(bytes, 2))?;
    let (mut lines, mut notes) = (Vec::new(), Vec::new());
    for direct in [false, true] {
        for method in METHODS {
            for variant in variants(bench) {
                let compared = compare(bench, &mut table, direct, method, variant)?;
                let Some((line, note)) = compared else { continue };
                lines.push(line);
                notes.push(note);
            }
        }
    }
    table.checkpoint_all()?;
    table.verify()?;
    let (blocks, buffers) = (table.blocks(), table.pool.buffers());
    let text = format!(
        "{blocks} pages in {buffers} buffers, {SESSIONS} sessions; a rate is that of operations, \
         half of them changes; every page was sound afterwards"
    );
    notes.insert(0, text);
    Ok(Report { row: "bgwriter: changed pages must go", notes, lines, costs: Vec::new() })
}

/// What a side's runs were like; medians over the runs.
#[derive(Debug, Default)]
struct Side {
    medians: Vec<f64>,
    slowest: Vec<f64>,
    /// Pages that the background writer wrote, and all that were written.
    cleaned: Vec<f64>,
    written: Vec<f64>,
}

impl Side {
    fn add(&mut self, mut micros: Vec<f32>, cleaned: u64, written: u64) {
        micros.sort_unstable_by(f32::total_cmp);
        let at =
            |part: usize| micros.get(micros.len() * part / 100).copied().map_or(0.0, f64::from);
        self.medians.push(at(50));
        self.slowest.push(at(99));
        self.cleaned.push(cleaned as f64);
        self.written.push(written as f64);
    }

    fn text(&self) -> String {
        let median = |values: &[f64]| Estimate::of(values.to_vec()).median;
        let (half, most) = (median(&self.medians), median(&self.slowest));
        format!("median {half:.0} µs, p99 {most:.0} µs")
    }
}

fn compare(
    bench: &Bench<'_>,
    table: &mut Table,
    direct: bool,
    method: MethodKind,
    variant: Variant,
) -> Result<Option<(Line, String)>> {
    let names = Names {
        setting: way(direct).into(),
        contender: format!("{method}, {}", variant.name),
        reference: "no writer".into(),
    };
    if !bench.wants(&names.setting, &names.contender) {
        return Ok(None);
    }
    table.checkpoint_all()?;
    table.switch(method, direct)?;
    let backends = (0..SESSIONS).map(|_| table.pool.backend(BackendType::Client));
    let backends = RefCell::new(backends.collect::<std::result::Result<Vec<_>, _>>()?);
    let (blocks, relation, pool) = (table.blocks(), table.relation.clone(), table.pool.clone());
    let aio = table.aio.clone();
    let written = || aio.counters().operation(Operation::Writev).bytes / BLOCK_SIZE as u64;
    let (without, with) = (RefCell::new(Side::default()), RefCell::new(Side::default()));
    let mut reference = |round: &u64| {
        let before = written();
        let (done, micros) = load(&mut backends.borrow_mut(), &relation, blocks, *round)?;
        without.borrow_mut().add(micros, 0, written() - before);
        Ok(done)
    };
    let mut contender = |round: &u64| {
        let writer = BackgroundWriter::start(&pool, variant.settings)?;
        let before = written();
        let (done, micros) = load(&mut backends.borrow_mut(), &relation, blocks, *round)?;
        with.borrow_mut().add(micros, writer.counts().buffers_clean, written() - before);
        Ok(done)
    };
    let next = |round| round + 1;
    let pairs = Pairs::run(bench.pairs, next, &mut || Ok(()), &mut reference, &mut contender)?;
    let median = |values: &[f64]| Estimate::of(values.to_vec()).median;
    let (cleaned, all) = (median(&with.borrow().cleaned), median(&with.borrow().written));
    let note = format!(
        "{}, {}: {}; without {}; it wrote {cleaned:.0} of {all:.0} pages of a run, {:.0}%",
        names.setting,
        names.contender,
        with.borrow().text(),
        without.borrow().text(),
        100.0 * cleaned / all.max(1.0),
    );
    let target = Target::default();
    let line = Line::new(names.setting, names.contender, names.reference, &pairs, target);
    Ok(Some((line, note)))
}

/// One run of all sessions, and how long each operation took.
fn load(
    backends: &mut [Backend],
    relation: &Relation,
    blocks: BlockNo,
    round: u64,
) -> Result<(Done, Vec<f32>)> {
    let (cpu, started) = (cpu_seconds(), Instant::now());
    let micros = std::thread::scope(|scope| {
        let start = |(number, backend)| {
            let random = Random(((round << 8) | number) * 2 + 1);
            scope.spawn(move || operate(backend, relation, blocks, random))
        };
        let threads: Vec<_> = (1_u64..).zip(backends).map(start).collect();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().map_err(|_| "a thread panicked")??);
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(all)
    })?;
    let took = Some((started.elapsed().as_secs_f64(), cpu_seconds() - cpu));
    let operations = micros.len() as u64;
    Ok((
        Done { operations, bytes: operations * BLOCK_SIZE as u64, took, ..Done::default() },
        micros,
    ))
}

fn operate(
    backend: &mut Backend,
    relation: &Relation,
    blocks: BlockNo,
    mut random: Random,
) -> Result<Vec<f32>> {
    let operations = OPERATIONS.min(blocks);
    let mut micros = Vec::with_capacity(operations as usize);
    for _ in 0..operations {
        let number = random.next();
        let block = ((number >> 8) % u64::from(blocks)) as BlockNo;
        let started = Instant::now();
        let pin = backend.read(relation, block)?;
        if number & 1 == 0 {
            std::hint::black_box(backend.read_lock(pin.page())?[0]);
        } else {
            let mut bytes = backend.write_lock(pin.page())?;
            change(&mut bytes);
            bytes.mark_dirty();
        }
        drop(pin);
        micros.push(started.elapsed().as_secs_f32() * 1e6);
    }
    backend.show_counts();
    Ok(micros)
}
