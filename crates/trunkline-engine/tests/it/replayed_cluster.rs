//! Clusters of our own that were not shut down, and are read through their WAL. Some are made into backups, with a
//! `backup_label` and a `tablespace_map`. Records that the engine never writes are inserted by hand.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use trunkline_aio::MethodKind;
use trunkline_engine::datadir::{
    DataDir, DataDirError, OpenOptions, ProblemKind, Tablespace, place_of, read_control_file,
};
use trunkline_engine::heap_writer::HeapWriter;
use trunkline_engine::log_writer::Inserter;
use trunkline_engine::replay::ReplayOptions;
use trunkline_engine::storage::{
    OpenFiles, PageOrigin, Relation, RelationLocator, Storage, StorageError,
};
use trunkline_engine::writable_cluster::{Durability, WritableCluster, WriteSession};
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::{ImageMode, NewBlock, NewRecord};
use trunkline_format::{BlockNo, Fork, Oid, PageBytes, Tid};

use crate::jobs::{OPTIONS, instance, page, verified};
use crate::writable_cluster::{create, insert, new_table, new_table_in, open};

const TABLESPACE: Oid = Oid(16_999);
pub(crate) const DATABASE: Oid = Oid(5);

/// The directory of the database, in that of the tablespace.
const BELOW: &str = "PG_18_202506291/5";

/// Operations of storage, of databases, and of the WAL itself.
const CREATE: u8 = 0x10;
pub(crate) const TRUNCATE: u8 = 0x20;
pub(crate) const DROP_DATABASE: u8 = 0x20;
pub(crate) const FULL_PAGE_IMAGE: u8 = 0xB0;

/// A cluster that is open for writing.
pub(crate) struct Open {
    pub(crate) session: WriteSession,
    // Dropped last.
    cluster: WritableCluster,
}

/// The directory of a cluster that was not shut down.
pub(crate) struct Crashed {
    folder: TempDir,
    pub(crate) data: PathBuf,
}

impl Crashed {
    /// Opens a new cluster with these directories, changes it, and loses what is not in its WAL.
    pub(crate) fn new<T>(directories: &[&str], change: impl FnOnce(&mut Open) -> T) -> (Self, T) {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        create(&data);
        for directory in directories {
            fs::create_dir_all(data.join(directory)).expect("a directory");
        }
        let cluster = open(&data);
        let mut open = Open { session: cluster.session().expect("a session"), cluster };
        let changed = change(&mut open);
        (Self { folder, data }, changed)
    }

    pub(crate) fn open(&self) -> DataDir {
        let options = ReplayOptions::new(self.folder.path().to_owned());
        DataDir::open_replayed(&self.data, OpenOptions::default(), &options).expect("replayed")
    }

    /// Makes a backup of it, whose tablespace is in `place`.
    fn write_label(&self, place: &Path) {
        let control = read_control_file(&self.data.join("global/pg_control")).expect("valid");
        let (redo, location) = (control.checkpoint.redo, control.checkpoint.location);
        let label = format!(
            "START WAL LOCATION: {redo} (file 000000010000000000000001)\n\
             CHECKPOINT LOCATION: {location}\nBACKUP METHOD: pg_rewind\nBACKUP FROM: primary\n"
        );
        fs::write(self.data.join("backup_label"), label).expect("written");
        let map = format!("{TABLESPACE} {}\n", place.display());
        fs::write(self.data.join("tablespace_map"), map).expect("written");
    }
}

impl Open {
    /// A table with rows in several blocks.
    pub(crate) fn fill(&mut self, place: (Oid, Oid)) -> RelationLocator {
        let locator = new_table_in(&mut self.session, place);
        let mut writer = HeapWriter::new(self.session.relation(locator));
        insert(&mut self.session, &mut writer, 0..300);
        locator
    }

    /// Deletes the first row of a table. The record is durable, and so are those before it.
    pub(crate) fn delete_first(&mut self, locator: RelationLocator) {
        let mut writer = HeapWriter::new(self.session.relation(locator));
        let transaction = self.session.begin().expect("begun");
        let tid = Tid { block: 0, item: 1 };
        writer.delete(&mut self.session.heap(&transaction), tid, None).expect("deleted");
        self.session.commit(transaction, Durability::Now).expect("committed");
    }

    /// Inserts a record that makes no difference for the engine.
    pub(crate) fn insert(&mut self, record: &NewRecord<'_>) {
        let log = self.cluster.log();
        let mut room = log.room(self.session.backend().session(), 1, 10_000).expect("room");
        let mut inserter = Inserter::new(log).expect("an inserter");
        inserter.insert(&mut room, record).expect("inserted");
    }

    /// Inserts an image of a page, which becomes that block.
    pub(crate) fn insert_image(
        &mut self,
        (locator, fork, block): (RelationLocator, Fork, BlockNo),
        page: &PageBytes,
    ) {
        let block = NewBlock {
            id: 0,
            relation: locator.into(),
            fork,
            block,
            page,
            image: ImageMode::Always,
            is_standard: true,
            keeps_data: false,
            data: &[],
        };
        let plain = NewRecord::plain(number::XLOG, FULL_PAGE_IMAGE, 0, &[]);
        self.insert(&NewRecord { blocks: &[block], ..plain });
    }

    /// Inserts a record with these numbers.
    pub(crate) fn insert_words(&mut self, manager: u8, operation: u8, words: &[u32]) {
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let data: &[&[u8]] = &[&data];
        let info = operation | NewRecord::CHANGES_FILES;
        self.insert(&NewRecord::plain(manager, info, 0, data));
    }
}

pub(crate) fn words(locator: RelationLocator) -> [u32; 3] {
    [locator.tablespace.0, locator.database.0, locator.relfilenode]
}

pub(crate) fn relation(dir: &DataDir, locator: RelationLocator, fork: Fork) -> Relation {
    let files = OpenFiles::kernel(&instance(MethodKind::Sync), 8);
    Storage::of_datadir(dir, &files, false).relation(locator, fork)
}

/// The paths of all relation files, and their lengths in blocks.
fn files(dir: &DataDir) -> Vec<(PathBuf, BlockNo)> {
    let list = dir.relation_files();
    assert!(list.problems.is_empty(), "{:?}", list.problems);
    list.files.iter().map(|file| (file.path.clone(), file.blocks())).collect()
}

#[test]
fn the_tablespaces_that_a_backup_lists_are_read_whatever_links_there_are() {
    let in_place = format!("pg_tblspc/{TABLESPACE}");
    let (crashed, tables) = Crashed::new(&[&format!("{in_place}/{BELOW}")], |open| {
        let tables = [(); 2].map(|()| open.fill((TABLESPACE, DATABASE)));
        open.session.checkpoint().expect("a checkpoint");
        open.delete_first(tables[0]);
        tables
    });
    let (in_place, data) = (crashed.data.join(in_place), &crashed.data);
    let blocks = fs::metadata(in_place.join(BELOW).join(tables[1].relfilenode.to_string()));
    let blocks = (blocks.expect("a file").len() / 8192) as BlockNo;
    assert!(blocks > 3, "{blocks}");
    let expected = |place: &Path| {
        tables.map(|table| (place.join(BELOW).join(table.relfilenode.to_string()), blocks))
    };
    let aio = instance(MethodKind::Sync);
    let check = |dir: &DataDir, place: &Path, target: Option<&Path>| {
        assert_eq!(files(dir), expected(place));
        let target = target.map(Path::to_owned);
        assert_eq!(dir.relation_files().tablespaces, [Tablespace { oid: TABLESPACE, target }]);
        assert_eq!(relation(dir, tables[0], Fork::Main).blocks().expect("known"), blocks);
        let report = verified(&aio, dir, OPTIONS);
        assert_eq!((report.findings_total(), report.blocks), (0, u64::from(2 * blocks)));
        let bytes = u64::from(2 * blocks) * 8192;
        assert_eq!(dir.database_bytes(DATABASE).expect("read"), bytes);
        let folder = fs::metadata(place.join(BELOW)).expect("a folder").len();
        let in_tablespace = dir.tablespace_bytes(TABLESPACE).expect("read");
        assert_eq!(in_tablespace, Some(bytes + folder));
    };
    let location = |dir: &DataDir| dir.tablespace_location(TABLESPACE).expect("read");

    let elsewhere = crashed.folder.path().join("elsewhere");
    fs::rename(&in_place, &elsewhere).expect("moved");
    crashed.write_label(&elsewhere);
    check(&crashed.open(), &elsewhere, Some(&elsewhere));
    assert_eq!(location(&crashed.open()), Some(elsewhere.clone()));

    let original = Path::new("/nonexistent/tablespace");
    crashed.write_label(original);
    let dir = crashed.open();
    let list = dir.relation_files();
    let problems: Vec<_> = list.problems.iter().map(|problem| &problem.kind).collect();
    let is_missing =
        matches!(problems[..], [ProblemKind::Dangling { target }] if target == original);
    assert!(is_missing && list.tablespaces.is_empty(), "{list:?}");
    let missing = dir.dangling_link(&original.join(BELOW).join("16384"));
    assert_eq!(missing.as_deref(), Some(original));
    let moves = [(original.to_owned(), elsewhere.clone())];
    let dir = dir.with_tablespaces(&moves).expect("mapped");
    check(&dir, &elsewhere, Some(&elsewhere));
    assert_eq!(location(&dir).as_deref(), Some(original));
    let folder = elsewhere.join(BELOW);
    let place = place_of(data, dir.control(), &moves, &folder);
    assert_eq!(place, Some((TABLESPACE, DATABASE)));
    let moves = [(data.clone(), elsewhere.clone())];
    let error = dir.with_tablespaces(&moves).expect_err("no such tablespace");
    assert!(matches!(error, DataDirError::NoTablespace { .. }), "{error}");

    // A server replaces a link by the one that the map says.
    let stale = crashed.folder.path().join("stale");
    fs::create_dir_all(stale.join(BELOW)).expect("a directory");
    symlink(&stale, &in_place).expect("a link");
    crashed.write_label(&elsewhere);
    check(&crashed.open(), &elsewhere, Some(&stale));
    assert_eq!(location(&crashed.open()), Some(elsewhere.clone()));
    let place = place_of(data, crashed.open().control(), &[], &folder);
    assert_eq!(place, Some((TABLESPACE, DATABASE)));
    fs::remove_file(data.join("backup_label")).expect("removed");
    let without_label = crashed.open();
    assert!(without_label.moved_tablespaces().is_empty());
    assert_eq!(location(&without_label), Some(stale));

    fs::remove_file(&in_place).expect("removed");
    fs::rename(&elsewhere, &in_place).expect("moved");
    crashed.write_label(&elsewhere);
    check(&crashed.open(), &in_place, None);
}

#[test]
fn a_dropped_database_has_no_files() {
    let (crashed, (kept, dropped, created)) = Crashed::new(&["base/5"], |open| {
        let place = (Oid(1663), DATABASE);
        let (kept, changed) = (new_table(&mut open.session), open.fill(place));
        let (unchanged, created) = (open.fill(place), open.fill(place));
        open.session.checkpoint().expect("a checkpoint");
        open.delete_first(changed);
        open.insert_words(number::DATABASE, DROP_DATABASE, &[DATABASE.0, 1, 1663]);
        // The database is created again, and its number is used again.
        let [tablespace, database, relfilenode] = words(created);
        open.insert_words(number::STORAGE, CREATE, &[tablespace, database, relfilenode, 0]);
        let mut writer = HeapWriter::new(open.session.relation(kept));
        insert(&mut open.session, &mut writer, 0..1);
        (kept, [changed, unchanged], created)
    });
    let dir = crashed.open();
    let path = |locator: RelationLocator| {
        let database = locator.database.to_string();
        crashed.data.join("base").join(database).join(locator.relfilenode.to_string())
    };
    assert_eq!(files(&dir), [(path(kept), 1), (path(created), 0)]);
    assert_eq!(relation(&dir, created, Fork::Main).blocks().expect("created"), 0);
    for dropped in dropped {
        assert!(path(dropped).exists());
        let blocks = relation(&dir, dropped, Fork::Main).blocks();
        assert!(matches!(blocks, Err(StorageError::SegmentMissing { .. })), "{blocks:?}");
    }
    let report = verified(&instance(MethodKind::Sync), &dir, OPTIONS);
    assert_eq!(report.findings_total(), 0, "{:?}", report.findings);
}

#[test]
fn an_error_of_an_unlogged_relation_names_the_init_fork() {
    let (crashed, table) = Crashed::new(&[], |open| {
        let table = open.fill((Oid(1663), Oid(1)));
        open.insert_image((table, Fork::Init, 4_000_000_000), &page(0));
        open.delete_first(table);
        table
    });
    let main = relation(&crashed.open(), table, Fork::Main);
    let last = main.blocks().expect("counted") - 1;
    let error = main.locate(last).expect_err("impossible");
    assert!(matches!(error, StorageError::Replay { .. }), "{error}");
    let name = error.path().file_name().expect("a file").to_string_lossy();
    assert!(name.starts_with(&format!("{}_init", table.relfilenode)), "{name}");
}

#[test]
fn a_truncation_creates_no_map() {
    let (crashed, tables) = Crashed::new(&[], |open| {
        let table = open.fill((Oid(1663), Oid(1)));
        let [tablespace, database, relfilenode] = words(table);
        let cut = [2, tablespace, database, relfilenode, 7];
        open.insert_words(number::STORAGE, TRUNCATE, &cut);
        [table, new_table(&mut open.session)]
    });
    let dir = crashed.open();
    let paths = tables.map(|table| relation(&dir, table, Fork::Main).path(0));
    assert_eq!(files(&dir), [(paths[0].clone(), 2), (paths[1].clone(), 0)]);
    let map = relation(&dir, tables[0], Fork::Vm).blocks();
    assert!(matches!(map, Err(StorageError::SegmentMissing { .. })), "{map:?}");
}

#[test]
fn a_damaged_map_page_is_built_from_zeros() {
    let (crashed, table) = Crashed::new(&[], |open| {
        let table = open.fill((Oid(1663), Oid(1)));
        let [tablespace, database, relfilenode] = words(table);
        // This clears bits of the map page, and has no image of it.
        let cut = [2, tablespace, database, relfilenode, 7];
        open.insert_words(number::STORAGE, TRUNCATE, &cut);
        new_table(&mut open.session);
        table
    });
    let path = crashed.data.join(format!("base/1/{}_vm", table.relfilenode));
    fs::write(path, [0xEE; 8192]).expect("written");
    let origin = relation(&crashed.open(), table, Fork::Vm).page_origin(0).expect("built");
    let PageOrigin::Log { page, .. } = origin else { panic!("{origin:?}") };
    assert!(page[24..].iter().all(|byte| *byte == 0), "no bit is set");
}
