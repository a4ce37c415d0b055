//! A server of 18 as a standby of a cluster of ours: it replays our WAL while we write it, compares each page with the
//! image in its record, and has the same files in the end.
//!
//! The standby doesn't allow connections (`hot_standby = off`), since our WAL has no records of running transactions.
//! For as many minutes as `TRUNKLINE_STANDBY_MINUTES` says, or for a number of commits.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use trunkline_aio::clock::{self, Time};
use trunkline_aio::facade::atomic::{AtomicU64, Ordering};
use trunkline_aio::facade::{Mutex, env};
use trunkline_engine::log::Log as _;
use trunkline_engine::new_cluster::{self, NewClusterOptions};
use trunkline_engine::writable_cluster::{WritableCluster, WritableClusterOptions};
use trunkline_format::wal::redo::first_difference;
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::{ResourceManager, SegmentSize};
use trunkline_format::{BLOCK_SIZE, ClusterState, Fork, Lsn, PageHeader};

use crate::differential::seeds;
use crate::killed_writers::{control_file, files};
use crate::segment_archive::{SegmentArchive, segment_path};
use crate::server::{Server, major_of, servers};
use crate::writer_process::{options, write_in_threads};

/// The number of threads that write.
const WRITERS: u64 = 8;

/// The number of commits, unless minutes are named.
const COMMITS: u64 = 1000;

/// How much WAL the cluster keeps: far more than all threads write before the next one of them has copied segments.
const KEPT: u64 = 64 << 20;

/// `wal_level`: the standby refuses WAL of a cluster with `minimal`.
const REPLICA: u32 = 1;

/// What a standby logs, unless something is wrong: the beginnings of its messages.
const MESSAGES: [&str; 18] = [
    "skipping missing configuration file ",
    "starting PostgreSQL 18.",
    "listening on Unix socket ",
    "database system was shut down at ",
    "entering standby mode",
    "restored log file \"",
    "redo starts at ",
    "consistent recovery state reached at ",
    "restartpoint starting: ",
    "restartpoint complete: ",
    "recovery restart point at ",
    "Last completed transaction was at log time ",
    "waiting for WAL to become available at ",
    "received fast shutdown request",
    "aborting any active transactions",
    "shutting down",
    "database system is shut down",
    "received SIGHUP",
];

#[test]
fn a_standby_follows_a_cluster_of_ours() {
    let servers = servers();
    let mut followed = 0;
    for bin in servers.iter().filter(|bin| major_of(bin) == 18) {
        for seed in seeds() {
            println!("TRUNKLINE_SEED={seed} ({})", bin.display());
            follow(bin, seed);
            followed += 1;
        }
    }
    assert!(followed > 0 || servers.is_empty(), "no server of version 18");
}

fn follow(bin: &Path, seed: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let size = SegmentSize::new(1 << 20).expect("valid");
    let new = new_cluster::create(&data, &NewClusterOptions::now(size, true)).expect("created");
    change_wal_level(&data);
    let standby = prepare_standby(bin, &data, (new.wal_end, size));
    let folder_of_archive = standby.home().join("archive");
    standby.make_directory(&folder_of_archive);
    let wal = data.join("pg_wal");
    let first = size.segment_of(new.wal_end);
    let archive = SegmentArchive::new(folder_of_archive, wal, size, first);
    let restore_command = archive.restore_command();
    let archive = Arc::new(Mutex::new(archive));

    let options = WritableClusterOptions { wal_keep_size: KEPT, ..options(folder.path(), seed) };
    let mut cluster = WritableCluster::open(&data, &options, |_| {}).expect("opened");
    // The standby begins with a complete segment.
    let (log, shared) = (Arc::clone(cluster.log()), Arc::clone(&archive));
    let is_empty = move |_: Option<u32>| {
        let mut archive = shared.lock();
        archive.copy(log.durable());
        archive.copied() == 0
    };
    write_in_threads(&cluster, 1, seed, &Arc::new(is_empty));
    let mut standby = standby.configured(&[
        ("hot_standby", "off"),
        ("restore_command", &restore_command),
        ("wal_retrieve_retry_interval", "100ms"),
        ("log_checkpoints", "on"),
    ]);
    let commits = write(&cluster, &archive, seed.wrapping_add(1));
    assert_messages(&standby, &[]);
    cluster.close().expect("shut down");
    let end = cluster.log().end();
    drop(cluster);

    let ours = control_file(&data);
    assert_eq!(ours.state, ClusterState::ShutDown);
    archive.lock().copy_rest(end);
    standby.halt("fast");
    // The only place where it may find that there is no record.
    assert_messages(&standby, &[format!("{:X}/{:X}", end.0 >> 32, end.0 as u32)]);
    let theirs = control_file(&standby.data());
    assert_eq!(theirs.state, ClusterState::ShutDownInRecovery);
    assert_eq!(theirs.checkpoint.location, ours.checkpoint.location);
    assert_eq!(theirs.checkpoint.next_xid, ours.checkpoint.next_xid);
    let (expected, found) = (files(&data), files(&standby.data()));
    let (equal, masked) = compare(&expected, &found);
    let segments = archive.lock().copied();
    println!(
        "  {commits} commits, {segments} segments, {equal} equal and {masked} masked pages compared"
    );
}

/// Writes for the time, or the number of commits, of this run. Returns the number of commits.
fn write(cluster: &WritableCluster, archive: &Arc<Mutex<SegmentArchive>>, seed: u64) -> u64 {
    let minutes = env::var("TRUNKLINE_STANDBY_MINUTES").map(|text| {
        let minutes: u64 = text.to_string_lossy().parse().expect("a number of minutes");
        clock::now().after(Duration::from_secs(60 * minutes))
    });
    let (log, archive) = (Arc::clone(cluster.log()), Arc::clone(archive));
    let commits = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&commits);
    let goes_on = move |committed: Option<u32>| {
        archive.lock().copy(log.durable());
        let more = u64::from(committed.is_some());
        let commits = counted.fetch_add(more, Ordering::SeqCst) + more;
        minutes.map_or(commits < COMMITS, |end: Time| clock::now() < end)
    };
    write_in_threads(cluster, WRITERS, seed, &Arc::new(goes_on));
    commits.load(Ordering::SeqCst)
}

/// A copy of a new cluster for a standby. Its WAL is only in the archive.
fn prepare_standby(bin: &Path, data: &Path, (end, size): (Lsn, SegmentSize)) -> Server {
    let standby = Server::prepare(bin);
    standby.copy_from(data);
    let copy = standby.data();
    fs::remove_file(segment_path(&copy, size.segment_of(end), size)).expect("removed");
    fs::write(copy.join("standby.signal"), "").expect("written");
    standby
}

/// Changes the control file of a new cluster: `trunkline init` makes clusters with `wal_level = minimal`.
fn change_wal_level(data: &Path) {
    let mut control = control_file(data);
    control.wal_level = REPLICA;
    control.checkpoint.wal_level = Some(REPLICA);
    fs::write(data.join("global/pg_control"), &control.encode()[..]).expect("written");
}

/// The log of the standby has only messages that we expect, and those that contain one of `others`.
fn assert_messages(standby: &Server, others: &[String]) {
    let log = fs::read_to_string(standby.home().join("log")).expect("read");
    let is_expected = |line: &&str| {
        let message = line.split_once("LOG:  ").or_else(|| line.split_once("DETAIL:  "));
        message.is_some_and(|(_, message)| {
            MESSAGES.iter().any(|start| message.starts_with(start))
                || others.iter().any(|other| message.contains(other))
        })
    };
    let lines = log.lines().filter(|line| !line.is_empty());
    let unexpected: Vec<&str> = lines.filter(|line| !is_expected(line)).collect();
    assert!(unexpected.is_empty(), "{}", unexpected.join("\n"));
}

/// Compares the pages of all files. Returns how many are equal byte by byte, and how many under the masks of
/// `wal_consistency_checking`: an image has zeros between line pointers and rows, where our page has old bytes. A map in
/// which no bit was ever set is not in the WAL.
fn compare(ours: &BTreeMap<PathBuf, Vec<u8>>, theirs: &BTreeMap<PathBuf, Vec<u8>>) -> (u64, u64) {
    let missing = theirs.keys().find(|name| !ours.contains_key(*name));
    assert_eq!(missing, None);
    let (mut equal, mut masked) = (0, 0);
    for (name, ours) in ours {
        let Some(theirs) = theirs.get(name) else {
            let is_map = name.to_string_lossy().ends_with("_vm");
            assert!(is_map && ours.iter().all(|byte| *byte == 0), "{}", name.display());
            continue;
        };
        assert_eq!(ours.len(), theirs.len(), "{}", name.display());
        let pages = ours.as_chunks::<BLOCK_SIZE>().0.iter().zip(theirs.as_chunks::<BLOCK_SIZE>().0);
        for (block, (ours, theirs)) in (0..).zip(pages) {
            if ours == theirs {
                equal += 1;
                continue;
            }
            let place = format!("{}, block {block}", name.display());
            let headers = [ours, theirs].map(PageHeader::parse);
            let is_heap = usize::from(headers[0].special) == BLOCK_SIZE;
            let manager = ResourceManager(if is_heap { number::HEAP } else { number::BTREE });
            let first = first_difference(ours, theirs, manager, Fork::Main, block);
            assert!(place.starts_with("base/") && !place.contains("_vm"), "{place}");
            assert_eq!(headers[0].lsn, headers[1].lsn, "{place}");
            assert_eq!(first, None, "{place}");
            masked += 1;
        }
    }
    (equal, masked)
}
