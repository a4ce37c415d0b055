//! `bench --postgres`: both systems do the same work, and no server is left behind.
//!
//! No test looks at a time. All of them compare counts, reports and processes.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

use crate::server::{Server, servers};

/// Runs with one repetition of each case.
const ONCE: [&str; 4] = ["--repetitions", "1", "--selectivity", "1"];

/// The command, with the scratch directory in the server's own directory.
fn bench(server: &Server, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.arg("bench").args(arguments).args(["--scale", "1"]);
    command.arg("--postgres").arg(server.programs()).arg("--scratch").arg(server.home());
    command.stdin(Stdio::null()).env_remove("PGDATA");
    command
}

fn scratch(server: &Server) -> std::path::PathBuf {
    server.home().join("trunkline-bench-scratch")
}

/// The report of a run that must succeed and must leave nothing behind.
fn report(server: &Server, command: &mut Command) -> Value {
    let output = command.arg("--json").output().expect("runs");
    assert!(output.status.success(), "{output:?}");
    assert!(!scratch(server).exists());
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn is_of_server(case: &Value) -> bool {
    case["system"].as_str().is_some_and(|name| name.starts_with("PostgreSQL "))
}

/// What a case reads. Both systems must request equally many blocks.
fn work(case: &Value) -> String {
    format!("{} {} {}", case["workload"], case["scan"], case["selectivity_percent"])
}

#[test]
fn both_systems_request_the_same_blocks() {
    for bin in servers() {
        let server = Server::prepare(&bin);
        let csv = server.home().join("run.csv");
        let html = server.home().join("run.html");
        let workloads = ["sequential", "uniform", "linear_10", "prewarm", "reread"];
        let options = ["--io-method", "worker", "--io-direct=", "--postgres-workers", "1,2"];
        let mut command = bench(&server, &[&workloads[..], &ONCE, &options].concat());
        command.arg("--csv").arg(&csv).arg("--html").arg(&html);
        let report = report(&server, &mut command);
        let cases = report["measurements"].as_array().expect("cases");
        let (theirs, ours): (Vec<&Value>, Vec<&Value>) =
            cases.iter().partition(|case| is_of_server(case));
        let name = report["server"]["name"].as_str().expect("a name");
        // Versions before 18 have one way to read. Version 18 ran with both numbers of workers.
        let ways = if name.starts_with("PostgreSQL 18") { 2 } else { 1 };
        // Sequential, three scans of two tables, and prewarm.
        assert_eq!((ours.len(), theirs.len()), (8, 8 * ways), "{name}: {report}");
        for case in &theirs {
            let same = ours.iter().find(|own| work(own) == work(case)).expect("ours");
            assert_eq!(case["blocks"], same["blocks"], "{name}: {case}");
            assert!(case["blocks"].as_u64() > Some(0) && case["ios"].is_null(), "{case}");
            assert_eq!(case["io_direct"], false, "{case}");
        }
        let blocks = |workload: &str, scan: &str| {
            let mut found =
                ours.iter().filter(|it| it["workload"] == workload && it["scan"] == scan);
            found.next().expect("measured")["blocks"].as_u64().expect("a number")
        };
        // 34 rows fit into a page, and a few pages aren't full. Values are random in one table and
        // nearly sorted in the other.
        let pages = 100_000_u64.div_ceil(34);
        assert!((pages..pages + 10).contains(&blocks("uniform", "sequential")), "{report}");
        assert!(
            blocks("uniform", "index") > 900 && blocks("linear_10", "bitmap") < 600,
            "{report}"
        );
        // An index scan of nearly sorted values returns to a page, and a bitmap scan doesn't.
        assert!(blocks("linear_10", "index") > blocks("linear_10", "bitmap"), "{report}");
        let skipped = report["skipped"].as_array().expect("a list");
        assert!(skipped.len() == 1 && skipped[0]["workload"] == "reread", "{skipped:?}");
        compare(
            &report,
            &fs::read_to_string(&csv).expect("read"),
            &fs::read_to_string(&html).expect("read"),
        );
    }
}

/// Each line of the CSV file is a row of the page, with the numbers of the JSON report.
fn compare(report: &Value, csv: &str, page: &str) {
    let mut lines = csv.lines();
    let columns: Vec<&str> = lines.next().expect("names").split(',').collect();
    let cases = report["measurements"].as_array().expect("cases");
    assert_eq!(csv.lines().count(), cases.len() + 1);
    for (line, case) in lines.zip(cases) {
        let cells: Vec<&str> = line.split(',').collect();
        assert!(page.contains(&format!("<tr><td>{}</td></tr>", cells.join("</td><td>"))), "{line}");
        for (name, value) in [
            ("seconds", &case["seconds"]["median"]),
            ("blocks", &case["blocks"]),
            ("io_workers", &case["io_workers"]),
            ("cpu_seconds", &case["cpu_seconds"]),
            ("server_ratio", &case["versus"]["ratio"]["median"]),
            ("server_high", &case["versus"]["ratio"]["high"]),
            ("defaults_ratio", &case["over_defaults"]["ratio"]["median"]),
            ("defaults_high", &case["over_defaults"]["ratio"]["high"]),
        ] {
            let column = columns.iter().position(|known| *known == name).expect(name);
            assert_eq!(cells[column].parse::<f64>().ok(), value.as_f64(), "{name}: {case}");
        }
    }
    for best in report["best"].as_array().expect("a list") {
        for value in [&best["seconds"], &best["server_seconds"]] {
            assert!(page.contains(&format!("<td>{value}</td>")), "{value}");
        }
    }
    let has_best = report["best"].as_array().is_some_and(|best| !best.is_empty());
    assert_eq!(page.contains("Fastest methods"), has_best, "{page}");
    assert!(page.contains("listen_addresses = ''"), "{page}");
}

#[test]
fn seven_pairs_give_a_ratio_with_an_interval() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::prepare(&bin);
    let csv = server.home().join("run.csv");
    let html = server.home().join("run.html");
    let options = ["prewarm", "--io-method", "sync", "--repetitions", "7", "--max-time", "86400"];
    let mut command = bench(&server, &[&options[..], &["--spread", "0.001"]].concat());
    let report = report(&server, command.arg("--csv").arg(&csv).arg("--html").arg(&html));
    let cases = report["measurements"].as_array().expect("cases");
    for case in cases.iter().filter(|case| !is_of_server(case)) {
        let versus = &case["versus"];
        assert_eq!((&versus["pairs"], &versus["io_method"]), (&7.into(), &"sync".into()), "{case}");
        let [low, median, high] =
            ["low", "median", "high"].map(|end| versus["ratio"][end].as_f64().expect("a number"));
        assert!(0.0 < low && low <= median && median <= high, "{case}");
    }
    let best = &report["best"][0];
    assert_eq!((&best["server"], &best["versus"]["pairs"]), (&"sync".into(), &7.into()), "{best}");
    compare(
        &report,
        &fs::read_to_string(&csv).expect("read"),
        &fs::read_to_string(&html).expect("read"),
    );
}

/// A file of settings in the server's own directory.
fn file_of(server: &Server, text: &str) -> String {
    let path = server.home().join("lines.conf");
    fs::write(&path, text).expect("written");
    path.to_string_lossy().into_owned()
}

/// What a configuration has shown for a setting.
fn shown(report: &Value, configuration: usize, name: &str) -> Option<String> {
    let of = &report["server"]["configurations"][configuration]["shown"];
    let mut settings = of.as_array().expect("a list").iter();
    Some(settings.find(|one| one[0] == name)?[1].as_str().expect("a text").to_owned())
}

#[test]
fn the_lines_of_a_file_are_in_effect_in_one_of_two_configurations() {
    for bin in servers() {
        let server = Server::prepare(&bin);
        // The planner takes an index scan for extremely slow.
        let text = "# from a calibration\neffective_io_concurrency = 33\nmax_connections = 42\n\
                    random_page_cost = 100000 # not 4\n#work_mem = 1\n";
        let file = file_of(&server, text);
        let options = ["uniform", "verify", "--only-postgres", "--postgres-settings", &file];
        let report = report(&server, &mut bench(&server, &[&options[..], &ONCE].concat()));
        let name = report["server"]["name"].as_str().expect("a name");
        let values = |setting: &str| [0, 1].map(|it| shown(&report, it, setting));
        let some = |values: [&str; 2]| values.map(|value| Some(value.to_owned()));
        // Versions before 18 have another default.
        let own = if name.starts_with("PostgreSQL 18") { "16" } else { "1" };
        assert_eq!(values("effective_io_concurrency"), some([own, "33"]), "{name}");
        assert_eq!(values("random_page_cost"), some(["4", "100000"]), "{name}");
        assert_eq!(values("io_workers")[0], values("io_workers")[1], "{name}");
        assert_eq!(values("max_connections"), some(["100", "42"]), "{name}");
        let cases = report["measurements"].as_array().expect("cases");
        // Sequential, bitmap, index, planned.
        assert_eq!(cases.len(), 2 * 4, "{name}: {report}");
        for (at, case) in cases.iter().enumerate() {
            // They take turns for each scan.
            let configuration = ["defaults", "settings"][at % 2];
            assert!(is_of_server(case) && case["io_method"] == configuration, "{name}: {case}");
            assert!(case["concurrency"].is_null() && case["combine_blocks"].is_null(), "{case}");
            assert_eq!(case["plan"].is_string(), case["scan"] == "planned", "{name}: {case}");
            let same = cases.iter().find(|it| work(it) == work(case)).expect("it");
            assert!(case["scan"] == "planned" || same["blocks"] == case["blocks"], "{case}");
        }
        // The planner has taken the lines into account.
        let plan = |at: usize| cases[at]["plan"].as_str().expect("a plan");
        assert!(plan(6).contains("Index Scan") && plan(7) == "Seq Scan", "{name}: {report}");
        assert_eq!(cases[7]["blocks"], cases[0]["blocks"], "{name}");
        let skipped = report["skipped"].as_array().expect("a list");
        assert!(skipped.len() == 1 && skipped[0]["workload"] == "verify", "{skipped:?}");
    }
}

#[test]
fn seven_pairs_of_configurations_give_a_verdict() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::prepare(&bin);
    let [csv, html] = ["run.csv", "run.html"].map(|name| server.home().join(name));
    let file = file_of(&server, "maintenance_io_concurrency = 33\n");
    let options = ["prewarm", "--io-method", "sync", "--io-direct=", "--postgres-settings", &file];
    let more = ["--repetitions", "7", "--max-time", "86400", "--spread", "0.001"];
    let mut command = bench(&server, &[&options[..], &more].concat());
    let report = report(&server, command.arg("--csv").arg(&csv).arg("--html").arg(&html));
    let cases = report["measurements"].as_array().expect("cases");
    let of = |name: &str| cases.iter().find(|case| case["io_method"] == name).expect(name);
    assert_eq!(cases.len(), 3, "{report}");
    assert!(of("defaults")["over_defaults"].is_null() && of("sync")["versus"]["pairs"] == 7);
    assert_eq!((&of("sync")["concurrency"], &of("sync")["plan"]), (&16.into(), &Value::Null));
    let over = &of("settings")["over_defaults"];
    let [low, median, high] =
        ["low", "median", "high"].map(|end| over["ratio"][end].as_f64().expect("a number"));
    assert!(over["pairs"] == 7 && 0.0 < low && low <= median && median <= high, "{over}");
    // Some file systems keep everything in the page cache.
    let is_held = ["defaults", "settings"].iter().all(|name| of(name)["cache_held"] != false);
    let verdict = match (low, high) {
        _ if !is_held => "cache not held",
        (_, high) if high < 1.0 => "faster",
        (_, high) if high <= 1.05 => "not slower",
        (low, _) if low > 1.05 => "slower",
        _ => "undecided",
    };
    assert_eq!(over["verdict"].as_str(), is_held.then_some(verdict), "{over}");
    let page = fs::read_to_string(&html).expect("read");
    compare(&report, &fs::read_to_string(&csv).expect("read"), &page);
    let row = "<tr><td>maintenance_io_concurrency</td><td>";
    assert!(page.contains(row) && page.contains(&format!("<td>{verdict}</td></tr>")), "{page}");
}

#[test]
fn a_setting_that_the_server_does_not_accept_is_its_own_error() {
    for bin in servers() {
        let server = Server::prepare(&bin);
        for (line, expected) in [
            ("io_turbo = on", "unrecognized configuration parameter \"io_turbo\""),
            ("random_page_cost = -1", "outside the valid range for parameter \"random_page_cost\""),
        ] {
            let file = file_of(&server, line);
            let options = ["prewarm", "--postgres-settings", &file];
            let output = bench(&server, &options).output().expect("runs");
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.code() == Some(3) && text.contains(expected), "{output:?}");
            assert!(output.stdout.is_empty() && !scratch(&server).exists(), "{output:?}");
        }
    }
}

#[test]
fn a_method_that_the_server_lacks_is_named() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::prepare(&bin);
    let options = ["prewarm", "--io-method", "io_uring", "--io-direct=", "--repetitions", "1"];
    let report = report(&server, &mut bench(&server, &options));
    let (cases, skipped) = (&report["measurements"], &report["skipped"]);
    let of_server = |list: &Value| {
        let list = list.as_array().expect("a list").iter();
        list.filter(|case| is_of_server(case)).cloned().collect::<Vec<_>>()
    };
    // npm's servers were built without io_uring; others may not be permitted to use it.
    match (&of_server(cases)[..], &of_server(skipped)[..]) {
        ([case], []) => assert_eq!(case["io_method"], "io_uring"),
        ([], [case]) => {
            let reason = case["reason"].as_str().expect("a text");
            assert!(reason.contains("ended with") && reason.contains("io_"), "{reason}");
        }
        _ => panic!("{report}"),
    }
}

/// A measurement that never ends, with a server that accepts connections. Returns its number too.
fn endless(server: &Server) -> (Child, Pid) {
    let options = ["sequential", "--io-method", "sync", "--repetitions", "1000"];
    let more = ["--spread", "0.0001", "--max-time", "86400", "--json"];
    let mut command = bench(server, &[&options[..], &more].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("runs");
    let file = scratch(server).join("disk/cluster/postmaster.pid");
    loop {
        let text = fs::read_to_string(&file).unwrap_or_default();
        // The status is the last line. initdb's own server has a negative number.
        let pid = text.lines().next().and_then(|line| line.parse().ok()).filter(|pid| *pid > 0);
        if let (Some(pid), true) = (pid, text.contains("ready")) {
            return (child, Pid::from_raw(pid).expect("a number"));
        }
        assert!(child.try_wait().expect("asked").is_none(), "it ended");
    }
}

/// Whether a process exists and has not ended. A server whose parent was killed stays as a zombie
/// until its new parent notices.
fn is_alive(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let state = stat.ok().and_then(|text| text.rsplit(')').next()?.trim().chars().next());
    test_kill_process(pid).is_ok() && state.is_some_and(|state| state != 'Z')
}

#[test]
fn no_server_is_left_after_ctrl_c_or_after_the_run_that_follows_a_kill() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::prepare(&bin);
    let (child, postmaster) = endless(&server);
    kill_process(Pid::from_child(&child), Signal::INT).expect("signalled");
    let output: Output = child.wait_with_output().expect("ended");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(!is_alive(postmaster) && !scratch(&server).exists(), "{output:?}");
    let (mut child, postmaster) = endless(&server);
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(scratch(&server).join("disk/cluster/base").exists(), "SIGKILL leaves files");
    let options = ["prewarm", "--io-method", "sync", "--io-direct=", "--repetitions", "1"];
    report(&server, &mut bench(&server, &options));
    assert!(!is_alive(postmaster), "the server of the killed run still runs");
}

#[test]
fn a_user_that_cannot_run_a_server_is_refused() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::prepare(&bin);
    let refused = |name: &str, expected: &str| {
        let output = bench(&server, &["--postgres-user", name]).output().expect("runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && text.contains(expected), "{output:?}");
        assert!(!scratch(&server).exists());
    };
    if rustix::process::geteuid().is_root() {
        refused("root", "can't run as \"root\"");
        refused("no-such-user", "there is no user \"no-such-user\"");
    } else {
        refused("root", "only root can run the server as another user");
    }
}

#[test]
fn nothing_is_created_in_a_cluster() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.arg("bench").arg("--postgres").arg(server.programs());
    let output = command.arg("--scratch").arg(server.data()).output().expect("runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && text.contains("and nothing is written there"),
        "{text}"
    );
    assert!(!Path::new(&server.data()).join("trunkline-bench-scratch").exists());
    server.stop();
}
