//! One task of the pool's workload: a session, or two, that do all that sessions may do, at random.
//!
//! ```text
//!   step: read a page | run a stream on | open one | let go | reset | drop one | keep pages
//!         | evict | invalidate, cut off, extend | cleanup lock | switch the method
//!         | cancel somebody | another policy | another session | go on in another thread | vanish
//! ```
//! Nothing is held while a task waits for something that another task might wait to give: locks
//! are held across reads at most, and only who holds nothing waits to be alone with a page.

use super::desk::{Came, Counts, Desk};
use super::meter::Kind;
use super::reader::{Parallel, Reader};
use super::truth::{MOVING, SHAPES};
use super::watch::{self, Issuer};
use super::{Scene, name_of};
use crate::matrix::SIMULATED;
use crate::pause::pause;
use std::time::Duration;
use trunkline_aio::sync::atomic::Ordering;
use trunkline_aio::sync::random::Rng;
use trunkline_aio::sync::{Arc, thread};
use trunkline_engine::pool::{BackendType, Policy, Strategy};
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// Streams of a desk at the same time.
const READERS_MAX: usize = 3;

/// Attempts to run a stream to its end against refusals.
const REFUSALS_MAX: u32 = 50;

/// See the module.
pub(super) struct Task {
    scene: Arc<Scene>,
    number: u32,
    rng: Rng,
    desks: Vec<Desk>,
    steps: u32,
    counts: Counts,
}

enum Next {
    Step,
    Moved,
    Vanish,
}

impl Task {
    pub(super) fn new(scene: Arc<Scene>, number: u32) -> Self {
        let seed = scene.workload.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(number));
        let steps = scene.workload.steps;
        let rng = Rng::new(seed ^ 0x706F_6F6C);
        Self { scene, number, rng, desks: Vec::new(), steps, counts: Counts::default() }
    }

    /// Works until it has done all its steps, or vanishes.
    pub(super) fn run(mut self) {
        self.idle_here();
        self.sit_down();
        while self.steps > 0 && !self.desks.is_empty() {
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

    /// The thread works for this task, though for no stream of it.
    fn idle_here(&self) {
        let (kind, strategy) = (Kind::Single, Strategy::Normal);
        let policy = Policy::default();
        watch::work_for(Issuer {
            task: self.number,
            owner: 0,
            relation: 0,
            policy,
            kind,
            strategy,
        });
    }

    /// Everybody has a place at the shared pool; the first one has the local pool.
    fn sit_down(&mut self) {
        let pools = if self.number == 0 { &[0, 1][..] } else { &[0] };
        for &pool in pools {
            if !self.desks.iter().any(|desk| desk.pool == pool)
                && let Ok(backend) = self.scene.pools[pool].backend(BackendType::Client)
            {
                self.desks.push(Desk::new(&self.scene, pool, backend));
            }
        }
    }

    fn step(&mut self) -> Next {
        // Who has the local pool is mostly there.
        let at = match self.desks.iter().position(|desk| desk.pool == 1) {
            Some(local) if self.rng.below(6) > 0 => local,
            _ => self.rng.below(self.desks.len() as u64) as usize,
        };
        let kinds = if self.scene.workload.fickle { 48 } else { 32 };
        match self.rng.below(kinds) {
            0..=4 => self.single(at),
            5..=14 => self.run_on(at),
            15..=17 => self.open(at),
            18 => self.let_go(at),
            19 => self.reset(at),
            20 => self.drop_one(at),
            21 => {
                let desk = &mut self.desks[at];
                desk.let_kept_go(&self.scene, &mut self.rng, &mut self.counts);
            }
            22 | 23 => self.evict(at),
            24 => self.alone(at),
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

    fn single(&mut self, at: usize) {
        let Self { scene, rng, desks, counts, number, .. } = self;
        if scene.workload.fickle {
            desks[at].nudge(scene, rng, counts);
        }
        if scene.workload.crowd && rng.below(2) == 0 {
            // What all want has to be read again.
            scene.pools[desks[at].pool].evict_all();
        }
        let read = desks[at].single(scene, rng, *number, counts);
        if let Some(page) = read
            && rng.below(3) == 0
        {
            desks[at].keep(page);
        }
    }

    fn open(&mut self, at: usize) {
        let Self { scene, rng, desks, number, .. } = self;
        let desk = &mut desks[at];
        if desk.readers.len() < READERS_MAX {
            let parallel = match rng.below(3) {
                0 if desk.pool == 0 => Some(scene.parallel(rng)),
                _ => None,
            };
            let relation = match &parallel {
                Some(parallel) => parallel.relation,
                None => desk.some_relation(scene, rng),
            };
            let reader = Reader::open(scene, rng, *number, &desk.backend, relation, parallel);
            desk.readers.push(reader);
            if scene.workload.crowd && rng.below(2) == 0 {
                scene.pools[desk.pool].evict_all();
            }
        }
        self.run_on(at);
    }

    /// Takes some pages from some stream.
    fn run_on(&mut self, at: usize) {
        if self.desks[at].readers.is_empty() {
            return;
        }
        let which = self.rng.below(self.desks[at].readers.len() as u64) as usize;
        let pages = 1 + self.rng.below(24);
        let slow = self.scene.workload.crowd && self.scene.workload.wide;
        for _ in 0..pages {
            if slow && self.rng.below(4) == 0 {
                // What it has under way may be wanted by others meanwhile.
                pause(Duration::from_micros(self.rng.below(300)));
            }
            let desk = &mut self.desks[at];
            match desk.next(&self.scene, &mut self.rng, which, &mut self.counts) {
                Came::Block | Came::Again => {}
                Came::Left => return,
                Came::End => {
                    if self.rng.below(2) == 0 {
                        desk.drop_reader(&self.scene, which, &mut self.counts);
                    }
                    return;
                }
                Came::TooManyPins => {
                    desk.let_kept_go(&self.scene, &mut self.rng, &mut self.counts);
                    return;
                }
            }
        }
    }

    fn some_reader(&mut self, at: usize) -> Option<usize> {
        let readers = self.desks[at].readers.len() as u64;
        (readers > 0).then(|| self.rng.below(readers) as usize)
    }

    fn let_go(&mut self, at: usize) {
        if let Some(which) = self.some_reader(at) {
            self.desks[at].readers[which].let_go();
        }
    }

    fn reset(&mut self, at: usize) {
        if let Some(which) = self.some_reader(at) {
            self.desks[at].readers[which].reset(&mut self.rng, &self.scene.workload);
        }
    }

    fn drop_one(&mut self, at: usize) {
        if let Some(which) = self.some_reader(at) {
            self.desks[at].drop_reader(&self.scene, which, &mut self.counts);
        }
    }

    fn evict(&mut self, at: usize) {
        let desk = &self.desks[at];
        let pool = &self.scene.pools[desk.pool];
        match self.rng.below(3) {
            0 => {
                for _ in 0..4 {
                    pool.evict(self.rng.below(u64::from(pool.buffers()) + 2) as u32);
                }
            }
            1 => {
                let relation = desk.some_relation(&self.scene, &mut self.rng);
                let first = self.rng.below(u64::from(SHAPES[relation].blocks)) as BlockNo;
                pool.evict_relation(&self.scene.relations[relation], first);
            }
            _ => {
                pool.evict_all();
            }
        }
    }

    /// What waits for the pins of others: only for who holds nothing. Forgetting may be done by
    /// several at once; to be alone with a page, and to cut off, by one.
    fn alone(&mut self, at: usize) {
        let Self { scene, rng, desks, counts, number, .. } = self;
        let desk = &mut desks[at];
        let what = rng.below(3);
        let by_one = what != 1;
        if !desk.is_idle() || (by_one && scene.alone.swap(true, Ordering::SeqCst)) {
            return;
        }
        match what {
            0 => {
                let kept = desk.single(scene, rng, *number, counts);
                if let Some((pin, relation, block)) = kept {
                    let sight = super::look::Sight { scene, relation, block };
                    match desk.backend.cleanup_lock(pin.page()) {
                        Ok(page) => sight.judge(&page[..]),
                        Err(_) => desk.backend.session().clear_cancel(),
                    }
                }
            }
            1 => {
                let relation = desk.some_relation(scene, rng);
                let first = rng.below(u64::from(SHAPES[relation].blocks)) as BlockNo;
                if desk.backend.invalidate(&scene.relations[relation], first).is_err() {
                    desk.backend.session().clear_cancel();
                }
                counts.resized += 1;
            }
            _ if desk.pool == 0 => {
                resize(scene, rng, desk);
                counts.resized += 1;
            }
            _ => {}
        }
        if by_one {
            scene.alone.store(false, Ordering::SeqCst);
        }
    }

    fn switch(&mut self) {
        if self.scene.workload.switches {
            let to = SIMULATED[self.rng.below(SIMULATED.len() as u64) as usize];
            self.scene.aio.set_method(to);
        }
    }

    fn cancel(&mut self) {
        let cancellers = self.scene.cancellers.lock();
        // One of the last sessions: most of the others have gone.
        let back = 1 + self.rng.below(8) as usize;
        let at = cancellers.len().checked_sub(back);
        let canceller = at.and_then(|at| cancellers.get(at)).cloned();
        drop(cancellers);
        canceller.into_iter().for_each(|canceller| canceller.cancel());
    }

    fn policy(&mut self, at: usize) {
        let policy = Policy {
            zero_damaged_pages: self.rng.below(2) == 0,
            ignore_checksum_failure: self.rng.below(2) == 0,
        };
        self.desks[at].backend.set_policy(policy);
    }

    fn another_session(&mut self, at: usize) {
        let desk = self.desks.swap_remove(at);
        self.count_dropped(&desk);
        desk.abandon(&self.scene, &mut self.rng);
        self.sit_down();
    }

    fn count_dropped(&mut self, desk: &Desk) {
        let dropped = desk.readers.iter().filter(|reader| !reader.ended).count();
        self.counts.dropped += dropped as u64;
    }

    /// Runs some streams to their ends.
    fn finish(&mut self) {
        for at in 0..self.desks.len() {
            let mut refusals = 0;
            while let Some(last) = self.desks[at].readers.len().checked_sub(1) {
                let desk = &mut self.desks[at];
                if desk.readers[last].ended || self.rng.below(40) == 0 {
                    desk.drop_reader(&self.scene, last, &mut self.counts);
                    continue;
                }
                match desk.next(&self.scene, &mut self.rng, last, &mut self.counts) {
                    Came::Block | Came::Again | Came::Left | Came::End => {}
                    Came::TooManyPins => {
                        // The other streams, which stand still meanwhile, have the pins.
                        desk.let_kept_go(&self.scene, &mut self.rng, &mut self.counts);
                        desk.readers[..last].iter_mut().for_each(Reader::let_go);
                        refusals += 1;
                        if refusals > REFUSALS_MAX {
                            let text = format!("refused again: {:?}", desk.readers[last].stream);
                            self.scene.find(text);
                            return;
                        }
                    }
                }
            }
            self.desks[at].let_kept_go(&self.scene, &mut self.rng, &mut self.counts);
        }
    }

    fn leave(mut self) {
        for desk in std::mem::take(&mut self.desks) {
            self.count_dropped(&desk);
            desk.abandon(&self.scene, &mut self.rng);
        }
        self.scene.counts.lock().add(&self.counts);
    }
}

/// Goes on in another thread, with everything.
fn move_on(task: Task) {
    let scene = Arc::clone(&task.scene);
    match thread::spawn("task moved", move || task.run()) {
        Ok(thread) => scene.threads.lock().push(thread),
        Err(error) => scene.find(error.to_string()),
    }
}

/// Moves the end of the relation whose end moves.
fn resize(scene: &Scene, rng: &mut Rng, desk: &mut Desk) {
    let (shape, name) = (SHAPES[MOVING], name_of(MOVING));
    let old = scene.disk.length(&name).unwrap_or_default() as usize / BLOCK_SIZE;
    let old = old as BlockNo;
    let new = shape.floor + rng.below(u64::from(shape.blocks - shape.floor) + 1) as BlockNo;
    if new >= old {
        let bytes = scene.truth.bytes(MOVING, old, new);
        scene.disk.overwrite(&name, old as usize * BLOCK_SIZE, &bytes);
        return;
    }
    scene.disk.set_length(&name, new as usize * BLOCK_SIZE);
    let relation = &scene.relations[MOVING];
    if desk.backend.invalidate(relation, new).is_err() {
        desk.backend.session().clear_cancel();
        return;
    }
    if let Some(block) = (new..old).find(|&block| scene.pools[0].contains(relation, block)) {
        scene.find(format!("block {block} is in the pool, {new} blocks are left"));
    }
}

impl Scene {
    /// A parallel scan that is under way, or a new one.
    fn parallel(&self, rng: &mut Rng) -> Arc<Parallel> {
        let mut scans = self.parallels.lock();
        match scans.last() {
            Some(scan) if rng.below(4) > 0 => Arc::clone(scan),
            _ => {
                let relation = if self.workload.crowd { 1 } else { rng.below(2) as usize };
                let scan = Arc::new(Parallel::new(relation));
                scans.push(Arc::clone(&scan));
                scan
            }
        }
    }
}
