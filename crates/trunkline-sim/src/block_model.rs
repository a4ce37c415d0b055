//! The model of a random I/O workload: the contents each block may have, and whether a read
//! returned one of them.
//!
//! A client always writes whole blocks and is the only writer of its blocks. Each write has a
//! version number, one higher than the last. If every write succeeded, a block contains exactly one
//! version. While a write is in flight, and after a short or abandoned write, a block may contain a
//! mixture of several versions. The model is therefore a range of versions and a flag for mixtures,
//! and not a byte image.
//! ```
//! use trunkline_sim::{BlockModel, content};
//! let model = BlockModel::new();
//! assert!(model.allows(0, 5, &content(0, 5, 0)), "never written: version 0");
//! assert!(!model.allows(0, 5, &content(0, 6, 0)), "the neighbouring block");
//! ```

use trunkline_aio::sync::Mutex;
use trunkline_aio::sync::hash::Map;

/// Bytes of a block.
pub const BLOCK: usize = 8192;

/// The contents of a version of a block. Every 16 bytes name file, block, version and position, so
/// no two blocks and no two versions have 16 aligned bytes in common. A single misplaced or stale
/// piece is noticed.
pub fn content(file: u32, block: u32, version: u32) -> Vec<u8> {
    (0..BLOCK / PIECE).flat_map(|word| piece(file, block, version, word as u32)).collect()
}

/// Bytes that identify themselves. A sector is a multiple of this, so a torn write never splits a
/// piece.
const PIECE: usize = 16;

/// One piece: file, block, version and position in the block, each as a little-endian `u32`.
fn piece(file: u32, block: u32, version: u32, word: u32) -> [u8; PIECE] {
    let mut bytes = [0; PIECE];
    for (at, part) in [file, block, version, word].into_iter().enumerate() {
        bytes[at * 4..at * 4 + 4].copy_from_slice(&part.to_le_bytes());
    }
    bytes
}

/// The state of a block when a read of it was issued. The read may return what the block contained
/// at any moment between its issue and its completion, so the check needs both states.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Baseline {
    /// The oldest version the block could contain.
    least: u32,
    /// The block could contain a mixture.
    mixed: bool,
    /// The count of mixtures at that time. A later read of the count shows whether a write began
    /// and completed while the read was in flight.
    mixes: u32,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    /// The version of the last write issued.
    issued: u32,
    /// The oldest version a read may still return. Set to `issued` when a write succeeds.
    least: u32,
    /// A write is in flight or was short, so the block may have parts of several versions.
    mixed: bool,
    /// How often `mixed` was set. Compared with [`Baseline`], because `mixed` may be set and
    /// cleared again while a read is in flight.
    mixes: u32,
    /// The issuer abandoned a write in flight. It may execute at any later time, so the block can
    /// never again be expected to have one version.
    abandoned: bool,
}

impl Entry {
    fn mix(&mut self) {
        self.mixed = true;
        self.mixes += 1;
    }
}

/// The contents each block may have, by file and block number.
#[derive(Debug, Default)]
pub struct BlockModel(Mutex<Map<(u32, u32), Entry>>);

impl BlockModel {
    /// Every block has version 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the start of a write and returns its version. Returns `None` if the issuer of an
    /// earlier write abandoned it. That write may still execute after a new one, so its block must
    /// not be written again.
    pub fn begin(&self, file: u32, block: u32) -> Option<u32> {
        let mut entries = self.0.lock();
        let entry = entries.entry((file, block)).or_default();
        if entry.abandoned {
            return None;
        }
        entry.issued += 1;
        entry.mix();
        Some(entry.issued)
    }

    /// Records that the last write succeeded: from now on the block contains exactly that version.
    pub fn done(&self, file: u32, block: u32) {
        let mut entries = self.0.lock();
        let entry = entries.entry((file, block)).or_default();
        entry.least = entry.issued;
        entry.mixed = false;
    }

    /// Records that the last write failed or was short: the block may contain any mixture of that
    /// version and earlier ones, back to the last success.
    pub fn failed(&self, file: u32, block: u32) {
        self.0.lock().entry((file, block)).or_default().mix();
    }

    /// Records that the issuer of the last write gave up its result.
    pub fn abandoned(&self, file: u32, block: u32) {
        let mut entries = self.0.lock();
        let entry = entries.entry((file, block)).or_default();
        entry.abandoned = true;
        entry.mix();
    }

    /// Whether an abandoned write of the block may still be executed.
    pub fn is_abandoned(&self, file: u32, block: u32) -> bool {
        self.0.lock().get(&(file, block)).is_some_and(|entry| entry.abandoned)
    }

    /// Returns the state of a block. A client calls this before it issues a read of the block.
    pub fn baseline(&self, file: u32, block: u32) -> Baseline {
        let entry = self.0.lock().get(&(file, block)).cloned().unwrap_or_default();
        Baseline { least: entry.least, mixed: entry.mixed, mixes: entry.mixes }
    }

    /// Whether a read issued now may return `bytes`: a block, or the beginning of one.
    pub fn allows(&self, file: u32, block: u32, bytes: &[u8]) -> bool {
        self.allows_since(self.baseline(file, block), file, block, bytes)
    }

    /// Whether a read issued at `baseline` may find `bytes`.
    pub fn allows_since(&self, baseline: Baseline, file: u32, block: u32, bytes: &[u8]) -> bool {
        let entry = self.0.lock().get(&(file, block)).cloned().unwrap_or_default();
        let mixed = entry.mixed || baseline.mixed || entry.mixes != baseline.mixes;
        let mut first = None;
        bytes.chunks(PIECE).enumerate().all(|(word, found)| {
            // The version is part of the piece. A short read may end before it; then we compare the
            // first bytes only, which are the same in every version.
            let Some(version) = found.get(8..12) else {
                return piece(file, block, 0, word as u32)
                    .starts_with(&found[..found.len().min(8)]);
            };
            let version = u32::from_le_bytes([version[0], version[1], version[2], version[3]]);
            (mixed || *first.get_or_insert(version) == version)
                && (baseline.least..=entry.issued).contains(&version)
                && piece(file, block, version, word as u32).starts_with(found)
        })
    }

    /// Checks whole files after a run and returns the first bad block. `bytes_of` returns the
    /// contents of a file. A file that does not end on a block boundary is bad, too.
    pub fn find_bad_block(
        &self,
        files: u32,
        bytes_of: impl Fn(u32) -> Vec<u8>,
    ) -> Option<(u32, u32)> {
        (0..files).find_map(|file| {
            let bytes = bytes_of(file);
            let bad = bytes.chunks(BLOCK).enumerate().find(|(block, bytes)| {
                let whole = bytes.len() == BLOCK;
                !whole || !self.allows(file, *block as u32, bytes)
            });
            bad.map(|(block, _)| (file, block as u32))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_distinguishes_old_new_mixed_and_foreign_blocks() {
        let model = BlockModel::new();
        assert_eq!(model.begin(1, 2), Some(1));
        assert!(model.allows(1, 2, &content(1, 2, 0)), "in flight: the old version");
        assert!(model.allows(1, 2, &content(1, 2, 1)), "in flight: the new version");
        let baseline = model.baseline(1, 2);
        model.done(1, 2);
        assert!(model.allows_since(baseline, 1, 2, &content(1, 2, 0)), "read before it was done");
        assert!(!model.allows(1, 2, &content(1, 2, 0)), "done: not the old version");
        assert!(!model.allows(1, 2, &content(1, 3, 1)), "another block");
        let torn = [&content(1, 2, 0)[..512], &content(1, 2, 1)[512..]].concat();
        assert!(!model.allows(1, 2, &torn), "torn");
        assert_eq!(model.begin(1, 2), Some(2));
        model.failed(1, 2);
        assert!(!model.allows(1, 2, &torn), "version 0 was overwritten before");
        let torn = [&content(1, 2, 1)[..512], &content(1, 2, 2)[512..]].concat();
        assert!(model.allows(1, 2, &torn), "a failed write may leave a mixture");
        assert!(!model.allows(1, 2, &[0; 512]), "but only of its own versions");
        model.abandoned(1, 2);
        assert_eq!(model.begin(1, 2), None);
    }
}
