//! Tests that the accounts table can be written, read back, found again, replaced, and removed.

use std::fs;
use std::io::ErrorKind;
use std::sync::Arc;

use trunkline_aio::MethodKind;
use trunkline_engine::job::Unobserved;
use trunkline_engine::verify::verify_files;
use trunkline_format::BLOCK_SIZE;
use trunkline_sample::accounts::{Accounts, accounts_sum, create, remove, scale_within};
use trunkline_sample::{FixedColumn, PageSum, sum_int4};

use crate::{METHODS, OPTIONS, instance};

/// The sum over the pages on disk.
fn summed(accounts: &Accounts) -> PageSum {
    let mut total = PageSum::default();
    for file in &accounts.files {
        let bytes = fs::read(&file.path).expect("read");
        let (pages, rest) = bytes.as_chunks::<BLOCK_SIZE>();
        assert!(rest.is_empty());
        pages.iter().for_each(|page| total.add(&sum_int4(page, FixedColumn::ABALANCE)));
    }
    total
}

fn check(accounts: &Accounts, scale: u32, reused: bool) {
    let rows = u64::from(scale) * 100_000;
    assert_eq!((accounts.scale, accounts.rows(), accounts.reused), (scale, rows, reused));
    let bytes: u64 = accounts.files.iter().map(|file| file.bytes).sum();
    assert_eq!(bytes, accounts.bytes());
    assert_eq!(bytes, u64::from(accounts.blocks()) * 8192);
    assert_eq!(scale_within(bytes), scale);
    let expected = PageSum { rows, sum: accounts_sum(scale), ..PageSum::default() };
    assert_eq!(summed(accounts), expected);
}

#[test]
fn accounts_are_valid_and_reused() {
    let home = tempfile::tempdir().expect("temporary directory");
    for method in METHODS {
        let directory = home.path().join(format!("deep/{method}"));
        let aio = instance(method);
        let mut progressed = Vec::new();
        let made = create(&aio, &directory, 2, &mut |bytes| {
            progressed.push(bytes);
            true
        })
        .expect("made");
        check(&made, 2, false);
        assert!(progressed.is_sorted() && progressed.last() == Some(&made.bytes()));
        let files = made.files.clone();
        let report =
            verify_files(&aio, files, true, OPTIONS, Arc::new(Unobserved)).expect("verified");
        assert_eq!((report.blocks, report.findings_total()), (u64::from(made.blocks()), 0));
        made.evict().expect("evicted");

        let found = create(&aio, &directory, 2, &mut |_| false).expect("found");
        check(&found, 2, true);
        let file = fs::File::options().write(true).open(&found.files[0].path).expect("opened");
        file.set_len(8192).expect("cut");
        let given_up = create(&aio, &directory, 2, &mut |_| false).expect_err("given up");
        assert_eq!(given_up.kind(), ErrorKind::Interrupted);
        // A segment left behind by a larger scale.
        fs::write(directory.join("base/5/16385.7"), "").expect("written");
        check(&create(&aio, &directory, 1, &mut |_| true).expect("made anew"), 1, false);
        assert!(!directory.join("base/5/16385.7").exists());
        remove(&directory).expect("removed");
        assert!(!directory.exists());
    }
}

#[test]
fn a_directory_of_others_is_refused() {
    let home = tempfile::tempdir().expect("temporary directory");
    let aio = instance(MethodKind::Worker);
    let all = |directory: &std::path::Path| {
        let refused = create(&aio, directory, 1, &mut |_| true).expect_err("refused");
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "{refused}");
        assert_eq!(remove(directory).expect_err("refused").kind(), ErrorKind::AlreadyExists);
    };
    let foreign = home.path().join("foreign");
    fs::create_dir_all(foreign.join("base/5")).expect("made");
    fs::write(foreign.join("base/5/16385"), "theirs").expect("written");
    all(&foreign);
    assert_eq!(fs::read(foreign.join("base/5/16385")).expect("read"), b"theirs");

    // A directory with the marker file of another kind of sample must be refused as well. We can't
    // tell which of the two a relation file belongs to, because both kinds use the same file names.
    let other = home.path().join("other");
    fs::create_dir_all(other.join("base/5")).expect("made");
    fs::write(other.join("base/5/16385"), "theirs").expect("written");
    fs::write(other.join("trunkline-sample"), "version 2\n").expect("written");
    all(&other);
    assert_eq!(fs::read(other.join("base/5/16385")).expect("read"), b"theirs");
    let directory = home.path().join("accounts");
    create(&aio, &directory, 1, &mut |_| true).expect("made");
    fs::write(directory.join("note"), "").expect("written");
    remove(&directory).expect("removed");
    assert!(directory.join("note").exists() && !directory.join("base").exists());

    for scale in [0, 21_475, u32::MAX] {
        let refused = create(&aio, &home.path().join("none"), scale, &mut |_| true);
        assert_eq!(refused.expect_err("refused").kind(), ErrorKind::InvalidInput);
    }
    assert!(!home.path().join("none").exists());
}
