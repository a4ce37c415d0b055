//! `trunkline demo`: one table, prewarmed and summed by every method, so that one can see what this
//! machine makes of them.
//!
//! ```text
//!   for each method, buffered and direct
//!     prewarm   cold                         into a pool, every page checked
//!     sum       cached, 0 1 2 4 workers      pages that are in the pool, as far as it is large enough
//!     sum       cold,   0 1 2 4 workers      pages from the device
//! ```
//! The table is a pgbench database's accounts, and what its balances add up to is known without
//! reading them: every scan must find just that. Then a part of it is copied, changed and written by
//! checkpoints (see `write`). Cold is what the system says it is: pages are
//! dropped from both caches before the run, and what stayed is shown. One look at the handles in
//! flight, in the middle of a run, ends it.

mod config;
mod handles;
mod report;
mod run;
mod write;
mod write_report;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;
use trunkline_aio::Aio;
use trunkline_engine::settings::Settings;
use trunkline_sample::accounts::{self, Accounts, SCALE_MAX};
use trunkline_sample::room;

use self::report::Demo;
use self::write_report::{JsonWrites, Writes};
use crate::cli::Global;
use crate::exit::{Exit, Failure, message};
use crate::interrupt::Interrupt;
use crate::output::{human_bytes, print};
use crate::progress::Progress;
use crate::{output, pooled, watch};

/// Buffers that a pool for the whole table has besides.
const BUFFERS_BESIDE: u64 = 1024;

/// A pool for the whole table is not larger than this part of the memory that is available.
const MEMORY_PART: u64 = 4;

/// Memory for writing the table, in bytes.
const WRITE_BYTES: usize = 8 << 20;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Where to make the table; by default in the user's cache directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// How large the table is, as pgbench counts: 100,000 rows or 13 MB to a unit. Less where the
    /// disk has less than twice as much free.
    #[arg(long, value_name = "N", default_value = "100",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(SCALE_MAX)))]
    scale: u32,

    /// Keeps the table for the next time.
    #[arg(long)]
    keep: bool,

    /// Leaves no cold run out; otherwise about 40 seconds are spent on them.
    #[arg(long)]
    full: bool,
}

/// Runs the command. `buffers` is the size of the pool if one was asked for; otherwise it is large
/// enough for the table, if memory is. `cache` is where the user's cache is, if there is one.
pub(crate) fn run(
    global: &Global,
    settings: &Settings,
    args: &DemoArgs,
    buffers: Option<u32>,
    cache: Option<PathBuf>,
) -> Result<Exit, Failure> {
    let directory = match (&args.dir, cache) {
        (Some(directory), _) => directory.clone(),
        (None, Some(cache)) => cache.join("trunkline").join("demo"),
        (None, None) => {
            return Err(Failure::usage("no place for the table").with_hint("use --dir DIR"));
        }
    };
    let interrupt = watch::interrupt()?;
    let scale = fitting(&directory, args.scale)?;
    let buffers = buffers.unwrap_or_else(|| pool_for(scale, settings));
    let aio = pooled::start(settings, buffers, WRITE_BYTES)?;
    if !global.json {
        print(&headline(&directory, scale))?;
    }
    let outcome = make(&aio, &directory, scale, global, &interrupt).and_then(|table| {
        let reused = table.reused;
        let runs = run::Runs::new(&aio, &table, global, settings, &interrupt, buffers)?;
        let demo = runs.all(args.full)?;
        let writes = write::run(runs.engine(), &table, &interrupt)?;
        Ok((demo, writes, reused))
    });
    // What was there before, or is to be kept, stays.
    let reused = outcome.as_ref().is_ok_and(|(_, _, reused)| *reused);
    if !args.keep
        && !reused
        && let Err(error) = accounts::remove(&directory)
        // Somebody else's files, of which the outcome tells.
        && !matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotADirectory)
    {
        message("warning", format_args!("the table in {} stays: {error}", directory.display()));
    }
    if interrupt.requested() {
        message("warning", "interrupted");
        return Ok(interrupt.exit());
    }
    let (demo, writes, _) = outcome?;
    show(global, &demo, &writes)?;
    for text in demo.wrong().iter().chain(writes.wrong()) {
        message("error", text);
    }
    let is_right = demo.is_right() && writes.wrong().is_empty();
    Ok(if is_right { Exit::Good } else { Exit::Findings })
}

/// For programs: what was read, and beside it what was written.
#[derive(Serialize)]
struct Both<R: Serialize> {
    #[serde(flatten)]
    reads: R,
    writes: JsonWrites,
}

fn show(global: &Global, demo: &Demo, writes: &Writes) -> Result<(), Failure> {
    if global.json {
        output::print_json(&Both { reads: demo.json(), writes: writes.json() })
    } else {
        print(&(demo.text() + &writes.text()))
    }
}

/// The scale that fits the disk.
fn fitting(directory: &Path, wanted: u32) -> Result<u32, Failure> {
    let room = room(directory).map_err(|error| {
        Failure::cannot_run(format_args!("could not examine {}: {error}", directory.display()))
    })?;
    if room < accounts::bytes(1) {
        let text = format!("no room for a table in {}", directory.display());
        return Err(Failure::cannot_run(text).with_hint("use --dir DIR"));
    }
    let scale = wanted.min(accounts::scale_within(room));
    if scale < wanted {
        let size = human_bytes(accounts::bytes(scale));
        let text = format!("the scale is {scale} only, {size}: more does not fit");
        message("warning", text);
    }
    Ok(scale)
}

/// Buffers for the whole table, or as many as the settings say.
fn pool_for(scale: u32, settings: &Settings) -> u32 {
    let bytes = accounts::bytes(scale);
    let buffers = bytes / 8192 + BUFFERS_BESIDE;
    let fits = pooled::memory_available().is_some_and(|free| bytes <= free / MEMORY_PART);
    match u32::try_from(buffers) {
        Ok(buffers) if fits => buffers.max(settings.shared_buffers()),
        _ => settings.shared_buffers(),
    }
}

fn headline(directory: &Path, scale: u32) -> String {
    format!(
        "trunkline demo: prewarms pgbench_accounts, scale {scale}, {}, and sums abalance by every \
         I/O method\ntable in {}\n\n",
        human_bytes(accounts::bytes(scale)),
        directory.display()
    )
}

fn make(
    aio: &Aio,
    directory: &Path,
    scale: u32,
    global: &Global,
    interrupt: &Interrupt,
) -> Result<Accounts, Failure> {
    let bar = Progress::new(accounts::bytes(scale), !global.json && !global.no_progress);
    let mut before = 0;
    let mut progress = |written: u64| {
        bar.advance(written.saturating_sub(before));
        before = written;
        !interrupt.requested()
    };
    accounts::create(aio, directory, scale, &mut progress).map_err(|error| {
        let text = format!("could not make the table in {}: {error}", directory.display());
        Failure::cannot_run(text).with_hint("use --dir DIR")
    })
}
