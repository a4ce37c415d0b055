//! Copies tables of real clusters and compares the output with the servers' own `COPY` output.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use trunkline_aio::facade::atomic::{AtomicBool, Ordering};
use trunkline_aio::facade::{Arc, Futex, Mutex};
use trunkline_aio::{Aio, MethodKind, clock};
use trunkline_engine::catalog::{Catalog, Database};
use trunkline_engine::copy::{
    CopyError, CopyOptions, CopyReport, CopyTask, Extras, Output, Outputs, Plan, TextSettings,
    column_names, copy,
};
use trunkline_engine::datadir::{DataDir, DataDirError};
use trunkline_engine::job::{End, JobError, Unobserved};
use trunkline_engine::pool::{BackendType, Pool};
use trunkline_engine::settings::Settings;
use trunkline_format::text_output::{ByteaOutput, IntervalStyle, Utc};

use crate::fixtures::fixtures;
use crate::jobs::engine;
use crate::tables::{instance, printed};
use crate::verify_fixtures::copy_tree;

/// Time limit for each wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// A task's number and its output.
type Written = (usize, Vec<u8>);

/// The output of all tasks.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<Written>>>);

struct Lines {
    memory: Memory,
    task: usize,
    bytes: Vec<u8>,
}

impl Outputs for Memory {
    fn open(&self, task: usize) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(Lines { memory: self.clone(), task, bytes: Vec::new() }))
    }
}

impl Output for Lines {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(lines);
        Ok(())
    }

    fn finish(self: Box<Self>, whole: bool) -> io::Result<()> {
        assert!(whole);
        self.memory.0.lock().push((self.task, self.bytes));
        Ok(())
    }
}

struct Cluster {
    pool: Pool,
    dir: DataDir,
    catalog: Catalog,
    major: u32,
}

impl Cluster {
    fn open(aio: &Aio, data: &Path, direct: bool, buffers: u32) -> Cluster {
        let engine = engine(aio, buffers, direct);
        let cluster = engine.cluster(data).expect("opened");
        let catalog = cluster.catalog().expect("a catalog");
        let major = cluster.dir().control().version.major();
        Cluster { pool: engine.pool().clone(), dir: cluster.dir().clone(), catalog, major }
    }

    fn database(&self, name: &[u8]) -> Arc<Database> {
        let mut backend = self.pool.backend(BackendType::Client).expect("a session");
        self.catalog.database(&mut backend, name).expect("a database")
    }

    fn options(&self) -> CopyOptions {
        let text = TextSettings {
            major: self.major,
            zone: Arc::new(Utc),
            extra_float_digits: 1,
            bytea_output: ByteaOutput::Hex,
            interval_style: IntervalStyle::Postgres,
        };
        let options = CopyOptions::of(&Settings::default(), text);
        CopyOptions { extras: Extras { ctid: true, state: false }, threads: 2, ..options }
    }

    fn copy(&self, database: &Arc<Database>, tasks: Vec<CopyTask>) -> (CopyReport, Vec<Vec<u8>>) {
        let options = self.options();
        let memory = Memory::default();
        let outputs = Arc::new(memory.clone());
        let report =
            copy(&self.pool, &self.dir, database, tasks, outputs, options, Arc::new(Unobserved));
        let report = report.expect("copied");
        let mut written = std::mem::take(&mut *memory.0.lock());
        written.sort_unstable();
        (report, written.into_iter().map(|(_, bytes)| bytes).collect())
    }
}

/// Copies every table for which we have the server's output, and compares.
fn check(aio: &Aio, data: &Path, direct: bool, buffers: u32) {
    let cluster = Cluster::open(aio, data, direct, buffers);
    for name in [&b"fixture"[..], b"bench"] {
        let database = cluster.database(name);
        let expected = printed(data, &database);
        let mut backend = cluster.pool.backend(BackendType::Client).expect("a session");
        let mut tasks = Vec::new();
        for (_, table, _) in &expected {
            let columns = column_names(&database, table, &[]).expect("columns").shown;
            let plan = Plan::new(&database, &mut backend, table, &columns).expect("a plan");
            tasks.push(CopyTask { plans: vec![plan], whole: true });
        }
        drop(backend);
        let (report, written) = cluster.copy(&database, tasks);
        assert_eq!((report.end, report.tasks), (End::Complete, expected.len()));
        assert_eq!((report.findings_total, report.warnings.len()), (0, 0));
        assert!(report.blocks > 0 && report.rows > 0);
        for ((name, _, lines), bytes) in expected.iter().zip(&written) {
            let mut text = lines.join(&b'\n');
            text.extend((!text.is_empty()).then_some(b'\n'));
            let first = text.iter().zip(bytes).position(|(one, other)| one != other);
            let lengths = (bytes.len(), text.len());
            assert!(*bytes == text, "{}: {name} at {first:?} of {lengths:?}", data.display());
        }
    }
}

fn check_method(method: MethodKind) {
    for (_, data) in fixtures() {
        for direct in [false, true] {
            for buffers in [16, 16_384] {
                check(&instance(method), &data, direct, buffers);
            }
        }
    }
}

#[test]
fn copied_tables_equal_server_output_with_sync() {
    check_method(MethodKind::Sync);
}

#[test]
fn copied_tables_equal_server_output_with_workers() {
    check_method(MethodKind::Worker);
}

#[test]
fn copied_tables_equal_server_output_with_io_uring() {
    check_method(MethodKind::IoUring);
}

/// The moment at which the server of [`StartsServer`] starts.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Start {
    /// While a write hangs.
    InWrite,
    /// While the complete file is being made durable.
    InSync,
}

/// An output during which a server starts on the cluster.
struct StartsServer {
    start: Start,
    data: PathBuf,
    /// Signalled when the copy has returned, which ends the hanging write.
    returned: Arc<Futex>,
    finished: Arc<AtomicBool>,
}

impl StartsServer {
    fn start_at(&self, now: Start) {
        if now == self.start {
            fs::write(self.data.join("postmaster.pid"), "1\n").expect("written");
        }
    }
}

/// Shares one [`StartsServer`].
#[derive(Clone)]
struct Shared(Arc<StartsServer>);

impl Outputs for Shared {
    fn open(&self, _task: usize) -> io::Result<Box<dyn Output>> {
        Ok(Box::new(self.clone()))
    }
}

impl Output for Shared {
    fn write(&mut self, _lines: &[u8]) -> io::Result<()> {
        self.0.start_at(Start::InWrite);
        let deadline = clock::now().after(PATIENCE);
        while self.0.start == Start::InWrite && self.0.returned.epoch() == 0 {
            let now = clock::now();
            if now >= deadline {
                return Err(io::Error::other("the copy did not look for a server"));
            }
            self.0.returned.wait(0, Some(deadline.since(now)));
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.start_at(Start::InSync);
        Ok(())
    }

    fn finish(self: Box<Self>, _whole: bool) -> io::Result<()> {
        self.0.finished.store(true, Ordering::SeqCst);
        Ok(())
    }
}

/// If a server starts during a copy, the copy fails, and no output is finished after that.
#[test]
fn a_server_that_starts_ends_the_copy() {
    let Some((_, fixture)) = fixtures().pop() else { return };
    for start in [Start::InWrite, Start::InSync] {
        let home = tempfile::tempdir().expect("a directory");
        let data = home.path().join("data");
        copy_tree(&fixture, &data);
        let cluster = Cluster::open(&instance(MethodKind::Worker), &data, false, 1024);
        let database = cluster.database(b"fixture");
        let table = database.resolve(b"s1.rw").expect("a table");
        let mut backend = cluster.pool.backend(BackendType::Client).expect("a session");
        let columns = column_names(&database, table, &[]).expect("columns").shown;
        let plan = Plan::new(&database, &mut backend, table, &columns).expect("a plan");
        drop(backend);
        let returned = Arc::new(Futex::new(0));
        let finished = Arc::new(AtomicBool::new(false));
        let (ends, data) = (Arc::clone(&returned), data.clone());
        let output = StartsServer { start, data, returned, finished: Arc::clone(&finished) };
        let error = copy(
            &cluster.pool,
            &cluster.dir,
            &database,
            vec![CopyTask { plans: vec![plan], whole: true }],
            Arc::new(Shared(Arc::new(output))),
            cluster.options(),
            Arc::new(Unobserved),
        );
        ends.signal();
        let error = error.expect_err("a server has started");
        let changed = matches!(
            error,
            CopyError::Job(JobError::DataDir(DataDirError::Changed { server: Some(_), .. }))
        );
        assert!(changed, "{start:?}: {error:?}");
        assert!(!finished.load(Ordering::SeqCst), "{start:?}");
    }
}
