//! What every block must hold: the memory of a random workload, and the judge of what it reads.
//!
//! A block is written whole, in versions that count up, by one task only. The ledger knows which
//! versions a block may hold: one, as long as every write was told to have succeeded; a mixture of
//! that one and later ones while a write is under way, was cut short, or has nobody waiting for it.
//! ```
//! use trunkline_sim::{Ledger, content};
//! let ledger = Ledger::new();
//! assert!(ledger.judge(0, 5, &content(0, 5, 0)), "nobody wrote it: version 0");
//! assert!(!ledger.judge(0, 5, &content(0, 6, 0)), "the neighbour's block");
//! ```

use trunkline_aio::sync::Mutex;
use trunkline_aio::sync::hash::Map;

/// Bytes of a block.
pub const BLOCK: usize = 8192;

/// What `version` of a block holds: no two blocks, and no two versions, have 16 bytes in common.
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

/// What was known about a block when a read of it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Known {
    least: u32,
    mixed: bool,
    mixes: u32,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    /// The last version given out.
    issued: u32,
    /// The least version that a read may still find.
    least: u32,
    /// A write of it is under way, or was cut short: several versions may stand side by side.
    mixed: bool,
    /// How often that has happened.
    mixes: u32,
    /// A write of it is under way for which nobody waits.
    abandoned: bool,
}

impl Entry {
    fn mix(&mut self) {
        self.mixed = true;
        self.mixes += 1;
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<Map<(u32, u32), Entry>>);

impl Ledger {
    /// Every block holds version 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// A write of a block begins: its version. `None` where an abandoned write might still come
    /// after the new one.
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

    /// The write of the last version was told to be done.
    pub fn done(&self, file: u32, block: u32) {
        let mut entries = self.0.lock();
        let entry = entries.entry((file, block)).or_default();
        entry.least = entry.issued;
        entry.mixed = false;
    }

    /// The write ended with an error, or was cut short.
    pub fn failed(&self, file: u32, block: u32) {
        self.0.lock().entry((file, block)).or_default().mix();
    }

    /// Nobody waits for the write of the last version any more.
    pub fn abandoned(&self, file: u32, block: u32) {
        let mut entries = self.0.lock();
        let entry = entries.entry((file, block)).or_default();
        entry.abandoned = true;
        entry.mix();
    }

    /// Whether a write of the block may still come for which nobody waits.
    pub fn is_abandoned(&self, file: u32, block: u32) -> bool {
        self.0.lock().get(&(file, block)).is_some_and(|entry| entry.abandoned)
    }

    /// To be asked before a read of the block is issued.
    pub fn known(&self, file: u32, block: u32) -> Known {
        let entry = self.0.lock().get(&(file, block)).cloned().unwrap_or_default();
        Known { least: entry.least, mixed: entry.mixed, mixes: entry.mixes }
    }

    /// Whether `bytes`, a block or the begin of one, are what a read may find now.
    pub fn judge(&self, file: u32, block: u32, bytes: &[u8]) -> bool {
        self.judge_since(self.known(file, block), file, block, bytes)
    }

    /// Whether `bytes` are what a read may find that was issued when `known` was known.
    pub fn judge_since(&self, known: Known, file: u32, block: u32, bytes: &[u8]) -> bool {
        let entry = self.0.lock().get(&(file, block)).cloned().unwrap_or_default();
        let mixed = entry.mixed || known.mixed || entry.mixes != known.mixes;
        let mut first = None;
        bytes.chunks(PIECE).enumerate().all(|(word, found)| {
            // The version stands in the piece itself; a piece cut before it proves nothing.
            let Some(version) = found.get(8..12) else {
                return piece(file, block, 0, word as u32)
                    .starts_with(&found[..found.len().min(8)]);
            };
            let version = u32::from_le_bytes([version[0], version[1], version[2], version[3]]);
            (mixed || *first.get_or_insert(version) == version)
                && (known.least..=entry.issued).contains(&version)
                && piece(file, block, version, word as u32).starts_with(found)
        })
    }

    /// Judges whole files after the run; `name(file)` gives their bytes. The first bad block.
    pub fn judge_all(&self, files: u32, bytes_of: impl Fn(u32) -> Vec<u8>) -> Option<(u32, u32)> {
        (0..files).find_map(|file| {
            let bytes = bytes_of(file);
            let bad = bytes.chunks(BLOCK).enumerate().find(|(block, bytes)| {
                let whole = bytes.len() == BLOCK;
                !whole || !self.judge(file, *block as u32, bytes)
            });
            bad.map(|(block, _)| (file, block as u32))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_judge_knows_old_new_mixed_and_foreign() {
        let ledger = Ledger::new();
        assert_eq!(ledger.begin(1, 2), Some(1));
        assert!(ledger.judge(1, 2, &content(1, 2, 0)), "under way: the old one");
        assert!(ledger.judge(1, 2, &content(1, 2, 1)), "under way: the new one");
        let known = ledger.known(1, 2);
        ledger.done(1, 2);
        assert!(ledger.judge_since(known, 1, 2, &content(1, 2, 0)), "read before it was done");
        assert!(!ledger.judge(1, 2, &content(1, 2, 0)), "done: no longer the old one");
        assert!(!ledger.judge(1, 2, &content(1, 3, 1)), "another block");
        let torn = [&content(1, 2, 0)[..512], &content(1, 2, 1)[512..]].concat();
        assert!(!ledger.judge(1, 2, &torn), "torn");
        assert_eq!(ledger.begin(1, 2), Some(2));
        ledger.failed(1, 2);
        assert!(!ledger.judge(1, 2, &torn), "version 0 was gone before");
        let torn = [&content(1, 2, 1)[..512], &content(1, 2, 2)[512..]].concat();
        assert!(ledger.judge(1, 2, &torn), "a write that failed may leave a mixture");
        assert!(!ledger.judge(1, 2, &[0; 512]), "but not anything");
        ledger.abandoned(1, 2);
        assert_eq!(ledger.begin(1, 2), None);
    }
}
