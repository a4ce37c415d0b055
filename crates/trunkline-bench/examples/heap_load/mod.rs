//! What the examples that write rows share: a new cluster, and a session that changes rows of its own table.

use std::error::Error;
use std::path::Path;

use trunkline_aio::facade::random::Rng;
use trunkline_engine::heap_writer::HeapWriter;
use trunkline_engine::new_cluster::{self, NewClusterOptions};
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::RelationLocator;
use trunkline_engine::writable_cluster::{
    Durability, Transaction, WritableCluster, WritableClusterOptions, WriteSession,
};
use trunkline_format::wal::SegmentSize;
use trunkline_format::{Oid, Tid, TupleBuilder};

/// Creates DIR/cluster with these options, and a pool of 1 GB.
pub(crate) fn create(
    root: &Path,
    options: impl FnOnce(&mut WritableClusterOptions),
) -> Result<WritableCluster, Box<dyn Error>> {
    let data = root.join("cluster");
    let size = SegmentSize::new(16 << 20).ok_or("a segment size")?;
    new_cluster::create(&data, &NewClusterOptions::now(size, true))?;
    let mut settings = Settings::default();
    settings.set("shared_buffers", "1GB")?;
    let mut chosen = WritableClusterOptions {
        wal_buffers: 16 << 20,
        ..WritableClusterOptions::new(settings, root.to_owned())
    };
    options(&mut chosen);
    Ok(WritableCluster::open(&data, &chosen, |_| {})?)
}

/// What a transaction does: the number of its changes, and the percentages of inserts and of updates. The rest are deletes.
pub(crate) struct Mix {
    pub(crate) changes: u64,
    pub(crate) inserts: u64,
    pub(crate) updates: u64,
}

/// A session with a table of its own, whose rows have about 100 bytes.
pub(crate) struct Writer {
    pub(crate) session: WriteSession,
    table: HeapWriter,
    rng: Rng,
    rows: Vec<Tid>,
    /// The most rows of which it remembers where they are.
    rows_max: usize,
}

impl Writer {
    pub(crate) fn new(
        cluster: &WritableCluster,
        seed: u64,
        rows_max: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let mut session = cluster.session()?;
        let transaction = session.begin()?;
        let (tablespace, database) = (Oid(1663), Oid(1));
        let relfilenode = session.new_number(tablespace, database)?;
        let locator = RelationLocator { tablespace, database, relfilenode };
        let table = HeapWriter::new(session.create(&transaction, locator)?);
        session.commit(transaction, Durability::Now)?;
        let rows = Vec::with_capacity(rows_max);
        Ok(Self { session, table, rng: Rng::new(seed), rows, rows_max })
    }

    /// Changes rows in a transaction, which the caller ends.
    pub(crate) fn change(&mut self, mix: &Mix) -> Result<Transaction, Box<dyn Error>> {
        let transaction = self.session.begin()?;
        let mut row = TupleBuilder::new();
        for _ in 0..mix.changes {
            row.clear();
            row.int4(transaction.xid() as i32).text("x".repeat(60 + self.rng.below(30) as usize));
            let mut heap = self.session.heap(&transaction);
            let choice = self.rng.below(100);
            if choice < mix.inserts || self.rows.is_empty() {
                let tid = self.table.insert(&mut heap, &row.tuple())?.tid;
                if self.rows.len() < self.rows_max {
                    self.rows.push(tid);
                }
                continue;
            }
            let at = self.rng.below(self.rows.len() as u64) as usize;
            if choice < mix.inserts + mix.updates {
                let updated =
                    self.table.update(&mut heap, self.rows[at], &row.tuple(), true, None)?;
                self.rows[at] = updated.tid;
            } else {
                self.table.delete(&mut heap, self.rows.swap_remove(at), None)?;
            }
        }
        Ok(transaction)
    }
}
