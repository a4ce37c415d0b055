//! Checks a page returned by a pool, under one of the three content lock modes.
//!
//! If the client has the exclusive lock, it changes the page and restores it before unlocking.
//! Another session that sees the change has found a bug in the content lock. In any lock mode, the
//! client may read another page while it holds the lock, or it may pause, so that other sessions
//! have to wait for the lock.

use super::read_probe::Issuer;
use super::run::{ClientState, Run};
use crate::pause::pause;
use std::time::Duration;
use trunkline_aio::Cancelled;
use trunkline_engine::pool::{Backend, Page, PageMut, PinRef, ReadError};
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// The page to check.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageCheck {
    pub(super) relation: usize,
    pub(super) block: BlockNo,
}

/// A locked page. A share-exclusive lock grants the same access as a share lock.
enum Locked<'p> {
    Shared(Page<'p>),
    Exclusive(PageMut<'p>),
}

impl PageCheck {
    /// Locks the page in a random mode and compares its contents with the expectations. We first
    /// try to get the lock without waiting, so that we can count how often a session had to wait.
    ///
    /// # Errors
    /// If the session was cancelled.
    pub(super) fn run(
        &self,
        client: &mut ClientState,
        backend: &mut Backend,
        pin: PinRef<'_>,
    ) -> Result<(), Cancelled> {
        if pin.block() != self.block {
            client.run.fail(format!("{self}: the pin is of block {}", pin.block()));
        }
        let mode = match client.rng.below(8) {
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
                client.counts.lock_waits[mode] += 1;
                match mode {
                    0 => Locked::Shared(backend.read_lock(pin)?),
                    1 => Locked::Shared(backend.stable_lock(pin)?),
                    _ => Locked::Exclusive(backend.write_lock(pin)?),
                }
            }
        };
        match locked {
            Locked::Shared(page) => {
                self.require(&client.run, &page[..]);
                self.do_something(client, backend);
                self.require(&client.run, &page[..]);
            }
            Locked::Exclusive(mut page) => {
                self.require(&client.run, &page[..]);
                self.scribble(client, backend, &mut page);
                self.require(&client.run, &page[..]);
            }
        }
        client.counts.pages += 1;
        Ok(())
    }

    /// Compares the page with its expected contents. Returns the failure if they differ.
    pub(super) fn compare(&self, run: &Run, page: &[u8]) -> Result<(), String> {
        let Self { relation, block } = *self;
        let contents = run.expectations.contents(relation, block);
        match run.model.matches(contents, relation, block, page) {
            true => Ok(()),
            false => Err(format!("{self}: not {contents:?}, but {:?}", &page[..24])),
        }
    }

    /// Compares the page with its expected contents. Fails the run if they differ.
    pub(super) fn require(&self, run: &Run, page: &[u8]) {
        self.compare(run, page).unwrap_or_else(|failure| run.fail(failure));
    }

    /// Changes part of the page and restores it, with a pause or a read in between.
    fn scribble(&self, client: &mut ClientState, backend: &mut Backend, page: &mut PageMut<'_>) {
        let from = client.rng.below(BLOCK_SIZE as u64) as usize;
        let to = BLOCK_SIZE.min(from + 1 + client.rng.below(500) as usize);
        page[from..to].iter_mut().for_each(|byte| *byte ^= 0xFF);
        self.do_something(client, backend);
        page[from..to].iter_mut().for_each(|byte| *byte ^= 0xFF);
    }

    /// Performs an operation that is allowed while we hold a content lock.
    fn do_something(&self, client: &mut ClientState, backend: &mut Backend) {
        match client.rng.below(12) {
            0 => pause(Duration::from_micros(1)),
            // This can't deadlock even though we hold a lock. The session already has a pin, so it
            // has been admitted, and getting another pin never involves waiting for a session that
            // might be waiting for our lock.
            1 => {
                let block = client.rng.below(u64::from(self.block) + 1) as BlockNo;
                read_aside(&client.run, backend, self.relation, block);
            }
            _ => {}
        }
    }
}

impl std::fmt::Display for PageCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "relation {} block {}", self.relation, self.block)
    }
}

/// Reads a page for this thread's client without locking it. We ignore the result, because all we
/// want is some I/O while a lock is held.
fn read_aside(run: &Run, backend: &mut Backend, relation: usize, block: BlockNo) {
    let Some(before) = Issuer::current() else { return };
    run.check_warnings(backend, before.owner);
    let owner = run.new_owner();
    Issuer::single(before.client, owner, relation, backend.policy()).set();
    let read = backend.read(&run.relations[relation], block);
    if let Err(ReadError::Cancelled) = read {
        backend.session().clear_cancel();
    }
    run.check_warnings(backend, owner);
    run.expectations.close(owner);
    before.set();
}
