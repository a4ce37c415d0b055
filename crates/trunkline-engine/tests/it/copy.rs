//! Copies tables of real clusters and compares the output with the servers' own `COPY` output.

use std::io;
use std::path::Path;

use trunkline_aio::facade::{Arc, Mutex};
use trunkline_aio::{Aio, MethodKind};
use trunkline_engine::catalog::{Catalog, Database};
use trunkline_engine::copy::{
    CopyOptions, CopyReport, CopyTask, Extras, Output, Outputs, Plan, TextSettings, column_names,
    copy,
};
use trunkline_engine::job::{End, Unobserved};
use trunkline_engine::pool::{BackendType, Pool};
use trunkline_engine::settings::Settings;
use trunkline_format::text_output::{ByteaOutput, IntervalStyle, Utc};

use crate::fixtures::fixtures;
use crate::jobs::engine;
use crate::tables::{instance, printed};

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
    catalog: Catalog,
    major: u32,
}

impl Cluster {
    fn open(aio: &Aio, data: &Path, direct: bool, buffers: u32) -> Cluster {
        let engine = engine(aio, buffers, direct);
        let cluster = engine.cluster(data).expect("opened");
        let catalog = cluster.catalog().expect("a catalog");
        let major = cluster.dir().control().version.major();
        Cluster { pool: engine.pool().clone(), catalog, major }
    }

    fn database(&self, name: &[u8]) -> Arc<Database> {
        let mut backend = self.pool.backend(BackendType::Client).expect("a session");
        self.catalog.database(&mut backend, name).expect("a database")
    }

    fn copy(&self, database: &Arc<Database>, tasks: Vec<CopyTask>) -> (CopyReport, Vec<Vec<u8>>) {
        let text = TextSettings {
            major: self.major,
            zone: Arc::new(Utc),
            extra_float_digits: 1,
            bytea_output: ByteaOutput::Hex,
            interval_style: IntervalStyle::Postgres,
        };
        let options = CopyOptions::of(&Settings::default(), text);
        let extras = Extras { ctid: true, state: false };
        let options = CopyOptions { extras, threads: 2, ..options };
        let memory = Memory::default();
        let outputs = Arc::new(memory.clone());
        let report = copy(&self.pool, database, tasks, outputs, options, Arc::new(Unobserved));
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
            tasks.push(CopyTask { plans: vec![plan] });
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
