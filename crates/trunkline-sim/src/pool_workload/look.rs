//! Looking at a page that was handed out: under one of the three locks, with what a bad consumer
//! might do meanwhile.
//!
//! Under the exclusive lock the page may be scribbled on, if it is put right before the unlock: a
//! reader that sees the scribble has found a bug. Under any lock the thread may stop for a moment,
//! so that others come to wait for it, or read another page.

use super::Scene;
use super::desk::Counts;
use super::meter::Kind;
use super::watch::{self, Issuer};
use crate::pause::pause;
use std::time::Duration;
use trunkline_aio::Cancelled;
use trunkline_aio::sync::random::Rng;
use trunkline_engine::pool::{Backend, Page, PageMut, PinRef, ReadError, Strategy};
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight<'a> {
    pub(super) scene: &'a Scene,
    pub(super) relation: usize,
    pub(super) block: BlockNo,
}

enum Locked<'p> {
    Shared(Page<'p>),
    Exclusive(PageMut<'p>),
}

impl Sight<'_> {
    /// Locks the page in some way and judges it.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn look(
        &self,
        rng: &mut Rng,
        backend: &mut Backend,
        counts: &mut Counts,
        pin: PinRef<'_>,
    ) -> Result<(), Cancelled> {
        if pin.block() != self.block {
            self.scene.find(format!("{self}: the pin is of block {}", pin.block()));
        }
        let mode = match rng.below(8) {
            0..=3 => 0,
            4 | 5 => 1,
            _ => 2,
        };
        let at_once = match mode {
            0 => pin.try_read().map(Locked::Shared),
            1 => pin.try_read_stable().map(Locked::Shared),
            _ => pin.try_write().map(Locked::Exclusive),
        };
        let locked = match at_once {
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
                self.judge(&page[..]);
                self.idle(rng, backend);
                self.judge(&page[..]);
            }
            Locked::Exclusive(mut page) => {
                self.judge(&page[..]);
                self.scribble(rng, backend, &mut page);
                self.judge(&page[..]);
            }
        }
        counts.pages += 1;
        Ok(())
    }

    /// Compares the page with what it must show.
    pub(super) fn judge(&self, page: &[u8]) {
        let Self { scene, relation, block } = *self;
        let shown = scene.ledger.shown(relation, block);
        if !scene.truth.is(shown, relation, block, page) {
            scene.find(format!("{self}: not {shown:?}, but {:?}", &page[..24]));
        }
    }

    /// Changes the page and puts it right again.
    fn scribble(&self, rng: &mut Rng, backend: &mut Backend, page: &mut PageMut<'_>) {
        let from = rng.below(BLOCK_SIZE as u64) as usize;
        let to = BLOCK_SIZE.min(from + 1 + rng.below(500) as usize);
        page[from..to].iter_mut().for_each(|byte| *byte ^= 0xFF);
        self.idle(rng, backend);
        page[from..to].iter_mut().for_each(|byte| *byte ^= 0xFF);
    }

    /// What a thread may do that has a page locked.
    fn idle(&self, rng: &mut Rng, backend: &mut Backend) {
        match rng.below(12) {
            0 => pause(Duration::from_micros(1)),
            // It has a pin, so it is admitted and gets another one without waiting for anybody who
            // might wait for this lock.
            1 => {
                let block = rng.below(u64::from(self.block) + 1) as BlockNo;
                self.scene.read_aside(backend, self.relation, block);
            }
            _ => {}
        }
    }
}

impl std::fmt::Display for Sight<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "relation {} block {}", self.relation, self.block)
    }
}

impl Scene {
    /// Reads a page on behalf of whoever works on this thread, and does not lock it.
    fn read_aside(&self, backend: &mut Backend, relation: usize, block: BlockNo) {
        let Some(before) = watch::here() else { return };
        self.check_warnings(backend, before.owner);
        let owner = self.new_owner();
        let (kind, strategy, policy) = (Kind::Single, Strategy::Normal, backend.policy());
        watch::work_for(Issuer { owner, relation, kind, strategy, policy, ..before });
        let read = backend.read(&self.relations[relation], block);
        if let Err(ReadError::Cancelled) = read {
            backend.session().clear_cancel();
        }
        self.check_warnings(backend, owner);
        self.ledger.close(owner);
        watch::work_for(before);
    }
}
