//! A process that writes into a cluster of our own until it is killed. It is this test program, run again with one test
//! and an environment variable.
//!
//! Each thread writes to a table of its own, and all of them to one index (`index_load`). Every transaction inserts some
//! rows, and updates, locks and deletes some of its earlier ones. Some locks are shared with a second transaction. Between transactions, pages are pruned, frozen and marked
//! all-visible (`heap_load`). When a commit has returned, its XID is printed. Checkpoints run concurrently.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{env, thread};
use trunkline_aio::{Builder, OpenOptions};
use trunkline_engine::heap_writer::HeapWriter;
use trunkline_engine::log_writer::{FlushLimit, WalSyncMethod};
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::RelationLocator;
use trunkline_engine::writable_cluster::{
    Durability, Transaction, WritableCluster, WritableClusterOptions, WriteSession,
};
use trunkline_format::{Oid, Tid, TupleBuilder};

use crate::heap_load::{self, Running};
use crate::index_load::IndexLoad;

const DIRECTORY: &str = "TRUNKLINE_WRITER_DIRECTORY";
const THREADS: &str = "TRUNKLINE_WRITER_THREADS";
const SEED: &str = "TRUNKLINE_WRITER_SEED";
/// The start of a line; the committed XID follows.
const COMMITTED: &str = "committed ";

/// The process, and what it prints.
pub(crate) struct WriterProcess {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl WriterProcess {
    /// Starts to write into a cluster.
    pub(crate) fn start(data: &Path, threads: u32, seed: u64) -> Self {
        let program = std::env::current_exe().expect("known");
        let test = "writer_process::a_process_that_writes_for_other_tests";
        let mut command = Command::new(program);
        command.args(["--exact", test, "--nocapture"]).env(DIRECTORY, data);
        command.env(THREADS, threads.to_string()).env(SEED, seed.to_string());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("started");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, lines }
    }

    /// Waits for this many commits, and kills the process. Returns the transactions whose commits were acknowledged.
    pub(crate) fn kill_after(mut self, commits: usize) -> Vec<u32> {
        let mut committed = Vec::new();
        let mut line = String::new();
        let mut is_killed = false;
        loop {
            line.clear();
            if self.lines.read_line(&mut line).expect("read") == 0 {
                break;
            }
            // The last line may be incomplete.
            let Some(xid) = line.strip_suffix('\n').and_then(|line| line.strip_prefix(COMMITTED))
            else {
                continue;
            };
            committed.push(xid.parse().expect("an XID"));
            if committed.len() == commits {
                self.child.kill().expect("killed");
                is_killed = true;
            }
        }
        let status = self.child.wait().expect("ended");
        assert!(is_killed, "the writer has ended by itself: {status}");
        committed
    }
}

/// Options for the tests' clusters: a small pool, so that pages are also written between checkpoints.
pub(crate) fn options(scratch: &Path, seed: u64) -> WritableClusterOptions {
    let mut settings = Settings::default();
    let methods = ["sync", "worker", "io_uring"];
    let method = methods[(seed % 3) as usize];
    for (name, value) in [("shared_buffers", "400kB"), ("io_method", method)] {
        settings.set(name, value).expect("a setting");
    }
    // Independent of the others, since few seeds are tried.
    let way = Rng::new(seed).below(4);
    let is_direct = way >= 2 && has_direct_io(scratch);
    WritableClusterOptions {
        flushes: FlushLimit::Fixed(1 + (seed / 3 % 3) as usize),
        wal_sync_method: WalSyncMethod::ALL[(way % 2) as usize],
        wal_direct: is_direct,
        wal_init_direct: is_direct,
        min_wal_size: 4 << 20,
        wal_buffers: 512 << 10,
        wal_consistency_checking: true,
        ..WritableClusterOptions::new(settings, scratch.to_owned())
    }
}

/// Whether the file system of a folder has direct I/O.
fn has_direct_io(folder: &Path) -> bool {
    let aio = Builder::new().start().expect("started");
    let path = folder.join("direct");
    let options = OpenOptions { write: true, create: true, direct: true, no_follow: true };
    let opened = aio.open(&path, options);
    if let Err(error) = &opened {
        println!("no direct I/O in \"{}\": {error}", folder.display());
    }
    opened.is_ok()
}

/// Does nothing unless another test has started it.
#[test]
fn a_process_that_writes_for_other_tests() {
    let Some(data) = env::var(DIRECTORY) else { return };
    let number = |name: &str| -> u64 {
        env::var(name).expect(name).to_string_lossy().parse().expect("a number")
    };
    let (threads, seed) = (number(THREADS), number(SEED));
    let scratch = Path::new(&data).parent().expect("a folder").to_owned();
    let cluster = WritableCluster::open(Path::new(&data), &options(&scratch, seed), |_| {});
    let cluster = cluster.expect("opened");
    // An error in one thread ends the process, which the other test notices.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
    write_in_threads(
        &cluster,
        threads,
        seed,
        &Arc::new(|committed: Option<u32>| {
            if let Some(xid) = committed {
                // One write, so that lines of several threads are not mixed.
                let line = format!("{COMMITTED}{xid}\n");
                let mut output = File::options().append(true).open("/dev/stdout").expect("open");
                output.write_all(line.as_bytes()).expect("written");
            }
            true
        }),
    );
}

/// Writes to tables of their own and to one index in that many threads. After each transaction, a thread calls `goes_on`, with
/// its XID if the commit was waited for, and ends if the answer is no.
pub(crate) fn write_in_threads<F>(
    cluster: &WritableCluster,
    threads: u64,
    seed: u64,
    goes_on: &Arc<F>,
) where
    F: Fn(Option<u32>) -> bool + Send + Sync + 'static,
{
    let running = Arc::new(Running::default());
    let index = IndexLoad::create(&mut cluster.session().expect("a session"));
    let writers = (0..threads).map(|at| {
        let (running, goes_on) = (Arc::clone(&running), Arc::clone(goes_on));
        let session = cluster.session().expect("a session");
        let rng = Rng::new(seed.wrapping_mul(31).wrapping_add(at));
        // The first one also makes checkpoints.
        let load = Load {
            index: IndexLoad::open(&session, index, at),
            running,
            makes_checkpoints: at == 0,
        };
        let body = move || write_while(session, rng, load, &*goes_on);
        thread::spawn("writer", body).expect("started")
    });
    let writers: Vec<_> = writers.collect();
    writers.into_iter().for_each(|writer| writer.join().expect("no error"));
}

/// What a thread does besides writing to its table.
struct Load {
    index: IndexLoad,
    running: Arc<Running>,
    makes_checkpoints: bool,
}

fn write_while(
    mut session: WriteSession,
    mut rng: Rng,
    Load { mut index, running, makes_checkpoints }: Load,
    goes_on: &dyn Fn(Option<u32>) -> bool,
) {
    let transaction = session.begin().expect("begun");
    let (tablespace, database) = (Oid(1663), Oid(1));
    let relfilenode = session.new_number(tablespace, database).expect("a number");
    let locator = RelationLocator { tablespace, database, relfilenode };
    let relation = session.create(&transaction, locator).expect("created");
    session.commit(transaction, Durability::Now).expect("committed");
    let mut writer = HeapWriter::new(relation.clone());
    let mut rows: Vec<Tid> = Vec::new();
    loop {
        let transaction = running.begin(&mut session);
        let xid = transaction.xid();
        let changes = (&mut writer, &mut index, &*running);
        let committed = run_transaction(&mut session, transaction, changes, &mut rng, &mut rows);
        running.end(xid);
        if !goes_on(committed) {
            return;
        }
        heap_load::maintain(&mut session, (&mut writer, &relation), &mut rng, &running);
        if makes_checkpoints && rng.below(15) == 0 {
            session.checkpoint().expect("a checkpoint");
        }
    }
}

/// Returns the XID if it has committed and was waited for.
fn run_transaction(
    session: &mut WriteSession,
    transaction: Transaction,
    (writer, index, running): (&mut HeapWriter, &mut IndexLoad, &Running),
    rng: &mut Rng,
    rows: &mut Vec<Tid>,
) -> Option<u32> {
    let xid = transaction.xid();
    let mut changed = rows.clone();
    let mut row = TupleBuilder::new();
    for _ in 0..1 + rng.below(8) {
        row.clear();
        row.int4(xid as i32).text("x".repeat(rng.below(400) as usize));
        if rng.below(4) == 0 {
            row.null();
        }
        let tuple = row.tuple();
        let at = if changed.is_empty() { 0 } else { rng.below(changed.len() as u64) as usize };
        let kind = rng.below(13);
        if kind == 12 && !changed.is_empty() {
            let holders = (&transaction, running);
            heap_load::lock_with_another(writer, session, holders, rng, changed[at]);
        }
        let mut heap = session.heap(&transaction);
        match kind {
            12.. => {}
            10.. => heap_load::insert_or_lock(writer, &mut heap, rng, &mut changed),
            0..=4 => {
                let tid = writer.insert(&mut heap, &tuple).expect("inserted").tid;
                index.insert(&mut heap, rng, tid);
                changed.push(tid);
            }
            _ if changed.is_empty() => {}
            5..=7 => {
                let keeps_keys = rng.below(2) == 0;
                let tid = changed[at];
                let updated = heap_load::in_spite_of_ended(|ended| {
                    writer.update(&mut heap, tid, &tuple, keeps_keys, ended)
                });
                changed[at] = updated.tid;
            }
            _ => {
                let tid = changed.swap_remove(at);
                heap_load::in_spite_of_ended(|ended| writer.delete(&mut heap, tid, ended));
            }
        }
    }
    if rng.below(10) == 0 {
        session.abort(transaction).expect("aborted");
        // The row versions that it replaced can be replaced again.
        return None;
    }
    let durability = if rng.below(10) == 0 { Durability::Soon } else { Durability::Now };
    session.commit(transaction, durability).expect("committed");
    *rows = changed;
    (durability == Durability::Now).then_some(xid)
}
