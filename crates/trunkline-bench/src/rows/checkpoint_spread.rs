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
//! A pair takes one timeout plus the fraction of the next timeout over which the writes are
//! spread. That is too long for a warm-up pair. The baseline always comes first, because it runs
//! while we must wait for the timeout anyway. Both halves start with cold data.

use super::checkpoint::BESIDE;
use super::checkpoint_table::{Order, Table};
use super::readers::{READERS, Readers};
use super::{Flush, METHODS, Names, RunOptions};
use crate::Result;
use crate::data::Data;
use crate::pairs::{Pairs, Sample, measure};
use crate::report::{Line, Report, Target};
use crate::statistics::Estimate;
use std::time::{Duration, Instant};
use trunkline_aio::sync::Futex;
use trunkline_aio::sync::atomic::{AtomicBool, Ordering};
use trunkline_engine::checkpoint::{
    CheckpointOptions, Checkpointer, CheckpointerCounts, CheckpointerSettings,
};
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// Maximum duration of the baseline's reads.
const ALONE: Duration = Duration::from_secs(10);
/// Polling interval for the checkpointer's counters. We must poll, because the checkpointer
/// doesn't signal the start and the end of a checkpoint.
const LOOK: Duration = Duration::from_millis(5);

pub(super) fn run(bench: &RunOptions<'_>) -> Result<Report> {
    run_with(bench, CheckpointerSettings::of(bench.settings))
}

/// Same as `run`, but accepts timeouts below PostgreSQL's minimum, so that a test can finish
/// quickly.
fn run_with(bench: &RunOptions<'_>, settings: CheckpointerSettings) -> Result<Report> {
    let pages = u32::try_from(bench.dirty / BLOCK_SIZE as u64)?.max(64);
    let blocks = Order::Sequential.pages(pages);
    let data = bench.data()?;
    let mut table = Table::make(bench, bench.dirty.saturating_mul(2), pages + BESIDE)?;
    let (mut lines, mut notes) = (Vec::new(), introduction(&settings, pages));
    for flush in Flush::each(settings.options.flush_after) {
        for method in METHODS {
            let names = Names {
                setting: flush.setting("reads meanwhile"),
                contender: format!("{method}, timed checkpoint"),
                reference: "no checkpoint".into(),
            };
            if !bench.wants(&names.setting, &names.contender) {
                continue;
            }
            table.turn(method, flush.direct)?;
            let options = CheckpointOptions { flush_after: flush.after, ..settings.options };
            let settings = CheckpointerSettings { options, ..settings };
            let (line, note) = compare(bench, &mut table, &data, &blocks, settings, names)?;
            lines.push(line);
            notes.extend(note);
        }
    }
    table.verify()?;
    Ok(Report { row: "checkpoint-spread: as slow as it may be", notes, lines, costs: Vec::new() })
}

fn introduction(settings: &CheckpointerSettings, pages: u32) -> Vec<String> {
    let megabytes = u64::from(pages) * BLOCK_SIZE as u64 / 1_000_000;
    let CheckpointerSettings { timeout, completion_target, .. } = settings;
    vec![
        format!(
            "{pages} pages ({megabytes} MB) dirty; a checkpoint every {timeout:?}, spread over \
             {completion_target} of that; a rate is that of reads, by {READERS} sessions"
        ),
        "every page of the table was sound afterwards".into(),
    ]
}

fn compare(
    bench: &RunOptions<'_>,
    table: &mut Table,
    data: &Data,
    blocks: &[BlockNo],
    settings: CheckpointerSettings,
    names: Names,
) -> Result<(Line, Vec<String>)> {
    let mut readers = Readers::new(table, data, table.is_direct())?;
    let (mut pairs, mut ended) = (Vec::new(), Vec::new());
    for round in 0..bench.pairs as u64 {
        table.dirty(blocks)?;
        readers.evict()?;
        let lists = [readers.list(2 * round), readers.list(2 * round + 1)];
        let checkpointer = Checkpointer::start(&table.pool, settings)?;
        let until = Instant::now() + ALONE.min(settings.timeout / 2);
        let alone = measure(|| readers.read(&lists[0], &|| Instant::now() >= until, || Ok(())))?;
        readers.evict()?;
        let (during, end) = beside(&mut readers, &lists[1], &checkpointer, blocks.len())?;
        pairs.push((alone, during));
        ended.push(end);
        checkpointer.shut_down().map_err(|error| error.to_string())?;
    }
    let mut notes = vec![format!("{}, {}: {}", names.setting, names.contender, outcome(&ended))];
    notes.extend(readers.warmth());
    let (pairs, target) = (Pairs::of(pairs), Target::default());
    Ok((Line::new(names.setting, names.contender, names.reference, &pairs, target), notes))
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
    use super::*;
    use trunkline_engine::settings::Settings;

    #[test]
    fn a_checkpoint_is_spread_and_read_beside() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
        let settings = &Settings::default();
        let bench =
            RunOptions { only: "io_uring", pairs: 1, ..RunOptions::small(dir.path(), settings) };
        let timeout = Duration::from_secs(2);
        let of = CheckpointerSettings { completion_target: 0.2, timeout, ..Default::default() };
        let report = run_with(&bench, of).expect("runs").json();
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
