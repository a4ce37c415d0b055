//! Cached reads of 8 KiB, uncombined, by one session through workers, against the price of a hop:
//! round trips of two threads over a futex. More reads than round trips means that wake-ups are
//! shared among reads.

use super::{Bench, files};
use crate::Result;
use crate::bare::{Placement, Threads, ping_pong};
use crate::data::Data;
use crate::handles::{Handles, Setup};
use crate::pairs::Pairs;
use crate::report::{Line, Report, Target};
use crate::rows::BLIND;
use crate::work::{Done, Work};
use trunkline_aio::MethodKind;
use trunkline_format::BLOCK_SIZE;

const BLOCK: u32 = BLOCK_SIZE as u32;
/// The data is small, so that it stays in the page cache.
const BYTES_MAX: u64 = 64 << 20;
const READS_MAX: u64 = 60_000;
/// Reads of one block in a half of a pair, at most.
const REPEATS: u64 = 8;
/// Reads for one round trip: both halves of a pair then take about as long.
const READS_PER_TRIP: u32 = 3;
const REFERENCE: &str = "futex round trip";

pub(super) fn run(bench: &Bench<'_>) -> Result<Report> {
    let data = Data::prepare(&bench.dir.join("cached"), bench.bytes.min(BYTES_MAX))?;
    data.warm()?;
    let target = Target { rate: Some(3.0), ..Target::default() };
    let mut lines = Vec::new();
    for depth in [16, 64] {
        for (look_first, text) in [(false, "handed over"), (true, "looked for first")] {
            let setup = Setup::new(MethodKind::Worker, false, depth, BLOCK);
            let mut handles = Handles::open(&data, Setup { look_first, ..setup })?;
            let name = format!("worker, {text}");
            let mut contender = |work: &Work| handles.run(work);
            let setting = format!("cached, depth {depth}");
            lines.extend(compare(bench, &data, setting, name, target, &mut contender)?);
        }
    }
    let mut threads = Threads::open(files(&data, false)?, 1, BLOCK)?;
    let mut contender = |work: &Work| Ok(threads.run(work, BLIND)?);
    let none = Target::default();
    lines.extend(compare(bench, &data, "cached".into(), "(pread)".into(), none, &mut contender)?);
    if std::thread::available_parallelism()?.get() > 1 {
        for (placement, name) in
            [(Placement::OneCpu, "(futex, one CPU)"), (Placement::TwoCpus, "(futex, two CPUs)")]
        {
            let mut contender = |work: &Work| Ok(ping_pong(placement, trips(work) / 4)?);
            lines.extend(compare(bench, &data, "–".into(), name.into(), none, &mut contender)?);
        }
    }
    let cached = data.cached()? * 100.0;
    let notes = vec![format!("{cached:.0} % of the data was in the page cache at the end")];
    Ok(Report { row: "round-trip: 8 KiB, cached", notes, lines, costs: Vec::new() })
}

fn compare(
    bench: &Bench<'_>,
    data: &Data,
    setting: String,
    contender: String,
    target: Target,
    run: &mut dyn FnMut(&Work) -> Result<Done>,
) -> Result<Option<Line>> {
    if !bench.wants(&setting, &contender) {
        return Ok(None);
    }
    let reads = READS_MAX.min(data.bytes / u64::from(BLOCK) * REPEATS) as usize;
    let next = |round| Work::random(round + 1, reads, BLOCK, data.bytes);
    let mut reference = |work: &Work| Ok(ping_pong(Placement::Free, trips(work))?);
    let pairs = Pairs::run(bench.pairs, next, &mut || Ok(()), &mut reference, run)?;
    Ok(Some(Line::new(setting, contender, REFERENCE, &pairs, target)))
}

fn trips(work: &Work) -> u32 {
    (work.offsets.len() as u32 / READS_PER_TRIP).max(4)
}
