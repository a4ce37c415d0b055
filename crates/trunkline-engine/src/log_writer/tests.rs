//! Logs that threads write at once, read back by the reader of the format crate.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use trunkline_aio::facade::{Mutex, thread};
use trunkline_aio::{Aio, Builder, Session, clock};
use trunkline_format::Lsn;
use trunkline_format::wal::{
    LogChunk, LogEvent, LogIdentity, LogReader, NewRecord, SegmentName, SegmentSize,
};

use super::*;
use crate::log::{Log, LogError};
use crate::new_cluster::MARKER;
use crate::storage::{KernelFiles, WritableFiles};

mod methods;
mod old_segments;

const SYSTEM: u64 = 0x1234_5678_9ABC_DEF0;

fn megabyte() -> SegmentSize {
    SegmentSize::new(1 << 20).expect("valid")
}

/// The beginning of a log, as `initdb` leaves it before the first record.
fn options() -> LogWriterOptions {
    LogWriterOptions {
        system_identifier: SYSTEM,
        timeline: 1,
        segment_size: megabyte(),
        end: Lsn(0x10_0000),
        last: Lsn(0),
        redo: Lsn(0x10_0000),
        buffers: 64 << 10,
        inserters: 8,
        sync_method: WalSyncMethod::Fdatasync,
        direct: false,
        direct_init: false,
        min_wal_size: 0,
        wal_keep_size: 0,
        flushes: FlushLimit::Fixed(4),
        wal_level: 0,
        full_page_writes: true,
        compresses: false,
        checks_redo: false,
    }
}

fn instance() -> Aio {
    Builder::new().region_bytes(16 << 20).start().expect("starts")
}

fn open(aio: &Aio, folder: &Path, options: LogWriterOptions) -> Arc<LogWriter> {
    let files = Arc::new(KernelFiles::new(aio));
    try_open(aio, files, folder, options).expect("opens")
}

fn try_open(
    aio: &Aio,
    files: Arc<dyn WritableFiles>,
    folder: &Path,
    options: LogWriterOptions,
) -> Result<Arc<LogWriter>, LogWriterError> {
    fs::create_dir_all(folder.join("pg_wal")).expect("made");
    fs::write(folder.join(MARKER), "").expect("written");
    Ok(Arc::new(LogWriter::open(aio, files, folder, options)?))
}

/// `NOOP`: a record of the manager `XLOG` without meaning.
const NOOP: u8 = 0x20;

/// Inserts a record with its own room.
fn insert(
    log: &Arc<LogWriter>,
    (session, inserter): (&mut Session, &mut Inserter),
    xid: u32,
    data: &[u8],
) -> RecordLocation {
    let mut room = log.room(session, 1, data.len() as u64 + 32).expect("room");
    let main_data = &[data];
    let record = NewRecord::plain(0, NOOP, xid, main_data);
    inserter.insert(&mut room, &record).expect("inserted")
}

/// Where a record is, its transaction, and its main data.
type Record = (RecordLocation, u32, Vec<u8>);

/// All records of a log, and its end.
fn read(folder: &Path, from: Lsn) -> (Vec<Record>, Lsn) {
    let mut bytes = Vec::new();
    let mut segment = megabyte().segment_of(from);
    let start = megabyte().start_of(segment);
    while let Ok(more) =
        fs::read(folder.join("pg_wal").join(SegmentName::of(1, segment, megabyte()).to_string()))
    {
        assert_eq!(more.len(), 1 << 20, "segment {segment}");
        bytes.extend(more);
        segment += 1;
    }
    let identity = LogIdentity { segment_size: megabyte(), system_identifier: Some(SYSTEM) };
    let mut reader = LogReader::new(identity, from);
    let chunk = LogChunk { start, bytes: &bytes };
    let mut records = Vec::new();
    loop {
        match reader.next(&chunk) {
            Some(LogEvent::Record(found)) => records.push((
                RecordLocation { start: found.start, end: found.end },
                found.record.header().xid,
                found.record.main_data().to_vec(),
            )),
            Some(LogEvent::End(end)) => return (records, end.place),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn records_of_many_threads_are_read_back_in_order() {
    write_in_threads(options());
}

/// Writes a log in six threads, and reads it. Returns the number of fillers in it.
fn write_in_threads(options: LogWriterOptions) -> usize {
    let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
    let log = open(&aio, folder.path(), options);
    let written: Arc<Mutex<Vec<Record>>> = Arc::default();
    let threads = (1..=6_u32).map(|thread| {
        let (log, aio, written) = (Arc::clone(&log), aio.clone(), Arc::clone(&written));
        let body = move || {
            let mut session = aio.session().expect("a session");
            let mut inserter = Inserter::new(&log).expect("an inserter");
            for round in 0..300_u32 {
                // From nothing to several pages.
                let length = (round * 37 + thread * 911) as usize % 23_000;
                let data = vec![thread as u8; length * usize::from(round % 5 == 0)];
                let xid = thread << 16 | round;
                let place = insert(&log, (&mut session, &mut inserter), xid, &data);
                if round % 3 == 0 {
                    log.flush(&mut session, place.end).expect("durable");
                    assert!(log.durable() >= place.end);
                }
                written.lock().push((place, xid, data));
            }
            log.flush(&mut session, log.end()).expect("durable");
        };
        thread::spawn("client", body).expect("starts")
    });
    let threads: Vec<_> = threads.collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let mut written = std::mem::take(&mut *written.lock());
    written.sort_by_key(|(place, ..)| place.start);
    assert_eq!(log.durable(), log.end());
    let (found, end) = read(folder.path(), Lsn(0x10_0028));
    // Fillers are the only records without a transaction.
    let (records, fillers): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, xid, _)| *xid > 0);
    assert_eq!(records.len(), written.len());
    assert!(records == written, "records differ");
    assert_eq!(end, log.end());
    // More than two segments, so boundaries of both kinds were crossed.
    assert!(end.0 > 0x30_0000, "{end}");
    fillers.len()
}

#[test]
fn a_log_goes_on_behind_its_last_record() {
    go_on_behind_the_end(options());
}

/// Opens a log many times, and goes on where it ends.
fn go_on_behind_the_end(mut options: LogWriterOptions) {
    let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
    let mut session = aio.session().expect("a session");
    let mut all = Vec::new();
    for round in 0..40_u32 {
        let log = open(&aio, folder.path(), options.clone());
        let mut inserter = Inserter::new(&log).expect("an inserter");
        for part in 0..1 + round % 4 {
            let data = vec![round as u8; (round * 977 + part) as usize % 30_000];
            let place = insert(&log, (&mut session, &mut inserter), round + 1, &data);
            options.last = place.start;
            all.push((place, round + 1, data));
        }
        log.flush(&mut session, log.end()).expect("durable");
        // What was not flushed is lost, and must not be read later.
        insert(&log, (&mut session, &mut inserter), 999, &[9; 100]);
        options.end = all.last().expect("one").0.end;
    }
    assert_eq!(read(folder.path(), Lsn(0x10_0028)).0, all);
}

#[test]
fn old_records_behind_the_end_are_erased() {
    let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
    let mut session = aio.session().expect("a session");
    let log = open(&aio, folder.path(), options());
    let mut inserter = Inserter::new(&log).expect("an inserter");
    let places: Vec<RecordLocation> = (1..200_u32)
        .map(|xid| insert(&log, (&mut session, &mut inserter), xid, &[xid as u8; 12_000]))
        .collect();
    log.flush(&mut session, log.end()).expect("durable");
    // The first ten records are the log now. The next one is as long as the one that it replaces, so the one after
    // that would fit behind it.
    let (last, end) = (places[9].start, places[9].end);
    let log = open(&aio, folder.path(), LogWriterOptions { last, end, ..options() });
    assert!(!folder.path().join("pg_wal/000000010000000000000003").exists());
    let mut inserter = Inserter::new(&log).expect("an inserter");
    let place = insert(&log, (&mut session, &mut inserter), 500, &[5; 12_000]);
    assert_eq!(place, places[10]);
    log.flush(&mut session, place.end).expect("durable");
    let (found, end) = read(folder.path(), Lsn(0x10_0028));
    assert_eq!((found.len(), end), (11, place.end));
    assert_eq!(found[10].1, 500);
}

/// The last two digits of the names in `pg_wal`, in order.
fn segments(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("pg_wal")).expect("listed");
    let names = entries.map(|entry| entry.expect("read").file_name().into_string().expect("text"));
    let mut names: Vec<String> = names.map(|name| name[22..].to_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_checkpoint_moves_redo_to_its_record() {
    let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
    let mut session = aio.session().expect("a session");
    let log = open(&aio, folder.path(), options());
    let mut inserter = Inserter::new(&log).expect("an inserter");
    insert(&log, (&mut session, &mut inserter), 1, b"before");
    let mut room = log.room(&mut session, 1, 64).expect("room");
    let redo = inserter.begin_checkpoint(&mut room).expect("inserted");
    drop(room);
    assert_eq!(log.redo(), redo.start);
    insert(&log, (&mut session, &mut inserter), 2, b"after");
    log.flush(&mut session, log.end()).expect("durable");
    let (found, _) = read(folder.path(), Lsn(0x10_0028));
    assert_eq!(found.len(), 3);
    assert_eq!((found[1].0, &found[1].2[..]), (redo, &[0; 4][..]));
}

#[test]
fn a_record_that_never_fits_is_refused() {
    let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
    let mut session = aio.session().expect("a session");
    let log = open(&aio, folder.path(), options());
    let error = log.room(&mut session, 1, 40_000).expect_err("too long").to_string();
    assert_eq!(
        error,
        "1 WAL records need 40192 bytes, but at most 32768 fit (half of wal_buffers, or 16 MB)"
    );
    // A record that is longer than its room is refused, too, and nothing is inserted.
    let mut inserter = Inserter::new(&log).expect("an inserter");
    let mut room = log.room(&mut session, 1, 100).expect("room");
    let before = log.end();
    let main_data: &[&[u8]] = &[&[1; 400]];
    let record = NewRecord::plain(0, NOOP, 1, main_data);
    let error = inserter.insert(&mut room, &record).expect_err("too long");
    assert!(matches!(error, LogWriterError::RoomExceeded { .. }), "{error}");
    assert_eq!(log.end(), before);
}

#[test]
fn no_more_inserters_than_the_options_say() {
    let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
    let log = open(&aio, folder.path(), LogWriterOptions { inserters: 2, ..options() });
    let (first, second) = (Inserter::new(&log), Inserter::new(&log));
    assert!(first.is_some() && second.is_some() && Inserter::new(&log).is_none());
    drop(first);
    assert!(Inserter::new(&log).is_some());
}

#[test]
fn the_thread_makes_asynchronous_commits_durable() {
    let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
    let mut session = aio.session().expect("a session");
    let log = open(&aio, folder.path(), options());
    let _flusher = LogFlusher::start(&aio, &log, Duration::from_millis(1)).expect("starts");
    let mut inserter = Inserter::new(&log).expect("an inserter");
    let place = insert(&log, (&mut session, &mut inserter), 7, b"asynchronous");
    let begun = clock::now();
    while log.durable() < place.end {
        assert!(clock::now().since(begun) < Duration::from_secs(60), "the thread does not flush");
        thread::yield_now();
    }
    assert_eq!(read(folder.path(), Lsn(0x10_0028)).0.len(), 1);
}

#[test]
fn a_flush_beyond_the_end_is_refused() {
    let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
    let mut session = aio.session().expect("a session");
    let log = open(&aio, folder.path(), options());
    let error = log.flush(&mut session, Lsn(0x20_0000)).expect_err("beyond the end");
    assert_eq!(
        error.to_string(),
        "could not make the log durable up to 0/00200000: the log ends before that"
    );
}

#[test]
fn a_directory_that_we_have_not_made_is_never_written() {
    let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
    fs::create_dir(folder.path().join("pg_wal")).expect("made");
    let segment = folder.path().join("pg_wal/000000010000000000000001");
    fs::write(&segment, [1; 100]).expect("written");
    let files = Arc::new(KernelFiles::new(&aio));
    let error = LogWriter::open(&aio, files, folder.path(), options()).expect_err("not ours");
    assert!(matches!(error, LogWriterError::NotOurs { .. }), "{error}");
    assert_eq!(fs::read(&segment).expect("read"), [1; 100]);
}

/// Polls a flush until it is ready.
fn poll_flush(log: &LogWriter, session: &mut Session, wanted: Lsn) -> Result<(), LogError> {
    let mut context = Context::from_waker(Waker::noop());
    let mut wait = session.polled_wait();
    loop {
        match log.poll_flush(&mut context, session, &mut wait, wanted) {
            Poll::Ready(flushed) => return flushed,
            Poll::Pending => thread::yield_now(),
        }
    }
}

#[test]
fn the_thread_flushes_for_tasks() {
    let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
    let mut session = aio.session().expect("a session");
    let log = open(&aio, folder.path(), options());
    let mut inserter = Inserter::new(&log).expect("an inserter");
    let place = insert(&log, (&mut session, &mut inserter), 7, b"for a task");
    let error = poll_flush(&log, &mut session, place.end).expect_err("no thread").to_string();
    assert!(error.ends_with("no thread flushes the WAL for tasks"), "{error}");
    // The delay is so long that only a request wakes the thread.
    let delay = Duration::from_secs(3600);
    let flusher = LogFlusher::start(&aio, &log, delay).expect("starts");
    poll_flush(&log, &mut session, place.end).expect("durable");
    assert!(log.durable() >= place.end);
    assert_eq!(read(folder.path(), Lsn(0x10_0028)).0.len(), 1);
    let error = poll_flush(&log, &mut session, Lsn(0x20_0000)).expect_err("beyond the end");
    assert!(error.to_string().ends_with("the log ends before that"), "{error}");
    drop(flusher);
}

#[test]
fn a_log_without_its_last_segment_is_refused() {
    let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
    fs::create_dir_all(folder.path().join("pg_wal")).expect("made");
    fs::write(folder.path().join(MARKER), "").expect("written");
    let files = Arc::new(KernelFiles::new(&aio));
    let options = LogWriterOptions { end: Lsn(0x10_0100), ..options() };
    let error = LogWriter::open(&aio, files, folder.path(), options).expect_err("no segment");
    let error = error.to_string();
    assert!(error.contains("000000010000000000000001\": No such file"), "{error}");
}
