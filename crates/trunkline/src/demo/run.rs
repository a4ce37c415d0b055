//! The runs: three methods, each cold, cached and direct, one after the other in one instance, whose
//! method is switched in between.

use std::path::Path;
use std::time::Duration;

use trunkline_aio::sync::atomic::{AtomicU32, Ordering};
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Aio, IoRow};
use trunkline_engine::prewarm::cached_part;
use trunkline_engine::sample::Sample;
use trunkline_engine::scan::{JobError, Observer};
use trunkline_engine::settings::{IoMethod, Settings};
use trunkline_engine::verify::{Options, verify_files};

use super::report::{Demo, Outcome, Row, Way};
use crate::cli::Global;
use crate::exit::{Failure, message};
use crate::instance::{self, method_kind};
use crate::interrupt::Interrupt;
use crate::watch::Watch;

/// Runs everything. On an interrupt it returns what there is.
pub(super) fn all(
    aio: &Aio,
    sample: &Sample,
    global: &Global,
    settings: &Settings,
    interrupt: &Interrupt,
) -> Result<Demo, Failure> {
    let mut demo = Demo::new(sample, settings, aio.region().page_kind());
    let mut told = aio.method_status().fallbacks.len();
    for method in IoMethod::ALL {
        let status = aio.set_method(method_kind(method));
        instance::report_fallbacks(status.fallbacks.get(told..).unwrap_or_default());
        told = status.fallbacks.len();
        for way in Way::ALL {
            if interrupt.requested() {
                return Ok(demo);
            }
            let row = one(aio, sample, global, settings, interrupt, way);
            let outcome = match row {
                Ok((row, look)) => {
                    demo.keep_look(look);
                    Outcome::Ran(row)
                }
                Err(JobError::Direct { file_system, .. }) => Outcome::NoDirect(file_system),
                Err(error) => return Err(error.into()),
            };
            demo.add(method, status.used, way, outcome);
        }
    }
    Ok(demo)
}

fn one(
    aio: &Aio,
    sample: &Sample,
    global: &Global,
    settings: &Settings,
    interrupt: &Interrupt,
    way: Way,
) -> Result<(Row, Vec<IoRow>), JobError> {
    if way != Way::Cached
        && let Err(error) = sample.evict()
    {
        message("warning", format_args!("the cache could not be emptied: {error}"));
    }
    if way == Way::Cached {
        // The run before has read everything through the cache; what it lost is read again.
        cache(aio, sample, settings)?;
    }
    let cached_before = cached_part(aio, &sample.files).fraction();
    let mut options = Options::of(settings);
    options.read.direct = way == Way::Direct;
    let pieces = sample.bytes() / (u64::from(options.read.combine_blocks) * 8192);
    let observer = Arc::new(Looking {
        aio: aio.clone(),
        watch: Watch::new(interrupt.clone(), global),
        pieces: AtomicU32::new(0),
        middle: u32::try_from(pieces / 2).unwrap_or(u32::MAX),
        look: Mutex::default(),
    });
    let cpu = cpu_time();
    let outcome =
        verify_files(aio, sample.files.clone(), true, options, Arc::clone(&observer) as _);
    let cpu = cpu_time().saturating_sub(cpu);
    observer.watch.clear();
    let report = outcome?;
    let look = std::mem::take(&mut *observer.look.lock());
    let row = Row {
        seconds: report.elapsed.as_secs_f64(),
        bytes: report.bytes(),
        cpu_seconds: cpu.as_secs_f64(),
        cached_before,
        findings: report.findings_total(),
        io: report.io,
    };
    Ok((row, look))
}

/// Reads the sample once, unseen, if it is not cached.
fn cache(aio: &Aio, sample: &Sample, settings: &Settings) -> Result<(), JobError> {
    if cached_part(aio, &sample.files).fraction() > 0.999 {
        return Ok(());
    }
    let mut options = Options::of(settings);
    options.read.direct = false;
    let nobody = Arc::new(trunkline_engine::scan::Unobserved);
    verify_files(aio, sample.files.clone(), true, options, nobody).map(drop)
}

/// Looks at the handles once, in the middle of a run.
struct Looking {
    aio: Aio,
    watch: Watch,
    pieces: AtomicU32,
    middle: u32,
    look: Mutex<Vec<IoRow>>,
}

impl Observer for Looking {
    fn begins(&self, files: usize, bytes: u64) {
        self.watch.begins(files, bytes);
    }

    fn progressed(&self, bytes: u64) {
        self.watch.progressed(bytes);
    }

    fn reading(&self, _path: &Path, _first: u32, _blocks: u32) {
        if self.pieces.fetch_add(1, Ordering::Relaxed) == self.middle {
            *self.look.lock() = self.aio.snapshot();
        }
    }

    fn cancelled(&self) -> bool {
        self.watch.cancelled()
    }
}

/// Processor time of all threads of this process, those that the kernel runs for it included.
#[expect(clippy::disallowed_methods, reason = "a measure of effort that no program may act on")]
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
