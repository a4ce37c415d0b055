//! `trunkline demo`: the same verification by every method, so that one can see what this machine
//! makes of them.
//!
//! Makes a sample of relation files, reads and checks it cold, cached and past the cache under each
//! method, and prints one table. Cold is what the system says it is: pages are dropped from the
//! cache before the run, and what stayed is shown. One look at the handles in flight, in the middle
//! of a run, ends it.

mod report;
mod run;
mod size;

use std::path::{Path, PathBuf};

use trunkline_aio::Aio;
use trunkline_engine::sample::{self, Sample};
use trunkline_engine::settings::Settings;

use self::report::Demo;
use self::size::Size;
use crate::cli::Global;
use crate::exit::{Exit, Failure, message};
use crate::interrupt::Interrupt;
use crate::output::{human_bytes, print};
use crate::progress::Progress;
use crate::{instance, output, watch};

/// Options of the command.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Where to make the sample; by default in the user's cache directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// How large the sample is; less where the disk has less than twice as much free.
    #[arg(long, value_name = "SIZE", default_value = "1GB")]
    size: Size,

    /// Keeps the sample for the next time.
    #[arg(long)]
    keep: bool,
}

/// Runs the command. `home` is where the user's cache is, if there is one.
pub(crate) fn run(
    global: &Global,
    settings: &Settings,
    args: &DemoArgs,
    cache: Option<PathBuf>,
) -> Result<Exit, Failure> {
    let directory = match (&args.dir, cache) {
        (Some(directory), _) => directory.clone(),
        (None, Some(cache)) => cache.join("trunkline").join("demo"),
        (None, None) => {
            return Err(Failure::usage("no place for the sample").with_hint("use --dir DIR"));
        }
    };
    let interrupt = watch::interrupt()?;
    let bytes = fitting(&directory, args.size.bytes())?;
    if !global.json {
        print(&headline(&directory, bytes))?;
    }
    let aio = instance::start(settings)?;
    let outcome = make(&aio, &directory, bytes, global, &interrupt).and_then(|sample| {
        let reused = sample.reused;
        let demo = run::all(&aio, &sample, global, settings, &interrupt)?;
        Ok((demo, reused))
    });
    // What was there before, or is to be kept, stays.
    let reused = outcome.as_ref().is_ok_and(|(_, reused)| *reused);
    if !args.keep
        && !reused
        && let Err(error) = sample::remove(&directory)
    {
        message("warning", format_args!("the sample in {} stays: {error}", directory.display()));
    }
    if interrupt.requested() {
        message("warning", "interrupted");
        return Ok(Exit::Interrupted);
    }
    let (demo, _) = outcome?;
    show(global, &demo)?;
    Ok(if demo.is_clean() { Exit::Good } else { Exit::Findings })
}

fn show(global: &Global, demo: &Demo) -> Result<(), Failure> {
    if global.json { output::print_json(&demo.json()) } else { print(&demo.text()) }
}

/// The size that fits the disk.
fn fitting(directory: &Path, wanted: u64) -> Result<u64, Failure> {
    let room = sample::room(directory).map_err(|error| {
        Failure::cannot_run(format_args!("could not examine {}: {error}", directory.display()))
    })?;
    if room < sample::BYTES_MIN {
        let text = format!("no room for a sample in {}", directory.display());
        return Err(Failure::cannot_run(text).with_hint("use --dir DIR"));
    }
    let bytes = wanted.min(room).clamp(sample::BYTES_MIN, sample::BYTES_MAX);
    if bytes < wanted {
        let size = human_bytes(bytes);
        message("warning", format_args!("the sample has {size} only: more does not fit"));
    }
    Ok(bytes)
}

fn headline(directory: &Path, bytes: u64) -> String {
    format!(
        "trunkline demo: reads {} of PostgreSQL pages by every I/O method and checks each page\n\
         sample in {}\n\n",
        human_bytes(bytes),
        directory.display()
    )
}

fn make(
    aio: &Aio,
    directory: &Path,
    bytes: u64,
    global: &Global,
    interrupt: &Interrupt,
) -> Result<Sample, Failure> {
    let bar = Progress::new(bytes, !global.json && !global.no_progress);
    let mut before = 0;
    let mut progress = |written: u64| {
        bar.advance(written.saturating_sub(before));
        before = written;
        !interrupt.requested()
    };
    sample::create(aio, directory, bytes, &mut progress).map_err(|error| {
        let text = format!("could not make the sample in {}: {error}", directory.display());
        Failure::cannot_run(text).with_hint("use --dir DIR")
    })
}
