//! Measures commits per second: each client inserts a small record and waits until it is durable.
//!
//! ```text
//!   commit_rate DIR [--seconds N] [--bytes N] [--method fdatasync|open_datasync|auto] [--direct off|on]
//! ```
//! `--method` is `wal_sync_method`, and `--direct on` writes the WAL with direct I/O, past the page cache.
//! Creates DIR/cluster. Prints one row per limit on concurrent flushes and one column per number of clients. The first
//! two rows are baselines: as many threads, each of which overwrites its own pages of a preallocated file and calls
//! fdatasync. In the first, each thread has a file; in the second, all have opened the same one, as flushes of one
//! segment have. If the second isn't faster with more threads, the storage or its file system serializes syncs of a
//! file, and concurrent flushes can't gain anything.

use std::error::Error;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use trunkline_aio::{Aio, Builder};
use trunkline_engine::log::Log;
use trunkline_engine::log_writer::{
    FlushLimit, Inserter, LogWriter, LogWriterOptions, WalSyncMethod,
};
use trunkline_engine::new_cluster::{self, NewClusterOptions};
use trunkline_engine::storage::KernelFiles;
use trunkline_format::wal::{LOG_PAGE_SIZE, NewRecord, SegmentSize};

/// Numbers of clients.
const CLIENTS: [usize; 5] = [1, 2, 4, 16, 64];

/// A record of the manager `XLOG` without meaning.
const NOOP: u8 = 0x20;

/// The size of a page.
const PAGE: u64 = LOG_PAGE_SIZE as u64;

/// Pages that a thread of the bare loop overwrites in turn.
const BARE_PAGES: u64 = 128;

/// The most flushes in flight.
const FLUSHES: [FlushLimit; 5] = [
    FlushLimit::Fixed(1),
    FlushLimit::Fixed(2),
    FlushLimit::Fixed(4),
    FlushLimit::Fixed(8),
    FlushLimit::Auto,
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let root = PathBuf::from(arguments.next().ok_or("expected DIR")?);
    let (mut seconds, mut bytes) = (3, 100);
    let (mut method, mut direct) = (WalSyncMethod::Fdatasync, false);
    while let (Some(name), Some(value)) = (arguments.next(), arguments.next()) {
        let value = value.to_string_lossy();
        match &*name.to_string_lossy() {
            "--seconds" => seconds = value.parse()?,
            "--bytes" => bytes = value.parse()?,
            "--method" => method = value.parse()?,
            "--direct" => {
                direct = match &*value {
                    "on" => true,
                    "off" => false,
                    other => return Err(format!("--direct {other}: expected on or off").into()),
                }
            }
            other => return Err(format!("unexpected argument {other}").into()),
        }
    }
    let run = Run { time: Duration::from_secs(seconds), bytes, method, direct };
    println!("commits/s   clients:{}", CLIENTS.map(|count| format!("{count:>9}")).concat());
    for (name, has_own_file) in [("bare loop", true), ("bare loop, one file", false)] {
        let rates: Vec<f64> = CLIENTS
            .iter()
            .map(|clients| run.bare_loop(&root, *clients, has_own_file))
            .collect::<Result<_, _>>()?;
        print_row(name, &rates);
    }
    for flushes in FLUSHES {
        let rates: Vec<f64> = CLIENTS
            .iter()
            .map(|clients| run.log(&root, *clients, flushes))
            .collect::<Result<_, _>>()?;
        print_row(&format!("{flushes} flushes"), &rates);
    }
    Ok(())
}

fn print_row(name: &str, rates: &[f64]) {
    let rates: String = rates.iter().map(|rate| format!("{rate:>9.0}")).collect();
    println!("{name:<20}{rates}");
}

/// How long each case runs, how large a record is, and how WAL is made durable.
struct Run {
    time: Duration,
    bytes: usize,
    method: WalSyncMethod,
    direct: bool,
}

impl Run {
    /// Runs `body` in threads until the time is over. `body` makes one commit. Returns commits a second.
    fn measure<T: Send>(
        &self,
        threads: Vec<T>,
        body: impl Fn(&mut T) -> Result<(), Box<dyn Error>> + Sync,
    ) -> Result<f64, Box<dyn Error>> {
        let commits = AtomicU64::new(0);
        let begun = Instant::now();
        let failed = std::thread::scope(|scope| {
            let threads: Vec<_> = (threads.into_iter())
                .map(|mut thread| {
                    let (commits, body) = (&commits, &body);
                    scope.spawn(move || -> Result<(), String> {
                        while begun.elapsed() < self.time {
                            body(&mut thread).map_err(|error| error.to_string())?;
                            commits.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(())
                    })
                })
                .collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended
                .filter_map(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic)).err())
                .next()
        });
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(commits.into_inner() as f64 / begun.elapsed().as_secs_f64()),
        }
    }

    /// Commits of sessions that share a log.
    fn log(&self, root: &Path, clients: usize, flushes: FlushLimit) -> Result<f64, Box<dyn Error>> {
        let data = root.join("cluster");
        let size = SegmentSize::new(16 << 20).ok_or("a size")?;
        let cluster = new_cluster::create(&data, &NewClusterOptions::now(size, true))?;
        let aio: Aio = Builder::new().region_bytes(32 << 20).start()?;
        let options = LogWriterOptions {
            inserters: clients,
            flushes,
            sync_method: self.method,
            direct: self.direct,
            direct_init: self.direct,
            ..LogWriterOptions::after_shutdown(&cluster.control, size, cluster.wal_end)
        };
        let files = Arc::new(KernelFiles::new(&aio));
        let log = Arc::new(LogWriter::open(&aio, files, &data, options)?);
        if let Some(times) = log.sync_times() {
            println!("{times}");
        }
        if let Some(rates) = log.flush_rates() {
            println!("{rates}");
        }
        let mut sessions = Vec::new();
        for _ in 0..clients {
            sessions.push((Inserter::new(&log).ok_or("an inserter")?, aio.session()?));
        }
        let data_of_record = vec![7; self.bytes];
        let rate = self.measure(sessions, |(inserter, session)| {
            let main_data: &[&[u8]] = &[&data_of_record];
            let record = NewRecord::plain(0, NOOP, 3, main_data);
            let mut room = log.room(session, 1, self.bytes as u64 + 32)?;
            let place = inserter.insert(&mut room, &record)?;
            drop(room);
            log.flush(session, place.end)?;
            Ok(())
        });
        // An open file keeps some file systems from removing its directory.
        drop((log, aio));
        std::fs::remove_dir_all(&data)?;
        rate
    }

    /// Threads that each overwrite pages of a file, their own or one for all, and sync it.
    fn bare_loop(
        &self,
        root: &Path,
        clients: usize,
        has_own_file: bool,
    ) -> Result<f64, Box<dyn Error>> {
        std::fs::create_dir_all(root)?;
        let mut threads = Vec::new();
        for client in 0..clients {
            let number = if has_own_file { client } else { 0 };
            let path = root.join(format!("bare-{number}"));
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
            let first = client as u64 * BARE_PAGES;
            file.write_all_at(&vec![0; BARE_PAGES as usize * LOG_PAGE_SIZE], first * PAGE)?;
            file.sync_all()?;
            threads.push((file, first, 0));
        }
        let rate = self.measure(threads, |(file, first, page)| {
            let offset = (*first + *page % BARE_PAGES) * PAGE;
            *page += 1;
            file.write_all_at(&[1; LOG_PAGE_SIZE], offset)?;
            file.sync_data()?;
            Ok(())
        });
        for number in 0..if has_own_file { clients } else { 1 } {
            std::fs::remove_file(root.join(format!("bare-{number}")))?;
        }
        rate
    }
}
