//! **Background writer**: sessions that must evict dirty pages, with and without a background
//! writer.
//!
//! The table is twice the size of the pool, access is random, and half of all operations modify a
//! page. So nearly every miss must evict, and a victim is often dirty.
//!
//! ```text
//!   bgwriter         as fast as possible: far more pages become dirty than the writer's settings allow
//!                    it to write, so one variant is as eager as is useful
//!   bgwriter-paced   400 operations a second: the load for which PostgreSQL's defaults, 500 pages a
//!                    second, are made; every run begins with a pool that is full of dirty pages
//! ```
//!
//! The note below each line shows what share of the written pages was flushed by the background
//! writer. Sessions had to flush the others themselves.

use super::checkpoint_table::Table;
use super::load::{Load, SESSIONS};
use super::{Flush, METHODS, Names, RunOptions, buffers};
use crate::Result;
use crate::pairs::Pairs;
use crate::report::{Line, Report, Target};
use crate::statistics::Estimate;
use crate::work::Work;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use trunkline_aio::{MethodKind, Operation};
use trunkline_engine::checkpoint::{BackgroundWriter, BackgroundWriterSettings};
use trunkline_engine::pool::BackendType;
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// Maximum table size, for `bgwriter` and for `bgwriter-paced`.
const BYTES_MAX: u64 = 1 << 30;
const PACED_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of operations per session in half of a pair.
const OPERATIONS: u32 = 50_000;
/// 100 operations per second and session, for five seconds.
const PACED: Load = Load { operations: 500, step: Some(Duration::from_millis(10)) };

/// One configuration of the background writer.
#[derive(Debug, Clone, Copy)]
struct Variant {
    name: &'static str,
    settings: BackgroundWriterSettings,
    flush: Flush,
}

/// The user's settings, and a more aggressive variant that keeps up with sessions running at full
/// speed.
fn variants(bench: &RunOptions<'_>, paced: bool) -> Vec<Variant> {
    let settings = BackgroundWriterSettings::of(bench.settings);
    let eager = BackgroundWriterSettings {
        delay: Duration::from_millis(10),
        max_pages: 1000,
        multiplier: 4.0,
        ..settings
    };
    let mut variants = Vec::new();
    for flush in Flush::each(settings.flush_after) {
        let with = |name, settings| {
            let settings = BackgroundWriterSettings { flush_after: flush.after, ..settings };
            Variant { name, settings, flush }
        };
        variants.push(with("writer as set", settings));
        if !paced {
            variants.push(with("writer every 10 ms, 1000 pages", eager));
        }
    }
    variants
}

pub(super) fn run(bench: &RunOptions<'_>) -> Result<Report> {
    let bytes = bench.bytes.min(BYTES_MAX);
    let mut table = Table::make(bench, bytes, buffers(bytes, 2))?;
    let load = Load { operations: OPERATIONS.min(table.blocks() / 2), step: None };
    let (lines, mut notes) = compare_all(bench, &mut table, load)?;
    notes.insert(0, introduction(&table, "as fast as they can"));
    Ok(Report { row: "bgwriter: changed pages must go", notes, lines, costs: Vec::new() })
}

pub(super) fn run_paced(bench: &RunOptions<'_>) -> Result<Report> {
    run_paced_with(bench, PACED)
}

/// Same as [`run_paced`], but with a given load, so that a test can finish quickly.
fn run_paced_with(bench: &RunOptions<'_>, load: Load) -> Result<Report> {
    let bytes = bench.bytes.min(PACED_BYTES_MAX);
    let mut table = Table::make(bench, bytes, buffers(bytes, 2))?;
    let (lines, mut notes) = compare_all(bench, &mut table, load)?;
    let step = load.step.unwrap_or_default();
    let pace = format!(
        "one operation every {step:?} each, {} in a run; every run begins with a pool of changed pages",
        load.operations * SESSIONS
    );
    notes.insert(0, introduction(&table, &pace));
    let row = "bgwriter-paced: changed pages must go, at a pace";
    Ok(Report { row, notes, lines, costs: Vec::new() })
}

fn introduction(table: &Table, pace: &str) -> String {
    let (blocks, buffers) = (table.blocks(), table.pool.buffers());
    format!(
        "{blocks} pages in {buffers} buffers, {SESSIONS} sessions, {pace}; a rate is that of \
         operations, half of them changes; every page was sound afterwards"
    )
}

fn compare_all(
    bench: &RunOptions<'_>,
    table: &mut Table,
    load: Load,
) -> Result<(Vec<Line>, Vec<String>)> {
    let (mut lines, mut notes) = (Vec::new(), Vec::new());
    for variant in variants(bench, load.step.is_some()) {
        for method in METHODS {
            let compared = compare(bench, table, method, variant, load)?;
            let Some((line, note)) = compared else { continue };
            lines.push(line);
            notes.push(note);
        }
    }
    table.checkpoint_all()?;
    table.verify()?;
    Ok((lines, notes))
}

fn compare(
    bench: &RunOptions<'_>,
    table: &mut Table,
    method: MethodKind,
    variant: Variant,
    load: Load,
) -> Result<Option<(Line, String)>> {
    let names = Names {
        setting: variant.flush.setting(""),
        contender: format!("{method}, {}", variant.name),
        reference: "no writer".into(),
    };
    if !bench.wants(&names.setting, &names.contender) {
        return Ok(None);
    }
    table.checkpoint_all()?;
    table.switch(method, variant.flush.direct)?;
    let backends = (0..SESSIONS).map(|_| table.pool.backend(BackendType::Client));
    let backends = RefCell::new(backends.collect::<std::result::Result<Vec<_>, _>>()?);
    let (blocks, relation, pool) = (table.blocks(), table.relation.clone(), table.pool.clone());
    let aio = table.aio.clone();
    let written = || aio.counters().operation(Operation::Writev).bytes / BLOCK_SIZE as u64;
    // Pages flushed by the background writer, and all pages flushed, for each run.
    let (mut cleaned, mut all) = (Vec::new(), Vec::new());
    // Every run needs a different page sequence, even within a pair. The previous run's pages are
    // still in the pool, and would all be hits.
    let runs = Cell::new(0);
    let run = || {
        runs.set(runs.get() + 1);
        load.run(&mut backends.borrow_mut(), &relation, blocks, runs.get())
    };
    let mut reference = |_: &()| run();
    let mut contender = |_: &()| {
        let writer = BackgroundWriter::start(&pool, variant.settings)?;
        let before = written();
        let done = run()?;
        cleaned.push(writer.counts().buffers_clean as f64);
        all.push((written() - before) as f64);
        Ok(done)
    };
    let full = fill(table);
    let mut prepare = || match load.step {
        // Fill the pool with dirty pages, which is the steady state of a pool without a background
        // writer. At this pace the sessions would take minutes to get there.
        Some(_) => table.dirty(&full),
        None => Ok(()),
    };
    let pairs = Pairs::run(bench.pairs, |_| (), &mut prepare, &mut reference, &mut contender)?;
    let (cleaned, all) = (Estimate::of(cleaned).median, Estimate::of(all).median);
    let note = format!(
        "{}, {}: it wrote {cleaned:.0} of {all:.0} pages of a run, {:.0}%",
        names.setting,
        names.contender,
        100.0 * cleaned / all.max(1.0),
    );
    let target = Target::default();
    let line = Line::new(names.setting, names.contender, names.reference, &pairs, target);
    Ok(Some((line, note)))
}

/// Random blocks, exactly as many as the pool has buffers.
fn fill(table: &Table) -> Vec<BlockNo> {
    let bytes = u64::from(table.blocks()) * BLOCK_SIZE as u64;
    let work = Work::random(1, table.pool.buffers() as usize, BLOCK_SIZE as u32, bytes);
    work.offsets.iter().map(|at| (at / BLOCK_SIZE as u64) as BlockNo).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_engine::settings::Settings;

    #[test]
    fn a_pace_is_kept_with_and_without_a_writer() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let mut settings = Settings::default();
        settings.set("bgwriter_delay", "10ms").expect("a setting");
        let bench = RunOptions { only: "io_uring", ..RunOptions::small(dir.path(), &settings) };
        let load = Load { operations: 50, step: Some(Duration::from_millis(4)) };
        let report = run_paced_with(&bench, load).expect("runs").json();
        let lines = report["lines"].as_array().expect("lines");
        let settings: Vec<_> = lines.iter().filter_map(|line| line["setting"].as_str()).collect();
        assert_eq!(settings, ["buffered", "buffered, flush_after 0", "direct"]);
        for line in lines {
            // The last of 50 operations is due after 49 steps.
            for side in ["reference", "contender"] {
                let rate = line["operations_per_second"][side].as_f64().expect("a rate");
                assert!(rate > 0.0 && rate <= 4.0 * 50.0 / 0.196, "{line}");
                assert!(line["latency_micros"][side]["p99"].as_f64() > Some(0.0), "{line}");
            }
        }
        // The background writer must have flushed pages on every line.
        let notes = report["notes"].as_array().expect("notes").iter();
        let wrote = notes.filter_map(|note| {
            let after = note.as_str()?.split_once("it wrote ")?.1;
            after.split(' ').next()?.parse::<u64>().ok()
        });
        let wrote: Vec<u64> = wrote.collect();
        assert!(wrote.len() == 3 && wrote.iter().all(|&pages| pages > 0), "{report}");
    }
}
