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

mod heap_load;

use std::error::Error;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use trunkline_engine::writable_cluster::Durability;

use heap_load::{Mix, Writer, create};

/// What a transaction does.
const MIX: Mix = Mix { changes: 20, inserts: 70, updates: 25 };

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
    let cluster = create(&root, |_| {})?;
    let start = cluster.log().end().0;
    let (begun, operations) = (Instant::now(), AtomicU64::new(0));
    let failed = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|seed| {
                let (cluster, operations) = (&cluster, &operations);
                scope.spawn(move || -> Result<(), String> {
                    let mut writer =
                        Writer::new(cluster, seed, ROWS).map_err(|it| it.to_string())?;
                    while cluster.log().end().0 - start < megabytes << 20 {
                        commit(&mut writer).map_err(|it| it.to_string())?;
                        operations.fetch_add(MIX.changes, Ordering::Relaxed);
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
    commit(&mut Writer::new(&cluster, threads, ROWS)?)?;
    let (seconds, operations) = (begun.elapsed().as_secs_f64(), operations.into_inner());
    let written = (cluster.log().end().0 - start) as f64 / f64::from(1 << 20);
    println!(
        "{written:.0} MB of WAL, {operations} operations in {seconds:.1} s: {:.0} MB/s, {:.0} operations/s",
        written / seconds,
        operations as f64 / seconds,
    );
    Ok(())
}

fn commit(writer: &mut Writer) -> Result<(), Box<dyn Error>> {
    let transaction = writer.change(&MIX)?;
    writer.session.commit(transaction, Durability::Soon)?;
    Ok(())
}
