//! The sample with several relations: written, verified, found again, rewritten, removed.

use std::fs;
use std::sync::Arc;

use trunkline_aio::MethodKind;
use trunkline_engine::job::Unobserved;
use trunkline_engine::verify::verify_files;
use trunkline_sample::mixed_relations;

use crate::{OPTIONS, instance};

#[test]
fn a_sample_is_valid_and_reused() {
    let home = tempfile::tempdir().expect("temporary directory");
    let directory = home.path().join("deep/sample");
    let aio = instance(MethodKind::Worker);
    let bytes = 40 << 20;
    let first = mixed_relations::create(&aio, &directory, bytes, &mut |_| true).expect("made");
    assert!(!first.reused);
    assert_eq!((first.files.len(), first.bytes()), (6, bytes));
    let report =
        verify_files(&aio, first.files, true, OPTIONS, Arc::new(Unobserved)).expect("verified");
    assert_eq!((report.blocks, report.findings_total()), (bytes / 8192, 0));

    let again = mixed_relations::create(&aio, &directory, bytes, &mut |_| true).expect("found");
    assert!(again.reused);
    let other = mixed_relations::create(&aio, &directory, bytes / 2, &mut |_| true).expect("made");
    assert!(!other.reused);
    assert_eq!(other.bytes(), bytes / 2);
    fs::File::options()
        .write(true)
        .open(&other.files[0].path)
        .and_then(|file| file.set_len(8192))
        .expect("cut");
    assert!(
        !mixed_relations::create(&aio, &directory, bytes / 2, &mut |_| true).expect("made").reused
    );

    let interrupted = mixed_relations::create(&aio, &directory, bytes, &mut |_| false);
    assert_eq!(interrupted.expect_err("given up").kind(), std::io::ErrorKind::Interrupted);
    assert!(
        !mixed_relations::create(&aio, &directory, bytes / 2, &mut |_| true).expect("made").reused
    );
    mixed_relations::remove(&directory).expect("removed");
    assert!(!directory.exists());
}

#[test]
fn a_directory_of_others_is_refused() {
    let home = tempfile::tempdir().expect("temporary directory");
    let file = home.path().join("base/5/16384");
    fs::create_dir_all(home.path().join("base/5")).expect("made");
    fs::write(&file, "theirs").expect("written");
    let aio = instance(MethodKind::Sync);
    let refused = mixed_relations::create(&aio, home.path(), 1 << 20, &mut |_| true);
    assert_eq!(refused.expect_err("refused").kind(), std::io::ErrorKind::AlreadyExists);
    mixed_relations::remove(home.path()).expect_err("refused");
    assert_eq!(fs::read(&file).expect("read"), b"theirs");
}
