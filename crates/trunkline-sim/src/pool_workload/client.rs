//! A client of a pool workload. Each client has one or two sessions, and performs random steps that
//! together cover everything a session can do.
//!
//! ```text
//!   step: read a page | continue a stream | open one | unpin read-ahead | reset | drop one | keep pages
//!         | evict | invalidate, truncate, extend | cleanup lock | switch the method | cancel a session
//!         | another policy | another session | move to another thread | vanish
//! ```
//! The clients must not deadlock with each other, because that would be a bug in the workload
//! rather than in the engine. Before a client waits for another client to release something, it
//! must therefore release everything the other client could be waiting for. A client holds a
//! content lock only for as long as it takes to do some reads, and waits for a cleanup lock only if
//! it has no other pins.

use super::meter::Counts;
use super::model::{MOVING, SHAPES, name_of};
use super::pool_session::{CheckedPin, PoolSession, Progress};
use super::read_probe::Issuer;
use super::reader::Reader;
use super::run::{ClientState, Run};
use crate::clients::client_seed;
use crate::matrix::SIMULATED;
use crate::pause::pause;
use std::time::Duration;
use trunkline_aio::facade::atomic::Ordering;
use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{Arc, thread};
use trunkline_engine::pool::{BackendType, Policy};
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// Maximum number of open streams per session.
const READERS_MAX: usize = 3;

/// The number of times a stream may be refused a pin before the run fails. After each refusal the
/// session releases its other pins, so the stream should then be able to continue. If it is refused
/// more often than this, there is a bug.
const REFUSALS_MAX: u32 = 50;

/// A client with its random number generator. It can move to another thread.
pub(super) struct Client {
    state: ClientState,
    sessions: Vec<PoolSession>,
    steps: u32,
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
        let (seed, steps) = (run.workload.seed, run.workload.steps);
        let rng = Rng::new(client_seed(seed, number) ^ 0x706F_6F6C);
        let state = ClientState { run, number, rng, counts: Counts::default() };
        Self { state, sessions: Vec::new(), steps }
    }

    /// Runs all steps and then reads most streams to their ends, unless the client vanishes
    /// earlier.
    pub(super) fn run(mut self) {
        // Until its first stream or read, the client has no owner.
        Issuer::single(self.state.number, 0, 0, Policy::default()).set();
        self.open_sessions();
        while self.steps > 0 && !self.sessions.is_empty() {
            self.steps -= 1;
            match self.step() {
                Next::Step => {}
                Next::Moved => return move_on(self),
                Next::Vanish => {
                    self.state.counts.vanished += 1;
                    return self.leave();
                }
            }
        }
        self.finish();
        self.leave();
    }

    /// Opens a session with the shared pool. The first client also gets a session with the local
    /// pool.
    fn open_sessions(&mut self) {
        let pools = if self.state.number == 0 { &[0, 1][..] } else { &[0] };
        for &pool in pools {
            if !self.sessions.iter().any(|session| session.pool == pool)
                && let Ok(backend) = self.state.run.pools[pool].backend(BackendType::Client)
            {
                self.sessions.push(PoolSession::new(&self.state, pool, backend));
            }
        }
    }

    /// Performs one random step with one of the sessions. In a fickle workload, more of the steps
    /// abandon reads.
    fn step(&mut self) -> Next {
        // The client with the local pool mostly uses its local session.
        let at = match self.sessions.iter().position(|session| session.pool == 1) {
            Some(local) if self.state.rng.below(6) > 0 => local,
            _ => self.state.rng.below(self.sessions.len() as u64) as usize,
        };
        let kinds = if self.state.run.workload.fickle { 48 } else { 32 };
        match self.state.rng.below(kinds) {
            0..=4 => self.single(at),
            5..=14 => self.run_on(at),
            15..=17 => self.open(at),
            18 => self.let_go(at),
            19 => self.reset(at),
            20 => self.drop_one(at),
            21 => self.sessions[at].release_kept(&mut self.state),
            22 | 23 => self.evict(at),
            24 => self.exclusive(at),
            25 => self.switch(),
            26 => self.cancel(),
            27 => self.policy(at),
            28 => self.another_session(at),
            29 => pause(Duration::from_micros(self.state.rng.below(300))),
            30 => return Next::Moved,
            31 if self.state.rng.below(3) == 0 => return Next::Vanish,
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
        let Self { state, sessions, .. } = self;
        let session = &mut sessions[at];
        if state.run.workload.fickle {
            session.poll_streams(state);
        }
        if state.run.workload.crowd && state.rng.below(2) == 0 {
            // Evict the crowd's pages, so that they must be read again.
            state.run.pools[session.pool].evict_all();
        }
        if let Some(page) = session.single(state)
            && state.rng.below(3) == 0
        {
            session.keep(page);
        }
    }

    /// Opens a stream, unless there are too many, and then reads from a random stream.
    fn open(&mut self, at: usize) {
        let Self { state, sessions, .. } = self;
        let session = &mut sessions[at];
        if session.readers.len() < READERS_MAX {
            let parallel = match state.rng.below(3) {
                0 if session.pool == 0 => Some(state.run.parallel(&mut state.rng)),
                _ => None,
            };
            let relation = match &parallel {
                Some(parallel) => parallel.relation,
                None => session.some_relation(state),
            };
            let reader = Reader::open(state, &session.backend, relation, parallel);
            session.readers.push(reader);
            if state.run.workload.crowd && state.rng.below(2) == 0 {
                state.run.pools[session.pool].evict_all();
            }
        }
        self.run_on(at);
    }

    /// Reads up to 24 pages from a stream.
    fn run_on(&mut self, at: usize) {
        let Some(which) = self.some_reader(at) else { return };
        let Self { state, sessions, .. } = self;
        let session = &mut sessions[at];
        let pages = 1 + state.rng.below(24);
        let slow = state.run.workload.crowd && state.run.workload.wide;
        for _ in 0..pages {
            if slow && state.rng.below(4) == 0 {
                // Other clients may join the reads in flight.
                pause(Duration::from_micros(state.rng.below(300)));
            }
            match session.next(state, which) {
                Progress::Block | Progress::Again => {}
                Progress::Left => return,
                Progress::End => {
                    if state.rng.below(2) == 0 {
                        session.drop_reader(state, which);
                    }
                    return;
                }
                Progress::TooManyPins => return session.release_kept(state),
            }
        }
    }

    /// Picks a random stream of the session.
    fn some_reader(&mut self, at: usize) -> Option<usize> {
        let readers = self.sessions[at].readers.len() as u64;
        (readers > 0).then(|| self.state.rng.below(readers) as usize)
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
            self.sessions[at].readers[which].reset(&mut self.state);
        }
    }

    /// Drops a stream, possibly with reads in flight.
    fn drop_one(&mut self, at: usize) {
        if let Some(which) = self.some_reader(at) {
            self.sessions[at].drop_reader(&mut self.state, which);
        }
    }

    /// Evicts random buffers, part of a relation, or every unpinned buffer.
    fn evict(&mut self, at: usize) {
        let Self { state, sessions, .. } = self;
        let session = &sessions[at];
        let run = Arc::clone(&state.run);
        let pool = &run.pools[session.pool];
        match state.rng.below(3) {
            0 => {
                for _ in 0..4 {
                    pool.evict(state.rng.below(u64::from(pool.buffers()) + 2) as u32);
                }
            }
            1 => {
                let relation = session.some_relation(state);
                let first = state.rng.below(u64::from(SHAPES[relation].blocks)) as BlockNo;
                pool.evict_relation(&run.relations[relation], first);
            }
            _ => {
                pool.evict_all();
            }
        }
    }

    /// Performs a step that has to wait until other clients release their pins. The step is skipped
    /// if the session itself has any pins or streams. Several clients may invalidate at the same
    /// time, but only one client at a time may resize a relation or wait for a cleanup lock.
    fn exclusive(&mut self, at: usize) {
        let Self { state, sessions, .. } = self;
        let session = &mut sessions[at];
        let what = state.rng.below(3);
        let exclusive = what != 1;
        if !session.is_idle() || (exclusive && state.run.exclusive.swap(true, Ordering::SeqCst)) {
            return;
        }
        match what {
            0 => {
                if let Some(CheckedPin { pin, check }) = session.single(state) {
                    match session.backend.cleanup_lock(pin.page()) {
                        Ok(page) => check.require(&state.run, &page[..]),
                        Err(_) => session.backend.session().clear_cancel(),
                    }
                }
            }
            1 => {
                let relation = session.some_relation(state);
                let first = state.rng.below(u64::from(SHAPES[relation].blocks)) as BlockNo;
                if session.backend.invalidate(&state.run.relations[relation], first).is_err() {
                    session.backend.session().clear_cancel();
                }
                state.counts.resized += 1;
            }
            _ if session.pool == 0 => {
                resize(state, session);
                state.counts.resized += 1;
            }
            _ => {}
        }
        if exclusive {
            state.run.exclusive.store(false, Ordering::SeqCst);
        }
    }

    /// Switches the instance's I/O method while I/O of the old method is in flight.
    fn switch(&mut self) {
        let ClientState { run, rng, .. } = &mut self.state;
        if run.workload.switches {
            let to = SIMULATED[rng.below(SIMULATED.len() as u64) as usize];
            run.aio.set_method(to);
        }
    }

    /// Cancels a random session, possibly another client's.
    fn cancel(&mut self) {
        let cancellers = self.state.run.cancellers.lock();
        // Pick one of the most recent sessions, because most of the older ones have ended.
        let back = 1 + self.state.rng.below(8) as usize;
        let at = cancellers.len().checked_sub(back);
        let canceller = at.and_then(|at| cancellers.get(at)).cloned();
        drop(cancellers);
        canceller.into_iter().for_each(|canceller| canceller.cancel());
    }

    /// Changes the policy for damaged pages. Reads in flight keep the policy they were issued with.
    fn policy(&mut self, at: usize) {
        let policy = Policy {
            zero_damaged_pages: self.state.rng.below(2) == 0,
            ignore_checksum_failure: self.state.rng.below(2) == 0,
        };
        self.sessions[at].backend.set_policy(policy);
    }

    /// Replaces a session that has reads in flight.
    fn another_session(&mut self, at: usize) {
        self.sessions.swap_remove(at).abandon(&mut self.state);
        self.open_sessions();
    }

    /// Reads most streams to their ends. Each of these streams must eventually get its pins.
    fn finish(&mut self) {
        let Self { state, sessions, .. } = self;
        for session in sessions {
            let mut refusals = 0;
            while let Some(last) = session.readers.len().checked_sub(1) {
                if session.readers[last].ended || state.rng.below(40) == 0 {
                    session.drop_reader(state, last);
                    continue;
                }
                match session.next(state, last) {
                    Progress::Block | Progress::Again | Progress::Left | Progress::End => {}
                    Progress::TooManyPins => {
                        // The session's other streams hold the pins.
                        session.release_kept(state);
                        session.readers[..last].iter_mut().for_each(Reader::let_go);
                        refusals += 1;
                        if refusals > REFUSALS_MAX {
                            let text = format!("refused again: {:?}", session.readers[last].stream);
                            state.run.fail(text);
                            return;
                        }
                    }
                }
            }
            session.release_kept(state);
        }
    }

    /// Drops all sessions and adds up the counts.
    fn leave(mut self) {
        for session in std::mem::take(&mut self.sessions) {
            session.abandon(&mut self.state);
        }
        self.state.run.counts.lock().add(&self.state.counts);
    }
}

/// Continues the client on another thread.
fn move_on(client: Client) {
    let run = Arc::clone(&client.state.run);
    match thread::spawn("moved client", move || client.run()) {
        Ok(thread) => run.threads.lock().push(thread),
        Err(error) => run.fail(error.to_string()),
    }
}

/// Truncates or extends the relation whose length varies. After truncation, no block past the new
/// end may remain in the pool.
fn resize(client: &mut ClientState, session: &mut PoolSession) {
    let ClientState { run, rng, .. } = client;
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
