//! Prewarming the buffer pool and the page cache.

use std::fs;
use std::path::PathBuf;

use trunkline_aio::Aio;
use trunkline_aio::facade::Arc;
use trunkline_engine::datadir::{DataDir, OpenOptions};
use trunkline_engine::job::{End, Unobserved};
use trunkline_engine::pool::{Policy, Pool};
use trunkline_engine::prewarm::{
    BufferOptions, Choice, SelectError, into_pool, prefetch, prewarm, select,
};
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::{OpenFiles, Storage};
use trunkline_format::Fork;

use crate::fake::Fake;
use crate::jobs::{METHODS, READ, instance, pages};

fn chosen(dir: &DataDir, names: &[PathBuf]) -> Result<Vec<PathBuf>, SelectError> {
    let choice = Choice { names: names.to_vec(), ..Choice::default() };
    let targets = select(dir, &choice)?.targets;
    Ok(targets.into_iter().flat_map(|target| target.files).map(|file| file.path).collect())
}

#[test]
fn files_by_name() {
    let fake = Fake::new();
    fake.write("base/5/16384", &pages(0..3));
    fake.write("base/5/16384_vm", &pages(0..1));
    fake.write("base/5/16385", &pages(0..3));
    fake.write("global/1262", &pages(0..1));
    let link = fake.path.with_file_name("link");
    std::os::unix::fs::symlink(&fake.path, &link).expect("link made");
    let dir = fake.open().expect("opened");
    let names = |names: &[PathBuf]| chosen(&dir, names).expect("selected");
    let (first, shared) = (fake.at("base/5/16384"), fake.at("global/1262"));
    assert_eq!(names(&[]).len(), 4);
    for name in ["base/5/16384", "./base/./5/16384", "5/16384", "1663/5/16384"] {
        assert_eq!(names(&[name.into()]), std::slice::from_ref(&first), "{name}");
    }
    assert_eq!(names(&["5/16384".into(), first.clone()]), std::slice::from_ref(&first));
    assert_eq!(names(&[first.clone(), "global/1262".into()]), [shared.clone(), first.clone()]);
    assert_eq!(names(&["0/1262".into()]), std::slice::from_ref(&shared));
    assert_eq!(names(&[link.join("base/5/16384")]), [first]);
    assert_eq!(names(&["base/5/16384_vm".into()]), [fake.at("base/5/16384_vm")]);
    for none in [
        "base/5/1",
        "../data/base/5/16384",
        "global/pg_control",
        "/etc/passwd",
        "",
        "5/1",
        "1664/5/16384",
        "5/99999999999",
        "5",
        "/",
    ] {
        assert!(chosen(&dir, &[none.into()]).is_err(), "{none}");
    }
}

#[test]
fn forks_and_block_numbers() {
    let fake = Fake::new();
    fake.write("base/5/16384", &pages(0..30));
    fake.write("base/5/16384_vm", &pages(0..1));
    fake.write("base/5/16385", &[]);
    fs::create_dir_all(fake.at("pg_tblspc/16400/PG_18_202506291/5")).expect("made");
    fake.write("pg_tblspc/16400/PG_18_202506291/5/16386", &pages(0..2));
    fake.write("base/5/16386", &pages(0..2));
    let dir = fake.open().expect("opened");
    let blocks = |name: &str, fork, first, last| {
        let names = if name.is_empty() { vec![] } else { vec![name.into()] };
        let selection = select(&dir, &Choice { names, fork, first, last, ..Choice::default() });
        let selection = selection.map_err(|error| error.to_string())?;
        Ok::<u64, String>(selection.targets.iter().map(|target| target.blocks()).sum())
    };
    let range = |first, last| blocks("5/16384", None, Some(first), Some(last));
    assert_eq!(blocks("5/16384", None, None, None), Ok(30));
    assert_eq!(blocks("5/16384", Some(Fork::Vm), None, None), Ok(1));
    assert_eq!(blocks("", Some(Fork::Vm), None, None), Ok(1));
    assert_eq!(blocks("16400/5/16386", None, None, None), Ok(2));
    assert_eq!((range(0, 29), range(7, 7), range(29, 0)), (Ok(30), Ok(1), Ok(0)));
    assert_eq!(blocks("5/16384", None, Some(20), None), Ok(10));
    assert_eq!(blocks("5/16384", None, None, Some(20)), Ok(21));
    assert_eq!(blocks("5/16385", None, None, None), Ok(0));
    let relation = "for relation 1663/5/16384";
    let starting = format!("starting block number must be between 0 and 29 {relation}");
    let ending = format!("ending block number must be between 0 and 29 {relation}");
    assert_eq!(range(30, 29), Err(starting.clone()));
    assert_eq!(range(-1, 29), Err(starting));
    assert_eq!(range(0, 30), Err(ending.clone()));
    assert_eq!(range(0, i64::MIN), Err(ending));
    for (name, fork, first, expected) in [
        ("5/16385", None, Some(0), "starting block number must be between 0 and -1"),
        ("5/16384", Some(Fork::Fsm), None, "fork \"fsm\" does not exist for relation"),
        ("5/16386", None, None, "relation 5/16386 is in several tablespaces: 1663, 16400"),
        ("base/5/16384", Some(Fork::Vm), None, "\"base/5/16384\" belongs to fork \"main\""),
        ("base/5/16384", None, Some(0), "block numbers require the name of a relation"),
        ("", None, Some(0), "block numbers require the name of a relation"),
    ] {
        let refused = blocks(name, fork, first, None).expect_err("refused");
        assert!(refused.starts_with(expected), "{name}: {refused}");
    }
}

fn forget(fake: &Fake, name: &str) {
    let file = fs::File::open(fake.at(name)).expect("opened");
    file.sync_all().expect("synced");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
}

#[test]
fn residency_before_and_after() {
    let fake = Fake::new();
    fake.write("base/5/16384", &pages(0..500));
    fake.write("base/5/16385", &pages(0..1));
    let dir = DataDir::open(&fake.path, OpenOptions::default()).expect("opened");
    for method in METHODS {
        for name in ["base/5/16384", "base/5/16385"] {
            forget(&fake, name);
        }
        let targets = select(&dir, &Choice::default()).expect("selected").targets;
        let aio = instance(method);
        let report = prewarm(&aio, &dir, &targets, READ, Arc::new(Unobserved)).expect("prewarmed");
        assert_eq!((report.end, report.files, report.blocks), (End::Complete, 2, 501));
        assert_eq!(report.after.total, 501 * 8192);
        assert!(report.after.fraction() > 0.99, "{method}: {:?}", report.after);
        assert_eq!(report.failures.total, 0);
        // Prewarm only part of the file, in `read` and `prefetch` mode.
        let choice = Choice {
            names: vec!["5/16384".into()],
            first: Some(100),
            last: Some(399),
            ..Choice::default()
        };
        let targets = select(&dir, &choice).expect("selected").targets;
        let read = prewarm(&aio, &dir, &targets, READ, Arc::new(Unobserved)).expect("prewarmed");
        assert_eq!((read.files, read.blocks), (1, 300));
        let advised = prefetch(&aio, &dir, targets, Arc::new(Unobserved)).expect("advised");
        assert_eq!((advised.files, advised.blocks), (1, 300));
    }
}

fn pool_of(aio: &Aio, dir: &DataDir, buffers: u32) -> (Pool, Storage) {
    let files = OpenFiles::kernel(aio, 64);
    let storage = Storage::of_datadir(dir, &files, false);
    (Pool::new(aio, buffers).expect("a pool"), storage)
}

#[test]
fn blocks_in_the_pool() {
    let fake = Fake::new();
    fake.write("base/5/16384", &pages(0..500));
    fake.write("base/5/16385", &pages(0..1));
    let dir = fake.open().expect("opened");
    for method in METHODS {
        for (buffers, kept) in [(16, 16), (64, 64), (1024, 501)] {
            let aio = instance(method);
            let (pool, storage) = pool_of(&aio, &dir, buffers);
            let targets = select(&dir, &Choice::default()).expect("selected").targets;
            let options = BufferOptions::of(&Settings::default());
            let observer = Arc::new(Unobserved);
            let report = into_pool(&pool, &storage, Some(&dir), targets, options, observer);
            let report = report.expect("prewarmed");
            assert_eq!((report.end, report.relations, report.blocks), (End::Complete, 2, 501));
            let after = report.after.expect("looked at");
            assert_eq!((report.before.pool, after.blocks), (0, 501), "{method}");
            assert_eq!(after.pool, kept, "{method}");
            assert_eq!((report.failures.total, report.streams.pages), (0, 501));
            assert_eq!(pool.total().read_blocks, 501);
            assert_eq!(pool.total().evictions, 501 - kept);
            assert_eq!(pool.rows().iter().map(|row| row.pins).sum::<u32>(), 0);
        }
    }
}

#[test]
fn failures_are_reported_and_the_rest_is_loaded() {
    let fake = Fake::new();
    let mut bytes = pages(0..40);
    bytes[13 * 8192 + 5000] ^= 1;
    fake.write("base/5/16384", &bytes);
    // One segment is missing, and another segment is shorter than when it was listed.
    fake.sparse("base/5/16385", 1 << 30);
    fake.write("base/5/16385.2", &pages(262_144..262_150));
    fake.write("base/5/16386", &pages(0..40));
    fake.write("base/5/16387", &pages(0..5));
    let dir = fake.open().expect("opened");
    let choice = Choice {
        names: ["5/16384", "base/5/16385.2", "5/16386", "5/16387"].map(PathBuf::from).to_vec(),
        ..Choice::default()
    };
    let selection = select(&dir, &choice).expect("selected");
    assert_eq!(selection.problems.len(), 1, "{:?}", selection.problems);
    fake.write("base/5/16386", &pages(0..20));
    fs::remove_file(fake.at("base/5/16387")).expect("removed");
    for method in METHODS {
        let aio = instance(method);
        let (pool, storage) = pool_of(&aio, &dir, 256);
        let fill = |options| {
            let targets = selection.targets.clone();
            into_pool(&pool, &storage, None, targets, options, Arc::new(Unobserved))
                .expect("prewarmed")
        };
        let options = BufferOptions::of(&Settings::default());
        let report = fill(options);
        assert_eq!((report.blocks, report.streams.pages), (39 + 6 + 20, 65), "{method}");
        let found: Vec<String> =
            report.failures.listed.iter().map(|failure| failure.1.clone()).collect();
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("block 13: invalid page: checksum 0x"), "{found:?}");
        assert_eq!(
            found[1],
            "block 20: file ended while it was read; 19 blocks after it are skipped"
        );
        assert_eq!(found[2], "block 0: the segment file is missing; 4 blocks after it are skipped");
        for (zero_damaged_pages, ignore_checksum_failure) in [(true, false), (false, true)] {
            pool.evict_all();
            let policy = Policy { zero_damaged_pages, ignore_checksum_failure };
            let report = fill(BufferOptions { policy, ..options });
            assert_eq!((report.failures.total, report.warnings.len()), (2, 1), "{method}");
            assert_eq!(report.warnings[0].zeroed, zero_damaged_pages);
        }
        // Listed by path, although a file that can't be opened is found first.
        let report = prewarm(&aio, &dir, &selection.targets, READ, Arc::new(Unobserved));
        let listed = report.expect("prewarmed").failures.listed;
        let paths: Vec<_> = listed.iter().map(|failure| failure.0.clone()).collect();
        assert_eq!(paths, ["base/5/16386", "base/5/16387"].map(|name| fake.at(name)), "{method}");
    }
}
