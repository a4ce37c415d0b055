//! The ways to make WAL durable: each method, through the page cache and past it.

use std::io;

use trunkline_aio::File;

use super::*;
use crate::storage::{FileSystem, StorageError};

/// Calls `body` with each method, past the page cache too if the file system of temporary files supports that.
fn for_each_method(mut body: impl FnMut(LogWriterOptions)) {
    let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
    let files = Arc::new(KernelFiles::new(&aio));
    // The first segment is created by the first one that opens a log here.
    let direct = LogWriterOptions { direct_init: true, ..options() };
    let log = open(&aio, folder.path(), options());
    let created =
        try_open(&aio, files, folder.path(), direct).and_then(|log| log.create_segments_ahead());
    drop(log);
    let is_supported = match created {
        Ok(()) => true,
        Err(LogWriterError::Direct(error)) => {
            println!("skipped: {error}");
            false
        }
        Err(error) => panic!("{error}"),
    };
    for sync_method in [WalSyncMethod::Fdatasync, WalSyncMethod::OpenDatasync] {
        for direct in [false, true] {
            if is_supported || !direct {
                body(LogWriterOptions { sync_method, direct, direct_init: direct, ..options() });
            }
        }
    }
}

#[test]
fn each_method_writes_what_threads_insert() {
    for_each_method(|options| {
        let overlaps = options.direct || options.sync_method == WalSyncMethod::OpenDatasync;
        let fillers = write_in_threads(options.clone());
        assert!(overlaps || fillers == 0, "{fillers} fillers, although writes are in order");
        let alone = LogWriterOptions { flushes: FlushLimit::default(), ..options };
        assert_eq!(write_in_threads(alone), 0, "fillers, although no flush has another beside it");
    });
}

#[test]
fn each_method_goes_on_in_the_last_block() {
    for_each_method(go_on_behind_the_end);
}

#[test]
fn one_client_writes_no_fillers() {
    for_each_method(|options| {
        let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
        let mut session = aio.session().expect("a session");
        let log = open(&aio, folder.path(), options);
        let mut inserter = Inserter::new(&log).expect("an inserter");
        for xid in 1..=50 {
            let place = insert(&log, (&mut session, &mut inserter), xid, &[1; 100]);
            log.flush(&mut session, place.end).expect("durable");
        }
        assert_eq!(read(folder.path(), Lsn(0x10_0028)).0.len(), 50);
    });
}

/// A file system without direct I/O.
struct NoDirect(KernelFiles);

impl NoDirect {
    fn check(direct: bool) -> io::Result<()> {
        // EINVAL
        if direct { Err(io::Error::from_raw_os_error(22)) } else { Ok(()) }
    }
}

impl FileSystem for NoDirect {
    fn open(&self, path: &Path, direct: bool) -> io::Result<File> {
        Self::check(direct)?;
        self.0.open(path, direct)
    }

    fn length(&self, file: &File) -> io::Result<u64> {
        self.0.length(file)
    }

    fn file_length(&self, path: &Path) -> io::Result<Option<u64>> {
        self.0.file_length(path)
    }
}

impl WritableFiles for NoDirect {
    fn open_for_writing(&self, path: &Path, direct: bool, create: bool) -> io::Result<File> {
        Self::check(direct)?;
        self.0.open_for_writing(path, direct, create)
    }

    fn allocate(&self, file: &File, offset: u64, length: u64) -> io::Result<()> {
        self.0.allocate(file, offset, length)
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        self.0.truncate(file, length)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }

    fn sync_directory_of(&self, path: &Path) -> io::Result<()> {
        self.0.sync_directory_of(path)
    }
}

#[test]
fn a_file_system_without_direct_io_is_refused_by_name() {
    let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
    let log = open(&aio, folder.path(), options());
    log.create_segments_ahead().expect("created");
    drop(log);
    for (direct, direct_init) in [(true, false), (false, true)] {
        let files = Arc::new(NoDirect(KernelFiles::new(&aio)));
        let end = Lsn(0x10_0100);
        let options = LogWriterOptions { direct, direct_init, end, ..options() };
        let opened = try_open(&aio, files, folder.path(), options);
        let refused = opened.and_then(|log| log.create_segments_ahead()).expect_err("refused");
        let LogWriterError::Direct(error) = &refused else { panic!("{refused}") };
        assert!(matches!(**error, StorageError::Direct { .. }), "{error}");
        let name = if direct { "000000010000000000000001" } else { "xlogtemp.trunkline-2" };
        assert!(error.to_string().contains(&format!("{name}\" cannot be opened")), "{error}");
    }
}

#[test]
fn auto_uses_what_it_has_measured() {
    let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
    let mut session = aio.session().expect("a session");
    let named = open(&aio, folder.path(), options());
    assert_eq!((named.sync_times(), named.sync_method()), (None, WalSyncMethod::Fdatasync));
    drop(named);
    let auto = LogWriterOptions { sync_method: WalSyncMethod::Auto, ..options() };
    let log = open(&aio, folder.path(), auto);
    let times = log.sync_times().expect("measured");
    assert!(!times.fdatasync.is_zero() && !times.open_datasync.is_zero(), "{times}");
    assert_eq!(log.sync_method(), times.best());
    let shown = format!("{log:?}");
    assert!(shown.contains(times.best().name()), "{shown}");
    assert_eq!((log.flush_rates(), log.flush_limit()), (None, 4));
    assert_eq!(segments(folder.path()), Vec::<String>::new(), "the file is gone");
    let mut inserter = Inserter::new(&log).expect("an inserter");
    let place = insert(&log, (&mut session, &mut inserter), 1, &[1; 100]);
    log.flush(&mut session, place.end).expect("durable");
    assert_eq!(read(folder.path(), Lsn(0x10_0028)).0.len(), 1);
}

#[test]
fn the_number_of_flushes_is_measured_with_each_method() {
    for_each_method(|options| {
        let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
        let options = LogWriterOptions { flushes: FlushLimit::Auto, ..options };
        let log = open(&aio, folder.path(), options.clone());
        let rates = log.flush_rates().expect("measured");
        assert!(rates.rates[0] > 0, "{rates}");
        assert_eq!(log.flush_limit(), rates.best());
        let shown = format!("{log:?}");
        assert!(shown.contains(&format!("at most {} in flight", rates.best())), "{shown}");
        let measured = fs::read_dir(folder.path().join("pg_wal")).expect("listed");
        let left = measured.map(|entry| entry.expect("an entry").file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("sync")).collect();
        assert!(left.is_empty(), "{left:?}");
        // Lanes that are not needed are given back.
        let fixed = instance();
        let flushes = FlushLimit::Fixed(rates.best());
        let log_of_fixed =
            open(&fixed, folder.path(), LogWriterOptions { flushes, ..options.clone() });
        assert_eq!(free_lanes(&aio), free_lanes(&fixed));
        drop((log, log_of_fixed));
        write_in_threads(options);
    });
}

/// The number of further lanes for which an instance has memory.
fn free_lanes(aio: &Aio) -> usize {
    let lanes = std::iter::from_fn(|| Lane::new(aio).ok());
    lanes.collect::<Vec<_>>().len()
}
