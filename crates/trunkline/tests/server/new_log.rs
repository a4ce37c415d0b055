//! A cluster that we have made, and a log that we have written: a real server recovers it. Each record has images, and
//! the server compares them with what its own redo makes of the page (`wal_consistency_checking`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use trunkline_aio::facade::{Mutex, thread};
use trunkline_aio::{Aio, Builder, Session};
use trunkline_engine::log::Log;
use trunkline_engine::log_writer::{Inserter, LogWriter, LogWriterOptions, RecordLocation};
use trunkline_engine::new_cluster::{self, NewCluster, NewClusterOptions};
use trunkline_engine::storage::KernelFiles;
use trunkline_format::wal::redo::{Change, Redone, redo};
use trunkline_format::wal::{
    ImageMode, ImagePolicy, LogRecord, NewBlock, NewRecord, Record, RecordBuffer, RelFileLocator,
    SegmentSize,
};
use trunkline_format::{
    BLOCK_SIZE, ClusterState, ControlFile, Fork, Lsn, Oid, PageBytes, PgVersion, TupleBuilder,
    set_checksum,
};

use crate::server::{Server, servers};

/// Number of threads. Each writes a table of its own.
const THREADS: u32 = 4;

/// Rows of a table.
const ROWS: u32 = 700;

/// A name in the program of a server that can decompress lz4.
const LZ4: &[u8] = b"LZ4_decompress_safe";

const DATABASE: Oid = Oid(1);

fn relation(number: u32) -> RelFileLocator {
    RelFileLocator { tablespace: Oid(1663), database: DATABASE, number }
}

/// A session that writes to the log.
struct Writer {
    log: Arc<LogWriter>,
    session: Session,
    inserter: Inserter,
}

impl Writer {
    fn new(aio: &Aio, log: &Arc<LogWriter>) -> Self {
        let inserter = Inserter::new(log).expect("an inserter");
        Self { log: Arc::clone(log), session: aio.session().expect("a session"), inserter }
    }

    fn insert(&mut self, record: &NewRecord<'_>) -> RecordLocation {
        let mut room = self.log.room(&mut self.session, 1, 10_000).expect("room");
        self.inserter.insert(&mut room, record).expect("inserted")
    }

    /// Creates a table's file, and inserts rows in a transaction. Returns its pages.
    fn fill(&mut self, number: u32, xid: u32) -> Vec<Box<PageBytes>> {
        let file = [1663, DATABASE.0, number, 0].map(u32::to_le_bytes).concat();
        self.insert(&NewRecord::plain(2, 0x11, xid, &[&file]));
        let mut table: Vec<Box<PageBytes>> = Vec::new();
        let mut offset = u16::MAX;
        for row in 0..ROWS {
            let mut tuple = TupleBuilder::new();
            tuple.int4(row as i32).text("a row ".repeat((row % 60) as usize));
            if !self.insert_row(number, xid, &tuple, &mut table, &mut offset) {
                offset = u16::MAX;
                assert!(self.insert_row(number, xid, &tuple, &mut table, &mut offset), "{row}");
            }
        }
        let commit = self.insert(&NewRecord::plain(1, 0, xid, &[&7_i64.to_le_bytes()]));
        self.log.flush(&mut self.session, commit.end).expect("durable");
        table
    }

    /// Inserts a row behind the last one, or on a new page if `offset` says so. Returns false if it doesn't fit.
    fn insert_row(
        &mut self,
        number: u32,
        xid: u32,
        row: &TupleBuilder,
        table: &mut Vec<Box<PageBytes>>,
        offset: &mut u16,
    ) -> bool {
        let is_new = *offset == u16::MAX;
        let item = if is_new { 1 } else { *offset + 1 };
        let tuple = row.tuple();
        // Two columns, of which one has variable length; no xmax.
        let header = [2_u16.to_le_bytes(), 0x0802_u16.to_le_bytes()].concat();
        let hoff = [24_u8, 0];
        let main_data = [item.to_le_bytes().as_slice(), &[0]].concat();
        let before =
            if is_new { Box::new([0; BLOCK_SIZE]) } else { table.last().expect("one").clone() };
        let block = table.len() as u32 - u32::from(!is_new);
        let data: &[&[u8]] = &[&header, &hoff, tuple.data];
        let part = NewBlock {
            id: 0,
            relation: relation(number),
            fork: Fork::Main,
            block,
            page: &before,
            image: if is_new { ImageMode::WillInit } else { ImageMode::Never },
            is_standard: true,
            keeps_data: true,
            data,
        };
        let info = if is_new { 0x80 } else { 0 };
        let main_data: &[&[u8]] = &[&main_data];
        // The page after the change is what redo makes of it.
        let blocks = [part];
        let record = NewRecord { blocks: &blocks, ..NewRecord::plain(10, info, xid, main_data) };
        let mut after = before.clone();
        match applied(&record, &mut after) {
            Some(Redone::Applied | Redone::Initialised) => {}
            _ => return false,
        }
        after[..8].copy_from_slice(&before[..8]);
        let image = if is_new { ImageMode::WillInit } else { ImageMode::IfNeeded };
        let blocks = [NewBlock { page: &after, image, keeps_data: false, ..part }];
        let record = NewRecord { blocks: &blocks, ..NewRecord::plain(10, info, xid, main_data) };
        let place = self.insert(&record);
        after[0..4].copy_from_slice(&place.end.high().to_le_bytes());
        after[4..8].copy_from_slice(&place.end.low().to_le_bytes());
        if is_new {
            table.push(after);
        } else {
            *table.last_mut().expect("one") = after;
        }
        *offset = item;
        true
    }
}

/// Applies a record to a page. `None` if it doesn't fit.
fn applied(record: &NewRecord<'_>, page: &mut PageBytes) -> Option<Redone> {
    let mut buffer = RecordBuffer::default();
    buffer.assemble(record, &ImagePolicy::NONE).expect("short enough");
    let bytes = buffer.seal(Lsn(0)).to_vec();
    let lsn = Lsn(u64::MAX / 2);
    let record = LogRecord {
        start: lsn,
        end: lsn,
        version: PgVersion::V18,
        timeline: 1,
        record: Record::parse(&bytes).expect("sound"),
    };
    redo(page, &Change::of(&record, true), 0).ok()
}

#[test]
fn a_server_recovers_a_log_that_we_have_written() {
    let mut recovered = 0;
    for bin in servers().iter().filter(|bin| crate::server::major_of(bin) == 18) {
        let server = Server::prepare(bin);
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let size = SegmentSize::new(1 << 20).expect("valid");
        let options = NewClusterOptions::now(size, true);
        let cluster = new_cluster::create(&data, &options).expect("created");
        // npm's server can't decompress lz4.
        let program = fs::read(bin.join("postgres")).expect("read");
        let compresses = program.windows(LZ4.len()).any(|window| window == LZ4);
        let tables = write_log(&data, &cluster, size, compresses);
        server.copy_from(&data);
        let mut server = server.configured(&[]);
        server.halt("fast");
        for (number, pages) in &tables {
            let path = server.data().join(format!("base/1/{number}"));
            let bytes = fs::read(path).expect("the file was created");
            assert_eq!(bytes.len(), pages.len() * BLOCK_SIZE, "{number}");
            for (block, (theirs, ours)) in bytes.chunks(BLOCK_SIZE).zip(pages).enumerate() {
                assert!(theirs == &ours[..], "{number}, block {block}");
            }
        }
        // Two bits for each transaction: 1 is committed.
        let status = fs::read(server.data().join("pg_xact/0000")).expect("read");
        let committed: u32 = (0..THREADS).map(|at| status_of(&status, 3 + at)).sum();
        assert_eq!(committed, THREADS);
        assert_eq!(status_of(&status, 3 + THREADS), 0);
        let control = fs::read(server.data().join("global/pg_control")).expect("read");
        let control = ControlFile::parse(&control).expect("sound");
        assert_eq!(control.checkpoint.next_xid, u64::from(3 + THREADS + 1));
        recovered += 1;
    }
    assert!(recovered > 0 || servers().is_empty(), "no server of version 18");
}

fn status_of(status: &[u8], xid: u32) -> u32 {
    u32::from(status[xid as usize / 4]) >> (xid % 4 * 2) & 3
}

/// Writes tables in several threads, and a transaction that doesn't end. Returns their pages.
fn write_log(
    data: &Path,
    cluster: &NewCluster,
    size: SegmentSize,
    compresses: bool,
) -> BTreeMap<u32, Vec<Box<PageBytes>>> {
    let aio = Builder::new().region_bytes(16 << 20).start().expect("starts");
    let options = LogWriterOptions {
        buffers: 128 << 10,
        compresses,
        checks_redo: true,
        ..LogWriterOptions::after_shutdown(&cluster.control, size, cluster.wal_end)
    };
    let files = Arc::new(KernelFiles::new(&aio));
    let log = LogWriter::open(&aio, files, data, options).expect("opens");
    let log = Arc::new(log);
    // The engine is running, so a crash from here on needs recovery.
    let running = ControlFile { state: ClusterState::InProduction, ..cluster.control };
    fs::write(data.join("global/pg_control"), &running.encode()[..]).expect("written");
    let tables: Arc<Mutex<BTreeMap<u32, Vec<Box<PageBytes>>>>> = Arc::default();
    let threads = (0..THREADS).map(|at| {
        let (aio, log, tables) = (aio.clone(), Arc::clone(&log), Arc::clone(&tables));
        let body = move || {
            let number = 16384 + at;
            let pages = Writer::new(&aio, &log).fill(number, 3 + at);
            tables.lock().insert(number, pages);
        };
        thread::spawn("writer", body).expect("starts")
    });
    let threads: Vec<_> = threads.collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let mut tables = std::mem::take(&mut *tables.lock());
    // A transaction that never ends is not committed.
    let mut writer = Writer::new(&aio, &log);
    let end = writer.insert(&NewRecord::plain(0, 0x20, 3 + THREADS, &[b"nothing"])).end;
    log.flush(&mut writer.session, end).expect("durable");
    for pages in tables.values_mut() {
        for (block, page) in pages.iter_mut().enumerate() {
            set_checksum(page, block as u32, true);
        }
    }
    tables
}
