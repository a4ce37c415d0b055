//! The model of a random I/O workload. It knows which contents each block may have, and checks that
//! every read returned one of them.
//!
//! Clients always write whole blocks, and each block has only one writer. Every write of a block
//! gets the next version number. If all writes succeeded, the block contains exactly the last
//! version. But while a write is in flight, and after a short or abandoned write, a block may
//! contain a mix of several versions. The model therefore tracks a range of versions and a "mixed"
//! flag for each block, not a byte image.
//! ```
//! use trunkline_sim::{BlockModel, content};
//! let model = BlockModel::new();
//! assert!(model.allows(0, 5, &content(0, 5, 0)), "never written: version 0");
//! assert!(!model.allows(0, 5, &content(0, 6, 0)), "the neighbouring block");
//! ```

use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::hash::Map;

/// Block size in bytes.
pub const BLOCK: usize = 8192;

/// The contents of a block at a given version. Every 16-byte piece contains the file, block,
/// version and position, so no two blocks or versions share an aligned piece. A single misplaced or
/// stale piece is therefore detected.
pub fn content(file: u32, block: u32, version: u32) -> Vec<u8> {
    (0..BLOCK / PIECE).flat_map(|word| piece(file, block, version, word as u32)).collect()
}

/// Size of a self-identifying piece. Sector sizes are multiples of it, so a torn write never splits
/// a piece.
const PIECE: usize = 16;

/// One piece: file, block, version and position in the block, each as a little-endian `u32`.
fn piece(file: u32, block: u32, version: u32, word: u32) -> [u8; PIECE] {
    let mut bytes = [0; PIECE];
    for (at, part) in [file, block, version, word].into_iter().enumerate() {
        bytes[at * 4..at * 4 + 4].copy_from_slice(&part.to_le_bytes());
    }
    bytes
}

/// A block's state when a read of it was issued. The read may return anything the block contained
/// between issue and completion, so the check needs the state at both ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Baseline {
    /// The oldest version the block could contain.
    least: u32,
    /// The block could contain a mix of versions.
    mixed: bool,
    /// The block's mix count at issue. If it differs at completion, the block was mixed at some
    /// moment of the read, even if it is not mixed now.
    mixes: u32,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    /// The version of the last write issued.
    issued: u32,
    /// The oldest version a read may still return. Set to `issued` when a write succeeds.
    least: u32,
    /// A write is in flight or was short, so the block may contain parts of several versions.
    mixed: bool,
    /// How often `mixed` was set. [`Baseline`] remembers this count, because `mixed` may be set and
    /// cleared again while a read is in flight.
    mixes: u32,
    /// Set if the issuer has abandoned a write in flight. That write may still execute at any time,
    /// so from now on we can't rely on any particular version.
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

    /// Records the start of a write and returns its version. Returns `None` if an earlier write was
    /// abandoned: it could still execute after a new write, so the block must not be written again.
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

    /// Records that the last write succeeded: the block now contains exactly that version.
    pub fn done(&self, file: u32, block: u32) {
        let mut entries = self.0.lock();
        let entry = entries.entry((file, block)).or_default();
        entry.least = entry.issued;
        entry.mixed = false;
    }

    /// Records that the last write failed or was short: the block may contain any mix of that
    /// version and earlier ones, back to the last successful write.
    pub fn failed(&self, file: u32, block: u32) {
        self.0.lock().entry((file, block)).or_default().mix();
    }

    /// Records that the issuer abandoned the last write without waiting for its result.
    pub fn abandoned(&self, file: u32, block: u32) {
        let mut entries = self.0.lock();
        let entry = entries.entry((file, block)).or_default();
        entry.abandoned = true;
        entry.mix();
    }

    /// Whether an abandoned write of the block may still execute.
    pub fn is_abandoned(&self, file: u32, block: u32) -> bool {
        self.0.lock().get(&(file, block)).is_some_and(|entry| entry.abandoned)
    }

    /// Returns a block's state. Clients call this before they issue a read of the block.
    pub fn baseline(&self, file: u32, block: u32) -> Baseline {
        let entry = self.0.lock().get(&(file, block)).cloned().unwrap_or_default();
        Baseline { least: entry.least, mixed: entry.mixed, mixes: entry.mixes }
    }

    /// Whether a read issued now may return `bytes`, which may be a whole block or only its first
    /// part.
    pub fn allows(&self, file: u32, block: u32, bytes: &[u8]) -> bool {
        self.allows_since(self.baseline(file, block), file, block, bytes)
    }

    /// Whether a read issued at `baseline` may return `bytes`.
    pub fn allows_since(&self, baseline: Baseline, file: u32, block: u32, bytes: &[u8]) -> bool {
        let entry = self.0.lock().get(&(file, block)).cloned().unwrap_or_default();
        let mixed = entry.mixed || baseline.mixed || entry.mixes != baseline.mixes;
        let mut first = None;
        bytes.chunks(PIECE).enumerate().all(|(word, found)| {
            // A short read may end before a piece's version field. In that case we compare only the
            // leading bytes, which are the same in all versions.
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

    /// Checks whole files after a run and returns the first bad block. `bytes_of` returns a file's
    /// contents. A file that does not end on a block boundary is also bad.
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
