//! Blocks of the page cache through the pool, uncombined, by one session through workers, against
//! the price of a hop: round trips of two threads over a futex.
//! The pool is a sixteenth of the data, so that every block is read, in random order.

use super::{Bench, buffers, random_list};
use crate::Result;
use crate::bare::{Placement, ping_pong};
use crate::data::Data;
use crate::handles::Setup;
use crate::pairs::Pairs;
use crate::pooled::{PoolSetup, Pooled};
use crate::report::{Line, Report, Target};
use crate::work::Work;
use trunkline_aio::MethodKind;
use trunkline_format::BLOCK_SIZE;

const BLOCK: u32 = BLOCK_SIZE as u32;
/// The data is small, so that it stays in the page cache; larger than any pool that it goes through.
const BYTES_MAX: u64 = 512 << 20;
const READS_MAX: usize = 60_000;
/// Reads for one round trip: both halves of a pair then take about as long.
const READS_PER_TRIP: u32 = 3;

pub(super) fn run(bench: &Bench<'_>) -> Result<Report> {
    let data = Data::prepare(&bench.dir.join("table"), bench.bytes.min(BYTES_MAX))?;
    data.warm()?;
    let mut lines = Vec::new();
    for depth in [16, 64] {
        for (look_first, text) in [(false, "handed over"), (true, "looked for first")] {
            let setting = format!("cached, depth {depth}");
            let contender = format!("worker, {text}");
            if !bench.wants(&setting, &contender) {
                continue;
            }
            let io = Setup::new(MethodKind::Worker, false, depth, BLOCK);
            let setup = PoolSetup::new(Setup { look_first, ..io }, buffers(data.bytes, 16));
            let mut pooled = Pooled::open(&data, setup, 1)?;
            let target = Target { rate: Some(3.0), ..Target::default() };
            let next = |round| random_list(&data, round, READS_MAX);
            let mut reference = |work: &Work| {
                let trips = (work.offsets.len() as u32 / READS_PER_TRIP).max(4);
                Ok(ping_pong(Placement::Free, trips)?)
            };
            let mut contender_run = |work: &Work| pooled.run(work);
            let mut prepare = || Ok(());
            let pairs =
                Pairs::run(bench.pairs, next, &mut prepare, &mut reference, &mut contender_run)?;
            lines.push(Line::new(setting, contender, "futex round trip", &pairs, target));
        }
    }
    let cached = data.cached()? * 100.0;
    let notes = vec![format!("{cached:.0} % of the data was in the page cache at the end")];
    Ok(Report { row: "pool-round-trip: 8 KiB, cached", notes, lines, costs: Vec::new() })
}
