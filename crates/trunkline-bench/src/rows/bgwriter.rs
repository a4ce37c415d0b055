//! **Background writer**: sessions that must evict dirty pages, with and without a background
//! writer.
//!
//! The table is twice as large as the pool, access is random, and half of all operations modify a
//! page. This means that nearly every miss has to evict a page, and that the victim is often dirty.
//!
//! ```text
//!   bgwriter         as fast as possible: far more pages become dirty than the writer's settings allow
//!                    it to write, so one variant is as eager as is useful
//!   bgwriter-paced   400 operations a second: the load for which PostgreSQL's defaults, 500 pages a
//!                    second, are made; every run begins with a pool that is full of dirty pages
//! ```
//!
//! The note below each line shows how much of the writing was done by the background writer. The
//! sessions had to flush the rest of the pages themselves.

use super::checkpoint_table::Table;
use super::comparison::{Body, Comparison, Experiment, Measured, Row, SetUp, Stage};
use super::load::{Load, SESSIONS};
use super::options::{BLOCK, Flush, METHODS, buffers};
use crate::failure::Result;
use crate::pairs::{Half, measure};
use crate::report::{Names, Target};
use crate::work::Work;
use std::time::Duration;
use trunkline_aio::{MethodKind, Operation};
use trunkline_engine::checkpoint::{BackgroundWriter, BackgroundWriterSettings};
use trunkline_format::{BLOCK_SIZE, BlockNo};
use trunkline_measure::Estimate;

/// Maximum table size, for `bgwriter` and for `bgwriter-paced`.
const BYTES_MAX: u64 = 1 << 30;
const PACED_BYTES_MAX: u64 = 256 << 20;
/// Maximum number of operations per session in half of a pair.
const OPERATIONS: u32 = 50_000;
/// 100 operations per second and session, for five seconds.
const PACED: Load = Load { operations: 500, step: Some(Duration::from_millis(10)) };

const SETTINGS: &[&str] = &[
    "bgwriter_delay",
    "bgwriter_lru_maxpages",
    "bgwriter_lru_multiplier",
    "bgwriter_flush_after",
    "io_max_combine_limit",
];

pub(super) const BGWRITER: Row = Row {
    name: "bgwriter",
    measures: "Sessions that must evict dirty pages, with and without a background writer",
    question: "How much faster are sessions at full speed if a background writer cleans buffers \
               for them?",
    about: "The baseline is the same sessions without a background writer.",
    settings: SETTINGS,
    set_up: SetUp::Table(|bench| Ok(half_in_pool(bench.bytes.min(BYTES_MAX)))),
    body: Body::Lines(&[|stage| {
        let operations = OPERATIONS.min(stage.table()?.blocks() / 2);
        Ok(lines(stage, Load { operations, step: None }))
    }]),
    notes: |stage| introduction(stage, "as fast as they can"),
    ..Row::COLD
};

pub(super) const BGWRITER_PACED: Row = Row {
    name: "bgwriter-paced",
    measures: "The same, but each session performs only a hundred operations a second",
    question: "Are sessions that work at a pace late less often with a background writer?",
    about: "The baseline is the same sessions without a background writer.",
    set_up: SetUp::Table(|bench| Ok(half_in_pool(bench.bytes.min(PACED_BYTES_MAX)))),
    body: Body::Lines(&[|stage| Ok(lines(stage, PACED))]),
    notes: |stage| {
        let (step, operations) = (PACED.step.unwrap_or_default(), PACED.operations * SESSIONS);
        let pace = format!(
            "one operation every {step:?} each, {operations} in a run; every run begins with a \
             pool of changed pages"
        );
        introduction(stage, &pace)
    },
    ..BGWRITER
};

/// A table of this size, and a pool with room for half of it.
fn half_in_pool(bytes: u64) -> (u64, u32) {
    (bytes, buffers(bytes, 2))
}

fn introduction(stage: &Stage<'_>, pace: &str) -> Result<Vec<String>> {
    let table = stage.table()?;
    let (blocks, buffers) = (table.blocks(), table.engine.pool().buffers());
    Ok(vec![format!(
        "{blocks} pages in {buffers} buffers, {SESSIONS} sessions, {pace}; a rate is that of \
         operations, half of them changes; every page was sound afterwards"
    )])
}

/// Returns the comparisons to run with the user's settings. If the load runs at full speed, we also
/// run them with more aggressive background writer settings, so that the background writer can keep
/// up with the sessions.
fn lines(stage: &Stage<'_>, load: Load) -> Vec<Comparison> {
    let as_set = BackgroundWriterSettings::of(&stage.bench.settings);
    let eager = BackgroundWriterSettings {
        delay: Duration::from_millis(10),
        max_pages: 1000,
        multiplier: 4.0,
        ..as_set
    };
    let mut variants = vec![("writer as set", as_set)];
    if load.step.is_none() {
        variants.push(("writer every 10 ms, 1000 pages", eager));
    }
    let mut lines = Vec::new();
    for flush in Flush::each(as_set.flush_after) {
        for &(name, settings) in &variants {
            let settings = BackgroundWriterSettings { flush_after: flush.after, ..settings };
            lines.extend(METHODS.map(|method| {
                Comparison::new(
                    Names::new(flush.setting(""), format!("{method}, {name}"), "no writer"),
                    Target::NONE,
                    WithWriter { direct: flush.direct, method, settings, load },
                )
            }));
        }
    }
    lines
}

/// A load with a background writer, against the same load without.
struct WithWriter {
    direct: bool,
    method: MethodKind,
    settings: BackgroundWriterSettings,
    load: Load,
}

impl Experiment for WithWriter {
    fn measure(&self, stage: &Stage<'_>, names: &Names) -> Result<Measured> {
        let table = &mut *stage.table()?;
        table.checkpoint_all()?;
        table.switch(self.method, self.direct)?;
        table.changed();
        let engine = table.engine.clone();
        let backends = (0..SESSIONS).map(|_| engine.session());
        let mut backends = backends.collect::<std::result::Result<Vec<_>, _>>()?;
        let (blocks, relation) = (table.blocks(), table.relation.clone());
        let written =
            || engine.aio().counters().operation(Operation::Writev).bytes / BLOCK_SIZE as u64;
        // Pages flushed by the background writer, and all pages flushed, for each run.
        let (mut cleaned, mut all) = (Vec::new(), Vec::new());
        // Every run needs a different sequence of pages, even within a pair. Otherwise all accesses
        // would be hits, because the pages of the previous run are still in the pool.
        let mut runs = 0;
        let full = fill(table);
        let mut measured = stage.pairs(|half, _| {
            if self.load.step.is_some() {
                // Fill the pool with dirty pages first, because that is its steady state without a
                // background writer. At this pace, it would take the sessions minutes to get there.
                table.dirty(&full)?;
            }
            runs += 1;
            measure(|| {
                if half == Half::Reference {
                    return self.load.run(&mut backends, &relation, blocks, runs);
                }
                let writer = BackgroundWriter::start(engine.pool(), self.settings)?;
                let before = written();
                let done = self.load.run(&mut backends, &relation, blocks, runs)?;
                cleaned.push(writer.counts().buffers_clean as f64);
                all.push((written() - before) as f64);
                Ok(done)
            })
        })?;
        let (cleaned, all) = (Estimate::of(cleaned).median, Estimate::of(all).median);
        measured.notes.push(format!(
            "{}, {}: it wrote {cleaned:.0} of {all:.0} pages of a run, {:.0}%",
            names.setting,
            names.contender,
            100.0 * cleaned / all.max(1.0),
        ));
        Ok(measured)
    }
}

/// Random blocks, exactly as many as the pool has buffers.
fn fill(table: &Table) -> Vec<BlockNo> {
    let bytes = u64::from(table.blocks()) * BLOCK_SIZE as u64;
    let buffers = table.engine.pool().buffers() as usize;
    Work::random(1, buffers, BLOCK, bytes).blocks().collect()
}

#[cfg(test)]
mod tests {
    use super::super::options::RunOptions;
    use super::*;
    use trunkline_engine::settings::Settings;

    #[test]
    fn a_pace_is_kept_with_and_without_a_writer() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let mut settings = Settings::default();
        settings.set("bgwriter_delay", "10ms").expect("a setting");
        let bench = RunOptions {
            only: "io_uring".into(),
            ..RunOptions { settings, ..RunOptions::small(dir.path()) }
        };
        let row = Row {
            body: Body::Lines(&[|stage| {
                let step = Some(Duration::from_millis(4));
                Ok(lines(stage, Load { operations: 50, step }))
            }]),
            ..BGWRITER_PACED
        };
        let report = serde_json::to_value(row.run(&bench).expect("runs")).expect("JSON");
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
