//! Prepared transactions of a cluster that was not shut down: some are in files, some in the WAL, and some have ended.

use std::fs;
use std::path::PathBuf;

use trunkline_engine::datadir::{DataDir, OpenOptions};
use trunkline_engine::writable_cluster::WritableCluster;
use trunkline_format::Oid;
use trunkline_format::wal::resource_manager::number;

use crate::replayed_cluster::{Crashed, Open};
use crate::writable_cluster::options;

/// Operations of transactions. The last two have the flag that other fields follow.
const PREPARE: u8 = 0x10;
const COMMIT_PREPARED: u8 = 0xB0;
const ROLLBACK_PREPARED: u8 = 0xC0;

/// The flag of a record that names a prepared transaction.
const HAS_PREPARED: u32 = 0x10;

/// The data of a prepare record.
fn state(xid: u32) -> Vec<u32> {
    let gid = u32::from_le_bytes(*gid(xid).first_chunk().expect("four bytes"));
    let (size, gid_length) = (84, 5);
    let fixed = [0x57F9_4534, size, xid, 5, 0x1234_5678, 1, 10, 0, 0, 0, 0, 0, 0, gid_length << 16];
    [&fixed[..], &[0; 4], &[gid, 0]].concat()
}

fn gid(xid: u32) -> Vec<u8> {
    format!("g{xid:03}").into_bytes()
}

fn end(open: &mut Open, operation: u8, xid: u32) {
    open.insert_words(number::TRANSACTION, operation, &[0, 0, HAS_PREPARED, xid]);
}

/// Writes the file of a prepared transaction, as a checkpoint does.
fn write_file(crashed: &Crashed, xid: u32) -> PathBuf {
    let mut bytes: Vec<u8> = state(xid).iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    let path = crashed.data.join(format!("pg_twophase/{xid:016X}"));
    fs::write(&path, bytes).expect("written");
    path
}

fn xids(dir: &DataDir) -> Vec<u32> {
    dir.prepared_xids().expect("listed").into_iter().collect()
}

#[test]
fn prepared_transactions_are_those_of_the_end_of_the_log() {
    // The start knows none of these, and the log has the last two.
    let [unknown, in_log, ended_in_log] = [700, 801, 802];
    let (crashed, xids_before) = Crashed::new(&[], |open| {
        let table = open.fill((Oid(1663), Oid(1)));
        let begun = [(); 4].map(|()| open.session.begin().expect("begun").xid());
        let [_, committed, rolled_back, in_both] = begun;
        open.session.checkpoint().expect("a checkpoint");
        for xid in [in_log, ended_in_log, in_both] {
            open.insert_words(number::TRANSACTION, PREPARE, &state(xid));
        }
        end(open, COMMIT_PREPARED, committed);
        end(open, ROLLBACK_PREPARED, rolled_back);
        end(open, COMMIT_PREPARED, ended_in_log);
        open.delete_first(table);
        begun
    });
    let [in_file, committed, rolled_back, in_both] = xids_before;
    // This one was committed before the checkpoint, and a crash may have kept its file.
    let stale = in_file - 1;
    assert_eq!(xids(&crashed.open()), [in_both, in_log], "without files");
    let paths = [in_file, committed, rolled_back, in_both, ended_in_log, unknown, stale]
        .map(|xid| write_file(&crashed, xid));
    for name in ["2E9", "00000000000002e9", "000002EA"] {
        fs::write(crashed.data.join("pg_twophase").join(name), "").expect("written");
    }
    let dir = crashed.open();
    assert_eq!(xids(&dir), [in_file, in_both, in_log]);
    let all = dir.prepared_transactions().expect("read");
    for (found, xid) in all.iter().zip(xids(&dir)) {
        assert_eq!((found.xid, found.database, found.owner), (xid, Oid(5), Oid(10)));
        assert_eq!(found.gid, gid(xid));
        assert_eq!(found.time, 0x1_1234_5678);
    }
    // As it lies, the files say what they said at the checkpoint.
    let as_it_lies = OpenOptions { as_it_lies: true, ..OpenOptions::default() };
    let files = DataDir::open(&crashed.data, as_it_lies).expect("opened");
    assert_eq!(xids(&files), [in_file, committed, rolled_back, in_both]);

    // Only the name is needed for the list.
    fs::copy(&paths[1], &paths[0]).expect("copied");
    assert_eq!(xids(&dir), [in_file, in_both, in_log]);
    let error = dir.prepared_transactions().expect_err("of another transaction").to_string();
    let name = paths[0].display();
    let reason = format!("it is of transaction {committed}");
    let expected = format!("\"{name}\" is not the file of a prepared transaction: {reason}");
    assert_eq!(error, expected);
    fs::write(&paths[0], "").expect("emptied");
    let error = dir.prepared_transactions().expect_err("empty").to_string();
    assert!(error.ends_with("it begins with 0x00000000, expected 0x57F94534"), "{error}");
    fs::remove_dir_all(crashed.data.join("pg_twophase")).expect("removed");
    assert_eq!(xids(&dir), [in_both, in_log]);
    // Our recovery would have to write their files.
    let refused = WritableCluster::open(&crashed.data, &options(&crashed.data), |_| {}).err();
    let error = refused.expect("refused").to_string();
    assert!(error.contains("the cluster has prepared transactions"), "{error}");
}
