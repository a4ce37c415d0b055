//! A model of the blocks that a random I/O workload reads and writes. It keeps track of what each
//! block may contain, so that we can check whether the data returned by a read is valid.
//!
//! Clients always write whole blocks, and a block is only ever written by one client. Each write of
//! a block is assigned the next version number. If all writes succeed, the block must contain the
//! last version. However, while a write is in flight, or after a write was short or was abandoned,
//! the block may contain parts of several versions. For this reason, we don't keep an image of each
//! block. Instead, we keep the range of versions that it may contain, and a flag that says whether
//! these versions may be mixed.
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

/// Returns the contents of a block at a given version. Every 16-byte piece of the block contains
/// the file number, the block number, the version, and the position of the piece. All pieces are
/// therefore different, and we can detect even a single piece that is out of date or in the wrong
/// place.
pub fn content(file: u32, block: u32, version: u32) -> Vec<u8> {
    (0..BLOCK / PIECE).flat_map(|word| piece(file, block, version, word as u32)).collect()
}

/// Size in bytes of the pieces that a block consists of. All sector sizes are a multiple of this,
/// so a torn write never tears a piece.
const PIECE: usize = 16;

/// One piece: file, block, version and position in the block, each as a little-endian `u32`.
fn piece(file: u32, block: u32, version: u32, word: u32) -> [u8; PIECE] {
    let mut bytes = [0; PIECE];
    for (at, part) in [file, block, version, word].into_iter().enumerate() {
        bytes[at * 4..at * 4 + 4].copy_from_slice(&part.to_le_bytes());
    }
    bytes
}

/// The state of a block at the time a read of the block was issued. The read may return anything
/// that the block contained at any time until the read completed, so to check the result we need to
/// know both this state and the state at completion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Baseline {
    /// The oldest version the block could contain.
    least: u32,
    /// The block could contain a mix of versions.
    mixed: bool,
    /// The value of `Entry::mixes` when the read was issued. If it has changed when the read
    /// completes, the block may have contained a mix of versions during the read, even if it no
    /// longer does.
    mixes: u32,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    /// The version of the last write issued.
    issued: u32,
    /// The oldest version a read may still return. Set to `issued` when a write succeeds.
    least: u32,
    /// True if a write is in flight or was short, so that the block may contain parts of several
    /// versions.
    mixed: bool,
    /// Number of times that `mixed` has been set. We also store this count in [`Baseline`], because
    /// `mixed` could be set and cleared again while a read is in flight.
    mixes: u32,
    /// True if the client has abandoned a write that was still in flight. The write could be
    /// executed at any time after that, so we no longer know which version the block contains.
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

    /// Records that a write is about to start, and returns its version. Returns `None` if an
    /// earlier write of this block was abandoned. In that case, the caller must not write the block
    /// again, because the abandoned write could still be executed after the new one.
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

    /// Records that the last write failed or was short. After this, the block may contain any mix
    /// of that version and the versions before it, back to the last write that succeeded.
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

    /// Returns true if a read that is issued now could return `bytes`, which is either a whole
    /// block or just the first part of it.
    pub fn allows(&self, file: u32, block: u32, bytes: &[u8]) -> bool {
        self.allows_since(self.baseline(file, block), file, block, bytes)
    }

    /// Whether a read issued at `baseline` may return `bytes`.
    pub fn allows_since(&self, baseline: Baseline, file: u32, block: u32, bytes: &[u8]) -> bool {
        let entry = self.0.lock().get(&(file, block)).cloned().unwrap_or_default();
        let mixed = entry.mixed || baseline.mixed || entry.mixes != baseline.mixes;
        let mut first = None;
        bytes.chunks(PIECE).enumerate().all(|(word, found)| {
            // If the read was short, the last piece may end before its version field. In that case
            // we can only compare the bytes before it, which are the same in all versions.
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

    /// Checks all blocks of all files at the end of a run, and returns the first bad block.
    /// `bytes_of` must return the contents of a file. It is also an error if the length of a file
    /// is not a multiple of the block size.
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
