//! Tests `copy`: it copies rows of real clusters to standard output and to files, and reports
//! errors.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use trunkline_aio::clock;
use trunkline_format::page_checksum;

use crate::jobs::{try_until, until};
use crate::{json, run, status_field, trunkline};

/// The fixtures: directories with `data` and `expected`.
#[expect(clippy::disallowed_methods, reason = "a test has no main that could pass this down")]
pub(crate) fn fixtures() -> Vec<PathBuf> {
    let Some(directory) = std::env::var_os("TRUNKLINE_FIXTURE_DIR").map(PathBuf::from) else {
        println!("skipped: no fixture");
        return Vec::new();
    };
    let found: Vec<PathBuf> = (15..=19).map(|major| directory.join(format!("pg{major}"))).collect();
    let found: Vec<PathBuf> = found.into_iter().filter(|path| path.join("data").is_dir()).collect();
    assert!(!found.is_empty(), "no fixture in {}", directory.display());
    found
}

/// A copy of a fixture's data directory that a test can damage.
pub(crate) fn copy_of(fixture: &Path) -> (TempDir, PathBuf) {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let data = home.path().join("data");
    let mut copy = Command::new("cp");
    copy.arg("-R").arg("--preserve=mode").arg(fixture.join("data")).arg(&data);
    assert!(copy.status().expect("runs").success());
    (home, data)
}

pub(crate) fn copy(fixture: &Path, args: &[&str]) -> (i32, String, String) {
    let data = fixture.join("data").to_string_lossy().into_owned();
    run(["copy", "-D", data.as_str(), "-d", "fixture"].into_iter().chain(args.iter().copied()))
}

/// Copies a valid table and returns the rows.
pub(crate) fn rows(fixture: &Path, args: &[&str]) -> String {
    let (code, out, err) = copy(fixture, args);
    assert_eq!((code, err.as_str()), (0, ""), "{args:?} of {}", fixture.display());
    out
}

pub(crate) fn expected(fixture: &Path, table: &str) -> String {
    let file = fixture.join(format!("expected/fixture/{table}.copy"));
    fs::read_to_string(file).expect("UTF-8")
}

#[test]
fn tables_by_name() {
    for fixture in fixtures() {
        assert_eq!(rows(&fixture, &["s1.ty", "--ctid"]), expected(&fixture, "s1.ty"));
        let name = "fixture.public.\"Weird Name.x\"";
        assert_eq!(rows(&fixture, &[name, "--ctid"]), expected(&fixture, "public.Weird Name.x"));
        let without = expected(&fixture, "s1.hot");
        let without = without.lines().map(|line| line.split_once('\t').expect("ctid").1);
        assert_eq!(
            rows(&fixture, &["s1.hot"]),
            without.map(|l| format!("{l}\n")).collect::<String>()
        );
    }
}

#[test]
fn partitions_are_rows_of_their_parent_and_children_are_not() {
    for fixture in fixtures() {
        let attached = expected(&fixture, "s1.part_att");
        let attached = attached.lines().map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [ctid, v, k, ts] = fields[..] else { panic!("{line}") };
            format!("{ctid}\t{k}\t{ts}\t{v}\n")
        });
        let all = [
            expected(&fixture, "s1.part_2023"),
            attached.collect(),
            expected(&fixture, "s1.part_2024_a"),
            expected(&fixture, "s1.part_2024_def"),
        ];
        assert_eq!(rows(&fixture, &["s1.part", "--ctid"]), all.concat());
        // The child table has a row, too.
        assert_eq!(rows(&fixture, &["s1.inh_p"]), "1\n");
        assert!(!rows(&fixture, &["s1.inh_c"]).is_empty());
    }
}

#[test]
fn columns_formats_and_header() {
    for fixture in fixtures() {
        let args = ["s1.wide", "--columns", "C2, c99 ,c1", "--format", "CSV", "--header"];
        assert_eq!(rows(&fixture, &args), "c2,c99,c1\n2,t,x\n,,only\n");
        assert_eq!(rows(&fixture, &["s1.wide", "--columns", "c1", "-o", "-"]), "x\nonly\n");
        let args = ["s1.ty", "--columns", "t,id", "--format", "csv"];
        let text = rows(&fixture, &args);
        assert!(text.starts_with(",1\nhello,2\n\"\",3\n"), "{}", &text[..40]);
        assert!(text.contains("\n\"tab\tnl\nbs\\end\",8\n"));
        let args = ["s1.ty", "--columns", "id,iv,f8,by,tsz", "--intervalstyle", "iso_8601"];
        let more = ["--extra-float-digits", "-10", "--bytea-output", "escape"];
        let zone = ["--timezone", "<+0530>-05:30"];
        let text = rows(&fixture, &[&args[..], &more, &zone].concat());
        let line = text.lines().nth(1).expect("a row");
        let fields =
            "2\tP1Y2M3DT4H5M6.789S\t1.7977e+308\t\\\\336\\\\255\\\\276\\\\357\\\\000\\\\377";
        assert_eq!(line, format!("{fields}\t2024-02-29 16:04:56.123456+05:30"));
    }
}

#[test]
fn every_row_version_with_its_state() {
    for fixture in fixtures() {
        let text = rows(&fixture, &["s1.mvcc", "--rows", "all", "--columns", "id,v", "--header"]);
        assert!(text.starts_with("xmin\txmax\tstate\tid\tv\n"), "{text}");
        let count = |end: &str| text.lines().filter(|line| line.ends_with(end)).count();
        for (end, versions) in [
            ("\tlive\t30\tkeep", 1),
            ("\tdead\t4\torig", 1),
            ("\tdead\t1\torig", 1),
            ("\tlive\t1\tupd", 1),
            ("\taborted\t900\taborted", 1),
            ("\taborted\t31\trolled back", 1),
            ("\tin doubt\t50\tprepared", 1),
            ("\tlive\t15\torig", 1),
        ] {
            assert_eq!(count(end), versions, "{end}: {text}");
        }
        // The other filters print the same lines, without or with the state.
        let of_state = |state: &str| -> Vec<String> {
            let lines = text.lines().filter_map(|line| line.split_once(&format!("\t{state}\t")));
            lines.map(|(_, row)| row.to_owned()).collect()
        };
        let printed = |filter: &str, more: &[&str]| -> Vec<String> {
            let args = ["s1.mvcc", "--rows", filter, "--columns", "id,v"];
            rows(&fixture, &[&args[..], more].concat()).lines().map(str::to_owned).collect()
        };
        let dead = of_state("dead");
        assert!(!dead.is_empty());
        assert_eq!(printed("dead", &["--no-state"]), dead);
        let with_state = text.lines().filter(|line| line.contains("\tdead\t"));
        assert!(with_state.eq(printed("dead", &[])));
        let rows_of_all = text.lines().skip(1).map(|line| line.splitn(4, '\t').nth(3));
        let rows_of_all: Vec<&str> = rows_of_all.map(|row| row.expect("a row")).collect();
        assert_eq!(printed("all", &["--no-state"]), rows_of_all);
        let visible = rows(&fixture, &["s1.mvcc"]);
        let live = text.lines().filter(|line| line.contains("\tlive\t")).count();
        assert_eq!(visible.lines().count(), live);
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let Some(fixture) = fixtures().pop() else { return };
    for (args, code, message) in [
        (vec!["s1.nothing"], 2, "relation s1.nothing does not exist in database \"fixture\""),
        (vec!["s1.vw"], 2, "s1.vw is a view: it stores no rows"),
        (
            vec!["s1.sq"],
            2,
            "s1.sq is a sequence, not a table\ntrunkline: hint: copy --all writes the values of",
        ),
        (vec!["s1.ty", "--columns", "id,nope"], 2, "column \"nope\" of relation s1.ty does not"),
        (vec!["s1.ty", "--columns", "id,id"], 2, "column \"id\" specified more than once"),
        (
            vec!["s1.ty", "--timezone", "Mars"],
            2,
            "invalid value for parameter \"TimeZone\": \"Mars\"",
        ),
        // No value of the table needs the setting.
        (
            vec!["s1.rw", "--timezone", "Mars"],
            2,
            "invalid value for parameter \"TimeZone\": \"Mars\"",
        ),
        (vec!["s1.rw", "-c", "datestyle=German"], 2, "invalid value for parameter \"DateStyle\""),
        (vec!["s1.ty", "--datestyle", "German"], 2, "invalid value for parameter \"DateStyle\""),
        (vec!["s1.ty", "--json"], 2, "--json requires --output with a file: rows are printed"),
        (vec!["s1.ty", "--json", "-o", "-"], 2, "--json requires --output"),
        (vec!["--all", "-o", "-"], 2, "several tables are written to a directory"),
        (vec!["s1.ty", "--all"], 2, "the argument '[TABLE]...' cannot be used with '--all'"),
        (vec![], 2, "hint: name some, or use --all, -n or -t"),
    ] {
        let (found, out, err) = copy(&fixture, &args);
        assert_eq!((found, out.as_str()), (code, ""), "{args:?}: {err}");
        assert!(err.contains(message), "{args:?}: {err}");
    }
    let data = fixture.join("data").to_string_lossy().into_owned();
    let (code, _, err) = run(["copy", "-D", &data, "s1.ty"]);
    assert!(code == 2 && err.contains("no database given"), "{err}");
    let inside = fixture.join("data/base/out").to_string_lossy().into_owned();
    let (code, _, err) = copy(&fixture, &["s1.ty", "-o", &inside]);
    assert!(code == 2 && err.contains("is inside the data directory"), "{err}");
}

/// Returns whether a process has handled all signals sent to it and all of its threads are asleep.
///
/// A signal stays in `ShdPnd` until one of the threads takes it. That thread then runs the handler
/// before it can go back to sleep. We must therefore check that `ShdPnd` is empty before we look at
/// the threads.
fn signals_are_handled(pid: u32) -> bool {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let pending = status_field(&process.join("status"), "ShdPnd");
    let Ok(tasks) = fs::read_dir(process.join("task")) else { return false };
    let sleeps = |task: &Path| status_field(&task.join("status"), "State").starts_with('S');
    let nothing_pending = u64::from_str_radix(&pending, 16) == Ok(0);
    nothing_pending && tasks.flatten().all(|task| sleeps(&task.path()))
}

/// Signals count as one request if they arrive within this time.
const SAME_REQUEST: Duration = Duration::from_millis(200);

/// How often we try to send two signals that are handled within this time. One attempt is nearly
/// always enough, even on a busy machine.
const ATTEMPTS: u32 = 50;

/// Sends two signals to a copy. Returns its exit code and messages, and whether both signals were
/// handled within the time in which they count as a single request.
fn signalled_twice(fixture: &Path) -> (Option<i32>, String, bool) {
    let mut child = trunkline();
    child.args(["copy", "bench.public.pgbench_accounts", "-D"]).arg(fixture.join("data"));
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("runs");
    // The table is far larger than a pipe's buffer, so the child can't finish its copy while we
    // aren't reading. We start reading again only after the child has handled both signals.
    let mut rows = child.stdout.take().expect("a pipe");
    rows.read_exact(&mut [0; 100]).expect("rows");
    let begin = clock::now();
    for signal in [Signal::INT, Signal::TERM] {
        kill_process(Pid::from_child(&child), signal).expect("sent");
    }
    let running = try_until(&mut child, signals_are_handled);
    let in_time = clock::now().since(begin) < SAME_REQUEST;
    if running && in_time {
        // The main thread checks for a signal each time it wakes up. Once it has gone back to
        // sleep, we know that it has stopped the job, so it doesn't matter how fast we read after
        // that.
        let sleeps = |pid: u32| {
            let main = PathBuf::from(format!("/proc/{pid}/task/{pid}/status"));
            status_field(&main, "voluntary_ctxt_switches").parse::<u64>().unwrap_or(0)
        };
        let before = sleeps(child.id());
        until(&mut child, |pid| sleeps(pid) > before);
    }
    rows.read_to_end(&mut Vec::new()).expect("rows");
    let output = child.wait_with_output().expect("ended");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned(), in_time)
}

/// `timeout` sends a signal to the process and then to its process group, so the process receives
/// two. It must treat them as a single request to stop.
#[test]
fn two_signals_in_quick_succession_are_one_request() {
    for fixture in fixtures() {
        // If the machine is too busy to handle both signals in time, we learn nothing.
        let mut tries = (0..ATTEMPTS).map(|_| signalled_twice(&fixture));
        let Some((code, err, _)) = tries.find(|(.., in_time)| *in_time) else {
            panic!("in none of {ATTEMPTS} attempts were both signals handled in {SAME_REQUEST:?}");
        };
        // The two handlers may run in either order.
        assert!(matches!(code, Some(130 | 143)), "{code:?}");
        assert_eq!(err, "trunkline: warning: interrupted; counts cover only part of the data\n");
    }
}

/// A copy of a fixture that a test can damage.
pub(crate) struct Damaged {
    _home: TempDir,
    pub(crate) fixture: PathBuf,
    /// The first segment of the table `s1.rw`.
    file: PathBuf,
}

impl Damaged {
    pub(crate) fn new(fixture: &Path) -> Damaged {
        let home = tempfile::tempdir().expect("a directory");
        let copied = home.path().join("copied");
        fs::create_dir(&copied).expect("made");
        let status = Command::new("cp").arg("-a").arg(fixture.join("data")).arg(&copied).status();
        assert!(status.expect("runs").success());
        let data = copied.join("data");
        let shown = data.to_string_lossy().into_owned();
        let (code, out, err) = run(["tables", "-D", &shown, "-d", "fixture", "--json"]);
        assert_eq!((code, err.as_str()), (0, ""));
        let relations = json(&out)["relations"].as_array().expect("relations").clone();
        let table = relations.iter().find(|it| it["schema"] == "s1" && it["name"] == "rw");
        let file = data.join(table.expect("s1.rw")["file"].as_str().expect("a file"));
        Damaged { _home: home, fixture: copied, file }
    }

    /// Changes the table's only page. Updates the checksum if `sound`.
    fn change(&self, sound: bool, change: impl FnOnce(&mut [u8])) {
        let mut page = fs::read(&self.file).expect("read");
        change(&mut page);
        if sound {
            let bytes: &[u8; 8192] = page.as_slice().try_into().expect("a page");
            let sum = page_checksum(bytes, 0);
            page[8..10].copy_from_slice(&sum.to_le_bytes());
        }
        fs::write(&self.file, page).expect("written");
    }
}

/// Offset of the third row of a page.
fn third_row(page: &[u8]) -> usize {
    let pointer = u32::from_le_bytes(page[32..36].try_into().expect("four bytes"));
    (pointer & 0x7FFF) as usize
}

#[test]
fn a_damaged_row_ends_a_copy_or_is_skipped() {
    for fixture in fixtures() {
        let damaged = Damaged::new(&fixture);
        let check = |place: &str, rest: &str| {
            let (code, out, err) = copy(&damaged.fixture, &["s1.rw"]);
            let before = if rest.is_empty() { "" } else { "1\tr\n2\tr\n" };
            assert_eq!((code, out.as_str()), (1, before), "{err}");
            assert!(err.contains(place), "{place}: {err}");
            assert!(err.contains("hint: use --keep-going"), "{err}");
            let (code, out, err) = copy(&damaged.fixture, &["s1.rw", "--keep-going"]);
            assert_eq!((code, out.as_str()), (1, rest), "{err}");
            assert!(err.contains(place), "{place}: {err}");
        };
        let rest = "1\tr\n2\tr\n4\tr\n5\tr\n";
        let name = damaged.file.file_name().expect("a name").to_string_lossy().into_owned();
        let mut before = 0;
        damaged.change(true, |page| {
            let at = third_row(page) + 28;
            before = std::mem::replace(&mut page[at], 0x31);
        });
        check(
            &format!(
                "invalid row in block 0, line pointer 3 of file \"{}\"",
                damaged.file.display()
            ),
            rest,
        );
        check("column \"b\": ", rest);
        damaged.change(true, |page| {
            let at = third_row(page);
            (page[at + 28], page[at + 22]) = (before, 255);
        });
        check("line pointer 3", rest);
        damaged.change(false, |page| page[8000] ^= 1);
        check(&name, "");
        let out = damaged.fixture.join("rw.copy");
        let shown = out.to_string_lossy().into_owned();
        let (code, text, err) = copy(&damaged.fixture, &["s1.rw", "--keep-going", "-o", &shown]);
        assert_eq!(code, 1);
        assert!(text.contains("Files written: 1, 1 of them incomplete\n"), "{text}");
        assert!(text.contains("Skipped:       0 rows, 1 page or file\n"), "{text}");
        let note = format!("trunkline: warning: rows are missing in \"{shown}.incomplete\"\n");
        assert!(err.ends_with(&note), "{err}");
        assert!(!out.exists() && damaged.fixture.join("rw.copy.incomplete").exists());
    }
}

/// Runs a copy that must fail because of its configuration files, and returns its messages.
fn with_configuration(data: &Path) -> String {
    // If the copy hangs, `timeout` ends it with another exit code.
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "60", env!("CARGO_BIN_EXE_trunkline")]);
    command.args(["copy", "fixture.s1.ty", "-D"]).arg(data).stdin(Stdio::null());
    let output = command.output().expect("runs");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(3), 0), "{err}");
    err
}

#[test]
fn configuration_files_are_regular_and_few() {
    let Some(fixture) = fixtures().pop() else { return };
    let data = Damaged::new(&fixture);
    let data = data.fixture.join("data");
    let conf = data.join("postgresql.conf");
    let write = |text: &str| fs::write(&conf, text).expect("written");
    write("include '/dev/zero'\n");
    let err = with_configuration(&data);
    assert!(err.contains("\"/dev/zero\": not a regular file"), "{err}");
    write(&"include 'postgresql.conf'\n".repeat(10));
    let err = with_configuration(&data);
    assert!(err.contains("postgresql.conf\": configuration file recursion"), "{err}");
    fs::remove_file(&conf).expect("removed");
    assert!(Command::new("mkfifo").arg(&conf).status().expect("runs").success());
    let err = with_configuration(&data);
    assert!(err.contains("postgresql.conf\": not a regular file"), "{err}");
}
