//! Where the pages of large relations are, and how long reads of their storage take: what estimates use
//! instead of `seq_page_cost` and `random_page_cost` (decision 0041).
//!
//! ```text
//!   every large relation      64 of its blocks: in the pool, in the page cache, or in neither?
//!   hardly anything cached    how long do reads take? measured once in ten minutes for a tablespace
//! ```
//! Small relations are read in no time, however that is done.

use std::future::poll_fn;

use trunkline_aio::facade::hash::Map;
use trunkline_engine::Engine;
use trunkline_engine::pool::ResidencyEstimate;
use trunkline_engine::read_stream::StreamOptions;
use trunkline_engine::read_timer::{ReadTimer, TIMED_BLOCKS_MIN};
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::Relation;
use trunkline_format::{BlockNo, Fork, Oid};
use trunkline_sql::SqlError;

use super::cancellation::Cancellation;
use super::table_sizes::TableSizes;
use crate::access_path::FoundPages;

/// The fewest blocks of a relation that is looked at, 8 MiB.
const BLOCKS_MIN: BlockNo = 1024;

/// The most relations of a statement that are looked at.
const RELATIONS_MAX: usize = 64;

/// The times of reads are measured if at most this part of a relation is cached, or they would be those
/// of the cache.
const CACHED_MAX: f64 = 0.1;

/// What was found out about the main forks of relations.
#[derive(Debug, Default)]
pub(crate) struct FoundRelations(Map<Oid, FoundPages>);

impl FoundRelations {
    /// Finds out about the large ones of these relations, whose sizes are known.
    ///
    /// # Errors
    /// 57014 if the statement was cancelled; 53300 if no session is free.
    pub(crate) async fn ask(
        (engine, io): (&Engine, &Settings),
        cancellation: &Cancellation,
        relations: &[(Oid, Relation)],
        sizes: &TableSizes,
    ) -> Result<Self, SqlError> {
        let mut large: Map<Oid, (&Relation, BlockNo)> = Map::default();
        for (oid, relation) in relations.iter().filter(|(_, one)| one.fork() == Fork::Main) {
            if let Ok(blocks) = sizes.blocks(*oid)
                && blocks >= BLOCKS_MIN
            {
                large.insert(*oid, (relation, blocks));
            }
        }
        // Of many partitions, the largest ones.
        let mut large: Vec<_> = large.into_iter().collect();
        large.sort_by_key(|(_, (_, blocks))| std::cmp::Reverse(*blocks));
        large.truncate(RELATIONS_MAX);
        let mut found = Self::default();
        for (oid, relation, blocks, residency) in residencies(engine, cancellation, large).await? {
            if blocks >= TIMED_BLOCKS_MIN && residency.pool + residency.cache <= CACHED_MAX {
                measure((engine, io), cancellation, relation, blocks).await?;
            }
            let in_flight = StreamOptions::of(io).concurrency;
            let times = relation.storage().read_times(relation.locator().tablespace, in_flight);
            found.0.insert(oid, FoundPages { residency, times });
        }
        Ok(found)
    }

    /// What was found out about a relation.
    pub(super) fn find(&self, relation: Oid) -> Option<FoundPages> {
        self.0.get(&relation).copied()
    }
}

/// Where the pages of relations are. Those of which that can't be found out are left out: these are only
/// estimates, and a file that can't be used is an error of the scan.
async fn residencies<'r>(
    engine: &Engine,
    cancellation: &Cancellation,
    relations: Vec<(Oid, (&'r Relation, BlockNo))>,
) -> Result<Vec<(Oid, &'r Relation, BlockNo, ResidencyEstimate)>, SqlError> {
    if relations.is_empty() {
        return Ok(Vec::new());
    }
    let mut backend = cancellation.open_session(engine)?;
    let session = backend.session();
    session.set_may_block(false);
    let mut calls = Vec::with_capacity(relations.len());
    for (_, (relation, blocks)) in &relations {
        calls.push(engine.pool().estimate_residency(session, relation, *blocks));
    }
    cancellation.wait_for_calls(session, calls.iter()).await?;
    let found =
        relations.into_iter().zip(calls).filter_map(|((oid, (relation, blocks)), mut call)| {
            Some((oid, relation, blocks, call.take()?.ok()?))
        });
    Ok(found.collect())
}

/// Measures how long reads take, if that is unknown.
async fn measure(
    (engine, io): (&Engine, &Settings),
    cancellation: &Cancellation,
    relation: &Relation,
    blocks: BlockNo,
) -> Result<(), SqlError> {
    let options = StreamOptions::of(io);
    let (storage, tablespace) = (relation.storage(), relation.locator().tablespace);
    if !storage.claim_read_times(tablespace, options.concurrency) {
        return Ok(());
    }
    let mut backend = cancellation.open_session(engine)?;
    backend.session().set_may_block(false);
    let mut timer = ReadTimer::new(relation, blocks, options);
    let mut waiting = None;
    let measured = poll_fn(|context| {
        let polled = timer.poll(context, &mut backend);
        if polled.is_pending() && waiting.is_none() {
            waiting = Some(cancellation.wait_for_io());
        }
        polled
    });
    let measured = measured.await;
    cancellation.check()?;
    // A page that can't be read is an error of the scan.
    if let Ok(times) = measured {
        storage.set_read_times(tablespace, times);
    }
    Ok(())
}
