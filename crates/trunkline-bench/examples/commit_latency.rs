//! Measures how long commits take, first alone and then beside checkpoints: one that follows the other, or a single one of
//! all pages (`--single on`), which can be spread over a number of seconds.
//!
//! ```text
//!   commit_latency DIR [--clients N] [--seconds N] [--rows N] [--images on|off] [--direct off|on] [--single off|on]
//!                  [--spread SECONDS]
//! ```
//! Creates DIR/cluster. Each client has a table with that many rows, 100,000 unless named. In each transaction, it updates a
//! random one of them and waits until that is durable, so that checkpoints have pages all over the tables to write.
//! `--images off` is `full_page_writes = off`: otherwise, the first change of a page after a checkpoint has begun logs
//! the whole page, which makes the WAL longer with each checkpoint. `--direct on` writes the WAL with direct I/O.
//!
//! Prints the percentiles of the commits, and of whole transactions, in microseconds. The target is a 99th percentile of commits that
//! checkpoints at most double.

mod heap_load;

use std::error::Error;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use trunkline_engine::writable_cluster::Durability;

use heap_load::{Mix, Writer, create};

/// Fills a table.
const FILL: Mix = Mix { changes: 100, inserts: 100, updates: 0 };

/// What is measured.
const UPDATE: Mix = Mix { changes: 1, inserts: 0, updates: 100 };

/// The longest time that is recorded as such, in microseconds.
const LONGEST: u64 = 60_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let root = PathBuf::from(arguments.next().ok_or("expected DIR")?);
    let (mut clients, mut seconds, mut rows) = (4_u64, 10, 100_000);
    let (mut images, mut direct, mut single, mut spread) = (true, false, false, 0.0);
    while let (Some(name), Some(value)) = (arguments.next(), arguments.next()) {
        let value = value.to_string_lossy();
        let switch = || match &*value {
            "on" => Ok(true),
            "off" => Ok(false),
            other => Err(format!("{other}: expected on or off")),
        };
        match &*name.to_string_lossy() {
            "--clients" => clients = value.parse()?,
            "--seconds" => seconds = value.parse()?,
            "--rows" => rows = value.parse()?,
            "--images" => images = switch()?,
            "--direct" => direct = switch()?,
            "--single" => single = switch()?,
            "--spread" => spread = value.parse()?,
            other => return Err(format!("unexpected argument {other}").into()),
        }
    }
    let cluster = create(&root, |options| {
        options.full_page_writes = images;
        options.wal_direct = direct;
        options.wal_init_direct = direct;
    })?;
    let mut writers = Vec::new();
    for seed in 0..clients {
        let mut writer = Writer::new(&cluster, seed, rows)?;
        for _ in 0..rows / FILL.changes as usize {
            let transaction = writer.change(&FILL)?;
            writer.session.commit(transaction, Durability::Soon)?;
        }
        writers.push(writer);
    }
    let mut session = cluster.session()?;
    if !single {
        // So that both runs begin with clean pages, which need images.
        println!("{}", session.checkpoint()?);
    }
    let time = Duration::from_secs(seconds);
    let alone = measure(&mut writers, time, |_| Ok(()))?;
    if !single {
        session.checkpoint()?;
    }
    let mut checkpoints = 0;
    let beside = measure(&mut writers, time, |is_over| {
        while !is_over.load(Ordering::Relaxed) {
            let begun = Instant::now();
            let report = session.checkpoint_paced(|done| {
                let due = Duration::from_secs_f64(spread * done);
                std::thread::sleep(due.saturating_sub(begun.elapsed()));
            });
            println!("{}", report?);
            checkpoints += 1;
            is_over.fetch_or(single, Ordering::Relaxed);
        }
        Ok(())
    })?;
    println!("{:<33}{:>9}{:>9}{:>9}{:>9}{:>9}", "µs", "count", "p50", "p99", "p99.9", "max");
    alone.print("alone");
    beside.print(&format!("beside {checkpoints} checkpoints"));
    for (name, of) in [("commit", 0), ("transaction", 1)] {
        let [alone, beside] = [&alone, &beside].map(|run| run.0[of].value_at_quantile(0.99));
        println!("p99 of a {name} beside checkpoints: {:.2} × alone", beside as f64 / alone as f64);
    }
    Ok(())
}

/// The times in microseconds of commits, and of whole transactions.
struct Times([Histogram<u64>; 2]);

impl Times {
    fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self([Histogram::new_with_max(LONGEST, 3)?, Histogram::new_with_max(LONGEST, 3)?]))
    }

    fn print(&self, run: &str) {
        for (name, times) in ["commit", "transaction"].iter().zip(&self.0) {
            let quantiles = [0.5, 0.99, 0.999].map(|quantile| times.value_at_quantile(quantile));
            let quantiles = quantiles.map(|time| format!("{time:>9}")).concat();
            let (name, count) = (format!("{run}, {name}"), times.len());
            println!("{name:<33}{count:>9}{quantiles}{:>9}", times.max());
        }
    }
}

/// Lets the writers commit for a while, beside `other`.
fn measure(
    writers: &mut [Writer],
    time: Duration,
    other: impl FnOnce(&AtomicBool) -> Result<(), Box<dyn Error>>,
) -> Result<Times, Box<dyn Error>> {
    let is_over = AtomicBool::new(false);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (writers.iter_mut())
            .map(|writer| {
                let is_over = &is_over;
                scope.spawn(move || -> Result<Times, String> {
                    let times = commit_until(writer, begun + time, is_over);
                    is_over.store(true, Ordering::Relaxed);
                    times.map_err(|error| error.to_string())
                })
            })
            .collect();
        other(&is_over)?;
        let mut all = Times::new()?;
        for thread in threads {
            let times = thread.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            for (all, more) in all.0.iter_mut().zip(&times.0) {
                all.add(more)?;
            }
        }
        Ok(all)
    })
}

fn commit_until(
    writer: &mut Writer,
    end: Instant,
    is_over: &AtomicBool,
) -> Result<Times, Box<dyn Error>> {
    let mut times = Times::new()?;
    let mut begun = Instant::now();
    while begun < end && !is_over.load(Ordering::Relaxed) {
        let transaction = writer.change(&UPDATE)?;
        let changed = Instant::now();
        writer.session.commit(transaction, Durability::Now)?;
        let ended = Instant::now();
        for (times, since) in times.0.iter_mut().zip([changed, begun]) {
            times.saturating_record((ended - since).as_micros() as u64);
        }
        begun = ended;
    }
    Ok(times)
}
