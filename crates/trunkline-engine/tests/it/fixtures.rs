//! Data directories created by PostgreSQL. `TRUNKLINE_FIXTURE_DIR` contains a directory for each
//! version: `pg15`, `pg18` and `pg19`. In each of them, `data` is the data directory as the server
//! left it, and `expected` contains the server's output.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use trunkline_engine::datadir::{DataDir, OpenOptions};
use trunkline_format::{CheckOptions, Verdict, check_page};

/// The available fixtures.
#[expect(clippy::disallowed_methods, reason = "a test has no main that could pass this down")]
pub(crate) fn fixtures() -> Vec<(u32, PathBuf)> {
    let Some(directory) = std::env::var_os("TRUNKLINE_FIXTURE_DIR").map(PathBuf::from) else {
        println!("skipped: no fixture");
        return Vec::new();
    };
    let of = |major: u32| (major, directory.join(format!("pg{major}/data")));
    let found: Vec<_> = (15..=19).map(of).filter(|(_, data)| data.is_dir()).collect();
    assert!(!found.is_empty(), "no fixture in {}", directory.display());
    found
}

#[test]
fn clean_and_whole() {
    for (major, data) in fixtures() {
        let opened = DataDir::open(&data, OpenOptions::default()).expect("opened");
        assert_eq!(opened.control().version.major(), major);
        assert!(opened.warnings().is_empty(), "{:?}", opened.warnings());
        opened.recheck().expect("nothing changed");
        let list = opened.relation_files();
        assert!(list.problems.is_empty(), "{:?}", list.problems);
        assert_eq!(list.tablespaces.len(), 1);
        assert_eq!(list.bytes(), list.blocks() * 8192);
        println!("pg{major}: {} files, {} blocks", list.files.len(), list.blocks());
    }
}

/// The listing must assign the right number to each block. Otherwise, the block's checksum wouldn't
/// match, because it depends on the block number.
#[test]
fn every_block_is_where_it_belongs() {
    for (_, data) in fixtures() {
        let opened = DataDir::open(&data, OpenOptions::default()).expect("opened");
        for file in opened.relation_files().files {
            let options = CheckOptions { checksums: opened.control().checksums(), fork: file.fork };
            let bytes = fs::read(&file.path).expect("read");
            let (pages, rest) = bytes.as_chunks();
            assert!(rest.is_empty());
            for (block, page) in (file.first_block().expect("first block")..).zip(pages) {
                let verdict = check_page(page, block, &options);
                assert!(
                    !matches!(verdict, Verdict::Bad(_)),
                    "{}: {block}: {verdict:?}",
                    file.path.display()
                );
            }
        }
    }
}

/// Returns the name, size, mode, times (except for the access time) and contents of every file
/// below a directory.
pub(crate) fn snapshot(directory: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(directory).expect("read") {
        let path = entry.expect("entry").path();
        let m = fs::symlink_metadata(&path).expect("metadata");
        let content = if m.is_file() { crc32c::crc32c(&fs::read(&path).expect("read")) } else { 0 };
        lines.push(format!(
            "{} {} {:o} {}.{} {}.{} {content:x}",
            path.display(),
            m.len(),
            m.mode(),
            m.mtime(),
            m.mtime_nsec(),
            m.ctime(),
            m.ctime_nsec(),
        ));
        if m.is_dir() {
            lines.extend(snapshot(&path));
        }
    }
    lines.sort();
    lines
}
