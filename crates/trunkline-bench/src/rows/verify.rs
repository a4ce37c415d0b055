//! **Checksum verification**, by the engine's `verify` and by bare loops that only read and check
//! each page's checksum.

use crate::bare::Look;
use crate::data::{Data, is_sound};
use crate::failure::Result;
use crate::handles::{Setup, flight};
use crate::work::{Done, Work};
use std::io;
use std::time::Instant;
use trunkline_aio::Aio;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_engine::datadir::FileEntry;
use trunkline_engine::file_scan::ReadOptions;
use trunkline_engine::job::Unobserved;
use trunkline_engine::verify::{Options, verify_files};
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// Verifies whole files. Fails on the first finding, and unless all `bytes` were read.
pub(super) fn verify_all(
    aio: &Aio,
    files: Vec<FileEntry>,
    read: ReadOptions,
    bytes: u64,
) -> Result<()> {
    let options = Options { read, findings_listed: 1 };
    let report = verify_files(aio, files, true, options, Arc::new(Unobserved))?;
    if report.findings_total() > 0 {
        return Err(format!("pages are not sound: {report:?}").into());
    }
    if report.bytes() != bytes {
        return Err(format!("{} bytes, expected {bytes}", report.bytes()).into());
    }
    Ok(())
}

/// An instance that verifies the data.
pub(super) struct Verification {
    aio: Aio,
    read: ReadOptions,
}

impl Verification {
    pub(super) fn open(setup: Setup) -> Result<Self> {
        let combine_blocks = setup.length / BLOCK_SIZE as u32;
        let read = ReadOptions { direct: setup.direct, depth: setup.window as u32, combine_blocks };
        // Verification needs one window more than it has reads in flight.
        let aio = Setup { window: setup.window + 1, ..setup }.start()?;
        Ok(Self { aio, read })
    }

    /// Verifies all pages, which must be those of `work`.
    pub(super) fn run(&self, data: &Data, work: &Work) -> Result<Done> {
        let (before, started) = (self.aio.counters(), Instant::now());
        verify_all(&self.aio, data.entries()?, self.read, data.bytes)?;
        Ok(flight(Done::of(work), &before, &self.aio.counters(), started.elapsed()))
    }
}

/// Runs a bare loop that verifies the checksum of each page it has read.
pub(super) fn checked(read: impl FnOnce(&Look<'_>) -> io::Result<Done>) -> Result<Done> {
    let bad = AtomicU64::new(0);
    let done = read(&|offset, bytes| {
        let first = (offset / BLOCK_SIZE as u64) as BlockNo;
        for (block, page) in (first..).zip(bytes.as_chunks().0) {
            if !is_sound(page, block) {
                bad.fetch_add(1, Ordering::Relaxed);
            }
        }
    })?;
    match bad.load(Ordering::Relaxed) {
        0 => Ok(done),
        bad => Err(format!("{bad} bad pages").into()),
    }
}
