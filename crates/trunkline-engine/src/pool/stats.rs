//! What was counted: by backend type, object, context and relation, as `pg_stat_io` shows it.
//!
//! A session or a stream counts into a [`Tally`] of its own and adds it to the shared cell of its
//! kind of work now and then, so that counting costs no shared cache line per page. Reads are booked
//! to who issued them, when they were issued. The time that somebody waited and the time that the
//! storage had the reads are kept apart: PostgreSQL 18 has the first only.

use super::ring::Strategy;
use crate::storage::RelationLocator;
use std::collections::BTreeMap;
use std::time::Duration;
use trunkline_aio::sync::atomic::{AtomicU64, Ordering};
use trunkline_aio::sync::{Arc, Mutex};

/// Who works (`pg_stat_io.backend_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BackendType {
    /// A session that serves a client.
    Client,
    /// A helper of one: a worker of a parallel scan.
    BackgroundWorker,
    /// A command of this program that works without a server.
    Standalone,
    /// Writes what checkpoints need.
    Checkpointer,
    /// Writes what readers would have to.
    BackgroundWriter,
}

impl BackendType {
    /// PostgreSQL's words.
    pub fn name(self) -> &'static str {
        match self {
            BackendType::Client => "client backend",
            BackendType::BackgroundWorker => "background worker",
            BackendType::Standalone => "standalone backend",
            BackendType::Checkpointer => "checkpointer",
            BackendType::BackgroundWriter => "background writer",
        }
    }
}

/// What the pages are of (`pg_stat_io.object`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IoObject {
    /// Relations that everybody may see.
    Relation,
    /// A session's temporary relations.
    TempRelation,
}

impl IoObject {
    /// PostgreSQL's words.
    pub fn name(self) -> &'static str {
        match self {
            IoObject::Relation => "relation",
            IoObject::TempRelation => "temp relation",
        }
    }
}

impl Strategy {
    /// The word in `pg_stat_io.context`.
    pub fn context(self) -> &'static str {
        match self {
            Strategy::Normal => "normal",
            Strategy::BulkRead => "bulkread",
            Strategy::BulkWrite => "bulkwrite",
            Strategy::Vacuum => "vacuum",
        }
    }
}

/// One kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IoKey {
    /// Who.
    pub backend: BackendType,
    /// On what.
    pub object: IoObject,
    /// In which way.
    pub context: Strategy,
    /// Number of the cluster ([`crate::storage::Storage::number`]).
    pub cluster: u16,
    /// The relation.
    pub relation: RelationLocator,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts of one kind of work, or a part of them. Times are in nanoseconds.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Tally {
            $($(#[$doc])* pub $name: u64,)*
        }

        #[derive(Debug, Default)]
        pub(crate) struct Cell {
            $($name: AtomicU64,)*
        }

        impl Tally {
            /// Adds another one's counts.
            pub fn add(&mut self, other: &Tally) {
                $(self.$name += other.$name;)*
            }

            /// What was counted since `before`, an earlier reading of the same counts.
            pub fn since(&self, before: &Tally) -> Tally {
                Tally { $($name: self.$name - before.$name,)* }
            }
        }

        impl Cell {
            /// Adds the counts, and clears them.
            pub(crate) fn absorb(&self, tally: &mut Tally) {
                $(if tally.$name > 0 {
                    self.$name.fetch_add(tally.$name, Ordering::Relaxed);
                })*
                *tally = Tally::default();
            }

            fn tally(&self) -> Tally {
                Tally { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Pages found in the pool, or on their way into it by somebody else's read.
    hits,
    /// Of those, the ones that were on their way.
    joins,
    /// Reads issued.
    reads,
    /// Blocks that they were to bring.
    read_blocks,
    /// Writes that have ended well.
    writes,
    /// Blocks that they have written.
    written_blocks,
    /// Ranges that the system was told to begin to write back.
    writebacks,
    /// Times that a relation was made longer.
    extends,
    /// By so many blocks.
    extended_blocks,
    /// Pages that had to go for others, whoever used them.
    evictions,
    /// Pages of a ring that made room for the ring's next ones.
    reuses,
    /// Times that somebody slept for a page.
    waits,
    /// How long.
    wait_nanos,
    /// How long the storage had the reads.
    device_nanos,
    /// Blocks whose checksum was wrong.
    checksum_failures,
}

impl Tally {
    /// Bytes that the reads were to bring.
    pub fn read_bytes(&self) -> u64 {
        self.read_blocks * trunkline_format::BLOCK_SIZE as u64
    }

    /// How long somebody slept for pages.
    pub fn wait_time(&self) -> Duration {
        Duration::from_nanos(self.wait_nanos)
    }

    /// How long the storage had the reads, summed over reads.
    pub fn device_time(&self) -> Duration {
        Duration::from_nanos(self.device_nanos)
    }
}

/// All kinds of work there have been.
#[derive(Debug, Default)]
pub(crate) struct PoolStats {
    cells: Mutex<BTreeMap<IoKey, Arc<Cell>>>,
}

impl PoolStats {
    /// The cell of a kind of work, made at its first use.
    pub(crate) fn cell(&self, key: IoKey) -> Arc<Cell> {
        Arc::clone(self.cells.lock().entry(key).or_default())
    }

    /// Every kind of work, in the order of the keys.
    pub(crate) fn rows(&self) -> Vec<(IoKey, Tally)> {
        self.cells.lock().iter().map(|(key, cell)| (*key, cell.tally())).collect()
    }
}
