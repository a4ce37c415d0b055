//! Opening data directories: which directories are refused, and with which messages.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};

use trunkline_engine::datadir::{
    DataDir, DataDirError, OpenOptions, Unsafe, Warning, read_control_file,
};

use crate::child;
use crate::fake::{self, Fake};
use crate::fixtures::snapshot;

/// A child process that runs until this value is dropped.
struct Living(Child);

impl Living {
    fn new() -> Living {
        let mut cat = Command::new("cat");
        let mut child =
            cat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat started");
        // The child's reply proves that exec has completed, so the process now has its own name.
        // After that, the child waits for more input, which we never send.
        child.stdin.as_mut().expect("piped").write_all(b"?").expect("written");
        child.stdout.as_mut().expect("piped").read_exact(&mut [0]).expect("answered");
        Living(child)
    }

    fn pid_file(&self) -> String {
        format!("{}\n/data\n1700000000\n5432\n", self.0.id())
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn clean_directory() {
    let fake = Fake::new();
    let opened = fake.open().expect("opened");
    assert!(opened.warnings().is_empty(), "{:?}", opened.warnings());
    assert_eq!(opened.control().version.major(), 18);
    assert_eq!(opened.path(), fake.path);
    opened.recheck().expect("nothing changed");
}

#[test]
fn directory_behind_a_link_or_with_an_odd_name() {
    let fake = Fake::new();
    let odd = fake.path.with_file_name(OsStr::from_bytes(b"\xFF\xFEdata"));
    std::os::unix::fs::symlink(&fake.path, &odd).expect("link made");
    let opened = DataDir::open(&odd, OpenOptions::default()).expect("opened");
    assert!(opened.relation_files().problems.is_empty());
}

#[test]
fn server_running() {
    let fake = Fake::new();
    let server = Living::new();
    fake.write("postmaster.pid", server.pid_file().as_bytes());
    let pid = server.0.id();
    assert_eq!(
        fake.refusal(),
        format!(
            "\"DIR\" is not safe to read: a server may be running (postmaster.pid names process \
             {pid} (cat), which is alive and works in another directory)"
        )
    );
    let error = fake.open().expect_err("refused");
    // The working directory of the process isn't the data directory, so the process probably isn't
    // a server. The hint must therefore mention that the PID file may be stale.
    assert!(error.hint().is_some_and(|hint| hint.contains("stale")), "{:?}", error.hint());

    let forced = fake.open_forced();
    assert!(matches!(forced.warnings(), [Warning::Forced(Unsafe::Server(_))]));
    forced.recheck().expect("the same server");

    drop(server);
    let opened = fake.open().expect("opened");
    assert!(matches!(opened.warnings(), [Warning::StalePidFile(process)] if process.pid == pid));
}

#[test]
fn own_process_is_not_a_server() {
    let fake = Fake::new();
    fake.write("postmaster.pid", format!("{}\n", std::process::id()).as_bytes());
    assert!(matches!(fake.open().expect("opened").warnings(), [Warning::StalePidFile(_)]));
}

#[test]
fn pid_file_without_a_process() {
    let fake = Fake::new();
    fake.write("postmaster.pid", b"");
    assert_eq!(
        fake.refusal(),
        "\"DIR\" is not safe to read: a server may be running (postmaster.pid contains no process \
         id)"
    );
}

#[test]
fn not_shut_down() {
    let states = [
        "starting up",
        "",
        "shut down in recovery",
        "shutting down",
        "in crash recovery",
        "in archive recovery",
        "in production",
        "unrecognized status code",
    ];
    for (number, state) in (0..).zip(states).filter(|(_, state)| !state.is_empty()) {
        let fake = Fake::new();
        fake.control(fake::STATE, number);
        assert_eq!(
            fake.refusal(),
            format!(
                "\"DIR\" is not safe to read: global/pg_control says \"{state}\", expected \"shut \
                 down\""
            )
        );
        let forced = fake.open_forced();
        assert!(matches!(forced.warnings(), [Warning::Forced(Unsafe::State(_))]));
        forced.recheck().expect("nothing changed");
    }
}

#[test]
fn base_backup() {
    let fake = Fake::new();
    fake.control(fake::STATE, 6);
    fake.write("backup_label", b"START WAL LOCATION: 0/2000028\n");
    fake.write("standby.signal", b"");
    assert_eq!(
        fake.refusal(),
        "\"DIR\" is not safe to read: global/pg_control says \"in production\", expected \"shut \
         down\"; file backup_label exists: a base backup that was never recovered"
    );
    assert!(matches!(
        fake.open_forced().warnings(),
        [
            Warning::Forced(Unsafe::State(_)),
            Warning::Forced(Unsafe::BackupLabel),
            Warning::Marker("standby.signal")
        ]
    ));
}

#[test]
fn versions() {
    for found in ["14", "20", "18beta1", "", "-18"] {
        let fake = Fake::new();
        fake.write("PG_VERSION", found.as_bytes());
        assert_eq!(
            fake.refusal(),
            format!("\"DIR/PG_VERSION\" contains version \"{found}\", expected 15 to 19")
        );
    }
    let fake = Fake::new();
    fake.write("PG_VERSION", b"17\n");
    assert_eq!(
        fake.refusal(),
        "\"DIR\" mixes two clusters: PG_VERSION says 17, global/pg_control belongs to version 18"
    );
    let fake = Fake::new();
    fake.control(fake::CATALOG_VERSION, 202_506_292);
    assert!(fake.refusal().ends_with(
        "control version 1800 with catalog version 202506292 does not belong to a \
             supported release"
    ));
}

#[test]
fn sizes_other_than_ours() {
    let fake = Fake::new();
    fake.control(fake::BLOCK_SIZE, 16_384);
    assert_eq!(fake.refusal(), "\"DIR/global/pg_control\": block size 16384 found, 8192 expected");
    let fake = Fake::new();
    fake.control(fake::SEGMENT_SIZE, 262_144);
    assert_eq!(
        fake.refusal(),
        "\"DIR/global/pg_control\": 262144 blocks per segment found, 131072 expected"
    );
    // With `force`, a cluster is opened even if its state is doubtful, but not if its format is
    // wrong.
    let forced =
        DataDir::open(&fake.path, OpenOptions { force_unclean: true, ..OpenOptions::default() });
    assert!(matches!(forced, Err(DataDirError::Control { .. })));
}

#[test]
fn control_file_damaged() {
    let fake = Fake::new();
    let control = fs::read(fake.at("global/pg_control")).expect("read");
    for length in [0, 1, 100, 291, 295] {
        fake.write("global/pg_control", &control[..length]);
        let refusal = fake.refusal();
        assert!(
            refusal.starts_with(&format!("\"DIR/global/pg_control\": {length} bytes found")),
            "{refusal}"
        );
    }
    let mut flipped = control;
    flipped[100] ^= 1;
    fake.write("global/pg_control", &flipped);
    assert!(fake.refusal().starts_with("\"DIR/global/pg_control\": CRC 0x"));
}

#[test]
fn not_a_data_directory() {
    let fake = Fake::new();
    fs::remove_file(fake.at("global/pg_control")).expect("removed");
    let expected = "\"DIR\" is not a data directory: file \"global/pg_control\" does not exist";
    assert_eq!(fake.refusal(), expected);
    fs::remove_file(fake.at("PG_VERSION")).expect("removed");
    let expected = "\"DIR\" is not a data directory: file \"PG_VERSION\" does not exist";
    assert_eq!(fake.refusal(), expected);
    let error =
        DataDir::open(&fake.at("base/nowhere"), OpenOptions::default()).expect_err("refused");
    assert!(error.to_string().starts_with("could not open directory"), "{error}");
}

#[test]
fn links_and_pipes_are_not_followed() {
    let fake = Fake::new();
    fs::remove_file(fake.at("PG_VERSION")).expect("removed");
    fake.pipe("PG_VERSION");
    assert_eq!(fake.refusal(), "\"DIR/PG_VERSION\" is not a regular file");
    let fake = Fake::new();
    fs::rename(fake.at("global/pg_control"), fake.at("elsewhere")).expect("moved");
    fake.link("../elsewhere", "global/pg_control");
    assert_eq!(fake.refusal(), "\"DIR/global/pg_control\" is not a regular file");
}

#[test]
fn permission_denied() {
    if child::is_root() {
        return child::as_unprivileged_user("datadir::permission_denied");
    }
    let fake = Fake::new();
    child::set_mode(&fake.at("global/pg_control"), 0);
    assert_eq!(
        fake.refusal(),
        "could not open file \"DIR/global/pg_control\": Permission denied (os error 13)"
    );
    let error = fake.open().expect_err("refused");
    assert_eq!(error.hint(), Some("run as the user that owns the data directory"));
}

#[test]
fn a_server_that_starts_later_is_noticed() {
    let fake = Fake::new();
    let opened = fake.open().expect("opened");
    let server = Living::new();
    fake.write("postmaster.pid", server.pid_file().as_bytes());
    let text = opened.recheck().expect_err("noticed").to_string();
    assert!(text.starts_with("a server has started on"), "{text}");

    // Simulate a server that was started and stopped again after we opened the directory. We can
    // still detect that from the control file.
    fs::remove_file(fake.at("postmaster.pid")).expect("removed");
    opened.recheck().expect("as before");
    fake.control(fake::STATE, 6);
    let text = opened.recheck().expect_err("noticed").to_string();
    assert!(text.starts_with("a server has worked on"), "{text}");
}

#[test]
fn control_file_by_its_own_path() {
    let fake = Fake::new();
    let control = read_control_file(&fake.at("global/pg_control")).expect("read");
    assert!(control.checksums());
    let missing = read_control_file(&fake.at("nowhere"));
    assert!(matches!(missing, Err(DataDirError::Io { .. })));
}

#[test]
fn nothing_is_written() {
    let fake = Fake::new();
    fake.write("base/5/16384", &[0; 8192]);
    let before = snapshot(&fake.path);
    let opened = fake.open().expect("opened");
    assert_eq!(opened.relation_files().files.len(), 1);
    opened.recheck().expect("nothing changed");
    assert_eq!(snapshot(&fake.path), before);
}
