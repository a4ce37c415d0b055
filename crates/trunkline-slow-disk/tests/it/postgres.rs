//! A PostgreSQL server on a slow disk: it starts, survives a crash, and finds its rows.
//!
//! Uses Debian's server 15, run as an ordinary user, because a server refuses to run as root.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::mounted::Mounted;

/// The directory of Debian's server and psql.
const BIN: &str = "/usr/lib/postgresql/15/bin";

/// A user without privileges.
const USER: u32 = 65534;

fn run(home: &Path, program: &str, args: &[&str]) -> String {
    let mut command = Command::new(Path::new(BIN).join(program));
    command.args(args).uid(USER).gid(USER).current_dir(home).env("LC_ALL", "C");
    // The server keeps pg_ctl's output open, so it must not be a pipe that we read to its end.
    let output = home.join("output");
    let file = fs::File::create(&output).expect("created");
    command.stdin(Stdio::null()).stderr(file.try_clone().expect("a copy")).stdout(file);
    let status = command.status().expect("runs");
    let text = fs::read_to_string(&output).expect("read");
    let log = fs::read_to_string(home.join("log")).unwrap_or_default();
    assert!(status.success(), "{program} {args:?}: {text}\n{log}");
    text
}

#[test]
fn a_server_recovers_after_a_crash() {
    if !Path::new(BIN).join("initdb").is_file() {
        println!("skipped: no server of PostgreSQL 15");
        return;
    }
    let Some(mut disk) = Mounted::new("latency=1ms,rate=500MB/s") else { return };
    chown(disk.below(), Some(USER), Some(USER)).expect("given away");
    chown(disk.home(), Some(USER), Some(USER)).expect("given away");
    // The mount was made before the owner changed.
    disk.remount("latency=1ms,rate=500MB/s");
    let home = disk.home().to_owned();
    let data = disk.path().join("data");
    let data = data.to_str().expect("text");
    run(&home, "initdb", &["-N", "-A", "trust", "-U", "postgres", "--wal-segsize=1", "-D", data]);
    let socket = format!("-c listen_addresses= -c unix_socket_directories={}", home.display());
    let log = home.join("log");
    let log = log.to_str().expect("text");
    let start = || {
        run(&home, "pg_ctl", &["-w", "-t", "300", "-D", data, "-o", &socket, "-l", log, "start"])
    };
    let stop = |mode| run(&home, "pg_ctl", &["-w", "-t", "300", "-D", data, "-m", mode, "stop"]);
    let socket_dir = home.to_str().expect("text");
    let sql = |sql: &str| {
        run(&home, "psql", &["-X", "-q", "-A", "-t", "-h", socket_dir, "-U", "postgres", "-c", sql])
    };
    start();
    sql("create table t as select i, repeat('x', 100) as x from generate_series(1, 20000) i");
    sql("create index on t (i)");
    sql("checkpoint");
    sql("update t set x = 'changed' where i % 10 = 0");
    stop("immediate");
    // The second mount has nothing in its cache.
    let done = disk.unmount();
    assert!(done.flushes > 0 && done.written_bytes > 1 << 20, "{done:?}");
    disk.mount("latency=1ms,rate=500MB/s");
    start();
    assert_eq!(sql("select count(*), sum(i) from t where x = 'changed'"), "2000|20010000\n");
    let used = sql("set enable_seqscan = off; select i from t where i = 12345");
    assert_eq!(used, "12345\n");
    stop("fast");
    let done = disk.unmount();
    assert!(done.read_bytes > 1 << 20, "{done:?}");
}
