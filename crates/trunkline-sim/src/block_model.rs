//! The model of a random workload: which contents each block may have, and whether a read found them.
//!
//! A client writes a block whole, in versions that count up, and no other client writes that block. If
//! every write succeeded, a block has exactly one version. It may be a mixture of that version and later
//! ones while a write is in flight, after a short write, or after a write that its issuer abandoned.
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

/// The contents of a version of a block. No two blocks, and no two versions, have 16 bytes in common.
pub fn content(file: u32, block: u32, version: u32) -> Vec<u8> {
    (0..BLOCK / PIECE).flat_map(|word| piece(file, block, version, word as u32)).collect()
}

const PIECE: usize = 16;

fn piece(file: u32, block: u32, version: u32, word: u32) -> [u8; PIECE] {
    let mut bytes = [0; PIECE];
    for (at, part) in [file, block, version, word].into_iter().enumerate() {
        bytes[at * 4..at * 4 + 4].copy_from_slice(&part.to_le_bytes());
    }
    bytes
}

/// The state of a block when a read of it was issued.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Baseline {
    least: u32,
    mixed: bool,
    mixes: u32,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    /// The last version that a write was given.
    issued: u32,
    /// The oldest version that a read may still find.
    least: u32,
    /// A write is in flight or was short, so the block may have parts of several versions.
    mixed: bool,
    /// How often `mixed` was set.
    mixes: u32,
    /// A write is in flight that no session waits for.
    abandoned: bool,
}

impl Entry {
    fn mix(&mut self) {
        self.mixed = true;
        self.mixes += 1;
    }
}

/// The contents that every block may have.
#[derive(Debug, Default)]
pub struct BlockModel(Mutex<Map<(u32, u32), Entry>>);

impl BlockModel {
    /// Every block has version 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// A write of a block begins; returns its version. `None` if an abandoned write of the block may
    /// still be executed after the new one.
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

    /// The write of the last version has succeeded.
    pub fn done(&self, file: u32, block: u32) {
        let mut entries = self.0.lock();
        let entry = entries.entry((file, block)).or_default();
        entry.least = entry.issued;
        entry.mixed = false;
    }

    /// The write of the last version has failed, or was short.
    pub fn failed(&self, file: u32, block: u32) {
        self.0.lock().entry((file, block)).or_default().mix();
    }

    /// The issuer of the last write has given up its result.
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

    /// The state of a block, to be read before a read of the block is issued.
    pub fn baseline(&self, file: u32, block: u32) -> Baseline {
        let entry = self.0.lock().get(&(file, block)).cloned().unwrap_or_default();
        Baseline { least: entry.least, mixed: entry.mixed, mixes: entry.mixes }
    }

    /// Whether a read that is issued now may find `bytes`: a block, or the beginning of one.
    pub fn allows(&self, file: u32, block: u32, bytes: &[u8]) -> bool {
        self.allows_since(self.baseline(file, block), file, block, bytes)
    }

    /// Whether a read that was issued at `baseline` may find `bytes`.
    pub fn allows_since(&self, baseline: Baseline, file: u32, block: u32, bytes: &[u8]) -> bool {
        let entry = self.0.lock().get(&(file, block)).cloned().unwrap_or_default();
        let mixed = entry.mixed || baseline.mixed || entry.mixes != baseline.mixes;
        let mut first = None;
        bytes.chunks(PIECE).enumerate().all(|(word, found)| {
            // The version is in the piece itself. A piece that ends before it is compared with version 0.
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

    /// Checks whole files after a run; `bytes_of` returns the contents of a file. Returns the first bad
    /// block.
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
