//! `trunkline recover`. What it recovers is compared with a server's work in the tests of servers.

use std::fs;
use std::path::Path;

use trunkline_engine::heap_writer::HeapWriter;
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::RelationLocator;
use trunkline_engine::writable_cluster::{Durability, WritableCluster, WritableClusterOptions};
use trunkline_format::transam::XidStatus;
use trunkline_format::{Oid, TupleBuilder};

use crate::{json, run};

/// A cluster with a table of 1000 rows, that was not shut down. Returns the path of the table.
pub(crate) fn crashed(data: &Path) -> String {
    crashed_with(data, 1000)
}

/// [`crashed`] with this number of rows.
pub(crate) fn crashed_with(data: &Path, rows: i32) -> String {
    let path = data.display().to_string();
    let (code, _, err) = run(["init", &path, "--wal-segsize", "1"]);
    assert_eq!(code, 0, "{err}");
    let mut settings = Settings::default();
    settings.set("shared_buffers", "2MB").expect("a setting");
    let scratch = data.parent().expect("a folder").to_owned();
    let options = WritableClusterOptions::new(settings, scratch);
    let cluster = WritableCluster::open(data, &options, |_| {}).expect("opened");
    // While it is open, no other process may recover it.
    let (code, _, err) = run(["recover", &path]);
    assert_ne!(code, 0);
    assert!(err.contains("is already open for writing"), "{err}");
    let mut session = cluster.session().expect("a session");
    let transaction = session.begin().expect("begun");
    let (tablespace, database) = (Oid(1663), Oid(1));
    let relfilenode = session.new_number(tablespace, database).expect("a number");
    let locator = RelationLocator { tablespace, database, relfilenode };
    let mut writer = HeapWriter::new(session.create(&transaction, locator).expect("created"));
    for number in 0..rows {
        let mut row = TupleBuilder::new();
        row.int4(number).text("a row");
        writer.insert(&mut session.heap(&transaction), &row.tuple()).expect("inserted");
    }
    session.commit(transaction, Durability::Now).expect("committed");
    format!("base/1/{relfilenode}")
}

#[test]
fn a_crashed_cluster_is_recovered_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let table = crashed(&data);
    let path = data.display().to_string();
    let before = fs::read(data.join(&table)).expect("read");
    assert!(before.iter().all(|byte| *byte == 0), "the rows are in the log only");
    let (code, out, err) = run(["recover", &path, "--json"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let report = json(&out);
    assert_eq!(report["recovered"], true);
    // The checkpoint, the number of the table, its creation, 1000 rows, and the commit.
    assert_eq!(report["records"], 1004, "{out}");
    assert!(report["pages"].as_u64() > Some(4), "{out}");
    let (code, out, err) = run(["verify", "-D", &path, "--files-only"]);
    assert_eq!(code, 0, "{out}{err}");
    let after = fs::read(data.join(&table)).expect("read");
    assert!(after.windows(5).filter(|bytes| bytes == b"a row").count() == 1000);
    let (code, out, _) = run(["inspect", "control", "-D", &path]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("shut down\n"), "{out}");
    let statuses = fs::read(data.join("pg_xact/0000")).expect("read");
    assert_eq!(XidStatus::in_byte(statuses[0], 3), XidStatus::Committed);
    let (code, out, err) = run(["recover", &path]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, format!("\"{path}\" was shut down, so there is nothing to recover\n"));
}

#[test]
fn other_directories_are_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let table = crashed(&data);
    let path = data.display().to_string();
    let refused = |needed: &str, status: i32| {
        let before = (listing(&data), fs::read(data.join(&table)).expect("read"));
        let (code, out, err) = run(["recover", &path]);
        assert_eq!((code, out.as_str()), (status, ""), "{err}");
        assert!(err.contains(needed), "{err}");
        assert_eq!(before, (listing(&data), fs::read(data.join(&table)).expect("read")));
    };
    let (code, _, err) = run(["recover", &path, "-D", &path]);
    assert!(code == 2 && err.contains("recover takes its directory as an argument"), "{err}");
    let inside = data.join("base").display().to_string();
    let (code, _, err) = run(["recover", &path, "--scratch", &inside]);
    assert!(code == 2 && err.contains("is inside the data directory"), "{err}");
    // A process that certainly runs.
    fs::write(data.join("postmaster.pid"), "1\n").expect("written");
    refused("a server may be running", 3);
    fs::remove_file(data.join("postmaster.pid")).expect("removed");
    fs::write(data.join("backup_label"), "START WAL LOCATION").expect("written");
    refused("the cluster has a backup_label", 3);
    fs::remove_file(data.join("backup_label")).expect("removed");
    fs::rename(data.join("trunkline.cluster"), folder.path().join("marker")).expect("renamed");
    refused("trunkline writes only to clusters that \"trunkline init\" has made", 2);
    fs::rename(folder.path().join("marker"), data.join("trunkline.cluster")).expect("renamed");
    // The log doesn't reach the checkpoint that the control file names.
    let segment = data.join("pg_wal/000000010000000000000001");
    let bytes = fs::read(&segment).expect("read");
    fs::write(&segment, vec![0; bytes.len()]).expect("written");
    refused("000000010000000000000001", 3);
    fs::write(&segment, &bytes).expect("written");
    assert_eq!(run(["recover", &path]).0, 0);
}

/// The files of a directory and of those in it.
fn listing(data: &Path) -> Vec<(std::path::PathBuf, u64)> {
    let mut found = Vec::new();
    let mut folders = vec![data.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("listed") {
            let entry = entry.expect("an entry");
            let metadata = entry.metadata().expect("known");
            found.push((entry.path(), metadata.len()));
            if metadata.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found.sort();
    found
}
