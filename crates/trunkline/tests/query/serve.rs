//! Runs `trunkline serve`, as a program.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::data;

/// A server that is killed if the test fails.
struct Program {
    child: Child,
    /// Kept open, so that the server can print.
    _stdout: BufReader<ChildStdout>,
    directory: TempDir,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn command(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    for variable in ["PGDATA", "PGPORT"] {
        command.env_remove(variable);
    }
    command.current_dir("/").args(["serve", "--shared-buffers", "2MB", "-D"]).arg(data);
    command
}

impl Program {
    /// Starts a server, and waits until it listens.
    fn start(data: &Path) -> Self {
        let directory = TempDir::new().expect("a directory");
        let mut child = command(data)
            .arg("--socket-dir")
            .arg(directory.path())
            .arg("--config-file")
            .arg(directory.path().join("own.conf"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("runs");
        let mut stdout = BufReader::new(child.stdout.take().expect("standard output"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        assert!(line.starts_with("serving "), "{line}");
        Self { child, _stdout: stdout, directory }
    }

    /// A session.
    fn connect(&self) -> UnixStream {
        let path = self.directory.path().join(".s.PGSQL.5432");
        let mut stream = UnixStream::connect(path).expect("a connection");
        let body = b"\0\x03\0\0user\0postgres\0database\0fixture\0\0";
        let length = u32::try_from(body.len() + 4).expect("short").to_be_bytes();
        stream.write_all(&[&length, &body[..]].concat()).expect("written");
        until_ready(&mut stream);
        stream
    }

    /// The most memory that it has used so far, in KiB.
    fn peak_memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("a status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}

/// Reads messages until the server is ready. Returns how many rows there were.
fn until_ready(stream: &mut UnixStream) -> usize {
    let mut rows = 0;
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).expect("a message");
        let [kind, length @ ..] = head;
        let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
        stream.read_exact(&mut body).expect("a message");
        assert_ne!(kind, b'E', "{}", String::from_utf8_lossy(&body));
        match kind {
            b'D' => rows += 1,
            b'Z' => return rows,
            _ => {}
        }
    }
}

fn query(stream: &mut UnixStream, sql: &str) {
    let length = u32::try_from(sql.len() + 5).expect("short").to_be_bytes();
    stream.write_all(&[b"Q", &length[..], sql.as_bytes(), b"\0"].concat()).expect("written");
}

#[test]
fn a_signal_ends_it_with_sessions_open() {
    let Some(data) = data() else { return };
    let mut program = Program::start(&data);
    let (mut idle, mut active) = (program.connect(), program.connect());
    query(&mut active, "select n from generate_series(1, 100000000) n");
    // The rows have begun, and the client takes no more of them.
    active.read_exact(&mut [0; 100]).expect("rows");
    let pid = Pid::from_child(&program.child);
    kill_process(pid, Signal::TERM).expect("a signal");
    let status = program.child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
    let mut rest = Vec::new();
    idle.read_to_end(&mut rest).expect("the end");
    let rest = String::from_utf8_lossy(&rest);
    assert!(rest.contains("57P01"), "{rest}");
    let left: Vec<_> = std::fs::read_dir(program.directory.path()).expect("files").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn options_of_other_commands_are_refused() {
    let Some(data) = data() else { return };
    for args in
        [&["--format", "csv"][..], &["-d", "fixture"], &["select 1"], &["--password-file", "x"]]
    {
        let output = command(&data).args(args).output().expect("runs");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

/// A million rows, 200 MB. The client takes them only after another session has executed a longer
/// statement.
#[test]
fn rows_are_not_collected_for_a_slow_client() {
    const LIMIT: u64 = 64 << 10;
    let Some(data) = data() else { return };
    let program = Program::start(&data);
    let mut client = program.connect();
    let rows =
        |count: u32| format!("select n, repeat('x', 200) from generate_series(1, {count}) n");
    query(&mut client, &rows(10_000));
    assert_eq!(until_ready(&mut client), 10_000);
    let before = program.peak_memory();
    let mut other = program.connect();
    query(&mut client, &rows(1_000_000));
    query(&mut other, "select count(*) from generate_series(1, 3000000)");
    assert_eq!(until_ready(&mut other), 1);
    assert_eq!(until_ready(&mut client), 1_000_000);
    let grown = program.peak_memory() - before;
    assert!(grown < LIMIT, "{grown} KiB more than {before} KiB");
}
