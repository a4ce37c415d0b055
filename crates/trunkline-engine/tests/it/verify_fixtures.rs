//! Page verification of intact and damaged data directories that were created by PostgreSQL. If
//! `pg_checksums` is installed, we compare our results with its output.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use trunkline_aio::MethodKind;
use trunkline_aio::facade::Arc;
use trunkline_engine::datadir::{DataDir, OpenOptions};
use trunkline_engine::file_scan::ReadOptions;
use trunkline_engine::job::{End, Unobserved};
use trunkline_engine::prewarm::{Choice, prewarm, select};
use trunkline_engine::verify::Options;
use trunkline_format::PageBytes;
use trunkline_format::checksum::page_checksum_portable;

use crate::fixtures::{fixtures, snapshot};
use crate::jobs::{METHODS, OPTIONS, READ, instance, lines, verified};

fn open(path: &Path) -> DataDir {
    DataDir::open(path, OpenOptions::default()).expect("opened")
}

/// Counts the files and whole blocks below `directory`. To be independent of the code under test,
/// we simply count every file whose name begins with a digit, in all directories that have a number
/// or a well-known name.
fn walked(directory: &Path) -> (u64, u64) {
    let mut sum = (0, 0);
    for entry in fs::read_dir(directory).expect("read") {
        let path = entry.expect("entry").path();
        let name = path.file_name().expect("name").to_string_lossy().into_owned();
        let first_is_digit = name.starts_with(|c: char| c.is_ascii_digit());
        if path.is_dir() && (first_is_digit || name.starts_with("PG_")) {
            let inner = walked(&path);
            sum = (sum.0 + inner.0, sum.1 + inner.1);
        } else if path.is_file() && first_is_digit {
            sum = (sum.0 + 1, sum.1 + fs::metadata(&path).expect("metadata").len() / 8192);
        }
    }
    sum
}

/// Returns the output of `pg_checksums --check` for this version, if it is installed.
fn pg_checksums(major: u32, data: &Path) -> Option<(u64, u64)> {
    let program = PathBuf::from(format!("/usr/lib/postgresql/{major}/bin/pg_checksums"));
    if !program.exists() {
        println!("skipped: no pg_checksums {major}");
        return None;
    }
    let output = Command::new(program).args(["--check", "-D"]).arg(data).output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    let number = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        line.trim().parse().expect("number")
    };
    Some((number("Files scanned:"), number("Blocks scanned:")))
}

#[test]
fn counts_equal_those_of_pg_checksums() {
    for (major, data) in fixtures() {
        let dir = open(&data);
        let parts = ["global", "base", "pg_tblspc"].map(|part| walked(&data.join(part)));
        let expected = parts.iter().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        if let Some(theirs) = pg_checksums(major, &data) {
            assert_eq!(theirs, expected, "pg{major}");
        }
        for method in METHODS {
            let aio = instance(method);
            for direct in [false, true] {
                let read = ReadOptions { direct, ..READ };
                let report = verified(&aio, &dir, Options { read, ..OPTIONS });
                assert_eq!(lines(&dir, &report), [""; 0], "pg{major} {method}");
                assert_eq!((report.files, report.blocks), expected, "pg{major} {method}");
                assert_eq!((report.end, report.checksum_version), (End::Complete, 1));
            }
        }
    }
}

/// Random number generator. It has a printable seed, so that we can repeat a failed run.
struct XorShift(u64);

impl XorShift {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

#[test]
fn one_flipped_bit_anywhere_is_found() {
    let seed = u64::from(std::process::id()) << 20 | 0x5EED;
    println!("seed {seed:#x}");
    let mut random = XorShift(seed);
    for (major, data) in fixtures() {
        let home = tempfile::tempdir().expect("temporary directory");
        let copy = home.path().join("data");
        copy_tree(&data, &copy);
        let dir = open(&copy);
        let files: Vec<_> =
            dir.relation_files().files.into_iter().filter(|file| file.blocks() > 0).collect();
        let mut flipped = BTreeSet::new();
        while flipped.len() < 60 {
            let file = &files[random.below(files.len() as u64) as usize];
            let at = random.below(u64::from(file.blocks())) as u32;
            let block = file.first_block().expect("first block") + at;
            let mut bytes = fs::read(&file.path).expect("read");
            let page: &mut PageBytes = &mut bytes.as_chunks_mut().0[at as usize];
            if page.iter().all(|&byte| byte == 0) || flipped.contains(&(file.path.clone(), block)) {
                continue;
            }
            let bit = random.below(8192 * 8);
            let before = page_checksum_portable(page, block);
            page[bit as usize / 8] ^= 1 << (bit % 8);
            // The checksum field itself isn't included in the checksum. Anywhere else, about one
            // change in 65,536 goes undetected.
            if !(64..80).contains(&bit) && page_checksum_portable(page, block) == before {
                continue;
            }
            fs::write(&file.path, &bytes).expect("written");
            flipped.insert((file.path.clone(), block));
        }
        for method in METHODS {
            let report = verified(&instance(method), &dir, OPTIONS);
            let found: BTreeSet<_> = report
                .findings
                .iter()
                .map(|finding| (finding.path.clone(), finding.block.expect("block")))
                .collect();
            assert_eq!(found, flipped, "pg{major} {method} seed {seed:#x}");
            assert_eq!(report.findings_total(), 60, "pg{major} {method} seed {seed:#x}");
        }
    }
}

#[test]
fn nothing_is_written() {
    for (major, data) in fixtures() {
        let before = snapshot(&data);
        let dir = open(&data);
        for method in METHODS {
            let aio = instance(method);
            verified(&aio, &dir, OPTIONS);
            let read = ReadOptions { direct: true, ..READ };
            verified(&aio, &dir, Options { read, ..OPTIONS });
        }
        let targets = select(&dir, &Choice::default()).expect("selected").targets;
        let aio = instance(MethodKind::Worker);
        prewarm(&aio, &dir, &targets, READ, Arc::new(Unobserved)).expect("prewarmed");
        assert!(snapshot(&data) == before, "pg{major} is not as it was");
    }
}

pub(crate) fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir(to).expect("made");
    for entry in fs::read_dir(from).expect("read") {
        let entry = entry.expect("entry");
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().expect("type");
        if kind.is_dir() {
            copy_tree(&path, &copy);
        } else if kind.is_symlink() {
            let target = fs::read_link(&path).expect("link");
            std::os::unix::fs::symlink(target, copy).expect("linked");
        } else {
            // Don't use fs::copy, because on a file system with reflinks, the copy would share its
            // blocks with the original.
            fs::write(copy, fs::read(&path).expect("read")).expect("written");
        }
    }
}
