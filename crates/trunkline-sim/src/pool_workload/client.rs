//! A client of a pool workload. It has one or two sessions, and performs at random every operation
//! that a session may perform.
//!
//! ```text
//!   step: read a page | continue a stream | open one | unpin read-ahead | reset | drop one | keep pages
//!         | evict | invalidate, truncate, extend | cleanup lock | switch the method | cancel a session
//!         | another policy | another session | move to another thread | vanish
//! ```
//! Deadlocks between clients would be bugs of the workload, not of the engine. A client must
//! therefore hold nothing another client could need while it waits for that client to release
//! something. It holds content locks only across reads, and waits for a cleanup lock only while it
//! has no other pins.

use super::meter::Kind;
use super::model::{MOVING, SHAPES};
use super::pool_session::{Counts, PoolSession, Progress};
use super::read_probe::{self, Issuer};
use super::reader::{ParallelScan, Reader};
use super::{Run, name_of};
use crate::matrix::SIMULATED;
use crate::pause::pause;
use std::time::Duration;
use trunkline_aio::sync::atomic::Ordering;
use trunkline_aio::sync::random::Rng;
use trunkline_aio::sync::{Arc, thread};
use trunkline_engine::pool::{BackendType, Policy, Strategy};
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// Maximum number of open streams per session.
const READERS_MAX: usize = 3;

/// How often a stream may be refused a pin before the run fails. Once a session has released its
/// other pins, its stream must be able to continue.
const REFUSALS_MAX: u32 = 50;

/// A client with its random number generator. It can move to another thread.
pub(super) struct Client {
    run: Arc<Run>,
    number: u32,
    rng: Rng,
    sessions: Vec<PoolSession>,
    steps: u32,
    counts: Counts,
}

/// What the client does after a step.
enum Next {
    Step,
    /// Continue on another thread, as a pooled connection may.
    Moved,
    /// End without closing anything, like a terminated backend.
    Vanish,
}

impl Client {
    pub(super) fn new(run: Arc<Run>, number: u32) -> Self {
        let seed = run.workload.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(number));
        let steps = run.workload.steps;
        let rng = Rng::new(seed ^ 0x706F_6F6C);
        Self { run, number, rng, sessions: Vec::new(), steps, counts: Counts::default() }
    }

    /// Runs all steps and then reads most streams to their ends, unless the client vanishes
    /// earlier.
    pub(super) fn run(mut self) {
        self.set_issuer();
        self.open_sessions();
        while self.steps > 0 && !self.sessions.is_empty() {
            self.steps -= 1;
            match self.step() {
                Next::Step => {}
                Next::Moved => return move_on(self),
                Next::Vanish => {
                    self.counts.vanished += 1;
                    return self.leave();
                }
            }
        }
        self.finish();
        self.leave();
    }

    /// Makes this client the issuer of this thread's reads, without a stream.
    fn set_issuer(&self) {
        let (kind, strategy) = (Kind::Single, Strategy::Normal);
        let policy = Policy::default();
        read_probe::set_issuer(Issuer {
            client: self.number,
            owner: 0,
            relation: 0,
            policy,
            kind,
            strategy,
        });
    }

    /// Opens a session with the shared pool. The first client also gets a session with the local
    /// pool.
    fn open_sessions(&mut self) {
        let pools = if self.number == 0 { &[0, 1][..] } else { &[0] };
        for &pool in pools {
            if !self.sessions.iter().any(|session| session.pool == pool)
                && let Ok(backend) = self.run.pools[pool].backend(BackendType::Client)
            {
                self.sessions.push(PoolSession::new(&self.run, pool, backend));
            }
        }
    }

    /// Performs one random step with one of the sessions. In a fickle workload, more of the steps
    /// abandon reads.
    fn step(&mut self) -> Next {
        // The client with the local pool mostly uses its local session.
        let at = match self.sessions.iter().position(|session| session.pool == 1) {
            Some(local) if self.rng.below(6) > 0 => local,
            _ => self.rng.below(self.sessions.len() as u64) as usize,
        };
        let kinds = if self.run.workload.fickle { 48 } else { 32 };
        match self.rng.below(kinds) {
            0..=4 => self.single(at),
            5..=14 => self.run_on(at),
            15..=17 => self.open(at),
            18 => self.let_go(at),
            19 => self.reset(at),
            20 => self.drop_one(at),
            21 => {
                let session = &mut self.sessions[at];
                session.release_kept(&self.run, &mut self.rng, &mut self.counts);
            }
            22 | 23 => self.evict(at),
            24 => self.exclusive(at),
            25 => self.switch(),
            26 => self.cancel(),
            27 => self.policy(at),
            28 => self.another_session(at),
            29 => pause(Duration::from_micros(self.rng.below(300))),
            30 => return Next::Moved,
            31 if self.rng.below(3) == 0 => return Next::Vanish,
            31 => {}
            32..=34 => self.let_go(at),
            35..=38 => self.reset(at),
            39 | 40 => self.drop_one(at),
            41 => self.cancel(),
            _ => self.single(at),
        }
        Next::Step
    }

    /// Reads a page, and sometimes keeps it pinned.
    fn single(&mut self, at: usize) {
        let Self { run, rng, sessions, counts, number, .. } = self;
        if run.workload.fickle {
            sessions[at].poll_streams(run, rng, counts);
        }
        if run.workload.crowd && rng.below(2) == 0 {
            // Evict the crowd's pages, so that they must be read again.
            run.pools[sessions[at].pool].evict_all();
        }
        let read = sessions[at].single(run, rng, *number, counts);
        if let Some(page) = read
            && rng.below(3) == 0
        {
            sessions[at].keep(page);
        }
    }

    /// Opens a stream, unless there are too many, and then reads from a random stream.
    fn open(&mut self, at: usize) {
        let Self { run, rng, sessions, number, .. } = self;
        let session = &mut sessions[at];
        if session.readers.len() < READERS_MAX {
            let parallel = match rng.below(3) {
                0 if session.pool == 0 => Some(run.parallel(rng)),
                _ => None,
            };
            let relation = match &parallel {
                Some(parallel) => parallel.relation,
                None => session.some_relation(run, rng),
            };
            let reader = Reader::open(run, rng, *number, &session.backend, relation, parallel);
            session.readers.push(reader);
            if run.workload.crowd && rng.below(2) == 0 {
                run.pools[session.pool].evict_all();
            }
        }
        self.run_on(at);
    }

    /// Reads up to 24 pages from a stream.
    fn run_on(&mut self, at: usize) {
        if self.sessions[at].readers.is_empty() {
            return;
        }
        let which = self.rng.below(self.sessions[at].readers.len() as u64) as usize;
        let pages = 1 + self.rng.below(24);
        let slow = self.run.workload.crowd && self.run.workload.wide;
        for _ in 0..pages {
            if slow && self.rng.below(4) == 0 {
                // Other clients may join the reads in flight.
                pause(Duration::from_micros(self.rng.below(300)));
            }
            let session = &mut self.sessions[at];
            match session.next(&self.run, &mut self.rng, which, &mut self.counts) {
                Progress::Block | Progress::Again => {}
                Progress::Left => return,
                Progress::End => {
                    if self.rng.below(2) == 0 {
                        session.drop_reader(&self.run, which, &mut self.counts);
                    }
                    return;
                }
                Progress::TooManyPins => {
                    session.release_kept(&self.run, &mut self.rng, &mut self.counts);
                    return;
                }
            }
        }
    }

    /// Picks a random stream of the session.
    fn some_reader(&mut self, at: usize) -> Option<usize> {
        let readers = self.sessions[at].readers.len() as u64;
        (readers > 0).then(|| self.rng.below(readers) as usize)
    }

    /// Makes a stream unpin the pages it has read ahead.
    fn let_go(&mut self, at: usize) {
        if let Some(which) = self.some_reader(at) {
            self.sessions[at].readers[which].let_go();
        }
    }

    /// Restarts a stream with another block list, discarding its read-ahead.
    fn reset(&mut self, at: usize) {
        if let Some(which) = self.some_reader(at) {
            self.sessions[at].readers[which].reset(&mut self.rng, &self.run.workload);
        }
    }

    /// Drops a stream, possibly with reads in flight.
    fn drop_one(&mut self, at: usize) {
        if let Some(which) = self.some_reader(at) {
            self.sessions[at].drop_reader(&self.run, which, &mut self.counts);
        }
    }

    /// Evicts random buffers, part of a relation, or every unpinned buffer.
    fn evict(&mut self, at: usize) {
        let session = &self.sessions[at];
        let pool = &self.run.pools[session.pool];
        match self.rng.below(3) {
            0 => {
                for _ in 0..4 {
                    pool.evict(self.rng.below(u64::from(pool.buffers()) + 2) as u32);
                }
            }
            1 => {
                let relation = session.some_relation(&self.run, &mut self.rng);
                let first = self.rng.below(u64::from(SHAPES[relation].blocks)) as BlockNo;
                pool.evict_relation(&self.run.relations[relation], first);
            }
            _ => {
                pool.evict_all();
            }
        }
    }

    /// Performs a step that waits for other clients to release their pins. If the session has pins
    /// or streams itself, it skips the step. Several clients may invalidate concurrently, but only
    /// one client at a time may resize a relation or wait for a cleanup lock.
    fn exclusive(&mut self, at: usize) {
        let Self { run, rng, sessions, counts, number, .. } = self;
        let session = &mut sessions[at];
        let what = rng.below(3);
        let exclusive = what != 1;
        if !session.is_idle() || (exclusive && run.exclusive.swap(true, Ordering::SeqCst)) {
            return;
        }
        match what {
            0 => {
                let kept = session.single(run, rng, *number, counts);
                if let Some((pin, relation, block)) = kept {
                    let check = super::page_check::PageCheck { run, relation, block };
                    match session.backend.cleanup_lock(pin.page()) {
                        Ok(page) => check.compare(&page[..]),
                        Err(_) => session.backend.session().clear_cancel(),
                    }
                }
            }
            1 => {
                let relation = session.some_relation(run, rng);
                let first = rng.below(u64::from(SHAPES[relation].blocks)) as BlockNo;
                if session.backend.invalidate(&run.relations[relation], first).is_err() {
                    session.backend.session().clear_cancel();
                }
                counts.resized += 1;
            }
            _ if session.pool == 0 => {
                resize(run, rng, session);
                counts.resized += 1;
            }
            _ => {}
        }
        if exclusive {
            run.exclusive.store(false, Ordering::SeqCst);
        }
    }

    /// Switches the instance's I/O method while I/O of the old method is in flight.
    fn switch(&mut self) {
        if self.run.workload.switches {
            let to = SIMULATED[self.rng.below(SIMULATED.len() as u64) as usize];
            self.run.aio.set_method(to);
        }
    }

    /// Cancels a random session, possibly another client's.
    fn cancel(&mut self) {
        let cancellers = self.run.cancellers.lock();
        // Pick one of the most recent sessions, because most of the older ones have ended.
        let back = 1 + self.rng.below(8) as usize;
        let at = cancellers.len().checked_sub(back);
        let canceller = at.and_then(|at| cancellers.get(at)).cloned();
        drop(cancellers);
        canceller.into_iter().for_each(|canceller| canceller.cancel());
    }

    /// Changes the policy for damaged pages. Reads in flight keep the policy they were issued with.
    fn policy(&mut self, at: usize) {
        let policy = Policy {
            zero_damaged_pages: self.rng.below(2) == 0,
            ignore_checksum_failure: self.rng.below(2) == 0,
        };
        self.sessions[at].backend.set_policy(policy);
    }

    /// Replaces a session that has reads in flight.
    fn another_session(&mut self, at: usize) {
        let session = self.sessions.swap_remove(at);
        self.count_dropped(&session);
        session.abandon(&self.run, &mut self.rng);
        self.open_sessions();
    }

    /// Counts the streams dropped along with their session.
    fn count_dropped(&mut self, session: &PoolSession) {
        let dropped = session.readers.iter().filter(|reader| !reader.ended).count();
        self.counts.dropped += dropped as u64;
    }

    /// Reads most streams to their ends. Each of these streams must eventually get its pins.
    fn finish(&mut self) {
        for at in 0..self.sessions.len() {
            let mut refusals = 0;
            while let Some(last) = self.sessions[at].readers.len().checked_sub(1) {
                let session = &mut self.sessions[at];
                if session.readers[last].ended || self.rng.below(40) == 0 {
                    session.drop_reader(&self.run, last, &mut self.counts);
                    continue;
                }
                match session.next(&self.run, &mut self.rng, last, &mut self.counts) {
                    Progress::Block | Progress::Again | Progress::Left | Progress::End => {}
                    Progress::TooManyPins => {
                        // The session's other streams hold the pins.
                        session.release_kept(&self.run, &mut self.rng, &mut self.counts);
                        session.readers[..last].iter_mut().for_each(Reader::let_go);
                        refusals += 1;
                        if refusals > REFUSALS_MAX {
                            let text = format!("refused again: {:?}", session.readers[last].stream);
                            self.run.fail(text);
                            return;
                        }
                    }
                }
            }
            self.sessions[at].release_kept(&self.run, &mut self.rng, &mut self.counts);
        }
    }

    /// Drops all sessions and adds up the counts.
    fn leave(mut self) {
        for session in std::mem::take(&mut self.sessions) {
            self.count_dropped(&session);
            session.abandon(&self.run, &mut self.rng);
        }
        self.run.counts.lock().add(&self.counts);
    }
}

/// Continues the client on another thread.
fn move_on(client: Client) {
    let run = Arc::clone(&client.run);
    match thread::spawn("moved client", move || client.run()) {
        Ok(thread) => run.threads.lock().push(thread),
        Err(error) => run.fail(error.to_string()),
    }
}

/// Truncates or extends the relation whose length varies. After truncation, no block past the new
/// end may remain in the pool.
fn resize(run: &Run, rng: &mut Rng, session: &mut PoolSession) {
    let (shape, name) = (SHAPES[MOVING], name_of(MOVING));
    let old = run.disk.length(&name).unwrap_or_default() as usize / BLOCK_SIZE;
    let old = old as BlockNo;
    let new = shape.floor + rng.below(u64::from(shape.blocks - shape.floor) + 1) as BlockNo;
    if new >= old {
        let bytes = run.model.bytes(MOVING, old, new);
        run.disk.overwrite(&name, old as usize * BLOCK_SIZE, &bytes);
        return;
    }
    run.disk.set_length(&name, new as usize * BLOCK_SIZE);
    let relation = &run.relations[MOVING];
    if session.backend.invalidate(relation, new).is_err() {
        session.backend.session().clear_cancel();
        return;
    }
    if let Some(block) = (new..old).find(|&block| run.pools[0].contains(relation, block)) {
        run.fail(format!("block {block} is in the pool after truncation to {new} blocks"));
    }
}

impl Run {
    /// Joins a parallel scan in progress, or starts a new one.
    fn parallel(&self, rng: &mut Rng) -> Arc<ParallelScan> {
        let mut scans = self.parallels.lock();
        match scans.last() {
            Some(scan) if rng.below(4) > 0 => Arc::clone(scan),
            _ => {
                let relation = if self.workload.crowd { 1 } else { rng.below(2) as usize };
                let scan = Arc::new(ParallelScan::new(relation));
                scans.push(Arc::clone(&scan));
                scan
            }
        }
    }
}
