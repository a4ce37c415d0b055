//! **Timed checkpoint and readers**: how much a timed checkpoint slows down concurrent reads.
//!
//! The engine's checkpointer starts the checkpoint once `checkpoint_timeout` has passed, and
//! spreads its writes over `checkpoint_completion_target` of the interval.
//!
//! ```text
//!   checkpointer starts ──▶ timeout has passed ──────────────▶ checkpoint complete
//!     reference reads, a while │ contender reads, all the time
//! ```
//!
//! A pair takes one checkpoint timeout, plus the part of the next timeout over which the writes are
//! spread. We therefore don't run a warm-up pair, because it would take too long. The baseline
//! always comes first, because it can run while we are waiting for the timeout anyway. Both halves
//! start with cold data.

use super::checkpoint::{dirty_pages, pages, table_size};
use super::checkpoint_table::Order;
use super::comparison::{Body, Comparison, Experiment, Measured, Needs, Row, SetUp, Stage};
use super::options::Flush;
use super::readers::{READERS, Readers};
use crate::failure::Result;
use crate::pairs::{Pairs, Sample, measure};
use crate::report::{Names, Target};
use std::time::{Duration, Instant};
use trunkline_aio::MethodKind;
use trunkline_aio::facade::Futex;
use trunkline_aio::facade::atomic::{AtomicBool, Ordering};
use trunkline_engine::checkpoint::{
    CheckpointOptions, Checkpointer, CheckpointerCounts, CheckpointerSettings,
};
use trunkline_format::BlockNo;
use trunkline_measure::Estimate;

/// Maximum duration of the baseline's reads.
const ALONE: Duration = Duration::from_secs(10);
/// How often we poll the checkpointer's counters. We have to poll them, because the checkpointer
/// doesn't signal when a checkpoint starts or ends.
const LOOK: Duration = Duration::from_millis(5);

pub(super) const CHECKPOINT_SPREAD: Row = Row {
    name: "checkpoint-spread",
    measures: "The cost of timed checkpoints for concurrent readers; a pair takes about two \
               `checkpoint_timeout`",
    question: "What does a checkpoint cost concurrent readers if it takes as long as it may?",
    about: "The baseline is the same readers before the checkpoint begins.",
    settings: &[
        "checkpoint_timeout",
        "checkpoint_completion_target",
        "checkpoint_flush_after",
        "io_max_combine_limit",
    ],
    needs: Needs::Timeout,
    set_up: SetUp::Table(table_size),
    body: Body::Lines(&[|stage| Ok(lines(CheckpointerSettings::of(&stage.bench.settings)))]),
    notes: |stage| {
        let CheckpointerSettings { timeout, completion_target, .. } =
            CheckpointerSettings::of(&stage.bench.settings);
        Ok(vec![
            format!(
                "{}; a checkpoint every {timeout:?}, spread over {completion_target} of that; a \
                 rate is that of reads, by {READERS} sessions",
                dirty_pages(stage.bench)?
            ),
            "every page of the table was sound afterwards".into(),
        ])
    },
};

fn lines(settings: CheckpointerSettings) -> Vec<Comparison> {
    let line = |(flush, method): (Flush, MethodKind)| {
        let setting = flush.setting("reads meanwhile");
        let options = CheckpointOptions { flush_after: flush.after, ..settings.options };
        let settings = CheckpointerSettings { options, ..settings };
        Comparison::new(
            Names::new(setting, format!("{method}, timed checkpoint"), "no checkpoint"),
            Target::NONE,
            TimedCheckpoint { direct: flush.direct, method, settings },
        )
    };
    Flush::with_methods(settings.options.flush_after).map(line).collect()
}

/// Readers before and during a checkpoint that the checkpointer starts by itself.
struct TimedCheckpoint {
    direct: bool,
    method: MethodKind,
    settings: CheckpointerSettings,
}

impl Experiment for TimedCheckpoint {
    fn measure(&self, stage: &Stage<'_>, names: &Names) -> Result<Measured> {
        let blocks = Order::Sequential.pages(pages(stage.bench)?);
        let table = &mut *stage.table()?;
        table.turn(self.method, self.direct)?;
        let mut readers = Readers::new(table, stage.data()?)?;
        let (mut pairs, mut ended) = (Vec::new(), Vec::new());
        for round in 0..stage.bench.pairs {
            table.dirty(&blocks)?;
            readers.evict()?;
            let lists = [readers.list(2 * round), readers.list(2 * round + 1)];
            let checkpointer = Checkpointer::start(table.engine.pool(), self.settings)?;
            let until = Instant::now() + ALONE.min(self.settings.timeout / 2);
            let enough = || Instant::now() >= until;
            let alone = measure(|| readers.read(&lists[0], &enough, || Ok(())))?;
            readers.evict()?;
            let (during, end) = beside(&mut readers, &lists[1], &checkpointer, blocks.len())?;
            pairs.push((alone, during));
            ended.push(end);
            checkpointer.shut_down().map_err(|error| error.to_string())?;
        }
        let Names { setting, contender, .. } = names;
        let mut notes = vec![format!("{setting}, {contender}: {}", outcome(&ended))];
        notes.extend(readers.warmth());
        Ok(Measured { pairs: Pairs::of(pairs), notes })
    }
}

/// Reads from the start of the next checkpoint to its end.
fn beside(
    readers: &mut Readers<'_>,
    list: &[BlockNo],
    checkpointer: &Checkpointer,
    pages: usize,
) -> Result<(Sample, CheckpointerCounts)> {
    watch(checkpointer, |counts| counts.num_timed > 0);
    if checkpointer.counts().num_done > 0 {
        return Err("the checkpoint was over before the readers were ready".into());
    }
    let over = AtomicBool::new(false);
    let sample = measure(|| {
        let enough = || over.load(Ordering::SeqCst);
        readers.read(list, &enough, || {
            watch(checkpointer, |counts| counts.num_done + counts.num_failed > 0);
            over.store(true, Ordering::SeqCst);
            Ok(())
        })
    })?;
    let counts = checkpointer.counts();
    if counts.num_failed > 0 || counts.buffers_written != pages as u64 {
        return Err(format!("{counts:?}; expected a checkpoint of {pages} buffers").into());
    }
    Ok((sample, counts))
}

/// Polls the counters until they satisfy the condition.
fn watch(checkpointer: &Checkpointer, are_such: impl Fn(CheckpointerCounts) -> bool) {
    let never_woken = Futex::new(0);
    while !are_such(checkpointer.counts()) {
        never_woken.wait(0, Some(LOOK));
    }
}

/// A note for the report: median write time and sync time of the checkpoints.
fn outcome(ended: &[CheckpointerCounts]) -> String {
    let median = |seconds: &dyn Fn(&CheckpointerCounts) -> f64| {
        Estimate::of(ended.iter().map(seconds).collect()).median
    };
    let write = median(&|counts| counts.write_time.as_secs_f64());
    let sync = median(&|counts| counts.sync_time.as_secs_f64());
    format!("checkpoints wrote for {write:.2} s and synced for {sync:.3} s")
}

#[cfg(test)]
mod tests {
    use super::super::options::RunOptions;
    use super::*;

    #[test]
    fn a_checkpoint_is_spread_and_read_beside() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let bench =
            RunOptions { only: "io_uring".into(), pairs: 1, ..RunOptions::small(dir.path()) };
        // The timeout is below PostgreSQL's minimum, so that the test ends soon.
        let row = Row {
            body: Body::Lines(&[|_| {
                let timeout = Duration::from_secs(2);
                let default = CheckpointerSettings::default();
                Ok(lines(CheckpointerSettings { completion_target: 0.2, timeout, ..default }))
            }]),
            ..CHECKPOINT_SPREAD
        };
        let report = serde_json::to_value(row.run(&bench).expect("runs")).expect("JSON");
        let lines = report["lines"].as_array().expect("lines");
        let settings: Vec<_> = lines.iter().filter_map(|line| line["setting"].as_str()).collect();
        let expected = ["buffered", "buffered, flush_after 0", "direct"];
        assert_eq!(settings, expected.map(|setting| format!("{setting}, reads meanwhile")));
        for line in lines {
            let p99 = |side: &str| line["latency_micros"][side]["p99"].as_f64();
            assert!(p99("reference") > Some(0.0) && p99("contender") > Some(0.0), "{line}");
        }
        // Every checkpoint must have spread its writes over at least its share of the timeout.
        let notes = report["notes"].as_array().expect("notes").iter();
        let seconds = notes.filter_map(|note| {
            let after = note.as_str()?.split_once("checkpoints wrote for ")?.1;
            after.split(' ').next()?.parse::<f64>().ok()
        });
        let seconds: Vec<f64> = seconds.collect();
        assert_eq!(seconds.len(), 3, "{report}");
        assert!(seconds.iter().all(|&seconds| seconds >= 0.4), "{seconds:?}");
    }
}
