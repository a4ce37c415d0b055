//! Tests of the open-file table: its limit, its replacement order, and files in use.

use std::fs;
use std::io;
use std::path::Path;

use rustix::io::Errno;
use trunkline_aio::facade::atomic::Ordering;
use trunkline_aio::facade::{Arc, Futex, thread};
use trunkline_aio::{
    Aio, Builder, Class, Executor, File, Kernel, MethodKind, Request, Slots, Status,
};
use trunkline_engine::storage::{
    FileSystem, KernelFiles, Layout, OpenFiles, Storage, StorageError,
};
use trunkline_format::Fork;

use crate::child;
use crate::fake::{Fake, SEGMENT_BYTES};
use crate::jobs::{METHODS, instance, page, pages};
use crate::storage::{locator, storage};

const ALL_WAITERS: u32 = u32::MAX >> 1;

/// Counts this process's descriptors for files in the directory.
fn descriptors(fake: &Fake) -> usize {
    let entries = fs::read_dir("/proc/self/fd").expect("lists").flatten();
    let inside = |entry: &fs::DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|target| target.starts_with(&fake.path))
    };
    entries.filter(inside).count()
}

/// A counter that threads can wait on.
#[derive(Default)]
struct Gate(Futex);

impl Gate {
    fn add(&self) {
        self.0.word().fetch_add(1, Ordering::SeqCst);
        self.0.wake(ALL_WAITERS);
    }

    fn wait(&self, least: u32) {
        loop {
            let seen = self.0.word().load(Ordering::SeqCst);
            if seen >= least {
                return;
            }
            self.0.wait(seen, None);
        }
    }
}

/// Waits until only `count` files are open. We have to wait because the thread that completes an
/// I/O doesn't close files itself but leaves that to another thread, so a file may be closed some
/// time after its I/O has completed.
fn wait_until_open(aio: &Aio, count: usize) {
    while aio.open_files() != count {
        thread::yield_now();
    }
}

#[test]
fn thousands_of_relations_with_64_descriptors() {
    let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
    for number in 0..3000 {
        fake.sparse(&format!("base/5/{}", 16384 + number), 8192);
    }
    let storage = storage(&fake, &aio, 64, false);
    for round in 0..2 {
        for number in 0..3000 {
            let relation = storage.relation(locator(16384 + number), Fork::Main);
            let located = relation.locate(0).expect("located");
            assert_eq!(located.file.path(), relation.path(0));
            if number % 100 == 0 {
                assert!(descriptors(&fake) <= 65, "round {round}, relation {number}");
            }
        }
    }
    let files = storage.files();
    assert_eq!((files.limit(), files.open(), aio.open_files()), (64, 64, 64));
    assert_eq!((files.opens(), files.evictions(), files.hits()), (6000, 6000 - 64, 0));
    assert_eq!(descriptors(&fake), 64);
}

/// A frequently used file must stay open while thousands of other files are opened.
#[test]
fn a_file_in_frequent_use_stays_open() {
    for limit in [4, 64, 1000] {
        let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
        for number in 0..2000 {
            fake.sparse(&format!("base/5/{}", 16384 + number), 0);
        }
        let storage = storage(&fake, &aio, limit, false);
        let hot = storage.relation(locator(16384), Fork::Main);
        let first = hot.locate(0).expect("located").file.id();
        for number in 1..2000 {
            storage.relation(locator(16384 + number), Fork::Main).locate(0).expect("located");
            assert_eq!(hot.locate(0).expect("located").file.id(), first, "limit {limit}");
        }
        assert_eq!((storage.files().opens(), storage.files().hits()), (2000, 1999));
        assert_eq!(storage.files().open(), limit);
    }
}

/// The process may run out of descriptors before the table has reached its own limit.
#[test]
fn descriptors_run_short() {
    if !child::is_child() {
        return child::with_files_max(40, "storage_table::descriptors_run_short");
    }
    let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
    for number in 0..300 {
        fake.sparse(&format!("base/5/{}", 16384 + number), 0);
    }
    let storage = storage(&fake, &aio, 10_000, false);
    for number in 0..300 {
        let relation = storage.relation(locator(16384 + number), Fork::Main);
        relation.locate(0).expect("located");
    }
    assert!(storage.files().evictions() > 200, "{}", storage.files().evictions());
    assert_eq!(storage.files().opens(), 300);

    // Code outside the table now holds all descriptors, so there is no file left that the table
    // could close.
    storage.forget(locator(16384 + 299));
    let mut others = Vec::new();
    let refused = loop {
        let number = 16384 + others.len() as u32;
        match storage.relation(locator(number), Fork::Main).locate(0) {
            Ok(located) => others.push(located),
            Err(error) => break error,
        }
    };
    assert!(refused.to_string().ends_with("(os error 24)"), "{refused}");
    assert_eq!(refused.hint(), Some("raise the limit of open files (ulimit -n)"));
    assert_eq!(storage.files().open(), 0);
    drop(others);
    storage.relation(locator(16384), Fork::Main).locate(0).expect("room again");
}

/// Opens real files, but each call of `open` blocks until the given number of threads are opening a
/// file.
struct Together {
    files: KernelFiles,
    inside: Gate,
    count: u32,
}

impl FileSystem for Together {
    fn open(&self, path: &Path, direct: bool) -> io::Result<File> {
        self.inside.add();
        self.inside.wait(self.count);
        self.files.open(path, direct)
    }

    fn length(&self, file: &File) -> io::Result<u64> {
        self.files.length(file)
    }

    fn file_length(&self, path: &Path) -> io::Result<Option<u64>> {
        self.files.file_length(path)
    }
}

fn layout() -> Layout {
    Layout { checksums: true, tablespace_directory: "PG_18_202506291".into() }
}

#[test]
fn threads_that_open_the_same_segment_get_the_same_file() {
    const THREADS: u32 = 8;
    let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
    fake.sparse("base/5/16384", 8192);
    let together =
        Together { files: KernelFiles::new(&aio), inside: Gate::default(), count: THREADS };
    let files = OpenFiles::read_only(64, Arc::new(together));
    let storage = Storage::new(&fake.path, layout(), &files, false);
    let ids = Arc::new(trunkline_aio::facade::Mutex::new(Vec::new()));
    let threads = (0..THREADS).map(|number| {
        let (relation, ids) = (storage.relation(locator(16384), Fork::Main), Arc::clone(&ids));
        thread::spawn(&format!("opener {number}"), move || {
            let id = relation.locate(0).expect("located").file.id();
            ids.lock().push(id);
        })
    });
    let threads: Vec<_> = threads.collect();
    threads.into_iter().for_each(|thread| thread.expect("started").join().expect("ended"));
    let ids = ids.lock();
    assert_eq!(ids.len(), THREADS as usize);
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!((files.opens(), files.open(), aio.open_files()), (u64::from(THREADS), 1, 1));
}

/// Many threads use many files through a small table. Every thread must get the right file, and the
/// table must not exceed its limit.
#[test]
fn many_threads_share_a_small_table() {
    const THREADS: usize = 8;
    let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
    for number in 0..200 {
        fake.sparse(&format!("base/5/{}", 16384 + number), 8192);
    }
    let storage = storage(&fake, &aio, 64, false);
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let storage = storage.clone();
            thread::spawn(&format!("user {thread}"), move || {
                for step in 0..4000 {
                    let number = (step * (2 * thread + 3) % 200) as u32;
                    let relation = storage.relation(locator(16384 + number), Fork::Main);
                    let located = relation.locate(0).expect("located");
                    assert_eq!(located.file.path(), relation.path(0));
                    assert!(storage.files().open() <= 64 + THREADS);
                    if step % 500 == thread {
                        storage.forget(relation.locator());
                    }
                }
            })
            .expect("started")
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("ended"));
    assert!(storage.files().open() <= 64, "{:?}", storage.files());
    assert_eq!(storage.files().open(), aio.open_files());
    assert_eq!(descriptors(&fake), aio.open_files());
}

/// Blocks reads until the gate is opened.
struct Held {
    begun: Arc<Gate>,
    gate: Arc<Gate>,
}

impl Executor for Held {
    fn execute(&self, request: &mut Request<'_>) -> i32 {
        self.begun.add();
        self.gate.wait(1);
        Kernel.execute(request)
    }

    fn advise(&self, file: &File, offset: u64, length: u64) -> bool {
        Kernel.advise(file, offset, length)
    }
}

/// A file that is evicted during an I/O must stay open until the I/O has completed.
#[test]
fn a_file_evicted_during_io_stays_open_until_completion() {
    for forget in [false, true] {
        let fake = Fake::new();
        for number in 0..4 {
            fake.write(&format!("base/5/{}", 16384 + number), &pages(number..number + 3));
        }
        let (begun, gate) = (Arc::new(Gate::default()), Arc::new(Gate::default()));
        let held = Held { begun: Arc::clone(&begun), gate: Arc::clone(&gate) };
        let builder = Builder::new().method(MethodKind::Worker).executor(Arc::new(held));
        let aio = builder.try_cached_below(0).start().expect("started");
        let storage = storage(&fake, &aio, 1, false);
        let relation = |number: u32| storage.relation(locator(16384 + number), Fork::Main);

        let mut session = aio.session().expect("a session");
        let mut operations = Slots::new(1);
        let lease = aio.region().lease(1).expect("a frame");
        operations.memory(0).expect("idle").push(lease);
        let located = relation(0).locate(2).expect("located");
        let id = located.file.id();
        session
            .acquire(Class::Foreground)
            .expect("a handle")
            .read(&located.file, located.offset, 8192, &mut operations, 0)
            .expect("defined");
        drop(located);
        begun.wait(1);
        if forget {
            storage.forget(relation(0).locator());
        } else {
            (1..4).for_each(|number| drop(relation(number).locate(0).expect("located")));
        }
        let kept = usize::from(!forget);
        assert_eq!(storage.files().open(), kept);
        assert_eq!((aio.open_files(), descriptors(&fake)), (1 + kept, 1 + kept));

        gate.add();
        let outcome = session.wait(&mut operations, 0).expect("not cancelled");
        assert_eq!((outcome.status, outcome.count), (Status::Ok, 8192));
        assert_eq!(operations.memory(0).expect("idle")[0][..], page(2));
        wait_until_open(&aio, kept);
        assert_ne!(relation(0).locate(2).expect("located").file.id(), id, "opened anew");
    }
}

/// If we read at the location of a block, we must get that block, with every I/O method.
#[test]
fn reads_through_located_files() {
    for method in METHODS {
        let fake = Fake::new();
        fake.write("base/5/16384", &pages(0..5));
        // The last block of a full segment, and the first block of the next segment.
        fake.sparse("base/5/16385", SEGMENT_BYTES);
        let file = fs::File::options().write(true).open(fake.at("base/5/16385")).expect("opened");
        std::os::unix::fs::FileExt::write_all_at(&file, &page(131_071), SEGMENT_BYTES - 8192)
            .expect("written");
        fake.write("base/5/16385.1", &page(131_072));
        let aio = instance(method);
        let storage = storage(&fake, &aio, 2, false);
        let mut session = aio.session().expect("a session");
        let mut operations = Slots::new(1);
        operations.memory(0).expect("idle").push(aio.region().lease(1).expect("a frame"));
        for (number, block) in [(16384, 0), (16385, 131_071), (16385, 131_072), (16384, 4)] {
            let located =
                storage.relation(locator(number), Fork::Main).locate(block).expect("located");
            session
                .acquire(Class::Foreground)
                .expect("a handle")
                .read(&located.file, located.offset, 8192, &mut operations, 0)
                .expect("defined");
            let outcome = session.wait(&mut operations, 0).expect("not cancelled");
            assert_eq!(outcome.status, Status::Ok);
            assert_eq!(
                operations.memory(0).expect("idle")[0][..],
                page(block),
                "{method}, {block}"
            );
        }
        assert_eq!(storage.files().open(), 2);
    }
}

#[test]
fn forgetting_closes_all_forks_and_segments_of_a_relation() {
    let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
    fake.sparse("base/5/16384", SEGMENT_BYTES);
    for name in ["16384.1", "16384_fsm", "16384_vm", "16385"] {
        fake.sparse(&format!("base/5/{name}"), 8192);
    }
    let (storage, other) = (storage(&fake, &aio, 64, false), storage(&fake, &aio, 64, false));
    let touch = |storage: &Storage| {
        for (number, fork, block) in [
            (16384, Fork::Main, 0),
            (16384, Fork::Main, 131_072),
            (16384, Fork::Fsm, 0),
            (16384, Fork::Vm, 0),
            (16385, Fork::Main, 0),
        ] {
            storage.relation(locator(number), fork).locate(block).expect("located");
        }
    };
    touch(&storage);
    touch(&other);
    storage.forget(locator(16384));
    assert_eq!((storage.files().open(), other.files().open()), (1, 5));

    // If a file is replaced, we keep using the old file until the relation is forgotten.
    let replace = || {
        fs::remove_file(fake.at("base/5/16385")).expect("removed");
        fake.sparse("base/5/16385", 3 * 8192);
    };
    replace();
    let relation = storage.relation(locator(16385), Fork::Main);
    assert_eq!(relation.blocks().expect("blocks"), 1, "of the file that is open");
    storage.forget(locator(16385));
    assert_eq!(relation.blocks().expect("blocks"), 3);
    assert_eq!(relation.locate(0).expect("located").file.length().expect("length"), 3 * 8192);
}

#[test]
fn clusters_share_a_table_and_close_their_files() {
    let (first, second) = (Fake::new(), Fake::new());
    let aio = instance(MethodKind::Sync);
    let files = OpenFiles::kernel(&aio, 64);
    let of = |fake: &Fake| {
        fake.sparse("base/5/16384", 8192);
        let dir = fake.open().expect("opened");
        let storage = Storage::of_datadir(&dir, &files, false);
        let relation = storage.relation(locator(16384), Fork::Main);
        let located = relation.locate(0).expect("located");
        assert_eq!(located.file.path(), fake.at("base/5/16384"));
        relation
    };
    let (one, two) = (of(&first), of(&second));
    assert_ne!(one.storage().number(), two.storage().number());
    assert_eq!(files.open(), 2);
    drop(one);
    assert_eq!((files.open(), aio.open_files()), (1, 1));
    drop(two);
    assert_eq!((files.open(), aio.open_files()), (0, 0));
}

/// Lets the test pause a thread that has just opened a file. If the file is forgotten while the
/// thread is paused, the thread must not add the file to the table.
struct Forgetful {
    files: KernelFiles,
    begun: Gate,
    gate: Gate,
}

impl FileSystem for Forgetful {
    fn open(&self, path: &Path, direct: bool) -> io::Result<File> {
        let file = self.files.open(path, direct);
        self.begun.add();
        self.gate.wait(1);
        file
    }

    fn length(&self, file: &File) -> io::Result<u64> {
        self.files.length(file)
    }

    fn file_length(&self, path: &Path) -> io::Result<Option<u64>> {
        self.files.file_length(path)
    }
}

#[test]
fn a_file_forgotten_during_open_is_not_added() {
    let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
    fake.sparse("base/5/16384", 8192);
    let system = Arc::new(Forgetful {
        files: KernelFiles::new(&aio),
        begun: Gate::default(),
        gate: Gate::default(),
    });
    let files = OpenFiles::read_only(64, Arc::clone(&system) as _);
    let storage = Storage::new(&fake.path, layout(), &files, false);
    let relation = storage.relation(locator(16384), Fork::Main);
    let opener = thread::spawn("opener", move || {
        relation.locate(0).expect("located");
    });
    system.begun.wait(1);
    assert_eq!(files.open(), 1, "a place is taken");
    storage.forget(locator(16384));
    system.gate.add();
    opener.expect("started").join().expect("ended");
    assert_eq!((files.open(), aio.open_files()), (0, 0));
    storage.relation(locator(16384), Fork::Main).locate(0).expect("located");
    assert_eq!((files.open(), files.opens()), (1, 2));
}

/// What happens when a file is opened for direct I/O.
enum Answer {
    /// The kernel refuses, because the file system doesn't support direct I/O.
    Kernel,
    Error(Errno),
    /// The file is silently opened through the page cache instead.
    Buffered,
}

struct NoDirect(Aio, Answer);

impl FileSystem for NoDirect {
    fn open(&self, path: &Path, direct: bool) -> io::Result<File> {
        match self.1 {
            Answer::Kernel => KernelFiles::new(&self.0).open(Path::new("/proc/version"), direct),
            Answer::Error(errno) => Err(errno.into()),
            Answer::Buffered => Ok(self.0.open_virtual(path, 1, false)),
        }
    }

    fn length(&self, _file: &File) -> io::Result<u64> {
        Ok(0)
    }

    fn file_length(&self, _path: &Path) -> io::Result<Option<u64>> {
        Ok(Some(0))
    }
}

/// We must never silently fall back to the page cache.
#[test]
fn missing_direct_io_is_an_error_with_the_file_name() {
    let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
    fake.sparse("base/5/16384", 0);
    for answer in [
        Answer::Kernel,
        Answer::Error(Errno::INVAL),
        Answer::Error(Errno::OPNOTSUPP),
        Answer::Buffered,
    ] {
        let files = OpenFiles::read_only(64, Arc::new(NoDirect(aio.clone(), answer)));
        let storage = Storage::new(&fake.path, layout(), &files, true);
        let error = storage.relation(locator(16384), Fork::Main).locate(0).expect_err("not direct");
        assert!(matches!(error, StorageError::Direct { .. }), "{error}");
        let path = fake.at("base/5/16384");
        let name = trunkline_aio::file_system_name(&path);
        assert_eq!(
            error.to_string(),
            format!(
                "\"{}\" cannot be opened for direct I/O: the file system, {name}, does not \
                 support it",
                path.display()
            )
        );
        assert_eq!(error.hint(), Some("read through the cache: leave io_direct empty"));
        assert_eq!((files.open(), aio.open_files()), (0, 0));
    }
}
