//! Directories that PostgreSQL made: `TRUNKLINE_FIXTURE_DIR` holds `pg15`, `pg18`, `pg19`, each
//! with `data` as the server left it and `expected` with what the server said.

use std::fs;
use std::path::PathBuf;

use trunkline_engine::datadir::{DataDir, OpenOptions};
use trunkline_format::{CheckOptions, Verdict, check_page};

/// The fixtures there are.
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

/// The list puts every block where its checksum says it is.
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
