//! Clusters of our own whose writers are killed: our recovery and that of a server of 18 make the same files, and no
//! acknowledged commit is lost. The log then goes on, and the next writer is killed too.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use trunkline_aio::facade::random::Rng;
use trunkline_engine::new_cluster::{self, NewClusterOptions};
use trunkline_engine::writable_cluster::{WritableCluster, WritableClusterError};
use trunkline_format::transam::{XidStatus, commit_log};
use trunkline_format::wal::SegmentSize;
use trunkline_format::{BLOCK_SIZE, ClusterState, ControlFile};

use crate::binary::run;
use crate::differential::seeds;
use crate::index_load;
use crate::replay::copy;
use crate::server::{Server, major_of, servers, succeed};
use crate::wal::compare_with_pg_waldump;
use crate::writer_process::{WriterProcess, options};

/// How often the writer of a cluster is killed.
const KILLS: u64 = 2;

const WRITERS: u32 = 16;

#[test]
fn a_killed_writer_is_recovered_as_by_a_server() {
    let servers = servers();
    for seed in seeds() {
        println!("TRUNKLINE_SEED={seed}");
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let size = SegmentSize::new(1 << 20).expect("valid");
        new_cluster::create(&data, &NewClusterOptions::now(size, true)).expect("created");
        let mut rng = Rng::new(seed);
        let (mut committed, mut compared) = (Vec::new(), 0);
        for round in 0..KILLS {
            let writer = WriterProcess::start(&data, WRITERS, seed.wrapping_add(round));
            committed.extend(writer.kill_after(30 + rng.below(300) as usize));
            for bin in servers.iter().filter(|bin| major_of(bin) == 18) {
                compare_recoveries(bin, &data, folder.path(), seed.wrapping_add(round));
                compared += 1;
            }
            recover_after_interruptions(&data, folder.path(), &mut rng);
            check_commits(&data, &committed);
            index_load::check(&data, folder.path());
            assert_verified(&data);
        }
        assert!(compared > 0 || servers.is_empty(), "no server of version 18");
        println!("  {} commits, {KILLS} kills, {compared} comparisons", committed.len());
    }
}

/// Recovers the cluster, and shuts it down.
fn recover(data: &Path, scratch: &Path, seed: u64) {
    let cluster = WritableCluster::open(data, &options(scratch, seed), |_| {});
    let mut cluster = cluster.expect("recovered");
    let report = cluster.recovered().expect("there was a recovery").clone();
    println!("  {report:?}");
    let second = WritableCluster::open(data, &options(scratch, seed), |_| {});
    assert!(matches!(second, Err(WritableClusterError::Locked { .. })), "{second:?}");
    let session = cluster.session().expect("a session");
    assert!(matches!(cluster.close(), Err(WritableClusterError::InUse)));
    drop(session);
    cluster.close().expect("shut down");
    assert!(matches!(cluster.session(), Err(WritableClusterError::Closed)));
    drop(cluster);
    assert!(!data.join("postmaster.pid").exists());
}

/// Recovers the cluster, but first lets it look as if some recoveries had been interrupted: any of the pages may have
/// been written before.
fn recover_after_interruptions(data: &Path, folder: &Path, rng: &mut Rng) {
    let whole = folder.join("whole");
    copy(data, &whole);
    recover(&whole, folder, rng.below(u64::MAX));
    let expected = files(&whole);
    for _ in 0..2 {
        for (name, bytes) in &expected {
            let mut options = fs::File::options();
            let options = options.write(true).create(true).truncate(false);
            let file = options.open(data.join(name)).expect("opened");
            for (block, page) in (0..).zip(bytes.chunks(BLOCK_SIZE)) {
                if rng.below(2) == 0 {
                    file.write_all_at(page, block * BLOCK_SIZE as u64).expect("written");
                }
            }
        }
        let again = folder.join("again");
        copy(data, &again);
        recover(&again, folder, rng.below(u64::MAX));
        assert_same(&expected, &files(&again));
        fs::remove_dir_all(&again).expect("removed");
    }
    recover(data, folder, rng.below(u64::MAX));
    assert_same(&expected, &files(data));
    fs::remove_dir_all(&whole).expect("removed");
}

fn assert_same(expected: &BTreeMap<PathBuf, Vec<u8>>, found: &BTreeMap<PathBuf, Vec<u8>>) {
    assert!(expected.keys().eq(found.keys()), "{:?}, {:?}", expected.keys(), found.keys());
    for (name, expected) in expected {
        let found = &found[name];
        assert_eq!(expected.len(), found.len(), "{}", name.display());
        let pages = expected.chunks(BLOCK_SIZE).zip(found.chunks(BLOCK_SIZE));
        for (block, (expected, found)) in pages.enumerate() {
            assert!(expected == found, "{}, block {block}", name.display());
        }
    }
}

/// Recovers one copy with a server, and another with our recovery. All files must be identical.
///
/// If the server has them, `pg_waldump` must read the log to where it ends for us, and `pg_checksums` find no fault in the
/// cluster that we have recovered.
fn compare_recoveries(bin: &Path, data: &Path, folder: &Path, seed: u64) {
    let program = bin.join("pg_waldump");
    if program.is_file() {
        let wal = data.join("pg_wal").display().to_string();
        let (code, ours, err) = run(data, &["inspect", "wal", &wal]);
        assert_eq!(code, 0, "{err}");
        println!("  {} records read by pg_waldump", compare_with_pg_waldump(&program, data, &ours));
    }
    let mine = folder.join("mine");
    copy(data, &mine);
    recover(&mine, folder, seed);
    let program = bin.join("pg_checksums");
    if program.is_file() {
        succeed(Command::new(program).arg("--check").arg("-D").arg(&mine));
    }
    let server = Server::prepare(bin);
    server.copy_from(data);
    let mut server = server.configured(&[]);
    server.halt("fast");
    let theirs = server.data();
    assert_same(&files(&theirs), &files(&mine));
    let [expected, found] = [&theirs, &mine].map(|data| control_file(data));
    assert_eq!([expected.state, found.state], [ClusterState::ShutDown; 2]);
    let next = |file: &ControlFile| {
        let checkpoint = &file.checkpoint;
        (checkpoint.next_xid, checkpoint.next_multi, checkpoint.next_multi_offset)
    };
    assert_eq!(next(&expected), next(&found));
    println!("  the next multixact is {}", found.checkpoint.next_multi);
    fs::remove_dir_all(&mine).expect("removed");
}

pub(crate) fn control_file(data: &Path) -> ControlFile {
    let bytes = fs::read(data.join("global/pg_control")).expect("read");
    ControlFile::parse(&bytes).expect("sound")
}

/// The files of relations, of the commit log and of multixacts. Free space maps are not logged: a server's redo notes in them what
/// it sees.
pub(crate) fn files(data: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for folder in ["base/1", "pg_xact", "pg_multixact/offsets", "pg_multixact/members"] {
        for entry in fs::read_dir(data.join(folder)).expect("listed") {
            let name = entry.expect("an entry").file_name();
            if name.to_string_lossy().ends_with("_fsm") {
                continue;
            }
            let path = Path::new(folder).join(name);
            found.insert(path.clone(), fs::read(data.join(path)).expect("read"));
        }
    }
    found
}

/// Every commit that was acknowledged is in the commit log.
fn check_commits(data: &Path, committed: &[u32]) {
    let log = fs::read(data.join("pg_xact/0000")).expect("read");
    for xid in committed {
        let place = commit_log::place(*xid);
        let at = place.page as usize * BLOCK_SIZE + place.byte;
        assert_eq!(XidStatus::in_byte(log[at], *xid), XidStatus::Committed, "{xid}");
    }
}

/// It has no catalogs that its files could be compared with.
fn assert_verified(data: &Path) {
    let (code, out, err) = run(data, &["verify", "--files-only"]);
    assert_eq!(code, 0, "{out}{err}");
}
