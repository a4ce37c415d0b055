//! Runs the binary and checks standard output, standard error and exit code.
//!
//! Every command runs without `PGDATA` and outside any data directory.
#![expect(clippy::expect_used, reason = "a test that cannot go on ends, also in its helpers")]

mod bench;
mod calibrate;
mod copy;
mod copy_all;
mod copy_outputs;
mod deep;
mod incremental;
mod init;
mod jobs;
mod lost_pages;
mod missing;
mod recover;
mod scratch;
mod shell;
mod tables;
mod torn_log;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use trunkline_format::HeapPageBuilder;
use trunkline_sample::push_account;

fn trunkline() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.env_remove("PGDATA").env_remove("PGDATABASE").current_dir("/");
    command
}

fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> (i32, String, String) {
    let Output { status, stdout, stderr } = trunkline().args(args).output().expect("runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (status.code().expect("exited"), text(stdout), text(stderr))
}

/// A directory with a control file of PostgreSQL 18 and a relation of two segments.
struct Cluster {
    _home: TempDir,
    path: PathBuf,
}

impl Cluster {
    fn new(checksums: u32) -> Cluster {
        let home = tempfile::tempdir().expect("temporary directory");
        // Paths need not be valid UTF-8.
        let path = home.path().join(OsStr::from_bytes(b"d\xFFta"));
        fs::create_dir_all(path.join("global")).expect("made");
        fs::create_dir_all(path.join("pg_tblspc")).expect("made");
        fs::write(path.join("PG_VERSION"), "18\n").expect("written");
        fs::create_dir_all(path.join("base/5")).expect("made");
        fs::write(path.join("global/pg_control"), control_file(checksums)).expect("written");
        let cluster = Cluster { _home: home, path };
        cluster.write("base/5/16384", &page(0));
        cluster.write("base/5/16384.1", &page(131_072));
        cluster
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.at(name), bytes).expect("written");
    }
}

fn page(block: u32) -> Vec<u8> {
    let mut page = HeapPageBuilder::new(block);
    push_account(&mut page, 1, 1, 0).expect("room");
    push_account(&mut page, 2, 1, 0).expect("room");
    page.finish(true).to_vec()
}

/// A control file. See `trunkline_format::control` for the offsets.
fn control_file(checksums: u32) -> Vec<u8> {
    let mut bytes = vec![0; 8192];
    let mut put = |offset: usize, value: u32| {
        bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    };
    for (offset, value) in [(8, 1800), (12, 202_506_291), (16, 1), (204, 8), (252, checksums)] {
        put(offset, value);
    }
    for (offset, value) in [(216, 8192), (220, 131_072), (224, 8192), (228, 16 << 20)] {
        put(offset, value);
    }
    bytes[208..216].copy_from_slice(&1_234_567.0_f64.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..292]);
    bytes[292..296].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn page_args(options: &[&str], file: &Path, block: Option<u32>) -> Vec<std::ffi::OsString> {
    let mut args = vec!["inspect".into(), "page".into()];
    args.extend(options.iter().map(Into::into));
    args.push(file.into());
    args.extend(block.map(|block| block.to_string().into()));
    args
}

/// Reads one field of a `status` file in `/proc`; empty once the process is gone.
fn status_field(status: &Path, field: &str) -> String {
    let text = fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

fn json(text: &str) -> serde_json::Value {
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn help_says_what_the_tool_is_and_shows_examples() {
    let (code, out, err) = run(["--help"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("trunkline reads the data directory of a stopped PostgreSQL"), "{out}");
    assert!(out.contains("\nExamples:\n  trunkline tables "), "{out}");
    let commands = ["inspect", "verify", "tables", "copy", "prewarm", "bench", "demo", "slow-disk"];
    for command in commands {
        assert!(out.contains(&format!("\n  {command} ")), "{out}");
    }
    for command in [&[][..], &["verify"], &["inspect", "page"]] {
        let help = |flag| run(command.iter().copied().chain([flag]));
        assert_eq!(help("-?"), help("-h"), "{command:?}");
        assert_eq!(help("-?").0, 0, "{command:?}");
    }
    let help = |command| run([command, "--help"]).1;
    assert!(help("verify").contains("[default: 128MB]"), "{}", help("verify"));
    assert!(help("copy").contains("[default: 32MB]"), "{}", help("copy"));
    for name in ["zero_damaged_pages", "io_max_concurrency", "extra_float_digits"] {
        assert!(help("copy").contains(name), "{name}");
    }
    // Options that mean nothing to a command are accepted, but not listed.
    assert!(help("demo").contains("--json") && !help("demo").contains("--force-unclean"));
    assert!(help("man").contains("--help") && !help("man").contains("--json"));
    assert_eq!(run(["man", "--json"]).0, 0);
    for command in [&["man"][..], &["completions", "bash"], &["demo", "--scale", "1"]] {
        let (code, out, err) = run(["-D", "x"].iter().chain(command));
        let text = format!("unexpected argument '--pgdata': {} reads no data", command[0]);
        assert!(code == 2 && out.is_empty() && err.contains(&text), "{command:?}: {code} {err}");
        assert_eq!(run(command.iter().chain(&["-D", "x"])), (code, out, err));
    }
    let with_variable = trunkline().arg("man").env("PGDATA", "/nowhere").output().expect("runs");
    assert_eq!(with_variable.status.code(), Some(0));
    // The options of all commands come after those of the command.
    let copy = help("copy");
    let at = |text| copy.find(text).unwrap_or_else(|| panic!("{text}: {copy}"));
    assert!(at("--exclude-schema") < at("Common options:") && at("--jobs") < at("--no-progress"));
    assert!(at("Common options:") < at("--tablespace-mapping"));
    let (code, out, _) = run(["--version"]);
    let version = concat!("trunkline ", env!("CARGO_PKG_VERSION"));
    assert!(code == 0 && out.starts_with(version), "{out}");
}

#[test]
fn wrong_usage_is_reported_with_exit_code_2() {
    for (args, expected) in [
        (vec![], "trunkline: error: no command given"),
        (vec!["frobnicate"], "trunkline: error: unrecognized subcommand 'frobnicate'"),
        (vec!["inspect", "control", "--nope"], "trunkline: error: unexpected argument '--nope'"),
        (
            vec!["inspect", "control"],
            "trunkline: error: no data directory given\ntrunkline: hint: use -D DIR",
        ),
        (
            vec!["inspect", "control", "--io-combine-limit", "17 qB"],
            "trunkline: error: invalid value for parameter \"io_combine_limit\": \"17 qB\"\n\
             trunkline: hint: Valid units for this parameter are",
        ),
        (
            vec!["verify", "-j", "0"],
            "trunkline: error: invalid value '0' for '--jobs <N>': must be in range 1..64\n",
        ),
        (
            vec!["inspect", "page", "x", "4294967296"],
            "trunkline: error: invalid value '4294967296' for '[BLOCK]': must be in range \
             0..4294967295\n",
        ),
        (
            vec!["inspect", "clog", "-d", "shop"],
            "trunkline: error: unexpected argument '-d' found\n\nUsage:",
        ),
        (
            vec!["inspect", "clog", "x"],
            "trunkline: error: invalid value 'x' for '[XID]...': expected a whole number\n",
        ),
        (
            vec!["-c", "x=1", "inspect", "control"],
            "trunkline: error: unrecognized configuration parameter \"x\"",
        ),
        (
            vec!["inspect", "control", "--io-direct=wal"],
            "trunkline: error: \"wal\" is not supported yet in parameter \"io_direct\"",
        ),
    ] {
        let (code, out, err) = run(&args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}");
        assert!(err.starts_with(expected), "{args:?}: {err}");
    }
}

#[test]
fn control_by_directory_environment_and_file() {
    let cluster = Cluster::new(1);
    let by_option =
        trunkline().args(["inspect", "control", "-D"]).arg(&cluster.path).output().expect("runs");
    let text = String::from_utf8_lossy(&by_option.stdout).into_owned();
    assert!(text.contains("Database cluster state:               shut down\n"), "{text}");
    let by_environment =
        trunkline().args(["inspect", "control"]).env("PGDATA", &cluster.path).output();
    assert_eq!(by_environment.expect("runs"), by_option);
    let by_file = run(["inspect".into(), "control".into(), cluster.at("global/pg_control")]);
    assert_eq!(by_file, (0, text, String::new()));
}

#[test]
fn control_as_json() {
    let cluster = Cluster::new(1);
    let file = cluster.at("global/pg_control");
    let (code, out, _) = run(["--json".into(), "inspect".into(), "control".into(), file]);
    assert_eq!(code, 0);
    assert_eq!(json(&out)["fields"]["Database block size"], "8192");
}

#[test]
fn a_control_file_that_cannot_be_read_is_an_error() {
    let cluster = Cluster::new(1);
    let inspect = |path: PathBuf| run(["inspect".into(), "control".into(), path]);
    let (code, out, err) = inspect("/nowhere/pg_control".into());
    assert_eq!((code, out.as_str()), (3, ""));
    assert_eq!(
        err,
        "trunkline: error: could not open file \"/nowhere/pg_control\": No such file or directory\n"
    );
    cluster.write("short", &[0; 100]);
    let (code, _, err) = inspect(cluster.at("short"));
    assert_eq!(code, 3);
    assert!(err.starts_with("trunkline: error: \""), "{err}");
}

#[test]
fn a_control_file_with_a_wrong_crc_is_printed_with_a_warning() {
    let cluster = Cluster::new(1);
    let inspect = |path: PathBuf| run(["inspect".into(), "control".into(), path]);
    let (_, good, _) = inspect(cluster.at("global/pg_control"));
    let mut bytes = fs::read(cluster.at("global/pg_control")).expect("read");
    // The oldest transaction.
    bytes[96] ^= 1;
    cluster.write("damaged", &bytes);
    let (code, out, err) = inspect(cluster.at("damaged"));
    let differ = good.lines().zip(out.lines()).filter(|(good, bad)| good != bad).count();
    assert_eq!((code, out.lines().count(), differ), (1, good.lines().count(), 1), "{out}");
    assert!(err.starts_with("trunkline: warning: \"") && err.contains("CRC 0x"), "{err}");
    assert!(err.ends_with("; do not trust the values below\n"), "{err}");
    // A layout that we don't know is still refused.
    bytes[12] ^= 1;
    cluster.write("damaged", &bytes);
    let (code, out, _) = inspect(cluster.at("damaged"));
    assert_eq!((code, out.as_str()), (3, ""));
}

#[test]
fn an_empty_data_directory_counts_as_none() {
    for args in [&["verify"][..], &["verify", "-D", ""], &["inspect", "page", "16384"]] {
        let output = trunkline().args(args).env("PGDATA", "").output().expect("runs");
        let err = String::from_utf8(output.stderr).expect("text");
        assert!(!err.contains("a value is required"), "{err}");
        let hint = "trunkline: hint: use -D DIR";
        assert!(err.contains(hint), "{args:?}: {err}");
    }
}

#[test]
fn a_page_is_found_below_the_data_directory() {
    let cluster = Cluster::new(1);
    let (_, by_path, _) = run(page_args(&[], &cluster.at("base/5/16384"), None));
    let found = |name: &str, options: &[&str]| {
        let mut args = page_args(options, Path::new(name), None);
        args.extend(["-D".into(), cluster.path.clone().into()]);
        run(args)
    };
    for name in ["base/5/16384", "5/16384", "1663/5/16384"] {
        assert_eq!(found(name, &[]), (0, by_path.clone(), String::new()), "{name}");
    }
    cluster.write("base/5/16384_init", &page(0));
    for (name, options) in [("base/5/16384", &["--fork=init"][..]), ("5/16384", &["--fork=init"])] {
        let (code, out, err) = found(name, options);
        assert_eq!((code, err.as_str()), (0, ""), "{name}");
        assert!(out.contains("block     0 (init fork, segment 0)\n"), "{out}");
    }
    for (name, options, code, expected) in [
        ("5/16385", &[][..], 2, "the data directory has no relation 5/16385"),
        ("5/16384", &["--fork=vm"], 2, "fork \"vm\" does not exist for relation 1663/5/16384"),
        ("base/5/16384_init", &["--fork=vm"], 2, "is not the first file of a relation's main fork"),
    ] {
        let found = found(name, options);
        assert_eq!(found.0, code, "{name}: {}", found.2);
        assert!(found.2.contains(expected), "{name}: {}", found.2);
    }
    let (code, _, err) = run(page_args(&[], Path::new("base/5/16384"), None));
    assert_eq!(code, 3);
    assert!(err.starts_with("trunkline: error: file \"base/5/16384\" does not exist\n"), "{err}");
}

#[test]
fn a_valid_page_is_decoded() {
    let cluster = Cluster::new(1);
    let (code, out, err) = run(page_args(&[], &cluster.at("base/5/16384"), None));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for line in ["block     0 (main fork, segment 0)\n", "kind      heap\n", "verdict   good\n"] {
        assert!(out.contains(line), "{out}");
    }
    assert!(out.contains(" (correct)\n"), "{out}");
    assert!(out.contains("xmin frozen"), "{out}");
}

#[test]
fn block_numbers_count_across_segments() {
    let cluster = Cluster::new(1);
    let of = |name: &str, block| run(page_args(&["--json"], &cluster.at(name), block));
    let (code, first, _) = of("base/5/16384.1", None);
    assert_eq!(code, 0, "{first}");
    assert_eq!(json(&first)["block"], 131_072);
    assert_eq!(json(&first)["checksum"]["right"], true);
    assert_eq!(json(&first)["line_pointers"][1]["tuple"]["ctid"], serde_json::json!([131_072, 2]));
    assert_eq!(of("base/5/16384", Some(131_072)).1, first);

    let (code, _, err) = of("base/5/16384.1", Some(7));
    assert_eq!(code, 2);
    assert!(err.contains("block 7 is not in"), "{err}");
    let (code, _, err) = of("base/5/16384", Some(1));
    assert_eq!(code, 2);
    assert!(err.contains("block 1 is past the end of"), "{err}");
    assert_eq!(json(&err)["hint"], "the file contains blocks 0 to 0");
    let (code, _, err) = of("base/5/16384", Some(u32::MAX));
    assert!(code == 2 && err.contains("4294967295 is past the end of the relation"), "{err}");
    // A path that doesn't exist is more likely mistyped.
    let (code, _, err) = of("base/5/99999.1", None);
    assert!(code == 3 && err.contains("could not open file"), "{err}");

    cluster.write("base/5/16390", &[&page(0)[..], &[0; 5000]].concat());
    let (code, _, err) = of("base/5/16390", Some(1));
    assert!(code == 1 && err.contains(" is torn: 13192 bytes found"), "{err}");
    assert_eq!(of("base/5/16390", Some(2)).0, 2);
}

#[test]
fn an_invalid_page_is_a_finding() {
    let cluster = Cluster::new(1);
    let mut bytes = page(0);
    bytes[8000] ^= 1;
    cluster.write("base/5/16384", &bytes);
    let (code, out, _) = run(page_args(&[], &cluster.at("base/5/16384"), None));
    assert_eq!(code, 1);
    assert!(out.contains("verdict   bad: checksum 0x"), "{out}");
    let (code, out, _) = run(page_args(&["--json"], &cluster.at("base/5/16384"), None));
    assert_eq!(code, 1);
    assert_eq!(json(&out)["verdict"], "bad");

    // The same page in a cluster without checksums.
    let cluster = Cluster::new(0);
    cluster.write("base/5/16384", &bytes);
    let (code, out, _) = run(page_args(&[], &cluster.at("base/5/16384"), None));
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("checksums are off"), "{out}");
}

#[test]
fn new_pages_and_garbage_are_distinguished() {
    let cluster = Cluster::new(1);
    cluster.write("base/5/16385", &[0; 8192]);
    let (code, out, _) = run(page_args(&[], &cluster.at("base/5/16385"), None));
    assert_eq!(code, 0);
    assert!(out.contains("verdict   new\n"), "{out}");
    for byte in [1, 0x7F, 0xFF] {
        cluster.write("base/5/16385", &[byte; 8192]);
        for options in [&[][..], &["--json"]] {
            assert_eq!(run(page_args(options, &cluster.at("base/5/16385"), None)).0, 1);
        }
    }
    cluster.write("odd name", &page(0));
    let (code, _, err) = run(page_args(&[], &cluster.at("odd name"), None));
    assert_eq!(code, 0);
    assert!(err.starts_with("trunkline: warning: "), "{err}");
    let (code, _, err) = run(page_args(&[], &cluster.at("base/5"), None));
    assert_eq!(code, 3);
    assert!(err.contains("is not a regular file"), "{err}");
}

#[test]
fn a_closed_pipe_is_not_an_error_message() {
    let cluster = Cluster::new(1);
    for args in [page_args(&[], &cluster.at("base/5/16384"), None), vec!["--help".into()]] {
        let mut child = trunkline()
            .args(&args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .expect("started");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("ended");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        assert!(output.status.code().is_some(), "{args:?}");
    }
}

#[test]
fn a_full_disk_is_reported() {
    let cluster = Cluster::new(1);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("opened");
    let args = page_args(&[], &cluster.at("base/5/16384"), None);
    let output = trunkline().args(args).stdout(full).output().expect("runs");
    assert_eq!(output.status.code(), Some(3));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.starts_with("trunkline: error: could not write to standard output"), "{err}");
}
