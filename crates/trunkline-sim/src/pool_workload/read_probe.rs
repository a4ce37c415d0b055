//! Probe of a pool workload. It sees the result of every read and updates the expectations.
//!
//! ```text
//!   defined            on the issuer's thread: the issuer, the kind of request, the policy
//!   raw result         the fault of the plan, the contents of the pages, the expected failure, the pins
//!   COMPLETED_SHARED   on the completing thread: which thread that is; the meter counts
//! ```
//! We must update the expectations as soon as the raw result of a read arrives. At that point the
//! page isn't valid yet, so no session can look at it until the completion callback has run. The
//! transition to COMPLETED_IO would be too late, because another thread may complete the read
//! before the probe is called for that transition. If the method then retries the read, we remove
//! the expected failure again.

use super::expectations::{Expectations, Failure};
use super::meter::{Cell, CompletionPath, Kind, Meter, Waiters, read_fault};
use super::model::{Contents, Damage, Model, SHAPES};
use crate::fault::{Fault, FaultPlan};
use std::cell::Cell as Local;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{MethodKind, Observed, Probe, State, WaitRef};
use trunkline_engine::pool::{Policy, Pool, Strategy};
use trunkline_engine::storage::Relation;
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// The owner of the reads that a thread is currently issuing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Issuer {
    /// The client. We need its number because it can move to another thread.
    pub(super) client: u32,
    /// Number of the stream or single read, starting at 1; 0 means none.
    pub(super) owner: u64,
    pub(super) relation: usize,
    /// The policy for damaged pages when the read is issued.
    pub(super) policy: Policy,
    pub(super) kind: Kind,
    pub(super) strategy: Strategy,
}

impl Issuer {
    /// The issuer of a single read.
    pub(super) fn single(client: u32, owner: u64, relation: usize, policy: Policy) -> Self {
        let (kind, strategy) = (Kind::Single, Strategy::Normal);
        Self { client, owner, relation, policy, kind, strategy }
    }

    /// Makes this the issuer of this thread's reads.
    pub(super) fn set(self) {
        ISSUER.set(Some(self));
    }

    /// The issuer of this thread's reads.
    pub(super) fn current() -> Option<Self> {
        ISSUER.get()
    }
}

thread_local! {
    /// The issuer of this thread's reads; `None` on I/O workers, helpers and the device thread.
    static ISSUER: Local<Option<Issuer>> = const { Local::new(None) };
    /// The last I/O whose result this thread stored. It shows whether the thread completing an I/O
    /// also executed it.
    static EXECUTED: Local<Option<WaitRef>> = const { Local::new(None) };
}

/// A read in flight. The table is indexed by handle number.
#[derive(Debug, Clone)]
struct ReadRecord {
    /// Handle and generation, because the handle may have been reused since.
    io: WaitRef,
    issuer: Issuer,
    /// All faults that struck the read, including those of retries.
    faults: Vec<Fault>,
    /// The failure the issuer must receive for the last result.
    expected: Option<(BlockNo, Failure)>,
    /// The sessions that had the page pinned; `None` if no fault struck the read.
    waiters: Option<Waiters>,
}

/// The run's pools and relations. We need both to look up a page's pin count.
type Pools = ([Pool; 2], Vec<Relation>);

/// A run's probe.
pub(super) struct ReadProbe {
    plan: FaultPlan,
    model: Arc<Model>,
    expectations: Arc<Expectations>,
    pools: Mutex<Option<Pools>>,
    records: Mutex<Vec<Option<ReadRecord>>>,
    meter: Mutex<Meter>,
}

impl ReadProbe {
    pub(super) fn new(
        plan: &FaultPlan,
        model: &Arc<Model>,
        expectations: &Arc<Expectations>,
    ) -> Self {
        Self {
            plan: plan.clone(),
            model: Arc::clone(model),
            expectations: Arc::clone(expectations),
            pools: Mutex::new(None),
            records: Mutex::default(),
            meter: Mutex::default(),
        }
    }

    /// Enables the meter. The caller must call `end` afterwards. The pools own the instance, and
    /// the instance owns this probe, so storing the pools in the probe creates a reference cycle
    /// that only `end` breaks.
    pub(super) fn begin(&self, pools: [Pool; 2], relations: Vec<Relation>) {
        *self.pools.lock() = Some((pools, relations));
    }

    /// Drops the pools and returns the meter's counts.
    pub(super) fn end(&self) -> Meter {
        let pools = self.pools.lock().take();
        drop(pools);
        std::mem::take(&mut *self.meter.lock())
    }

    /// Runs `body` on a read's record, unless its handle was reused.
    fn with_record<R>(&self, io: WaitRef, body: impl FnOnce(&mut ReadRecord) -> R) -> Option<R> {
        let mut records = self.records.lock();
        let record = records.get_mut(io.io_id() as usize)?.as_mut()?;
        (record.io == io).then(|| body(record))
    }

    /// Starts a read's record, on its issuer's thread.
    fn defined(&self, io: &Observed) {
        let Some(issuer) = ISSUER.get() else { return };
        let mut records = self.records.lock();
        let at = io.io.io_id() as usize;
        if records.len() <= at {
            records.resize(at + 1, None);
        }
        let faults = Vec::new();
        let record = ReadRecord { io: io.io, issuer, faults, expected: None, waiters: None };
        records[at] = Some(record);
    }

    /// Handles a raw result, on the thread that executed the read.
    fn result(&self, io: &Observed, raw: i32, fault: Option<Fault>) {
        let added = self.with_record(io.io, |record| {
            record.faults.extend(fault.and_then(read_fault));
            record.clone()
        });
        let Some(mut record) = added else { return };
        let (first, blocks) =
            ((io.offset / BLOCK_SIZE as u64) as BlockNo, io.length / BLOCK_SIZE as u32);
        // The method has retried this read, so the previous result's failure won't reach the
        // issuer.
        if let Some((block, failure)) = record.expected.take() {
            self.expectations.receive(record.issuer.owner, block, failure);
        }
        let expected = self.update(record.issuer, (first, blocks), raw, fault);
        // The meter's cells cover only reads that were struck by a fault.
        let pins = if record.faults.is_empty() { None } else { self.pins(&record, first, blocks) };
        // The I/O has one pin, the issuer another, and each joining session adds one.
        let waiters = pins.map(|pins| match pins {
            0 | 1 => Waiters::None,
            2 => Waiters::Issuer,
            3 => Waiters::OneJoined,
            _ => Waiters::SeveralJoined,
        });
        self.with_record(io.io, |record| (record.waiters, record.expected) = (waiters, expected));
    }

    /// The highest pin count among a read's first 16 pages.
    fn pins(&self, record: &ReadRecord, first: BlockNo, blocks: u32) -> Option<u32> {
        let pools = self.pools.lock();
        let (pools, relations) = pools.as_ref()?;
        let relation = &relations[record.issuer.relation];
        let pool = &pools[SHAPES[record.issuer.relation].pool];
        let pins = (first..first + blocks.min(16)).map(|block| pool.pins_on(relation, block));
        pins.max().flatten()
    }

    /// Updates the expectations after a result. Returns the failure the issuer must receive.
    fn update(
        &self,
        issuer: Issuer,
        (first, blocks): (BlockNo, u32),
        raw: i32,
        fault: Option<Fault>,
    ) -> Option<(BlockNo, Failure)> {
        let Issuer { owner, relation, policy, .. } = issuer;
        let expected = match usize::try_from(raw) {
            Ok(count) => {
                let whole = count / BLOCK_SIZE;
                let mut contents = vec![Contents::Original; whole];
                let damage = self.damage(relation, policy, (first, blocks), fault);
                let damage = damage.filter(|(page, ..)| *page < whole);
                if let Some((page, found, _)) = damage {
                    contents[page] = found;
                }
                self.expectations.set_contents(relation, first, &contents);
                match damage {
                    _ if whole == 0 => Some((first, Failure::Short(count as u32))),
                    Some((page, _, failure)) => {
                        failure.map(|failure| (first + page as BlockNo, failure))
                    }
                    None => None,
                }
            }
            // If a read of several blocks fails, the engine reads those blocks again, one at a
            // time. Errors are reported only for these single-block reads.
            Err(_) => (blocks == 1).then_some((first, Failure::Errno(-raw))),
        };
        if let Some((block, failure)) = expected {
            self.expectations.expect(owner, block, failure);
        }
        expected
    }

    /// The damaged page, its expected contents, and the failure the issuer must receive.
    fn damage(
        &self,
        relation: usize,
        policy: Policy,
        (first, blocks): (BlockNo, u32),
        fault: Option<Fault>,
    ) -> Option<(usize, Contents, Option<Failure>)> {
        let Some(Fault::BitRot(at)) = fault else { return None };
        let at = at as usize % (blocks as usize * BLOCK_SIZE);
        let (page, at) = (at / BLOCK_SIZE, at % BLOCK_SIZE);
        let warning = |zeroed| Some(Failure::Warning { zeroed });
        let block = first + page as BlockNo;
        // Past end of file, there is no block to damage.
        if block >= SHAPES[relation].blocks {
            return None;
        }
        Some(match self.model.damaged(relation, block, at, policy) {
            Damage::Unnoticed => (page, Contents::Flipped(at), None),
            Damage::Ignored => (page, Contents::Flipped(at), warning(false)),
            Damage::Zeroed => (page, Contents::Zeros, warning(true)),
            Damage::Refused => (page, Contents::Original, Some(Failure::Corrupt)),
        })
    }

    /// Determines which thread completed a read, and counts the cell of each fault that struck it.
    fn completed(&self, io: &Observed) {
        let Some(record) = self.with_record(io.io, |record| record.clone()) else { return };
        let Some(waiters) = record.waiters else { return };
        let here = ISSUER.get().map(|here| here.client == record.issuer.client);
        let path = match (io.synchronous, io.method, here) {
            (true, _, Some(true)) => CompletionPath::Inline,
            (false, MethodKind::Custom, Some(true)) => CompletionPath::DeviceIssuer,
            (false, MethodKind::Custom, Some(false)) => CompletionPath::DeviceJoiner,
            (false, method, None) if EXECUTED.get() == Some(io.io) => match method {
                MethodKind::Custom => CompletionPath::DeviceReaper,
                _ => CompletionPath::Worker,
            },
            (false, MethodKind::Custom, None) => CompletionPath::DeviceHelper,
            _ => CompletionPath::Overtaken,
        };
        let Issuer { relation, kind, strategy, .. } = record.issuer;
        let local = SHAPES[relation].pool == 1;
        let mut meter = self.meter.lock();
        for fault in record.faults {
            meter.hit(Cell { fault, path, waiters, kind, local }, strategy);
        }
    }
}

impl Probe for ReadProbe {
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
