//! Cold sequential reads of 128 KiB, 16 in flight, against one thread with a ring of its own.
//! Direct is the row of the table; buffered shows what the page cache costs on top.

use super::{Bench, COMBINED, CONCURRENCY, METHODS, Names, cold, files, way};
use crate::Result;
use crate::bare::Ring;
use crate::handles::{Handles, Setup};
use crate::report::{Report, Target};
use crate::work::Work;
use trunkline_aio::MethodKind;

/// Bytes read by one half of a pair.
const SLICE: u64 = 1 << 30;

pub(super) fn run(bench: &Bench<'_>) -> Result<Report> {
    let data = bench.data()?;
    let count = (data.bytes.min(SLICE) / u64::from(COMBINED)).max(1) as usize;
    // Each pair goes on where the one before ended.
    let next = |round: u64| {
        let start = round * count as u64 * u64::from(COMBINED) % data.bytes;
        Work::sequential(start, count, COMBINED, data.bytes)
    };
    let mut lines = Vec::new();
    let mut pages = "";
    for direct in [true, false] {
        let mut ring = Ring::open(files(&data, direct)?, CONCURRENCY, COMBINED)?;
        for method in METHODS.into_iter().filter(|&method| !direct || method != MethodKind::Sync) {
            let names = Names {
                setting: format!("{}, depth {CONCURRENCY}", way(direct)),
                contender: method.to_string(),
                reference: "bare ring".into(),
            };
            if !bench.wants(&names.setting, &names.contender) {
                continue;
            }
            let mut handles =
                Handles::open(&data, Setup::new(method, direct, CONCURRENCY, COMBINED))?;
            pages = handles.page_kind();
            let target = match (direct, method) {
                (true, MethodKind::IoUring) => {
                    Target { rate: Some(0.95), cpu: Some(1.3), ..Target::default() }
                }
                _ => Target::default(),
            };
            let mut reference = |work: &Work| Ok(ring.run(work)?);
            let mut contender = |work: &Work| handles.run(work);
            let line = cold(bench, &data, names, target, next, &mut reference, &mut contender)?;
            lines.push(line);
        }
    }
    let notes = vec![format!("{} pages; {}", pages, data.coldness())];
    Ok(Report { row: "sequential: cold, 128 KiB", notes, lines, costs: Vec::new() })
}
