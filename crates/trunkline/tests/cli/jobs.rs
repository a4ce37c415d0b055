//! `verify`, `prewarm`, `sum` and `demo`: output, exit codes and Ctrl-C.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{Cluster, json, page, run, status_field, trunkline};

fn args(command: &[&str], cluster: &Cluster) -> Vec<OsString> {
    let mut args: Vec<OsString> = command.iter().map(Into::into).collect();
    args.push("-D".into());
    args.push(cluster.path.clone().into());
    args
}

/// Creates a cluster with one relation of `blocks` valid pages, which replaces the default relation
/// with two segments.
pub(crate) fn cluster(blocks: u32) -> Cluster {
    let cluster = Cluster::new(1);
    fs::remove_file(cluster.at("base/5/16384.1")).expect("removed");
    cluster.write("base/5/16384", &(0..blocks).flat_map(page).collect::<Vec<u8>>());
    cluster
}

#[test]
fn verify_accepts_valid_pages() {
    let cluster = cluster(100);
    for method in ["sync", "worker", "io_uring"] {
        for direct in ["--io-direct=", "--io-direct=data"] {
            let (code, out, err) =
                run(args(&["verify", "--files-only", "--io-method", method, direct], &cluster));
            assert_eq!((code, err.as_str()), (0, ""), "{out}");
            for line in [
                "Verification completed\n",
                "Files scanned:                   1\n",
                "Blocks scanned:                  100\n",
                "Bad checksums:                   0\n",
                "Data checksum version:           1\n",
            ] {
                assert!(out.contains(line), "{line}: {out}");
            }
            let way = if direct.ends_with("data") { "direct" } else { "buffered" };
            assert!(out.contains(&format!(", {method} {way}\n")), "{out}");
        }
    }
}

#[test]
fn verify_reports_invalid_pages() {
    let cluster = cluster(20);
    let mut bytes = (0..20).flat_map(page).collect::<Vec<u8>>();
    bytes[17 * 8192 + 5000] ^= 1;
    bytes.extend([0; 100]);
    cluster.write("base/5/16384", &bytes);
    let (code, out, err) = run(args(&["verify", "--files-only"], &cluster));
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    let found: Vec<&str> = out.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(found.len(), 2, "{out}");
    assert!(found[0].starts_with("base/5/16384: size 163940 is not a multiple"), "{out}");
    assert!(found[1].starts_with("base/5/16384: block 17: checksum 0x"), "{out}");
    assert!(found[1].ends_with(" expected"), "{out}");
    assert!(out.contains("Bad checksums:                   1\n"), "{out}");

    let (code, out, _) = run(args(&["verify", "--files-only", "--json"], &cluster));
    assert_eq!(code, 1);
    let report = json(&out);
    assert_eq!((&report["schema"], &report["complete"]), (&1.into(), &true.into()));
    assert_eq!((&report["blocks_scanned"], &report["bad_checksums"]), (&20.into(), &1.into()));
    assert_eq!(report["findings"][1]["file"], "base/5/16384");
    assert_eq!(report["findings"][1]["block"], 17);
    assert_eq!(report["findings"][1]["kind"], "checksum");
}

#[test]
fn verify_without_checksums() {
    let cluster = Cluster::new(0);
    fs::remove_file(cluster.at("base/5/16384.1")).expect("removed");
    let (code, out, err) = run(args(&["verify", "--files-only"], &cluster));
    assert_eq!(code, 0, "{out}");
    assert!(err.starts_with("trunkline: warning: data checksums are not enabled"), "{err}");
    assert!(out.contains("Data checksum version:           0 (off"), "{out}");
}

#[test]
fn verify_refuses_other_directories_and_running_servers() {
    let cluster = cluster(1);
    assert_eq!(run(["verify"]).0, 2);
    assert_eq!(run(args(&["verify", "--io-method=fast"], &cluster)).0, 2);
    let (code, _, err) = run(["verify", "-D", "/nowhere"]);
    assert_eq!(code, 3, "{err}");
    cluster.write("PG_VERSION", b"14\n");
    let (code, _, err) = run(args(&["verify"], &cluster));
    assert_eq!(code, 3);
    assert!(err.contains("contains version \"14\", expected 15 to 19"), "{err}");
    cluster.write("PG_VERSION", b"18\n");
    cluster.write("postmaster.pid", b"1\n");
    let (code, _, err) = run(args(&["verify"], &cluster));
    assert_eq!(code, 3);
    assert!(err.contains(" running (postmaster.pid names process 1"), "{err}");
    assert!(err.contains("trunkline: hint: "), "{err}");
    let (code, _, err) = run(args(&["verify", "--files-only", "--force-unclean"], &cluster));
    assert_eq!(code, 0);
    assert!(err.contains("trunkline: warning: a server "), "{err}");
}

#[test]
fn prewarm_into_the_pool() {
    let cluster = cluster(300);
    for method in ["sync", "worker", "io_uring"] {
        for (direct, way) in [("--io-direct=", "buffered"), ("--io-direct=data", "direct")] {
            let options = ["prewarm", "--io-method", method, direct, "-c", "shared_buffers=1MB"];
            let (code, out, err) = run(args(&options, &cluster));
            assert_eq!((code, err.as_str()), (0, ""), "{out}");
            for line in [
                "Relation forks:   1\n",
                "Blocks prewarmed: 300\n",
                "Shared buffers:   128 (1.00 MiB)\n",
                "In the pool:      128 blocks of 300 (42.7 %), before 0\n",
                &format!(", {method} {way}\nPrefetch: avg="),
                "\nI/O: count=",
                "\nstandalone backend  relation  normal ",
            ] {
                assert!(out.contains(line), "{line}: {out}");
            }
        }
    }
    for buffers in [16, 299, 300, 2000] {
        let buffers_of = buffers.to_string();
        let options = ["prewarm", "--json", "5/16384", "--shared-buffers", &buffers_of];
        let (code, out, err) = run(args(&options, &cluster));
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        let report = json(&out);
        let kept = buffers.min(300);
        assert_eq!((&report["schema"], &report["mode"]), (&2.into(), &"buffer".into()));
        assert_eq!(report["after"]["pool"], kept, "{out}");
        assert_eq!(report["after"]["cache"], 300, "{out}");
        assert_eq!(report["after"]["both"], kept, "{out}");
        assert_eq!(report["stat_io"][0]["evictions"], 300 - kept, "{out}");
        assert_eq!(report["streams"]["pages"], 300, "{out}");
    }
    for (options, blocks) in [
        (&["1663/5/16384", "--first", "7"][..], 293),
        (&["5/16384", "--first", "7", "--last", "7"], 1),
        (&["5/16384", "--first", "8", "--last", "7"], 0),
        (&["base/5/16384", "5/16384"], 300),
    ] {
        let (code, out, _) = run(args(&[&["prewarm", "--json"], options].concat(), &cluster));
        assert_eq!((code, &json(&out)["blocks"]), (0, &blocks.into()), "{out}");
    }
}

#[test]
fn prewarm_into_the_cache() {
    let cluster = cluster(300);
    let (code, out, err) = run(args(&["prewarm", "--mode", "read"], &cluster));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("Blocks read:    300\n"), "{out}");
    assert!(out.contains("Cached after:   2.34 MiB of 2.34 MiB (100.0 %)\n"), "{out}");
    let read = ["prewarm", "--mode", "read", "--json", "5/16384", "--first=1", "--last=100"];
    let (code, out, _) = run(args(&read, &cluster));
    assert_eq!((code, &json(&out)["blocks"]), (0, &100.into()), "{out}");
    let prefetch = ["prewarm", "--mode", "prefetch", "--json", "base/5/16384"];
    let (code, out, _) = run(args(&prefetch, &cluster));
    assert_eq!((code, &json(&out)["blocks"]), (0, &300.into()), "{out}");
    assert_eq!((&json(&out)["mode"], &json(&out)["io"]["reads"]), (&"prefetch".into(), &0.into()));
}

#[test]
fn prewarm_errors_name_what_is_wrong() {
    let cluster = cluster(30);
    for (wrong, text) in [
        (vec!["prewarm", "base/5/1"], "is not a relation file"),
        (vec!["prewarm", "5/1"], "the data directory has no relation 5/1\ntrunkline: hint: name a"),
        (
            vec!["prewarm", "--mode=read", "--io-direct=data"],
            "mode \"read\" is not supported with direct I/O",
        ),
        (
            vec!["prewarm", "--mode=prefetch", "--io-direct=data"],
            "mode \"prefetch\" is not supported with direct I/O",
        ),
        (vec!["prewarm", "--mode", "fast"], "invalid value"),
        (vec!["prewarm", "--fork", "nope"], "invalid fork name"),
        (vec!["prewarm", "5/16384", "--fork", "fsm"], "fork \"fsm\" does not exist"),
        (vec!["prewarm", "--first", "0"], "block numbers require the name of a relation"),
        (
            vec!["prewarm", "5/16384", "--first", "30"],
            "starting block number must be between 0 and 29 for relation 1663/5/16384",
        ),
        (vec!["prewarm", "5/16384", "--first", "-1"], "starting block number must be between 0"),
        (vec!["prewarm", "5/16384", "--last", "30"], "ending block number must be between 0"),
        (
            vec!["prewarm", "--shared-buffers", "15"],
            "15 8kB is outside the valid range for parameter \"shared_buffers\"",
        ),
        (vec!["prewarm", "--shared-buffers", "1 qB"], "invalid value for parameter"),
    ] {
        let (code, out, err) = run(args(&wrong, &cluster));
        assert_eq!((code, out.as_str()), (2, ""), "{wrong:?}");
        assert!(err.contains(text), "{err}");
    }
    let (code, out, err) = run(args(&["prewarm", "--shared-buffers", "7TB"], &cluster));
    assert_eq!((code, out.as_str()), (3, ""));
    assert!(err.contains("shared_buffers needs 7.00 TiB"), "{err}");
    assert!(err.contains("trunkline: hint: reduce shared_buffers\n"), "{err}");
}

#[test]
fn prewarm_warns_of_damage() {
    let cluster = cluster(40);
    let mut bytes = (0..40).flat_map(page).collect::<Vec<u8>>();
    bytes[17 * 8192 + 5000] ^= 1;
    bytes.extend([0; 100]);
    cluster.write("base/5/16384", &bytes);
    // Segments 0 and 1 are missing.
    cluster.write("base/5/16385.2", &(262_144..262_150).flat_map(page).collect::<Vec<u8>>());
    let (code, out, err) = run(args(&["prewarm"], &cluster));
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("Blocks prewarmed: 45\n"), "{out}");
    for line in [
        "trunkline: warning: base/5/16384: size 327780 is not a multiple of 8192",
        "trunkline: warning: base/5/16385.1: segment is missing, while segment 2 exists\n",
        "trunkline: warning: base/5/16384: block 17: invalid page: checksum 0x",
    ] {
        assert!(err.contains(line), "{line}: {err}");
    }
    cluster.write("base/5/16384", &bytes[..40 * 8192]);
    for (setting, text) in [
        ("zero_damaged_pages=on", "invalid page in block 17 of file"),
        ("ignore_checksum_failure=on", "ignored checksum failure in block 17 of file"),
    ] {
        let (code, out, err) =
            run(args(&["prewarm", "5/16384", "-c", setting, "--json"], &cluster));
        assert_eq!(code, 0, "{out}{err}");
        assert!(err.contains(text), "{err}");
        let report = json(&out);
        assert_eq!((&report["blocks"], &report["warnings"]), (&40.into(), &1.into()), "{out}");
    }
}

#[test]
fn a_column_is_summed() {
    let cluster = cluster(300);
    for options in [&["--workers", "3"][..], &["--shared-buffers", "16"], &["--io-direct=data"]] {
        let command = [&["sum", "--json", "5/16384", "--offset", "0"], options].concat();
        let (code, out, err) = run(args(&command, &cluster));
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        let report = json(&out);
        assert_eq!((&report["sum"], &report["rows"]), (&900.into(), &600.into()), "{out}");
    }
    let (code, out, _) = run(args(&["sum", "5/16384", "--offset", "4"], &cluster));
    assert_eq!(code, 0);
    assert!(out.starts_with("Sum:      600\nRows:     600\n"), "{out}");
    for (wrong, expected, text) in [
        (&["5/1", "--offset", "0"][..], 2, "has no relation 5/1"),
        (&["5/16384"], 2, "--offset <BYTES>"),
        (
            &["5/16384", "--offset", "9000"],
            2,
            "invalid value '9000' for '--offset <BYTES>': must be in range 0..8156",
        ),
        (
            &["5/16384", "--offset", "0", "--workers", "65"],
            2,
            "invalid value '65' for '--workers <N>': must be in range 0..64",
        ),
        (&["5/16384", "--offset", "8156"], 1, "600 rows were not summed"),
    ] {
        let (code, _, err) = run(args(&[&["sum"], wrong].concat(), &cluster));
        assert_eq!(code, expected, "{err}");
        assert!(err.contains(text), "{err}");
    }
    let mut bytes = (0..300).flat_map(page).collect::<Vec<u8>>();
    bytes[17 * 8192 + 5000] ^= 1;
    cluster.write("base/5/16384", &bytes);
    let (code, out, err) = run(args(&["sum", "5/16384", "--offset=0", "--workers=2"], &cluster));
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("trunkline: error: invalid page in block 17 of file \""), "{err}");
}

#[test]
fn no_command_writes_to_the_data_directory() {
    let cluster = cluster(50);
    let before = census(&cluster.path);
    for command in [
        &["verify", "--files-only"][..],
        &["verify", "--files-only", "--io-direct=data", "--io-method=io_uring"],
        &["prewarm"],
        &["prewarm", "--io-direct=data", "--shared-buffers", "16"],
        &["prewarm", "--mode", "read"],
        &["prewarm", "--mode", "prefetch"],
        &["sum", "5/16384", "--offset", "8", "--workers", "2"],
        &["inspect", "control"],
    ] {
        assert_eq!(run(args(command, &cluster)).0, 0, "{command:?}");
    }
    let file = cluster.at("base/5/16384");
    assert_eq!(run(["inspect".into(), "page".into(), file]).0, 0);
    assert_eq!(census(&cluster.path), before);
}

/// Names, sizes, modes, times (except access times) and contents of all files.
fn census(directory: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(directory).expect("read") {
        let path = entry.expect("entry").path();
        let m = fs::symlink_metadata(&path).expect("metadata");
        let sum = if m.is_file() { crc32c::crc32c(&fs::read(&path).expect("read")) } else { 0 };
        let times = (m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec());
        lines.push(format!("{} {} {:o} {times:?} {sum:x}", path.display(), m.len(), m.mode()));
        if m.is_dir() {
            lines.extend(census(&path));
        }
    }
    lines.sort();
    lines
}

/// Polls a child process until it reaches a state.
pub(crate) fn until(child: &mut Child, state: impl Fn(u32) -> bool) {
    assert!(try_until(child, state), "the child ended too early");
}

/// Like [`until`], but returns false if the child ended too early.
pub(crate) fn try_until(child: &mut Child, state: impl Fn(u32) -> bool) -> bool {
    while !state(child.id()) {
        if child.try_wait().expect("waited").is_some() {
            return false;
        }
    }
    true
}

/// Returns the processor time used by a process, in hundredths of a second. It is in fields 14 and
/// 15 of the `stat` file. We skip everything up to the parenthesis that ends field 2, because that
/// field may contain spaces.
fn cpu_ticks(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Whether a process has installed a handler for SIGINT.
pub(crate) fn catches_interrupts(pid: u32) -> bool {
    const SIGINT: u64 = 1 << (2 - 1);
    let caught = status_field(Path::new(&format!("/proc/{pid}/status")), "SigCgt");
    u64::from_str_radix(&caught, 16).is_ok_and(|caught| caught & SIGINT != 0)
}

pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(status.expect("kill runs").success());
}

#[test]
fn ctrl_c_ends_with_partial_counts() {
    let cluster = cluster(1);
    for number in 20_000..20_100 {
        let file = fs::File::create(cluster.at(&format!("base/5/{number}"))).expect("made");
        file.set_len(1 << 30).expect("sparse");
    }
    for method in ["sync", "worker", "io_uring"] {
        for (command, counted) in
            [(&["verify", "--files-only"][..], "blocks_scanned"), (&["prewarm"], "blocks")]
        {
            let options = ["--json", "--io-method", method, "-c", "shared_buffers=1MB"];
            let options = [command, &options].concat();
            let command = command[0];
            let mut child = trunkline()
                .args(args(&options, &cluster))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("started");
            // The process installs its signal handlers early, but on a slow machine we may get here
            // before it has done so.
            until(&mut child, |pid| catches_interrupts(pid) && cpu_ticks(pid) > 20);
            signal(&child, "-INT");
            let output = child.wait_with_output().expect("ended");
            let case = format!("{command} {method}: {output:?}");
            assert_eq!(output.status.code(), Some(130), "{case}");
            let err = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(json(&err)["kind"], "warning", "{case}");
            assert!(err.contains("interrupted; counts cover only part of the data"), "{case}");
            let report = json(&String::from_utf8_lossy(&output.stdout));
            assert_eq!(report["complete"], false, "{case}");
            // Prewarm may have been interrupted while it was still querying the page cache.
            let blocks = report[counted].as_u64().expect("number");
            let least = u64::from(command == "verify");
            assert!((least..100 * 131_072).contains(&blocks), "{case}");
        }
    }
}

#[test]
fn demo_runs_every_method_and_checks_the_results() {
    let home = tempfile::tempdir().expect("temporary directory");
    let run_demo = |extra: &[&str]| {
        let mut command: Vec<OsString> =
            ["demo", "--scale", "1", "--full"].into_iter().map(Into::into).collect();
        command.extend(["--dir".into(), home.path().join("table").into()]);
        command.extend(extra.iter().map(Into::into));
        run(command)
    };
    let (code, out, err) = run_demo(&[]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.starts_with("trunkline demo: prewarm pgbench_accounts (scale 1, 12.8 MiB)"),
        "{out}"
    );
    assert_eq!(
        out.lines().filter(|line| line.contains("GB/s") || line.contains("MB/s")).count(),
        6 * 9 + 6 * 2
    );
    assert!(out.contains(": 12 of 12 checkpoints were correct."), "{out}");
    assert!(out.contains("48 of 48 sums of abalance are correct (1345949)."), "{out}");
    assert!(!home.path().join("table").exists(), "removed afterwards");

    let (code, out, _) = run_demo(&["--json", "--keep"]);
    assert_eq!(code, 0);
    let report = json(&out);
    let runs = report["runs"].as_array().expect("runs");
    assert_eq!(
        (runs.len(), &report["right"], &report["sum"]),
        (54, &true.into(), &1_345_949.into())
    );
    let checkpoints = report["writes"]["checkpoints"].as_array().expect("checkpoints");
    assert_eq!((checkpoints.len(), &report["writes"]["right"]), (12, &true.into()));
    for checkpoint in checkpoints {
        let blocks = checkpoint["writes"].as_f64().zip(checkpoint["write_size"].as_f64());
        assert_eq!(blocks.map(|(writes, size)| (writes * size).round()), Some(820.0));
    }
    for run in runs.iter().filter(|run| run["run"] == "sum cached") {
        assert_eq!((&run["shared_hit_blocks"], &run["sum"]), (&1640.into(), &1_345_949.into()));
    }
    assert_eq!(
        (&runs[0]["run"], &runs[0]["streams"]["pages"]),
        (&"prewarm cold".into(), &1640.into())
    );
    assert!(home.path().join("table/trunkline-accounts").exists());

    // If the pool is smaller than the table, there are no cached runs with direct I/O.
    let (code, out, err) = run_demo(&["--json", "--shared-buffers", "16"]);
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(json(&out)["runs"].as_array().map(Vec::len), Some(3 * 9 + 3 * 5));

    // A wrong balance in a valid page.
    let path = home.path().join("table/base/5/16385");
    let mut bytes = fs::read(&path).expect("read");
    let (first, second) = bytes.split_at_mut(8192);
    first.copy_from_slice(&second[..8192]);
    let sum = trunkline_format::page_checksum(&first.try_into().expect("a page"), 0);
    first[8..10].copy_from_slice(&sum.to_le_bytes());
    fs::write(&path, bytes).expect("written");
    let (code, out, err) = run_demo(&[]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("0 of 48 sums of abalance are correct (1345949)"), "{out}");
    assert!(err.contains("trunkline: error: sync buffered, sum cached, 0 workers: sum "), "{err}");
}

#[test]
fn demo_refuses_other_directories_and_wrong_sizes() {
    let cluster = cluster(1);
    let refused = run(["demo".into(), "--dir".into(), cluster.path.clone()]);
    assert_eq!(refused.0, 3, "{}", refused.2);
    assert!(refused.2.contains("is not empty and contains no sample"), "{}", refused.2);
    for wrong in ["--size=1GB", "--scale=0", "--scale=21475", "--scale=x", "--shared-buffers=15"] {
        let (code, out, err) = run(["demo", "--dir", "/nowhere", wrong]);
        assert_eq!((code, out.as_str()), (2, ""), "{wrong}: {err}");
    }
}

/// Uses a real server on a cluster created for this test.
#[test]
fn a_cluster_with_a_running_server_is_refused() {
    let programs = PathBuf::from("/usr/lib/postgresql/15/bin");
    if !programs.join("initdb").exists() || !is_root() {
        return println!("skipped: no PostgreSQL 15, or not root");
    }
    let home = tempfile::tempdir().expect("temporary directory");
    let data = home.path().join("data");
    shell(&format!("chown postgres '{}'", home.path().display()));
    let postgres = |program: &str, rest: &str| {
        let program = programs.join(program);
        let command = format!("'{}' -D '{}' {rest}", program.display(), data.display());
        shell(&format!("cd / && su postgres -c \"{command}\" >/dev/null 2>&1"));
    };
    postgres("initdb", "--data-checksums --no-sync");
    let options = format!("-c listen_addresses= -k {}", home.path().display());
    let log = home.path().join("log");
    let verify = || run(["verify".into(), "-D".into(), data.clone()]);
    postgres("pg_ctl", &format!("-l '{}' -o '{options}' -w start", log.display()));
    let (code, _, err) = verify();
    postgres("pg_ctl", "-w stop");
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("a server is running (postmaster.pid names process"), "{err}");
    let (code, out, err) = verify();
    assert_eq!(code, 0, "{out}{err}");
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn shell(script: &str) {
    assert!(
        Command::new("sh").args(["-c", script]).status().expect("sh runs").success(),
        "{script}"
    );
}
