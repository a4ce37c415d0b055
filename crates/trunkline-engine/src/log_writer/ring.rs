//! **WAL buffers**: a ring with the newest part of the WAL.
//!
//! Sessions write to disjoint places of it at the same time, and a flush copies what is complete. Records begin
//! at multiples of 8 bytes, so the ring consists of words, which are stored and loaded one by one. No two sessions
//! write the same word, and a flush loads only words whose inserter has finished ([`super::reservation`]). So
//! relaxed loads and stores suffice; the slots order them.

use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_format::Lsn;

/// The size of a word in bytes.
const WORD: usize = size_of::<u64>();

/// Bytes of the log by LSN, modulo the ring's size.
#[derive(Debug)]
pub(super) struct Ring {
    words: Box<[AtomicU64]>,
}

impl Ring {
    /// A ring of `bytes` bytes, a multiple of 8.
    pub(super) fn new(bytes: usize) -> Self {
        Self { words: (0..bytes / WORD).map(|_| AtomicU64::new(0)).collect() }
    }

    /// The size in bytes.
    pub(super) fn size(&self) -> u64 {
        (self.words.len() * WORD) as u64
    }

    /// Stores bytes at an LSN that is a multiple of 8. Zeros follow up to the next multiple of 8.
    pub(super) fn put(&self, place: Lsn, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<WORD>();
        let mut at = self.index(place);
        for word in words {
            self.store(&mut at, *word);
        }
        if !rest.is_empty() {
            let mut last = [0; WORD];
            last[..rest.len()].copy_from_slice(rest);
            self.store(&mut at, last);
        }
    }

    /// Copies the log from an LSN on. Both `place` and the length of `out` are multiples of 8.
    pub(super) fn copy(&self, place: Lsn, out: &mut [u8]) {
        let mut at = self.index(place);
        let (words, _) = out.as_chunks_mut::<WORD>();
        for word in words {
            *word = self.words[at].load(Ordering::Relaxed).to_le_bytes();
            at = self.next(at);
        }
    }

    fn store(&self, at: &mut usize, word: [u8; WORD]) {
        self.words[*at].store(u64::from_le_bytes(word), Ordering::Relaxed);
        *at = self.next(*at);
    }

    fn index(&self, place: Lsn) -> usize {
        debug_assert!(place.0.is_multiple_of(WORD as u64), "{place} is not aligned");
        (place.0 / WORD as u64 % self.words.len() as u64) as usize
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 == self.words.len() { 0 } else { at + 1 }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_across_the_end_of_the_ring() {
        let ring = Ring::new(64);
        ring.put(Lsn(48), &[7; 64]);
        ring.put(Lsn(48), b"a record of 25 bytes ....");
        let mut out = [0; 40];
        ring.copy(Lsn(48), &mut out);
        assert_eq!(&out[..32], b"a record of 25 bytes ....\0\0\0\0\0\0\0");
        assert_eq!(out[32..], [7; 8]);
    }
}
