//! A log on a simulated disk, its sessions, and what they know of it.

use std::path::Path;

use trunkline_aio::facade::random::Rng;
use trunkline_aio::facade::{Arc, Mutex, thread};
use trunkline_aio::{Aio, Builder, MethodKind, Session};
use trunkline_engine::log::Log;
use trunkline_engine::log_writer::{
    FlushLimit, Inserter, LogWriter, LogWriterError, LogWriterOptions, RecordLocation,
    WalSyncMethod,
};
use trunkline_engine::new_cluster::MARKER;
use trunkline_format::wal::{
    ImageMode, LogChunk, LogEvent, LogIdentity, LogReader, NewBlock, NewRecord, RelFileLocator,
    SegmentName, SegmentSize,
};
use trunkline_format::{Fork, Lsn, PageBytes};
use trunkline_sim::{Disk, FaultPlan, SimFiles, SimMethod};

use crate::device::Device;

/// Where the first record begins: behind the header of the second segment.
pub(crate) const FIRST: Lsn = Lsn(0x10_0028);

const ROOT: &str = "/sim";
const FOLDER: &str = "/sim/pg_wal";
const SYSTEM: u64 = 42;

pub(crate) fn segment_size() -> SegmentSize {
    SegmentSize::new(1 << 20).expect("valid")
}

/// A record that was inserted: where, by which transaction, and its main data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) place: RecordLocation,
    pub(crate) xid: u32,
    pub(crate) data: Vec<u8>,
}

/// What the sessions know.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// All records, in the order in which their insertions ended.
    pub(crate) written: Vec<Written>,
    /// Up to where a flush was acknowledged.
    pub(crate) acknowledged: u64,
}

/// How WAL is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) sync_method: WalSyncMethod,
    pub(crate) direct: bool,
}

impl Way {
    /// Each method, through the page cache and past it.
    pub(crate) const ALL: [Self; 4] = [
        Self { sync_method: WalSyncMethod::Fdatasync, direct: false },
        Self { sync_method: WalSyncMethod::Fdatasync, direct: true },
        Self { sync_method: WalSyncMethod::OpenDatasync, direct: false },
        Self { sync_method: WalSyncMethod::OpenDatasync, direct: true },
    ];

    /// Whether writes may overlap.
    pub(crate) fn overlaps(self) -> bool {
        self != Self::ALL[0]
    }
}

/// Where a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Where it is read from.
    pub(crate) redo: Lsn,
    /// The start of the last record.
    pub(crate) last: Lsn,
    /// Its end.
    pub(crate) end: Lsn,
}

impl Place {
    /// A log without records.
    pub(crate) const START: Self = Self { redo: FIRST, last: Lsn(0), end: Lsn(0x10_0000) };
}

/// An instance and a log on a disk.
pub(crate) struct DiskLog {
    pub(crate) aio: Aio,
    pub(crate) log: std::sync::Arc<LogWriter>,
    /// The number of writes that began while another one was in flight.
    pub(crate) overlapping: Arc<Mutex<u64>>,
}

impl DiskLog {
    /// Opens a log, to go on where it ends.
    pub(crate) fn open(
        disk: &Arc<Disk>,
        plan: &FaultPlan,
        rng: &mut Rng,
        way: Way,
        Place { redo, last, end }: Place,
    ) -> Result<Self, LogWriterError> {
        let overlapping = Arc::default();
        let device = Device::new(disk, plan, rng, &overlapping);
        let builder = Builder::new().region_bytes(4 << 20).executor(Arc::new(device));
        let builder = match rng.below(2) {
            0 => builder.method(MethodKind::Sync),
            _ => {
                let method = SimMethod::new(disk, plan.clone(), 4);
                builder.custom_method(Arc::new(method)).method(MethodKind::Custom)
            }
        };
        let aio = builder.start().expect("starts");
        let options = LogWriterOptions {
            system_identifier: SYSTEM,
            timeline: 1,
            segment_size: segment_size(),
            end,
            last,
            redo,
            buffers: 64 << 10,
            sync_method: way.sync_method,
            direct: way.direct,
            direct_init: way.direct,
            min_wal_size: 3 << 20,
            wal_keep_size: 0,
            inserters: 8,
            flushes: FlushLimit::Fixed(1 + rng.below(4) as usize),
            wal_level: 0,
            full_page_writes: true,
            compresses: false,
            checks_redo: false,
        };
        disk.create(&format!("{ROOT}/{MARKER}"), 1, &[]);
        let files = std::sync::Arc::new(SimFiles::new(&aio, disk));
        let log = LogWriter::open(&aio, files, Path::new(ROOT), options)?;
        Ok(Self { aio, log: std::sync::Arc::new(log), overlapping })
    }

    /// A session that inserts records and flushes them.
    pub(crate) fn client(&self, known: &Arc<Mutex<Known>>) -> Client {
        let log = std::sync::Arc::clone(&self.log);
        let inserter = Inserter::new(&log).expect("an inserter");
        let session = self.aio.session().expect("a session");
        Client { log, inserter, session, known: Arc::clone(known) }
    }

    /// Runs several clients to their ends. Each gets its number, and a generator of its own.
    pub(crate) fn run_clients(
        &self,
        count: u32,
        rng: &mut Rng,
        known: &Arc<Mutex<Known>>,
        body: impl Fn(&mut Client, u32, &mut Rng) + Clone + Send + 'static,
    ) -> Vec<thread::JoinHandle> {
        let clients = (1..=count).map(|number| {
            let (mut client, body) = (self.client(known), body.clone());
            let mut rng = Rng::new(rng.below(u64::MAX));
            let run = move || body(&mut client, number, &mut rng);
            thread::spawn("client", run).expect("starts")
        });
        clients.collect()
    }
}

/// One session.
pub(crate) struct Client {
    log: std::sync::Arc<LogWriter>,
    inserter: Inserter,
    session: Session,
    known: Arc<Mutex<Known>>,
}

impl Client {
    /// Inserts a record of `length` bytes.
    pub(crate) fn insert(
        &mut self,
        xid: u32,
        length: usize,
    ) -> Result<RecordLocation, LogWriterError> {
        let data = vec![xid as u8; length];
        let mut room = self.log.room(&mut self.session, 1, length as u64 + 32)?;
        let main_data: &[&[u8]] = &[&data];
        let record = NewRecord::plain(0, 0x20, xid, main_data);
        let place = self.inserter.insert(&mut room, &record)?;
        self.known.lock().written.push(Written { place, xid, data });
        Ok(place)
    }

    /// Inserts a record that changes a page, and sets the page's LSN.
    pub(crate) fn change(
        &mut self,
        relation: RelFileLocator,
        block: u32,
        page: &mut PageBytes,
    ) -> Result<RecordLocation, LogWriterError> {
        let mut room = self.log.room(&mut self.session, 1, 9_000)?;
        let part = NewBlock {
            id: 0,
            relation,
            fork: Fork::Main,
            block,
            page,
            image: ImageMode::IfNeeded,
            is_standard: true,
            keeps_data: false,
            data: &[b"data"],
        };
        let blocks = &[part];
        let record = NewRecord { blocks, ..NewRecord::plain(0, 0xB0, 0, &[]) };
        let place = self.inserter.insert(&mut room, &record)?;
        page[..4].copy_from_slice(&place.end.high().to_le_bytes());
        page[4..8].copy_from_slice(&place.end.low().to_le_bytes());
        Ok(place)
    }

    /// Recycles the segments before `redo`, as a checkpoint does at its end.
    pub(crate) fn recycle_before(&self, redo: Lsn) {
        self.log.recycle_before(redo).expect("recycled");
    }

    /// Flushes the log, and notes that this was acknowledged.
    pub(crate) fn flush(&mut self, end: Lsn) -> Result<(), trunkline_engine::log::LogError> {
        self.log.flush(&mut self.session, end)?;
        let mut known = self.known.lock();
        known.acknowledged = known.acknowledged.max(end.0);
        Ok(())
    }
}

/// Passes what a reader of the log finds from `redo` on to `use_event`, up to the end.
pub(crate) fn for_each_event(disk: &Disk, redo: Lsn, mut use_event: impl FnMut(&LogEvent<'_>)) {
    let mut bytes = Vec::new();
    let first = segment_size().segment_of(redo);
    for segment in first.. {
        let name = SegmentName::of(1, segment, segment_size());
        let name = format!("{FOLDER}/{name}");
        if disk.length(&name).is_none() {
            break;
        }
        bytes.extend(disk.content(&name));
    }
    let log = LogIdentity { segment_size: segment_size(), system_identifier: Some(SYSTEM) };
    let mut reader = LogReader::new(log, redo);
    let chunk = LogChunk { start: segment_size().start_of(first), bytes: &bytes };
    while let Some(event) = reader.next(&chunk) {
        use_event(&event);
        if matches!(event, LogEvent::End(_)) {
            return;
        }
    }
}

/// The records on a disk from `redo` on, and where they end.
pub(crate) fn read(disk: &Disk, redo: Lsn) -> (Vec<Written>, Lsn) {
    let mut found: Vec<Written> = Vec::new();
    for_each_event(disk, redo, |event| match event {
        LogEvent::Record(record) => found.push(Written {
            place: RecordLocation { start: record.start, end: record.end },
            xid: record.record.header().xid,
            data: record.record.main_data().to_vec(),
        }),
        LogEvent::End(_) => {}
        other => panic!("{other:?}"),
    });
    let end = found.last().map_or(Lsn(0x10_0000), |last| last.place.end);
    (found, end)
}

/// Whether a flush has inserted a record to end its block. Clients' records have a transaction.
fn is_filler(record: &Written) -> bool {
    record.xid == 0 && record.data.iter().all(|byte| *byte == 0)
}

/// The number of fillers on a disk.
pub(crate) fn fillers(disk: &Disk) -> usize {
    read(disk, FIRST).0.iter().filter(|record| is_filler(record)).count()
}

/// Checks what is on a disk after a crash, from `redo` on: all that was acknowledged, and nothing that was not inserted.
pub(crate) fn check(disk: &Disk, redo: Lsn, acknowledged: u64, written: &[Written]) -> Place {
    let (mut found, end) = read(disk, redo);
    let last = found.last().map_or(Lsn(0), |last| last.place.start);
    found.retain(|record| !is_filler(record));
    assert!(end.0 >= acknowledged, "the log ends at {end}, but {acknowledged:X} was acknowledged");
    let mut expected: Vec<&Written> =
        written.iter().filter(|record| record.place.start >= redo).collect();
    expected.sort_by_key(|record| record.place.start);
    for (found, expected) in found.iter().zip(&expected) {
        assert!(&found == expected, "{:?} instead of {:?}", found.place, expected.place);
    }
    assert!(found.len() <= expected.len(), "{} records of {}", found.len(), expected.len());
    Place { redo, last, end }
}
