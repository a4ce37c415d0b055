//! Tests of the storage layer: file names, fork lengths, segments and errors.

use std::fs;
use std::path::Path;

use trunkline_aio::{Aio, MethodKind};
use trunkline_engine::storage::{
    Layout, OpenFiles, Relation, RelationLocator, Storage, StorageError,
};
use trunkline_format::{CheckOptions, Fork, Oid, SEGMENT_BLOCKS, Verdict, check_page};

use crate::child;
use crate::fake::{Fake, SEGMENT_BYTES};
use crate::fixtures::fixtures;
use crate::jobs::instance;

/// A relation in database 5.
pub(crate) fn locator(relfilenode: u32) -> RelationLocator {
    RelationLocator { tablespace: Oid(1663), database: Oid(5), relfilenode }
}

/// A fake cluster's files, with their own open-file table.
pub(crate) fn storage(fake: &Fake, aio: &Aio, limit: usize, direct: bool) -> Storage {
    let dir = fake.open().expect("opened");
    let files = OpenFiles::kernel(aio, limit);
    Storage::of_datadir(&dir, &files, direct)
}

/// The text of an error, with the directory's path replaced by `DIR`.
fn text(fake: &Fake, error: &StorageError) -> String {
    error.to_string().replace(&*fake.path.to_string_lossy(), "DIR")
}

fn refusal<T: std::fmt::Debug>(fake: &Fake, result: Result<T, StorageError>) -> String {
    text(fake, &result.expect_err("refused"))
}

#[test]
fn names_of_files() {
    let aio = instance(MethodKind::Sync);
    let layout = Layout { checksums: true, tablespace_directory: "PG_18_202506291".into() };
    let files = OpenFiles::kernel(&aio, 8);
    let storage = Storage::new(Path::new("/data"), layout, &files, false);
    for (tablespace, database, fork, segment, expected) in [
        (1663, 5, Fork::Main, 0, "/data/base/5/16384"),
        (1663, 5, Fork::Fsm, 3, "/data/base/5/16384_fsm.3"),
        (1664, 0, Fork::Vm, 0, "/data/global/16384_vm"),
        (16500, 7, Fork::Init, 1, "/data/pg_tblspc/16500/PG_18_202506291/7/16384_init.1"),
    ] {
        let locator = RelationLocator {
            tablespace: Oid(tablespace),
            database: Oid(database),
            relfilenode: 16384,
        };
        assert_eq!(locator.to_string(), format!("{tablespace}/{database}/16384"));
        let relation = storage.relation(locator, fork);
        assert_eq!(relation.path(segment), Path::new(expected));
        assert_eq!((relation.locator(), relation.fork()), (locator, fork));
        assert_eq!(relation.storage().number(), storage.number());
    }
    assert!(storage.checksums() && !storage.is_direct() && storage.number() > 0);
}

#[test]
fn every_cluster_has_a_number() {
    let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
    let mut numbers: Vec<u16> = (0..10).map(|_| storage(&fake, &aio, 8, false).number()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 10);
    assert!(!numbers.contains(&0));
}

/// Creates segments of the given lengths, and checks that the fork's length is the expected number
/// of blocks, or that we get the expected error.
fn check_blocks(lengths: &[u64], expected: Result<u32, &str>) {
    let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
    for (segment, &bytes) in lengths.iter().enumerate() {
        let name = if segment == 0 { "16384".to_owned() } else { format!("16384.{segment}") };
        fake.sparse(&format!("base/5/{name}"), bytes);
    }
    let storage = storage(&fake, &aio, 8, false);
    let relation = storage.relation(locator(16384), Fork::Main);
    for round in ["closed", "open"] {
        let found = relation.blocks().map_err(|error| text(&fake, &error));
        assert_eq!(found, expected.map_err(str::to_owned), "{lengths:?}, segments {round}");
        for segment in 0..lengths.len() as u32 {
            relation.locate(segment * SEGMENT_BLOCKS).expect("open now");
        }
    }
}

#[test]
fn a_fork_ends_with_its_first_segment_that_is_not_full() {
    check_blocks(&[0], Ok(0));
    check_blocks(&[3 * 8192], Ok(3));
    check_blocks(&[3 * 8192 + 100], Ok(3));
    check_blocks(&[SEGMENT_BYTES - 8192], Ok(131_071));
    check_blocks(&[SEGMENT_BYTES], Ok(131_072));
    check_blocks(&[SEGMENT_BYTES, 0], Ok(131_072));
    check_blocks(&[SEGMENT_BYTES, 5 * 8192], Ok(131_077));
    check_blocks(&[SEGMENT_BYTES, SEGMENT_BYTES, 8192], Ok(262_145));
    // Segments after a short one are ignored.
    check_blocks(&[8192, SEGMENT_BYTES], Ok(1));
    check_blocks(&[SEGMENT_BYTES, 8192, SEGMENT_BYTES + 8192], Ok(131_073));
}

#[test]
fn a_segment_that_is_too_long_is_an_error() {
    let most = "expected at most 1073741824 (131072 blocks of 8192)";
    check_blocks(
        &[SEGMENT_BYTES + 1],
        Err(&format!("segment \"DIR/base/5/16384\" has 1073741825 bytes, {most}")),
    );
    check_blocks(
        &[SEGMENT_BYTES, SEGMENT_BYTES + 8192],
        Err(&format!("segment \"DIR/base/5/16384.1\" has 1073750016 bytes, {most}")),
    );
}

#[test]
fn blocks_across_segments() {
    let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
    fake.sparse("base/5/16384", SEGMENT_BYTES);
    fake.sparse("base/5/16384.1", SEGMENT_BYTES);
    fake.sparse("base/5/16384.2", 8192);
    let storage = storage(&fake, &aio, 8, false);
    let relation = storage.relation(locator(16384), Fork::Main);
    assert_eq!(relation.blocks().expect("blocks"), 262_145);
    for (block, name, offset, left) in [
        (0, "16384", 0, 131_072),
        (1, "16384", 8192, 131_071),
        (131_071, "16384", SEGMENT_BYTES - 8192, 1),
        (131_072, "16384.1", 0, 131_072),
        (262_143, "16384.1", SEGMENT_BYTES - 8192, 1),
        (262_144, "16384.2", 0, 131_072),
        // The file's length doesn't matter.
        (262_150, "16384.2", 6 * 8192, 131_066),
    ] {
        let located = relation.locate(block).expect("located");
        assert_eq!(located.file.path(), fake.at("base/5").join(name), "block {block}");
        assert_eq!((located.offset, located.blocks_left), (offset, left), "block {block}");
        assert!(!located.file.is_direct());
    }
    assert_eq!((storage.files().open(), storage.files().opens()), (3, 3));
}

#[test]
fn blocks_up_to_the_maximum_are_located() {
    let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
    fake.sparse("base/5/16384.32767", 0);
    let storage = storage(&fake, &aio, 8, false);
    let relation = storage.relation(locator(16384), Fork::Main);
    let located = relation.locate(u32::MAX - 1).expect("located");
    assert_eq!((located.offset, located.blocks_left), (SEGMENT_BYTES - 2 * 8192, 1));
    let located = relation.locate(32767 * SEGMENT_BLOCKS).expect("located");
    assert_eq!((located.offset, located.blocks_left), (0, SEGMENT_BLOCKS - 1));
    assert_eq!(
        refusal(&fake, relation.locate(u32::MAX)),
        "block 4294967295 of file \"DIR/base/5/16384.32767\" does not exist: the relation has \
         4294967295 blocks"
    );
}

#[test]
fn missing_segments() {
    let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
    fake.sparse("base/5/16384", SEGMENT_BYTES);
    fake.sparse("base/5/16384.2", 8192);
    let storage = storage(&fake, &aio, 8, false);
    let relation = storage.relation(locator(16384), Fork::Main);
    relation.locate(0).expect("the first is there");
    relation.locate(2 * SEGMENT_BLOCKS).expect("the third is there");
    assert_eq!(
        refusal(&fake, relation.locate(131_100)),
        "could not open file \"DIR/base/5/16384.1\" (target block 131100): No such file or directory"
    );
    assert_eq!(relation.blocks().expect("blocks"), 131_072);
    assert_eq!(storage.files().open(), 2, "a failure takes no place");

    let vm = storage.relation(locator(16384), Fork::Vm);
    let missing = "could not open file \"DIR/base/5/16384_vm\": No such file or directory";
    assert_eq!(refusal(&fake, vm.locate(0)), missing);
    assert_eq!(refusal(&fake, vm.blocks()), missing);
    let nowhere = RelationLocator { tablespace: Oid(16500), database: Oid(6), relfilenode: 1 };
    assert_eq!(
        refusal(&fake, storage.relation(nowhere, Fork::Main).locate(0)),
        "could not open file \"DIR/pg_tblspc/16500/PG_18_202506291/6/1\": No such file or directory"
    );
}

/// If a read returns no bytes, the error must say why.
#[test]
fn why_a_block_is_missing() {
    let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
    fake.sparse("base/5/16384", 3 * 8192);
    let storage = storage(&fake, &aio, 8, false);
    let relation = storage.relation(locator(16384), Fork::Main);
    assert_eq!(
        text(&fake, &relation.missing(7)),
        "block 7 of file \"DIR/base/5/16384\" does not exist: the relation has 3 blocks"
    );
    fs::remove_file(fake.at("base/5/16384")).expect("removed");
    assert!(matches!(relation.missing(7), StorageError::SegmentMissing { .. }));
}

#[test]
fn only_plain_files_are_opened() {
    let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
    fake.sparse("base/5/16384", 8192);
    fake.link("16384", "base/5/16385");
    fake.link("/nowhere", "base/5/16386");
    fs::create_dir(fake.at("base/5/16387")).expect("made");
    fake.pipe("base/5/16388");
    let storage = storage(&fake, &aio, 8, false);
    let link = "is a symbolic link, expected a file of the cluster; not followed";
    for (relfilenode, opening, examining) in [
        (16385, format!("\"DIR/base/5/16385\" {link}"), None),
        (16386, format!("\"DIR/base/5/16386\" {link}"), None),
        (
            16387,
            "could not open file \"DIR/base/5/16387\": Is a directory (os error 21)".to_owned(),
            Some(()),
        ),
        (
            16388,
            "could not open file \"DIR/base/5/16388\": not a regular file but a Fifo".to_owned(),
            Some(()),
        ),
    ] {
        let relation = storage.relation(locator(relfilenode), Fork::Main);
        assert_eq!(refusal(&fake, relation.locate(0)), opening);
        let found = refusal(&fake, relation.blocks());
        match examining {
            None => assert_eq!(found, opening),
            Some(()) => assert!(found.starts_with("could not examine file \"DIR/base"), "{found}"),
        }
    }
    assert_eq!(storage.files().open(), 0);
}

#[test]
fn unreadable_files_are_named() {
    if child::is_root() {
        return child::as_unprivileged_user("storage::unreadable_files_are_named");
    }
    let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
    fake.sparse("base/5/16384", 8192);
    child::set_mode(&fake.at("base/5/16384"), 0);
    let storage = storage(&fake, &aio, 8, false);
    let error = storage.relation(locator(16384), Fork::Main).locate(0).expect_err("refused");
    assert_eq!(
        text(&fake, &error),
        "could not open file \"DIR/base/5/16384\": Permission denied (os error 13)"
    );
    assert_eq!(error.hint(), Some("run as the user that owns the data directory"));
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn direct_files() {
    let (fake, aio) = (Fake::new(), instance(MethodKind::Sync));
    fake.sparse("base/5/16384", 8192);
    let storage = storage(&fake, &aio, 8, true);
    assert!(storage.is_direct());
    match storage.relation(locator(16384), Fork::Main).locate(0) {
        Ok(located) => {
            assert!(located.file.is_direct());
            assert!(8192_u32.is_multiple_of(located.file.alignment()));
        }
        // The file system of the temporary directory may not support direct I/O. If it doesn't, the
        // error must say so.
        Err(StorageError::Direct { file_system, .. }) => {
            println!("skipped: no direct I/O on {file_system}")
        }
        Err(error) => panic!("{error}"),
    }
}

/// A relation's forks according to the listing.
fn relation_of(storage: &Storage, file: &trunkline_engine::datadir::FileEntry) -> Relation {
    let locator = RelationLocator {
        tablespace: file.tablespace,
        database: file.database,
        relfilenode: file.relfilenode,
    };
    storage.relation(locator, file.fork)
}

/// We must be able to find every file created by PostgreSQL, given its relation locator. This must
/// work for files in tablespaces, too, and even if the limit on open files is very low.
#[test]
fn fixtures_by_number() {
    for (major, data) in fixtures() {
        let aio = instance(MethodKind::Sync);
        let options = trunkline_engine::datadir::OpenOptions::default();
        let dir = trunkline_engine::datadir::DataDir::open(&data, options).expect("opened");
        let files = OpenFiles::kernel(&aio, 16);
        let storage = Storage::of_datadir(&dir, &files, false);
        assert_eq!(storage.checksums(), dir.control().checksums());
        let list = dir.relation_files().files;
        assert!(list.iter().any(|file| file.tablespace.0 > 1664), "pg{major}: no tablespace");
        for file in &list {
            let relation = relation_of(&storage, file);
            assert_eq!(relation.path(file.segment), file.path);
            assert_eq!(relation.blocks().expect("blocks"), file.blocks(), "{relation:?}");
            let Some(last) = file.blocks().checked_sub(1) else { continue };
            let located = relation.locate(last).expect("located");
            assert_eq!(located.file.path(), file.path);
            let bytes = fs::read(&file.path).expect("read");
            let page = bytes[located.offset as usize..].first_chunk().expect("a page");
            let options = CheckOptions { checksums: storage.checksums(), fork: file.fork };
            let verdict = check_page(page, last, &options);
            assert!(!matches!(verdict, Verdict::Bad(_)), "{relation:?}, {last}: {verdict:?}");
        }
        assert!(aio.open_files() <= 16 && files.open() <= 16, "{files:?}");
        drop(storage);
        assert_eq!((files.open(), aio.open_files()), (0, 0));
    }
}
