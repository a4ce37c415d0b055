//! Prewarming, and the sample that demonstrations use.

use std::fs;
use std::path::PathBuf;

use trunkline_aio::MethodKind;
use trunkline_aio::sync::Arc;
use trunkline_engine::datadir::{DataDir, OpenOptions};
use trunkline_engine::prewarm::{prewarm, select};
use trunkline_engine::sample;
use trunkline_engine::scan::{End, Unobserved};
use trunkline_engine::verify::verify_files;

use crate::fake::Fake;
use crate::jobs::{METHODS, OPTIONS, READ, instance, pages};

#[test]
fn files_by_name() {
    let fake = Fake::new();
    fake.write("base/5/16384", &pages(0..3));
    fake.write("base/5/16385", &pages(0..3));
    fake.write("global/1262", &pages(0..1));
    let link = fake.path.with_file_name("link");
    std::os::unix::fs::symlink(&fake.path, &link).expect("link made");
    let dir = fake.open().expect("opened");
    let names = |names: &[PathBuf]| -> Vec<PathBuf> {
        select(&dir, names).expect("selected").files.into_iter().map(|file| file.path).collect()
    };
    let (first, shared) = (fake.at("base/5/16384"), fake.at("global/1262"));
    assert_eq!(names(&[]).len(), 3);
    assert_eq!(names(&["base/5/16384".into()]), std::slice::from_ref(&first));
    assert_eq!(names(&["./base/./5/16384".into(), first.clone()]), std::slice::from_ref(&first));
    assert_eq!(names(&[first.clone(), "global/1262".into()]), [shared, first.clone()]);
    assert_eq!(names(&[link.join("base/5/16384")]), [first]);
    for none in ["base/5/1", "../data/base/5/16384", "global/pg_control", "/etc/passwd", ""] {
        assert!(select(&dir, &[none.into()]).is_err(), "{none}");
    }
}

#[test]
fn residency_before_and_after() {
    let fake = Fake::new();
    fake.write("base/5/16384", &pages(0..500));
    fake.write("base/5/16385", &pages(0..1));
    let dir = DataDir::open(&fake.path, OpenOptions::default()).expect("opened");
    for method in METHODS {
        for name in ["base/5/16384", "base/5/16385"] {
            let file = fs::File::open(fake.at(name)).expect("opened");
            file.sync_all().expect("synced");
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
        }
        let files = select(&dir, &[]).expect("selected").files;
        let aio = instance(method);
        let report = prewarm(&aio, &dir, files, READ, Arc::new(Unobserved)).expect("prewarmed");
        assert_eq!((report.end, report.files, report.blocks), (End::Complete, 2, 501));
        assert_eq!(report.after.total, 501 * 8192);
        assert!(report.after.fraction() > 0.99, "{method}: {:?}", report.after);
        assert!(report.failures.is_empty());
    }
}

#[test]
fn sample_is_good_and_reused() {
    let home = tempfile::tempdir().expect("temporary directory");
    let directory = home.path().join("deep/sample");
    let aio = instance(MethodKind::Worker);
    let bytes = 40 << 20;
    let first = sample::create(&aio, &directory, bytes, &mut |_| true).expect("made");
    assert!(!first.reused);
    assert_eq!((first.files.len(), first.bytes()), (6, bytes));
    let report =
        verify_files(&aio, first.files, true, OPTIONS, Arc::new(Unobserved)).expect("verified");
    assert_eq!((report.blocks, report.findings_total()), (bytes / 8192, 0));

    let again = sample::create(&aio, &directory, bytes, &mut |_| true).expect("found");
    assert!(again.reused);
    let other = sample::create(&aio, &directory, bytes / 2, &mut |_| true).expect("made");
    assert!(!other.reused);
    assert_eq!(other.bytes(), bytes / 2);
    fs::File::options()
        .write(true)
        .open(&other.files[0].path)
        .and_then(|file| file.set_len(8192))
        .expect("cut");
    assert!(!sample::create(&aio, &directory, bytes / 2, &mut |_| true).expect("made").reused);

    let interrupted = sample::create(&aio, &directory, bytes, &mut |_| false);
    assert_eq!(interrupted.expect_err("given up").kind(), std::io::ErrorKind::Interrupted);
    assert!(!sample::create(&aio, &directory, bytes / 2, &mut |_| true).expect("made").reused);
    sample::remove(&directory).expect("removed");
    assert!(!directory.exists());
}

#[test]
fn sample_keeps_off_other_peoples_files() {
    let fake = Fake::new();
    fake.write("base/5/16384", &pages(0..3));
    let aio = instance(MethodKind::Sync);
    let refused = sample::create(&aio, &fake.path, 1 << 20, &mut |_| true);
    assert_eq!(refused.expect_err("refused").kind(), std::io::ErrorKind::AlreadyExists);
    sample::remove(&fake.path).expect_err("refused");
    assert_eq!(fs::read(fake.at("base/5/16384")).expect("read"), pages(0..3));
}
