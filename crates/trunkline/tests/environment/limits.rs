//! Low resource limits: locked memory and open files.

use std::fs;
use std::process::Command;

use crate::cluster::Cluster;
use crate::need;
use crate::verify::{DIRECT, METHODS, binary, run, verify};

/// Runs a program as an unprivileged user, because `RLIMIT_MEMLOCK` does not apply to root.
pub(crate) const UNPRIVILEGED: [&str; 4] =
    ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

#[test]
fn little_locked_memory() {
    if !need::root() {
        return;
    }
    let cluster = Cluster::with_files(20, 40);
    // Other users may not have access to the build directory.
    let copy = cluster.beside("trunkline");
    fs::copy(binary(), &copy).expect("copied");
    for limit_kb in [64, 16, 0] {
        let limit = format!("--memlock={0}:{0}", limit_kb * 1024);
        let before = [&["prlimit", &limit], UNPRIVILEGED.as_slice()].concat();
        let report = run(&mut verify(&before, &copy, &cluster.path, "io_uring"));
        let case = format!("{limit_kb} kB: {report:?}");
        assert_eq!(report.code, 0, "{case}");
        assert_eq!(report.summary["blocks_scanned"], 800, "{case}");
        // Kernels before 5.12 also charge the ring's own memory to `RLIMIT_MEMLOCK`.
        let lost = match report.summary["io_method"].as_str() {
            Some("io_uring") => "io_uring works without registered memory",
            _ => "io_uring is not available, using worker",
        };
        let reason = format!("{lost}: the limit of locked memory is {limit_kb} kB");
        assert!(report.has_message("warning", &reason), "{case}");
        assert!(report.has_message("hint", "raise the limit: ulimit -l unlimited"), "{case}");
    }
}

/// Memory is registered while the pool fills, so the limit is reached in the middle of the job.
#[test]
fn locked_memory_runs_out() {
    if !need::root() {
        return;
    }
    let (files, blocks) = (6, 1_024);
    let cluster = Cluster::with_files(files, blocks);
    let copy = cluster.beside("trunkline");
    fs::copy(binary(), &copy).expect("copied");
    let mut command = Command::new("prlimit");
    command.arg(format!("--memlock={0}:{0}", 4 << 20)).args(UNPRIVILEGED).arg(&copy);
    command.args(["prewarm", "--json", "--io-method", "io_uring", "--io-direct", "data"]);
    command.args(["--shared-buffers", "256MB", "-D"]).arg(&cluster.path);
    let report = run(command.env_remove("PGDATA").current_dir("/"));
    assert_eq!(report.code, 0, "{report:?}");
    assert_eq!(report.summary["io_method"], "io_uring", "{report:?}");
    assert_eq!(report.summary["blocks"], files * blocks, "{report:?}");
    let reason = "io_uring works without registered memory: the limit of locked memory is 4096 kB";
    assert!(report.has_message("warning", reason), "{report:?}");
}

#[test]
fn few_descriptors_and_many_files() {
    let cluster = Cluster::with_files(5_000, 1);
    for method in METHODS {
        for direct in DIRECT {
            let before = ["prlimit", "--nofile=32:32"];
            let mut command = verify(&before, binary(), &cluster.path, method);
            let report = run(command.args(direct));
            let case = format!("{method}, {direct:?}: {report:?}");
            assert_eq!(report.code, 0, "{case}");
            assert_eq!(report.summary["io_method"], method, "{case}");
            assert_eq!(report.summary["files_scanned"], 5_000, "{case}");
            assert_eq!(report.summary["blocks_scanned"], 5_000, "{case}");
            assert!(!report.stderr.contains("the limit of open files"), "{case}");
        }
    }
}
