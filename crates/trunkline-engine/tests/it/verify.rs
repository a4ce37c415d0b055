//! Page verification of fake data directories: what it finds, what it counts, and what makes a job
//! end early.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use trunkline_aio::MethodKind;
use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_aio::facade::{Arc, Futex, thread};
use trunkline_engine::datadir::FileEntry;
use trunkline_engine::file_scan::ReadOptions;
use trunkline_engine::job::{End, JobError, Observer, Unobserved};
use trunkline_engine::verify::{FindingKind, Options, verify, verify_files};
use trunkline_format::{Fork, Oid};

use crate::child;
use crate::fake::{Fake, SEGMENT_BYTES};
use crate::jobs::{
    At, Fault, Faulty, METHODS, OPTIONS, READ, instance, lines, page, pages, verified,
};

/// Combinations of methods and options that exercise different code paths.
fn ways() -> impl Iterator<Item = (MethodKind, ReadOptions)> {
    let options = [
        READ,
        ReadOptions { direct: true, ..READ },
        ReadOptions { depth: 0, ..READ },
        ReadOptions { depth: 3, combine_blocks: 1, ..READ },
        ReadOptions { depth: 40, combine_blocks: 128, ..READ },
    ];
    METHODS.into_iter().flat_map(move |method| options.map(|options| (method, options)))
}

#[test]
fn a_clean_directory_has_no_findings() {
    let fake = Fake::new();
    fake.write("base/5/16384", &pages(0..1000));
    fake.write("base/5/16385", &pages(0..1));
    fake.write("base/5/16386", &[]);
    fake.write("base/5/16387", &[0; 3 * 8192]);
    fake.write("global/1262", &pages(0..17));
    let dir = fake.open().expect("opened");
    for (method, read) in ways() {
        let report = verified(&instance(method), &dir, Options { read, ..OPTIONS });
        assert_eq!(lines(&dir, &report), [""; 0], "{method} {read:?}");
        assert_eq!((report.end, report.files, report.blocks), (End::Complete, 5, 1021));
        assert_eq!((report.checksum_version, report.findings_total()), (1, 0));
        assert_eq!(report.io.bytes, 1021 * 8192, "{method} {read:?}");
    }
}

#[test]
fn bad_pages_are_named() {
    let fake = Fake::new();
    let mut bytes = pages(0..300);
    bytes[17 * 8192 + 5000] ^= 4;
    bytes[299 * 8192 + 8000] ^= 1;
    // The page isn't all zeros, although it looks like a new page according to its header.
    // pg_checksums ignores such pages.
    bytes[20 * 8192..21 * 8192].fill(0);
    bytes[21 * 8192 - 1] = 1;
    fake.write("base/5/16384", &bytes);
    // A valid page that is in the wrong place, so its block number is wrong.
    fake.write("base/5/16385", &pages(1..2));
    let dir = fake.open().expect("opened");
    for (method, read) in ways() {
        let report = verified(&instance(method), &dir, Options { read, ..OPTIONS });
        let found = lines(&dir, &report);
        assert_eq!(found.len(), 4, "{method} {read:?}: {found:?}");
        assert!(found[0].starts_with("base/5/16384: block 17: checksum 0x"), "{found:?}");
        assert!(found[1].starts_with("base/5/16384: block 20: "), "{found:?}");
        assert!(found[2].starts_with("base/5/16384: block 299: checksum 0x"), "{found:?}");
        assert!(found[3].starts_with("base/5/16385: block 0: checksum 0x"), "{found:?}");
        assert_eq!((report.bad_checksums, report.beyond_checksums), (3, 1));
        assert_eq!((report.other_findings, report.blocks), (0, 301));
    }
}

#[test]
fn blocks_are_counted_over_segments() {
    let fake = Fake::new();
    fake.sparse("base/5/16384", SEGMENT_BYTES);
    let mut bytes = pages(131_072..131_080);
    bytes[3 * 8192 + 100] ^= 1;
    fake.write("base/5/16384.1", &bytes);
    let dir = fake.open().expect("opened");
    let report = verified(&instance(MethodKind::Worker), &dir, OPTIONS);
    let found = lines(&dir, &report);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("base/5/16384.1: block 131075: checksum"), "{found:?}");
    assert_eq!(report.blocks, 131_080);
}

#[test]
fn checksums_off() {
    let fake = Fake::new();
    fake.control(252, 0);
    let mut bytes = pages(0..2);
    bytes[5000] ^= 1;
    bytes[8192 + 18] ^= 1;
    fake.write("base/5/16384", &bytes);
    let dir = fake.open().expect("opened");
    let report = verified(&instance(MethodKind::Sync), &dir, OPTIONS);
    assert_eq!((report.checksum_version, report.bad_checksums), (0, 0));
    assert_eq!(report.beyond_checksums, 1, "{:?}", lines(&dir, &report));
}

#[test]
fn garbage() {
    let fake = Fake::new();
    let seed = 0x6A5B_A6E0_u64;
    println!("seed {seed:#x}");
    let mut state = seed;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for number in 16_384..16_400 {
        let bytes: Vec<u8> = (0..random() % 300_000).map(|_| random() as u8).collect();
        fake.write(&format!("base/5/{number}"), &bytes);
    }
    let dir = fake.open().expect("opened");
    let list = dir.relation_files();
    let (blocks, problems) = (list.blocks(), list.problems.len());
    for (method, read) in ways() {
        let report = verified(&instance(method), &dir, Options { read, ..OPTIONS });
        assert_eq!((report.blocks, report.files), (blocks, 16));
        assert_eq!(report.findings_total(), blocks + problems as u64, "{method} {read:?}");
    }
}

#[test]
fn more_findings_than_are_listed() {
    let fake = Fake::new();
    fake.write("base/5/16384", &pages(1..101));
    let dir = fake.open().expect("opened");
    let options = Options { findings_listed: 10, ..OPTIONS };
    let report = verified(&instance(MethodKind::Worker), &dir, options);
    assert_eq!((report.findings.len(), report.bad_checksums), (10, 100));
    assert_eq!(report.findings_omitted(), 90);
}

#[test]
fn odd_files() {
    let fake = Fake::new();
    fake.write("base/5/100", &[&pages(0..1)[..], &[7; 100]].concat());
    fake.sparse("base/5/300", 8192);
    fake.sparse("base/5/300.1", 8192);
    fake.sparse("base/5/400", SEGMENT_BYTES);
    fake.sparse("base/5/400.2", 8192);
    fake.link("100", "base/5/500");
    fake.sparse("base/5/stray", 8192);
    let dir = fake.open().expect("opened");
    let report = verified(&instance(MethodKind::Worker), &dir, OPTIONS);
    assert_eq!(
        lines(&dir, &report),
        [
            "base/5/100: size 8292 is not a multiple of 8192: block 1 of the file has 100 bytes",
            "base/5/300: segment has 1 blocks, expected 131072, since segment 1 has blocks",
            "base/5/400.1: segment is missing, while segment 2 exists",
            "base/5/500: is a symbolic link, expected a file or directory of the cluster; not \
             followed",
        ]
    );
    assert_eq!((report.other_findings, report.notes.len()), (4, 1));
    assert_eq!(report.blocks, 1 + 2 + 131_072 + 1);
}

#[test]
fn a_file_replaced_by_a_link_or_removed_is_reported() {
    let fake = Fake::new();
    fake.write("base/5/16384", &pages(0..40));
    fake.write("base/5/16385", &pages(0..1));
    fake.write("base/5/16386", &pages(0..1));
    fake.write("base/5/16387", &pages(0..1));
    let dir = fake.open().expect("opened");
    let (gone, link) = (fake.at("base/5/16385"), fake.at("base/5/16386"));
    let observer = At::new(0, move || {
        fs::remove_file(&gone).expect("removed");
        fs::remove_file(&link).expect("removed");
        std::os::unix::fs::symlink("16387", &link).expect("linked");
    });
    let options = Options { read: ReadOptions { depth: 0, ..READ }, ..OPTIONS };
    let report = verify(&instance(MethodKind::Sync), &dir, options, observer).expect("verified");
    assert_eq!(
        lines(&dir, &report),
        [
            "base/5/16385: could not be opened: No such file or directory (os error 2)",
            "base/5/16386: could not be opened: Too many levels of symbolic links (os error 40)",
        ]
    );
    assert_eq!((report.files, report.blocks), (2, 41));
}

#[test]
fn file_shrinks_while_it_is_read() {
    for (method, left, blocks) in METHODS.into_iter().flat_map(|method| {
        [(0, 160), (50 * 8192, 160), (60 * 8192 + 100, 160)].map(|c| (method, c.0, c.1))
    }) {
        let fake = Fake::new();
        fake.write("base/5/16384", &pages(0..blocks));
        fake.write("base/5/16385", &pages(0..8));
        let dir = fake.open().expect("opened");
        let path = fake.at("base/5/16384");
        let observer = At::new(2, move || {
            fs::File::options().write(true).open(&path).and_then(|f| f.set_len(left)).expect("cut");
        });
        let report = verify(&instance(method), &dir, OPTIONS, observer).expect("verified");
        let found = lines(&dir, &report);
        assert_eq!(found.len(), 1, "{method} {left}: {found:?}");
        let end = format!(
            ": file ended while it was read: {left} bytes found, {} expected",
            u64::from(blocks) * 8192
        );
        assert!(found[0].starts_with("base/5/16384: block "), "{found:?}");
        assert!(found[0].ends_with(&end), "{method}: {found:?}");
        assert_eq!((report.other_findings, report.end), (1, End::Complete));
        assert!(report.blocks >= left / 8192 + 8, "{method} {left}: {}", report.blocks);
    }
}

#[test]
fn unreadable_blocks_are_located() {
    let fake = Fake::new();
    fake.write("base/5/16384", &pages(0..100));
    fake.write("base/5/16385", &pages(0..20));
    let dir = fake.open().expect("opened");
    for method in [MethodKind::Sync, MethodKind::Worker] {
        let (aio, _) = Faulty::instance(method, Fault::Eio(&[0, 17, 18, 99]));
        let report = verified(&aio, &dir, OPTIONS);
        let expected: Vec<String> = [
            ("16384", 0),
            ("16384", 17),
            ("16384", 18),
            ("16384", 99),
            ("16385", 0),
            ("16385", 17),
        ]
        .into_iter()
        .chain([("16385", 18)])
        .map(|(file, block)| {
            format!(
                "base/5/{file}: block {block}: could not be read: Input/output error (os \
                         error 5)"
            )
        })
        .collect();
        assert_eq!(lines(&dir, &report), expected, "{method}");
        assert_eq!((report.blocks, report.other_findings), (120 - 7, 7));
    }
}

#[test]
fn a_file_with_too_many_errors_is_skipped() {
    let fake = Fake::new();
    fake.sparse("base/5/16384", 2000 * 8192);
    let dir = fake.open().expect("opened");
    static ALL: [u64; 2000] = {
        let mut all = [0; 2000];
        let mut block = 0;
        while block < 2000 {
            all[block] = block as u64;
            block += 1;
        }
        all
    };
    let (aio, _) = Faulty::instance(MethodKind::Worker, Fault::Eio(&ALL));
    let report = verified(&aio, &dir, OPTIONS);
    let given_up = report.findings.iter().filter(|f| matches!(f.kind, FindingKind::GaveUp)).count();
    assert_eq!((given_up, report.blocks), (1, 0));
    // Reads already in flight still complete.
    assert!(report.other_findings <= 1024 + 16 * 17, "{}", report.other_findings);
}

#[test]
fn short_reads_at_every_length() {
    let fake = Fake::new();
    let mut bytes = pages(0..40);
    bytes[33 * 8192 + 9] ^= 1;
    fake.write("base/5/16384", &bytes);
    let dir = fake.open().expect("opened");
    for most in [8192, 8193, 12_000, 16_384, 100_000, 131_071] {
        for method in [MethodKind::Sync, MethodKind::Worker] {
            let (aio, _) = Faulty::instance(method, Fault::Short(most));
            let report = verified(&aio, &dir, OPTIONS);
            assert_eq!((report.blocks, report.bad_checksums), (40, 1), "{method} {most}");
            assert_eq!(report.other_findings, 0, "{method} {most}");
        }
    }
    // The file has its full length, but every read of a single block is short. We must report every
    // block, and must not keep retrying forever.
    let (aio, _) = Faulty::instance(MethodKind::Worker, Fault::Short(8191));
    let report = verified(&aio, &dir, OPTIONS);
    assert_eq!((report.blocks, report.end), (0, End::Complete));
    assert_eq!(report.other_findings, 40);
}

/// Cancels once a read hangs.
struct StopWhenHung(Arc<AtomicBool>);

impl Observer for StopWhenHung {
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn cancel_while_reads_hang() {
    let fake = Fake::new();
    fake.write("base/5/16384", &pages(0..2000));
    let dir = fake.open().expect("opened");
    for (method, end) in [(MethodKind::Worker, End::Cancelled), (MethodKind::Sync, End::Abandoned)]
    {
        let (aio, hung) = Faulty::instance(method, Fault::Hang(20));
        let report = verify(&aio, &dir, OPTIONS, Arc::new(StopWhenHung(hung))).expect("ended");
        assert_eq!(report.end, end, "{method}");
        assert!((1..2000).contains(&report.blocks), "{method}: {}", report.blocks);
        // Don't drop the instance, because that would wait for the hanging read.
        std::mem::forget(aio);
    }
}

#[test]
fn cancel_at_once() {
    let fake = Fake::new();
    for number in 16_384..16_394 {
        fake.sparse(&format!("base/5/{number}"), SEGMENT_BYTES);
    }
    let dir = fake.open().expect("opened");
    for method in METHODS {
        let observer = StopWhenHung(Arc::new(AtomicBool::new(true)));
        let report = verify(&instance(method), &dir, OPTIONS, Arc::new(observer)).expect("ended");
        assert_eq!(report.end, End::Cancelled, "{method}");
    }
}

#[test]
fn server_starts_meanwhile() {
    let fake = Fake::new();
    fake.write("base/5/16384", &pages(0..1000));
    let dir = fake.open().expect("opened");
    let pid_file = fake.at("postmaster.pid");
    // Use process 1, which is always alive and isn't this process.
    let observer = At::new(5, move || fs::write(&pid_file, "1\n").expect("written"));
    let error =
        verify(&instance(MethodKind::Worker), &dir, OPTIONS, observer).expect_err("stopped");
    assert!(matches!(error, JobError::DataDir(_)), "{error:?}");
    assert!(error.to_string().starts_with("a server has started on"), "{error}");
}

/// Cancels a job that would otherwise run for minutes.
#[test]
fn server_that_starts_stops_a_long_job() {
    let fake = Fake::new();
    for number in 16_384..17_384 {
        fake.sparse(&format!("base/5/{number}"), SEGMENT_BYTES);
    }
    let dir = fake.open().expect("opened");
    let pid_file = fake.at("postmaster.pid");
    let observer = At::new(5, move || fs::write(&pid_file, "1\n").expect("written"));
    let error = verify(&instance(MethodKind::Sync), &dir, OPTIONS, observer).expect_err("stopped");
    assert!(error.to_string().starts_with("a server has started on"), "{error}");
}

#[test]
fn permission_denied() {
    if child::is_root() {
        return child::as_unprivileged_user("verify::permission_denied");
    }
    let fake = Fake::new();
    fake.write("base/5/16384", &pages(0..3));
    fake.write("base/5/16385", &pages(0..3));
    child::set_mode(&fake.at("base/5/16384"), 0);
    let dir = fake.open().expect("opened");
    for read in [READ, ReadOptions { direct: true, ..READ }] {
        let report = verified(&instance(MethodKind::Worker), &dir, Options { read, ..OPTIONS });
        assert_eq!(
            lines(&dir, &report),
            ["base/5/16384: could not be opened: Permission denied (os error 13)"]
        );
        assert_eq!((report.files, report.blocks), (1, 3));
    }
}

/// An observer that holds the worker that reads first until another worker reads as well.
#[derive(Default)]
struct Meeting {
    readers: AtomicU64,
    second: Futex,
    /// The first worker no longer waits.
    over: AtomicBool,
    met: AtomicBool,
}

impl Observer for Meeting {
    fn reading(&self, _path: &Path, _first: u32, _blocks: u32) {
        let seen = self.second.epoch();
        if self.readers.fetch_add(1, Ordering::SeqCst) == 0 {
            self.second.wait(seen, Some(Duration::from_secs(60)));
            self.over.store(true, Ordering::SeqCst);
        } else if !self.over.load(Ordering::SeqCst) {
            self.met.store(true, Ordering::SeqCst);
            self.second.signal();
        }
    }
}

#[test]
fn several_workers_read_a_file() {
    if thread::available_parallelism() == 1 {
        return;
    }
    let fake = Fake::new();
    fake.write("base/5/16384", &pages(0..300));
    let dir = fake.open().expect("opened");
    for method in METHODS {
        let meeting = Arc::new(Meeting::default());
        let observer = Arc::clone(&meeting);
        let report = verify(&instance(method), &dir, OPTIONS, observer).expect("verified");
        assert_eq!((report.blocks, report.findings_total()), (300, 0), "{method}");
        let readers = meeting.readers.load(Ordering::SeqCst);
        assert!(meeting.met.load(Ordering::SeqCst), "{method}: {readers} reads by one worker");
    }
}

#[test]
fn one_buffer_is_enough_for_all_workers() {
    let fake = Fake::new();
    fake.write("base/5/16384", &pages(0..3000));
    let dir = fake.open().expect("opened");
    for method in METHODS {
        let aio = instance(method);
        let lease = || aio.region().lease(READ.combine_blocks);
        let mut held: Vec<_> = std::iter::from_fn(lease).collect();
        let error = verify(&aio, &dir, OPTIONS, Arc::new(Unobserved)).expect_err("no memory");
        assert!(matches!(error, JobError::Memory { blocks: 16 }), "{method}: {error:?}");
        held.pop();
        for _ in 0..10 {
            let report = verified(&aio, &dir, OPTIONS);
            assert_eq!((report.blocks, report.findings_total()), (3000, 0), "{method}");
        }
    }
}

#[test]
fn no_direct_io_on_this_file_system() {
    let entry = FileEntry {
        path: PathBuf::from("/proc/version"),
        tablespace: Oid(1663),
        database: Oid(5),
        relfilenode: 16_384,
        fork: Fork::Main,
        segment: 0,
        bytes: 8192,
        device: 0,
    };
    let read = ReadOptions { direct: true, ..READ };
    let options = Options { read, ..OPTIONS };
    let aio = instance(MethodKind::Worker);
    let error = verify_files(&aio, vec![entry], true, options, Arc::new(Unobserved));
    let error = error.expect_err("refused");
    assert!(matches!(&error, JobError::Direct { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with("\"/proc/version\" cannot be opened for direct I/O"), "{text}");
    assert_eq!(error.hint(), Some("read through the cache: leave io_direct empty"));
}

#[test]
fn five_thousand_files_and_few_descriptors() {
    if !child::is_child() {
        return child::with_files_max(32, "verify::five_thousand_files_and_few_descriptors");
    }
    let fake = Fake::new();
    for number in 16_384..21_384 {
        fake.write(&format!("base/5/{number}"), &page(0));
    }
    let dir = fake.open().expect("opened");
    for (method, read) in ways() {
        let report = verified(&instance(method), &dir, Options { read, ..OPTIONS });
        assert_eq!(lines(&dir, &report), [""; 0], "{method} {read:?}");
        assert_eq!((report.files, report.blocks), (5000, 5000), "{method} {read:?}");
    }
}
