//! Writes WAL into a new cluster and leaves it as after a crash, to measure recovery.
//!
//! ```text
//!   write_log DIR [--megabytes N] [--threads N]
//!   cp -a DIR/cluster COPY && trunkline recover COPY --threads 1
//!   cp -a DIR/cluster COPY && pg_ctl -D COPY -w start      with a server of version 18
//! ```
//! Creates DIR/cluster. Each thread writes to a table of its own, in transactions of 20 operations: 70 % inserts of rows
//! of about 100 bytes, 25 % updates and 5 % deletes of rows that it has inserted before. There is no checkpoint, so
//! recovery needs all of the WAL. Prints the rate.

use std::error::Error;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use trunkline_aio::facade::random::Rng;
use trunkline_engine::heap_writer::HeapWriter;
use trunkline_engine::new_cluster::{self, NewClusterOptions};
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::RelationLocator;
use trunkline_engine::writable_cluster::{
    Durability, WritableCluster, WritableClusterOptions, WriteSession,
};
use trunkline_format::wal::SegmentSize;
use trunkline_format::{Oid, Tid, TupleBuilder};

/// Operations of a transaction.
const OPERATIONS: u64 = 20;

/// The most rows of which a thread remembers where they are.
const ROWS: usize = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let root = PathBuf::from(arguments.next().ok_or("expected DIR")?);
    let (mut megabytes, mut threads) = (1024, 2);
    while let (Some(name), Some(value)) = (arguments.next(), arguments.next()) {
        let value: u64 = value.to_string_lossy().parse()?;
        match &*name.to_string_lossy() {
            "--megabytes" => megabytes = value,
            "--threads" => threads = value,
            other => return Err(format!("unexpected argument {other}").into()),
        }
    }
    let cluster = create(&root)?;
    let start = cluster.log().end().0;
    let (begun, operations) = (Instant::now(), AtomicU64::new(0));
    let failed = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|seed| {
                let (cluster, operations) = (&cluster, &operations);
                scope.spawn(move || -> Result<(), String> {
                    let mut writer = Writer::new(cluster, seed).map_err(|it| it.to_string())?;
                    while cluster.log().end().0 - start < megabytes << 20 {
                        writer.transaction().map_err(|it| it.to_string())?;
                        operations.fetch_add(OPERATIONS, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.filter_map(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic)).err()).next()
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    // The last commits must be in the WAL.
    Writer::new(&cluster, threads)?.transaction()?;
    let (seconds, operations) = (begun.elapsed().as_secs_f64(), operations.into_inner());
    let written = (cluster.log().end().0 - start) as f64 / f64::from(1 << 20);
    println!(
        "{written:.0} MB of WAL, {operations} operations in {seconds:.1} s: {:.0} MB/s, {:.0} operations/s",
        written / seconds,
        operations as f64 / seconds,
    );
    Ok(())
}

fn create(root: &Path) -> Result<WritableCluster, Box<dyn Error>> {
    let data = root.join("cluster");
    let size = SegmentSize::new(16 << 20).ok_or("a segment size")?;
    new_cluster::create(&data, &NewClusterOptions::now(size, true))?;
    let mut settings = Settings::default();
    settings.set("shared_buffers", "1GB")?;
    let options = WritableClusterOptions {
        wal_buffers: 16 << 20,
        ..WritableClusterOptions::new(settings, root.to_owned())
    };
    Ok(WritableCluster::open(&data, &options, |_| {})?)
}

struct Writer {
    session: WriteSession,
    table: HeapWriter,
    rng: Rng,
    rows: Vec<Tid>,
}

impl Writer {
    fn new(cluster: &WritableCluster, seed: u64) -> Result<Self, Box<dyn Error>> {
        let mut session = cluster.session()?;
        let transaction = session.begin()?;
        let (tablespace, database) = (Oid(1663), Oid(1));
        let relfilenode = session.new_number(tablespace, database)?;
        let locator = RelationLocator { tablespace, database, relfilenode };
        let table = HeapWriter::new(session.create(&transaction, locator)?);
        session.commit(transaction, Durability::Now)?;
        Ok(Self { session, table, rng: Rng::new(seed), rows: Vec::with_capacity(ROWS) })
    }

    fn transaction(&mut self) -> Result<(), Box<dyn Error>> {
        let transaction = self.session.begin()?;
        let mut row = TupleBuilder::new();
        for _ in 0..OPERATIONS {
            row.clear();
            row.int4(transaction.xid() as i32).text("x".repeat(60 + self.rng.below(30) as usize));
            let mut heap = self.session.heap(&transaction);
            let choice = self.rng.below(100);
            if choice < 70 || self.rows.is_empty() {
                let tid = self.table.insert(&mut heap, &row.tuple())?.tid;
                if self.rows.len() < ROWS {
                    self.rows.push(tid);
                }
                continue;
            }
            let at = self.rng.below(self.rows.len() as u64) as usize;
            if choice < 95 {
                let updated =
                    self.table.update(&mut heap, self.rows[at], &row.tuple(), true, None)?;
                self.rows[at] = updated.tid;
            } else {
                self.table.delete(&mut heap, self.rows.swap_remove(at), None)?;
            }
        }
        self.session.commit(transaction, Durability::Soon)?;
        Ok(())
    }
}
