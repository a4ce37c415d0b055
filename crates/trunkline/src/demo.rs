//! `trunkline demo`: compares I/O methods on this machine by prewarming and summing one table.
//!
//! ```text
//!   for each method, buffered and direct
//!     prewarm   cold                         into a buffer pool, every page checked
//!     sum       cached, 0 1 2 4 workers      pages in the pool, if it is large enough
//!     sum       cold,   0 1 2 4 workers      pages from the device
//! ```
//! The table is `pgbench_accounts`. We know the sum of its balances in advance, so we can check the
//! result of every scan. After the scans, we copy part of the table, change the copy, and write it
//! with checkpoints (see [`checkpoint_runs`]).
//!
//! Before a cold run, we remove the table from the pool and from the page cache. The kernel treats
//! `POSIX_FADV_DONTNEED` only as a hint, so the report shows how much of the table was still
//! cached. At the end, the report shows a snapshot of the I/O handles that was taken in the middle
//! of a run.

mod checkpoint_report;
mod checkpoint_runs;
mod cpu_time;
mod handles;
mod io_config;
mod relation;
mod scan_report;
mod scan_runs;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use trunkline_aio::Aio;
use trunkline_aio::facade::Arc;
use trunkline_engine::job::Observer;
use trunkline_engine::settings::Settings;
use trunkline_sample::accounts::{self, Accounts, SCALE_MAX};
use trunkline_sample::room;

use crate::exit::{Exit, Failure, message};
use crate::interrupt::Interrupt;
use crate::io_instance::IoInstance;
use crate::memory_available::memory_available;
use crate::monitor::JobMonitor;
use crate::number::number;
use crate::options::{Context, Global};
use crate::output::{human_bytes, object, print, print_report};

/// Buffers in addition to those for the whole table.
const BUFFERS_EXTRA: u64 = 1024;

/// By default, the pool is made large enough to hold the whole table. We only do so if the table
/// needs at most this fraction (one fourth) of the available memory.
const MEMORY_FRACTION: u64 = 4;

/// Memory for creating the table, in bytes.
const CREATE_BYTES: usize = 8 << 20;

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Directory for the table [default: in the user's cache directory].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Scale factor of the table, as in pgbench. Each unit adds 100,000 rows, which take about 13
    /// MB. A smaller scale factor is used if the free disk space is less than twice the size of the
    /// table.
    #[arg(long, value_name = "N", default_value = "100", value_parser = number(1..=SCALE_MAX))]
    scale: u32,

    /// Keep the table for the next run.
    #[arg(long)]
    keep: bool,

    /// Do all cold runs. By default, runs are skipped if all of them would take more than about 40
    /// seconds in total.
    #[arg(long)]
    full: bool,
}

/// Runs the command. `cache` is the user's cache directory, if there is one.
pub(crate) fn run(
    context: &Context<'_>,
    args: &DemoArgs,
    cache: Option<PathBuf>,
) -> Result<Exit, Failure> {
    let Context { global, settings, buffers, .. } = context;
    let directory = match (&args.dir, cache) {
        (Some(directory), _) => directory.clone(),
        (None, Some(cache)) => cache.join("trunkline").join("demo"),
        (None, None) => {
            return Err(Failure::usage("no directory for the table").with_hint("use --dir DIR"));
        }
    };
    let interrupt = Interrupt::install()?;
    let scale = scale_that_fits(&directory, args.scale)?;
    let buffers = buffers.unwrap_or_else(|| default_buffers(scale, settings));
    let io = IoInstance::for_pool(settings, buffers, CREATE_BYTES)?;
    if !global.json {
        print(&headline(&directory, scale))?;
    }
    let outcome = create(io.aio(), &directory, scale, global, &interrupt).and_then(|table| {
        let runs = scan_runs::Runs::new(&io, &table, global, settings, &interrupt, buffers)?;
        let scans = runs.all(args.full)?;
        let checkpoints = checkpoint_runs::run(runs.engine(), &table, &interrupt)?;
        Ok((scans, checkpoints, table))
    });
    let reused = outcome.as_ref().is_ok_and(|(_, _, table)| table.reused);
    // We remove the table even if a run failed or was interrupted. We keep it only if the user
    // asked for that, either in this run or in the earlier run that created the table.
    if !args.keep
        && !reused
        && let Err(error) = accounts::remove(&directory)
        // We don't report these two errors, which mean that the directory contains other files. In
        // that case `create` has already failed for the same reason, and `outcome` contains its
        // error.
        && !matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotADirectory)
    {
        let directory = directory.display();
        message("warning", format_args!("could not remove the table in {directory}: {error}"));
    }
    if interrupt.requested() {
        message("warning", "interrupted");
        return Ok(interrupt.exit());
    }
    let (scans, checkpoints, table) = outcome?;
    let json = object! {
        #[serde(flatten)]
        scans: scans.json(&table, settings),
        writes: checkpoints.json(),
    };
    print_report(global, &json, || scans.text(&table, settings) + &checkpoints.text())?;
    let errors: Vec<&String> = scans.errors.iter().chain(&checkpoints.errors).collect();
    for text in &errors {
        message("error", text);
    }
    Ok(if errors.is_empty() { Exit::Good } else { Exit::Findings })
}

/// Returns the scale of the largest table that fits on the disk, limited to `wanted`.
fn scale_that_fits(directory: &Path, wanted: u32) -> Result<u32, Failure> {
    let room = room(directory).map_err(|error| {
        Failure::cannot_run(format_args!("could not examine {}: {error}", directory.display()))
    })?;
    if room < accounts::bytes(1) {
        let text = format!("not enough disk space for a table in {}", directory.display());
        return Err(Failure::cannot_run(text).with_hint("use --dir DIR"));
    }
    let scale = wanted.min(accounts::scale_within(room));
    if scale < wanted {
        let size = human_bytes(accounts::bytes(scale));
        let text = format!("scale reduced to {scale} ({size}): not enough disk space");
        message("warning", text);
    }
    Ok(scale)
}

/// Buffers for the whole table if there is enough memory, or else `shared_buffers`.
fn default_buffers(scale: u32, settings: &Settings) -> u32 {
    let bytes = accounts::bytes(scale);
    let buffers = bytes / 8192 + BUFFERS_EXTRA;
    let fits = memory_available().is_some_and(|free| bytes <= free.bytes / MEMORY_FRACTION);
    match u32::try_from(buffers) {
        Ok(buffers) if fits => buffers.max(settings.shared_buffers()),
        _ => settings.shared_buffers(),
    }
}

fn headline(directory: &Path, scale: u32) -> String {
    format!(
        "trunkline demo: prewarm pgbench_accounts (scale {scale}, {}) and sum abalance with every \
         I/O method\nTable directory: {}\n\n",
        human_bytes(accounts::bytes(scale)),
        directory.display()
    )
}

/// Creates the table, or reuses a table that an earlier run kept. We do this in a separate thread,
/// because the fsync of a large table can take minutes and can't be interrupted.
fn create(
    aio: &Aio,
    directory: &Path,
    scale: u32,
    global: &Global,
    interrupt: &Interrupt,
) -> Result<Accounts, Failure> {
    let monitor = Arc::new(JobMonitor::new(interrupt.clone(), global));
    monitor.begins(1, accounts::bytes(scale));
    let (aio, observer, place) = (aio.clone(), Arc::clone(&monitor), directory.to_owned());
    let created = interrupt.wait_for("create table", move || {
        let mut progress = |written: u64| {
            observer.progressed(written);
            !observer.cancelled()
        };
        accounts::create(&aio, &place, scale, &mut progress)
    });
    monitor.clear();
    created?.map_err(|error| {
        let text = format!("could not create the table in {}: {error}", directory.display());
        Failure::cannot_run(text).with_hint("use --dir DIR")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use clap::Parser;
    use trunkline_aio::facade::Futex;
    use trunkline_aio::{Builder, Executor, Kernel, MethodKind, Operation, Request, clock};

    /// A real disk whose fsyncs hang. As soon as the first one hangs, the user presses Ctrl-C.
    struct HangingSync {
        interrupt: Interrupt,
        released: Arc<Futex>,
    }

    impl Executor for HangingSync {
        fn execute(&self, request: &mut Request<'_>) -> i32 {
            if request.operation == Operation::Fsync {
                self.interrupt.request();
                let patience = clock::now().after(Duration::from_secs(60));
                while self.released.epoch() == 0 && clock::now() < patience {
                    self.released.wait(0, Some(patience.since(clock::now())));
                }
            }
            Kernel.execute(request)
        }

        fn advise(&self, file: &trunkline_aio::File, offset: u64, length: u64) -> bool {
            Kernel.advise(file, offset, length)
        }
    }

    #[derive(clap::Parser)]
    #[command(disable_help_flag = true)]
    struct Options {
        #[command(flatten)]
        global: Global,
    }

    /// If the user interrupts the demo during the table's fsync, it ends although the fsync still
    /// hangs.
    #[test]
    fn the_creation_of_the_table_can_be_interrupted() {
        let home = tempfile::tempdir().expect("a directory");
        let global = Options::parse_from(["demo", "--no-progress"]).global;
        let (interrupt, released) = (Interrupt::default(), Arc::new(Futex::new(0)));
        let disk = HangingSync { interrupt: interrupt.clone(), released: Arc::clone(&released) };
        let builder = Builder::new().method(MethodKind::Worker).executor(Arc::new(disk));
        let aio = builder.region_bytes(CREATE_BYTES).start().expect("started");
        let place = home.path().join("table");
        let failed = create(&aio, &place, 1, &global, &interrupt).expect_err("interrupted");
        assert_eq!(failed.exit, Exit::Interrupted, "{failed}");
        // We can remove the table even while its file is still being synced.
        accounts::remove(&place).expect("removed");
        assert!(!place.exists());
        released.signal();
    }
}
