//! Checks a page returned by a pool, under one of the three content lock modes.
//!
//! Under the exclusive lock, the client changes the page and restores it before unlocking. A reader
//! that sees the change has found a bug in the content lock. In all modes, the thread may pause
//! while it holds the lock, so that other sessions wait for it, or may read another page.

use super::Run;
use super::meter::Kind;
use super::pool_session::Counts;
use super::read_probe::{self, Issuer};
use crate::pause::pause;
use std::time::Duration;
use trunkline_aio::Cancelled;
use trunkline_aio::sync::random::Rng;
use trunkline_engine::pool::{Backend, Page, PageMut, PinRef, ReadError, Strategy};
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// The page to check.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageCheck<'a> {
    pub(super) run: &'a Run,
    pub(super) relation: usize,
    pub(super) block: BlockNo,
}

/// A locked page. A share-exclusive lock grants the same access as a share lock.
enum Locked<'p> {
    Shared(Page<'p>),
    Exclusive(PageMut<'p>),
}

impl PageCheck<'_> {
    /// Locks the page in a random mode and compares its contents. We try the lock before we wait
    /// for it, so that the counts show how often a session had to wait.
    ///
    /// # Errors
    /// If the session was cancelled.
    pub(super) fn run(
        &self,
        rng: &mut Rng,
        backend: &mut Backend,
        counts: &mut Counts,
        pin: PinRef<'_>,
    ) -> Result<(), Cancelled> {
        if pin.block() != self.block {
            self.run.fail(format!("{self}: the pin is of block {}", pin.block()));
        }
        let mode = match rng.below(8) {
            0..=3 => 0,
            4 | 5 => 1,
            _ => 2,
        };
        // Try the lock first, so that `lock_waits` counts only real waits.
        let immediate = match mode {
            0 => pin.try_read().map(Locked::Shared),
            1 => pin.try_read_stable().map(Locked::Shared),
            _ => pin.try_write().map(Locked::Exclusive),
        };
        let locked = match immediate {
            Some(locked) => locked,
            None => {
                counts.lock_waits[mode] += 1;
                match mode {
                    0 => Locked::Shared(backend.read_lock(pin)?),
                    1 => Locked::Shared(backend.stable_lock(pin)?),
                    _ => Locked::Exclusive(backend.write_lock(pin)?),
                }
            }
        };
        match locked {
            Locked::Shared(page) => {
                self.compare(&page[..]);
                self.do_something(rng, backend);
                self.compare(&page[..]);
            }
            Locked::Exclusive(mut page) => {
                self.compare(&page[..]);
                self.scribble(rng, backend, &mut page);
                self.compare(&page[..]);
            }
        }
        counts.pages += 1;
        Ok(())
    }

    /// Compares the page with its expected contents. Fails the run if they differ.
    pub(super) fn compare(&self, page: &[u8]) {
        let Self { run, relation, block } = *self;
        let contents = run.expectations.contents(relation, block);
        if !run.model.matches(contents, relation, block, page) {
            run.fail(format!("{self}: not {contents:?}, but {:?}", &page[..24]));
        }
    }

    /// Changes part of the page and restores it, with a pause or a read in between.
    fn scribble(&self, rng: &mut Rng, backend: &mut Backend, page: &mut PageMut<'_>) {
        let from = rng.below(BLOCK_SIZE as u64) as usize;
        let to = BLOCK_SIZE.min(from + 1 + rng.below(500) as usize);
        page[from..to].iter_mut().for_each(|byte| *byte ^= 0xFF);
        self.do_something(rng, backend);
        page[from..to].iter_mut().for_each(|byte| *byte ^= 0xFF);
    }

    /// Performs an operation that is allowed while we hold a content lock.
    fn do_something(&self, rng: &mut Rng, backend: &mut Backend) {
        match rng.below(12) {
            0 => pause(Duration::from_micros(1)),
            // This is safe under a lock. The session already has a pin, so it is admitted, and
            // getting another pin never waits for a session that might be waiting for this lock.
            1 => {
                let block = rng.below(u64::from(self.block) + 1) as BlockNo;
                self.run.read_aside(backend, self.relation, block);
            }
            _ => {}
        }
    }
}

impl std::fmt::Display for PageCheck<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "relation {} block {}", self.relation, self.block)
    }
}

impl Run {
    /// Reads a page for this thread's client without locking it. We don't check the result, because
    /// the read's only purpose is to cause I/O under a lock.
    fn read_aside(&self, backend: &mut Backend, relation: usize, block: BlockNo) {
        let Some(before) = read_probe::issuer() else { return };
        self.check_warnings(backend, before.owner);
        let owner = self.new_owner();
        let (kind, strategy, policy) = (Kind::Single, Strategy::Normal, backend.policy());
        read_probe::set_issuer(Issuer { owner, relation, kind, strategy, policy, ..before });
        let read = backend.read(&self.relations[relation], block);
        if let Err(ReadError::Cancelled) = read {
            backend.session().clear_cancel();
        }
        self.check_warnings(backend, owner);
        self.expectations.close(owner);
        read_probe::set_issuer(before);
    }
}
