//! Loom models of the log's lock-free parts.
//!
//! This file replaces `log_writer.rs` if we build with `--cfg loom`. It includes the same source files for the
//! lock-free parts, but not the rest, because that does I/O.

mod reservation;
mod ring;

#[cfg(test)]
mod tests {
    use super::reservation::Reservations;
    use super::ring::Ring;
    use trunkline_aio::facade::Arc;
    use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
    use trunkline_format::Lsn;

    /// Reserves a place for a record of one word, and copies it. The word is the record's place, but never 0.
    fn insert(log: &Reservations, ring: &Ring, slot: usize) {
        let reserved = log.reserve(slot, 8, || true).expect("current");
        ring.put(Lsn(reserved.start), &(reserved.start + 1).to_le_bytes());
        log.finish(slot);
    }

    /// Everything before the position that is said to be complete has been copied, and can be seen.
    #[test]
    fn loom_what_is_complete_can_be_read() {
        loom::model(|| {
            let (log, ring) = (Arc::new(Reservations::new(0, 2)), Arc::new(Ring::new(32)));
            let (their_log, their_ring) = (Arc::clone(&log), Arc::clone(&ring));
            let other = loom::thread::spawn(move || insert(&their_log, &their_ring, 1));
            let (third_log, third_ring) = (Arc::clone(&log), Arc::clone(&ring));
            let third = loom::thread::spawn(move || insert(&third_log, &third_ring, 0));
            let complete = log.complete();
            for place in (0..complete).step_by(8) {
                let mut word = [0; 8];
                ring.copy(Lsn(place), &mut word);
                assert_eq!(u64::from_le_bytes(word), place + 1);
            }
            for thread in [other, third] {
                assert!(thread.join().is_ok());
            }
            assert_eq!(log.complete(), 16);
        });
    }

    /// A record behind an exclusive one knows what that one has set, such as where redo begins.
    #[test]
    fn loom_a_record_behind_a_checkpoint_knows_its_redo() {
        loom::model(|| {
            let (log, redo) = (Arc::new(Reservations::new(0, 1)), Arc::new(AtomicU64::new(0)));
            let (theirs, their_redo) = (Arc::clone(&log), Arc::clone(&redo));
            let other = loom::thread::spawn(move || {
                let mut known;
                loop {
                    known = their_redo.load(Ordering::SeqCst);
                    let is_current = || their_redo.load(Ordering::SeqCst) == known;
                    if let Some(reserved) = theirs.reserve(0, 8, is_current) {
                        theirs.finish(0);
                        return (reserved.start, known);
                    }
                }
            });
            let checkpoint = log.reserve_exclusive(16);
            redo.store(checkpoint.start + 1, Ordering::SeqCst);
            log.end_exclusive(&checkpoint);
            let (start, known) = other.join().expect("no panic");
            let is_behind = start >= checkpoint.end;
            assert_eq!(is_behind, known == checkpoint.start + 1);
        });
    }
}
