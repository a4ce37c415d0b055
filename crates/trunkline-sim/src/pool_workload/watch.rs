//! The probe of the pool's workload: sees every read's results, and keeps the books by them.
//!
//! ```text
//!   defined            on the issuer's thread: for whom, for what, by which policy
//!   raw result         which fault of the plan that was, what the pages will show, what is due to
//!                      the issuer, who has the page pinned
//!   COMPLETED_SHARED   on the completer's thread: who that is; the meter counts
//! ```
//! A page under a read is neither valid nor anybody else's to read, so nobody can look at a block
//! between the entry in the books and the end of the callback. The entry is made with the result,
//! not in COMPLETED_IO: there another thread may have completed the read before the probe is told.
//! If the read is tried again, what was due is crossed out.

use super::ledger::{Failure, Ledger};
use super::meter::{Cell, Concerned, Kind, Menu, Meter, Site};
use super::truth::{Damage, SHAPES, Shown, Truth};
use crate::fault::{Fault, FaultPlan};
use std::cell::Cell as Local;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{MethodKind, Observed, Probe, State, WaitRef};
use trunkline_engine::pool::{Policy, Pool, Strategy};
use trunkline_engine::storage::Relation;
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// For whom a thread works.
#[derive(Debug, Clone, Copy)]
pub(super) struct Issuer {
    /// The task; its thread may change.
    pub(super) task: u32,
    /// Number of the stream or single read, from 1.
    pub(super) owner: u64,
    pub(super) relation: usize,
    pub(super) policy: Policy,
    pub(super) kind: Kind,
    pub(super) strategy: Strategy,
}

thread_local! {
    static HERE: Local<Option<Issuer>> = const { Local::new(None) };
    static EXECUTED: Local<Option<WaitRef>> = const { Local::new(None) };
}

/// Says for whom this thread works from now on.
pub(super) fn work_for(issuer: Issuer) {
    HERE.set(Some(issuer));
}

/// One read under way.
#[derive(Debug, Clone)]
struct Note {
    io: WaitRef,
    issuer: Issuer,
    faults: Vec<Menu>,
    /// What is due for the last result.
    due: Option<(BlockNo, Failure)>,
    concerned: Option<Concerned>,
}

/// Pools and relations, to ask who has a page pinned.
type Pools = ([Pool; 2], Vec<Relation>);

/// See the module.
pub(super) struct Watch {
    plan: FaultPlan,
    truth: Arc<Truth>,
    ledger: Arc<Ledger>,
    pools: Mutex<Option<Pools>>,
    notes: Mutex<Vec<Option<Note>>>,
    meter: Mutex<Meter>,
}

impl Watch {
    pub(super) fn new(plan: &FaultPlan, truth: &Arc<Truth>, ledger: &Arc<Ledger>) -> Self {
        Self {
            plan: plan.clone(),
            truth: Arc::clone(truth),
            ledger: Arc::clone(ledger),
            pools: Mutex::new(None),
            notes: Mutex::default(),
            meter: Mutex::default(),
        }
    }

    /// From now on the meter can count. To be released: pools hold the instance, which holds this.
    pub(super) fn begin(&self, pools: [Pool; 2], relations: Vec<Relation>) {
        *self.pools.lock() = Some((pools, relations));
    }

    /// Lets go of the pools; what the meter has counted.
    pub(super) fn end(&self) -> Meter {
        let pools = self.pools.lock().take();
        drop(pools);
        std::mem::take(&mut *self.meter.lock())
    }

    fn with_note<R>(&self, io: WaitRef, body: impl FnOnce(&mut Note) -> R) -> Option<R> {
        let mut notes = self.notes.lock();
        let note = notes.get_mut(io.io_id() as usize)?.as_mut()?;
        (note.io == io).then(|| body(note))
    }

    fn defined(&self, io: &Observed) {
        let Some(issuer) = HERE.get() else { return };
        let mut notes = self.notes.lock();
        let at = io.io.io_id() as usize;
        if notes.len() <= at {
            notes.resize(at + 1, None);
        }
        let faults = Vec::new();
        let note = Note { io: io.io, issuer, faults, due: None, concerned: None };
        notes[at] = Some(note);
    }

    fn result(&self, io: &Observed, raw: i32, fault: Option<Fault>) {
        let added = self.with_note(io.io, |note| {
            note.faults.extend(fault.and_then(menu));
            note.clone()
        });
        let Some(mut note) = added else { return };
        let (first, blocks) =
            ((io.offset / BLOCK_SIZE as u64) as BlockNo, io.length / BLOCK_SIZE as u32);
        if let Some((block, failure)) = note.due.take() {
            self.ledger.told(note.issuer.owner, block, failure);
        }
        let due = self.keep_books(note.issuer, (first, blocks), raw, fault);
        let pins = if note.faults.is_empty() { None } else { self.pins(&note, first, blocks) };
        // One of them is the read's own.
        let concerned = pins.map(|pins| match pins {
            0 | 1 => Concerned::Nobody,
            2 => Concerned::Issuer,
            3 => Concerned::OneJoined,
            _ => Concerned::SeveralJoined,
        });
        self.with_note(io.io, |note| (note.concerned, note.due) = (concerned, due));
    }

    fn pins(&self, note: &Note, first: BlockNo, blocks: u32) -> Option<u32> {
        let pools = self.pools.lock();
        let (pools, relations) = pools.as_ref()?;
        let relation = &relations[note.issuer.relation];
        let pool = &pools[SHAPES[note.issuer.relation].pool];
        let pins = (first..first + blocks.min(16)).map(|block| pool.pins_on(relation, block));
        pins.max().flatten()
    }

    /// Enters what a result means; what is due to the issuer.
    fn keep_books(
        &self,
        issuer: Issuer,
        (first, blocks): (BlockNo, u32),
        raw: i32,
        fault: Option<Fault>,
    ) -> Option<(BlockNo, Failure)> {
        let Issuer { owner, relation, policy, .. } = issuer;
        let due = match usize::try_from(raw) {
            Ok(count) => {
                let whole = count / BLOCK_SIZE;
                let mut shown = vec![Shown::Right; whole];
                let damage = self.damage(relation, policy, (first, blocks), fault);
                let damage = damage.filter(|(page, ..)| *page < whole);
                if let Some((page, shows, _)) = damage {
                    shown[page] = shows;
                }
                self.ledger.show(relation, first, &shown);
                match damage {
                    _ if whole == 0 => Some((first, Failure::Short(count as u32))),
                    Some((page, _, failure)) => {
                        failure.map(|failure| (first + page as BlockNo, failure))
                    }
                    None => None,
                }
            }
            // Blocks of a combined read are read again, one by one.
            Err(_) => (blocks == 1).then_some((first, Failure::Errno(-raw))),
        };
        if let Some((block, failure)) = due {
            self.ledger.owe(owner, block, failure);
        }
        due
    }

    /// Which page of a read a wrong bit is in, what it will show, and what the issuer is told.
    fn damage(
        &self,
        relation: usize,
        policy: Policy,
        (first, blocks): (BlockNo, u32),
        fault: Option<Fault>,
    ) -> Option<(usize, Shown, Option<Failure>)> {
        let Some(Fault::BitRot(at)) = fault else { return None };
        let at = at as usize % (blocks as usize * BLOCK_SIZE);
        let (page, at) = (at / BLOCK_SIZE, at % BLOCK_SIZE);
        let warning = |zeroed| Some(Failure::Warning { zeroed });
        let block = first + page as BlockNo;
        // Beyond the end there is nothing that could be damaged.
        if block >= SHAPES[relation].blocks {
            return None;
        }
        Some(match self.truth.damaged(relation, block, at, policy) {
            Damage::Unnoticed => (page, Shown::Flipped(at), None),
            Damage::Ignored => (page, Shown::Flipped(at), warning(false)),
            Damage::Zeroed => (page, Shown::Zeros, warning(true)),
            Damage::Refused => (page, Shown::Right, Some(Failure::Corrupt)),
        })
    }

    fn completed(&self, io: &Observed) {
        let Some(note) = self.with_note(io.io, |note| note.clone()) else { return };
        let Some(concerned) = note.concerned else { return };
        let here = HERE.get().map(|here| here.task == note.issuer.task);
        let site = match (io.synchronous, io.method, here) {
            (true, _, Some(true)) => Site::Inline,
            (false, MethodKind::Custom, Some(true)) => Site::DeviceIssuer,
            (false, MethodKind::Custom, Some(false)) => Site::DeviceJoiner,
            (false, method, None) if EXECUTED.get() == Some(io.io) => match method {
                MethodKind::Custom => Site::DeviceReaper,
                _ => Site::Worker,
            },
            (false, MethodKind::Custom, None) => Site::DeviceHelper,
            _ => Site::Overtaken,
        };
        let Issuer { relation, kind, strategy, .. } = note.issuer;
        let local = SHAPES[relation].pool == 1;
        let mut meter = self.meter.lock();
        for fault in note.faults {
            meter.hit(Cell { fault, site, concerned, kind, local }, strategy);
        }
    }
}

impl Probe for Watch {
    fn transition(&self, io: &Observed, _from: State, to: State) {
        match to {
            State::Defined => self.defined(io),
            State::CompletedShared => self.completed(io),
            _ => {}
        }
    }

    fn raw_result(&self, io: &Observed, raw: i32) -> i32 {
        EXECUTED.set(Some(io.io));
        let fault = self.plan.take_strike(io.file_id, io.offset);
        self.result(io, raw, fault);
        raw
    }
}

fn menu(fault: Fault) -> Option<Menu> {
    match fault {
        Fault::Short(_) => Some(Menu::Short),
        Fault::EndOfFile => Some(Menu::EndOfFile),
        Fault::Interrupted => Some(Menu::Interrupted),
        Fault::Again => Some(Menu::Again),
        Fault::Error(_) => Some(Menu::Error),
        Fault::BitRot(_) => Some(Menu::BitRot),
        Fault::Delay(_) => Some(Menu::Delay),
        Fault::Reorder => Some(Menu::Reorder),
        Fault::LostWrite | Fault::Misdirected(_) | Fault::TornWrite(_) => None,
    }
}

/// For whom this thread works.
pub(super) fn here() -> Option<Issuer> {
    HERE.get()
}
