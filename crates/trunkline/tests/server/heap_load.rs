//! The part of the load of [`writer_process`](crate::writer_process) that is not ordinary changes of rows: multi-inserts
//! and row locks, and what vacuum does with the pages of a table.

use std::collections::BTreeSet;

use trunkline_aio::facade::Mutex;
use trunkline_aio::facade::random::Rng;
use trunkline_engine::heap_writer::{
    HeapSession, HeapWriteError, HeapWriter, PruneOptions, PruneReason, RowLockMode,
};
use trunkline_engine::storage::Relation;
use trunkline_engine::writable_cluster::{Durability, Transaction, WriteSession};
use trunkline_format::page::{LinePointerFlags, line_pointers};
use trunkline_format::{Tid, TupleBuilder};

/// The transactions that run.
#[derive(Default)]
pub(crate) struct Running(Mutex<BTreeSet<u32>>);

impl Running {
    /// Begins a transaction.
    pub(crate) fn begin(&self, session: &mut WriteSession) -> Transaction {
        let mut running = self.0.lock();
        let transaction = session.begin().expect("begun");
        running.insert(transaction.xid());
        transaction
    }

    /// A transaction has ended.
    pub(crate) fn end(&self, xid: u32) {
        self.0.lock().remove(&xid);
    }

    /// The oldest transaction that runs. There are no snapshots. The caller has a transaction.
    fn horizon(&self) -> u32 {
        *self.0.lock().first().expect("the caller's transaction")
    }
}

/// Inserts several rows, or locks one.
pub(crate) fn insert_or_lock(
    writer: &mut HeapWriter,
    heap: &mut HeapSession<'_>,
    rng: &mut Rng,
    rows: &mut Vec<Tid>,
) {
    if rows.is_empty() || rng.below(2) == 0 {
        let mut builders = vec![TupleBuilder::new(); rng.below(40) as usize];
        for row in &mut builders {
            row.int4(heap.xid as i32).text("m".repeat(rng.below(500) as usize));
        }
        let tuples: Vec<_> = builders.iter().map(TupleBuilder::tuple).collect();
        let written = writer.insert_many(heap, &tuples).expect("inserted");
        rows.extend(written.iter().map(|row| row.tid));
        return;
    }
    let modes =
        [RowLockMode::KeyShare, RowLockMode::Share, RowLockMode::NoKeyUpdate, RowLockMode::Update];
    let tid = rows[rng.below(rows.len() as u64) as usize];
    let mode = modes[rng.below(4) as usize];
    in_spite_of_ended(|ended| writer.lock(heap, tid, mode, ended));
}

/// Locks a row together with another transaction, which then ends.
pub(crate) fn lock_with_another(
    writer: &mut HeapWriter,
    session: &mut WriteSession,
    (transaction, running): (&Transaction, &Running),
    rng: &mut Rng,
    tid: Tid,
) {
    let other = running.begin(session);
    let xid = other.xid();
    let modes = [
        (RowLockMode::KeyShare, RowLockMode::KeyShare),
        (RowLockMode::KeyShare, RowLockMode::NoKeyUpdate),
        (RowLockMode::Share, RowLockMode::KeyShare),
        (RowLockMode::Share, RowLockMode::Share),
    ];
    let (theirs, ours) = modes[rng.below(4) as usize];
    let mut heap = session.heap(&other);
    // This transaction may hold the row in a conflicting mode, or have changed it.
    if writer.lock(&mut heap, tid, theirs, None).is_ok() {
        let mut heap = session.heap(transaction);
        writer.lock(&mut heap, tid, ours, None).expect("locked");
    }
    match rng.below(2) {
        0 => session.abort(other).expect("aborted"),
        _ => drop(session.commit(other, Durability::Soon).expect("committed")),
    }
    running.end(xid);
}

/// Changes a row whose xmax may be an earlier transaction. The table is this thread's own, so that has ended.
pub(crate) fn in_spite_of_ended<T>(
    mut change: impl FnMut(Option<u32>) -> Result<T, HeapWriteError>,
) -> T {
    match change(None) {
        Err(HeapWriteError::LockedBy { xmax, .. }) => change(Some(xmax)).expect("changed"),
        done => done.expect("changed"),
    }
}

/// Prunes, freezes or marks some pages, as vacuum does.
pub(crate) fn maintain(
    session: &mut WriteSession,
    (writer, relation): (&mut HeapWriter, &Relation),
    rng: &mut Rng,
    running: &Running,
) {
    let blocks = relation.blocks().expect("known");
    let transaction = running.begin(session);
    let xid = transaction.xid();
    for _ in 0..rng.below(4) {
        let block = rng.below(blocks.max(1).into()) as u32;
        if block >= blocks {
            break;
        }
        let horizon = running.horizon();
        match rng.below(5) {
            0 | 1 => {
                let reasons = [PruneReason::OnAccess, PruneReason::Vacuum];
                let options = PruneOptions {
                    reason: reasons[rng.below(2) as usize],
                    horizon,
                    freeze_limit: (rng.below(3) > 0).then_some(horizon),
                };
                let mut heap = session.heap(&transaction);
                writer.prune(&mut heap, block, &options).expect("pruned");
            }
            2 => {
                let dead = dead_items(session, relation, block);
                if !dead.is_empty() {
                    let mut heap = session.heap(&transaction);
                    writer.remove_dead(&mut heap, block, &dead).expect("removed");
                }
            }
            _ => {
                let mut heap = session.heap(&transaction);
                writer.set_visible(&mut heap, block, horizon).expect("marked");
            }
        }
    }
    session.commit(transaction, Durability::Soon).expect("committed");
    running.end(xid);
}

/// The dead line pointers of a page. There are no indexes that could name them.
fn dead_items(session: &mut WriteSession, relation: &Relation, block: u32) -> Vec<u16> {
    let pin = session.backend().read(relation, block).expect("valid");
    let page = session.backend().read_lock(pin.page()).expect("locked");
    let dead = line_pointers(&page);
    let dead = dead.filter(|(_, pointer)| pointer.flags == LinePointerFlags::Dead);
    dead.map(|(item, _)| item).collect()
}
