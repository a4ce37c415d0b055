//! `postmaster.pid`: whether a server is running on a data directory.
//!
//! The postmaster creates this file early during startup and removes it at the very end, but after
//! a crash the file is left behind. If its process no longer exists, the file is stale. However,
//! after a reboot or in a container, the process id may have been reused by an unrelated program,
//! which we can't reliably tell apart from a server. To be safe, we assume that it's a server, and
//! report what we know: the program's name, and whether its working directory is the data
//! directory.
//!
//! A process that was killed, but whose parent hasn't asked for its exit status yet, is a zombie. It still
//! has its process id, but it does nothing any more, so we count it as gone. Like the children of a postmaster that was
//! reaped, its children may still write until they notice.
//!
//! PostgreSQL's `CreateLockFile` also uses `kill(pid, 0)` for this. Like PostgreSQL, we ignore our
//! own process id and our parent's, because neither can belong to a server. PostgreSQL also checks
//! the shared memory segment recorded on a later line of the file, but we don't.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::parent_id;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use thiserror::Error;

/// The file's name.
pub(crate) const NAME: &str = "postmaster.pid";

/// Maximum number of bytes to read. A valid file has just eight short lines.
pub(super) const BYTES_MAX: u64 = 65_536;

/// The server's state according to `postmaster.pid`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Server {
    /// The file doesn't exist.
    #[error("no {NAME}")]
    None,
    /// The process no longer exists: a crash left the file behind.
    #[error("{NAME} names {0}, which is gone")]
    Stale(Process),
    /// The process is alive.
    #[error(
        "{NAME} names {process}, which is alive{elsewhere}",
        process = .0,
        elsewhere = .0.elsewhere()
    )]
    Running(Process),
    /// The process is alive, but works in another directory: this directory is a copy of one whose
    /// server is running, such as a file system snapshot.
    #[error("{NAME} names {0}, which works in another directory")]
    Elsewhere(Process),
    /// There is no process id in the file. Either a server is just starting, or the file is
    /// damaged. To be safe, we assume that a server is running.
    #[error("{NAME} contains no process id")]
    Unclear,
}

/// A process, and what the system reports about it.
#[derive(Debug, Clone)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Its program's name, if we can read it.
    pub program: Option<OsString>,
    /// Whether the process's working directory is the data directory, as it always is for a server.
    /// `None` if we couldn't read the working directory.
    pub at_home: Option<bool>,
}

/// Compare only the process id, because the other fields are just additional information for
/// messages.
impl PartialEq for Process {
    fn eq(&self, other: &Process) -> bool {
        self.pid == other.pid
    }
}

impl Eq for Process {}

impl Server {
    /// Looks up the process in the contents of a directory's `postmaster.pid`.
    pub(super) fn from_bytes(directory: &Path, bytes: &[u8]) -> Server {
        let line = bytes.split(|&b| b == b'\n').next().unwrap_or_default();
        // A stand-alone backend (`postgres --single`) writes its process id as a negative number.
        let number =
            std::str::from_utf8(line).ok().and_then(|text| text.trim().parse::<i32>().ok());
        match number.map(i32::unsigned_abs) {
            None | Some(0) => Server::Unclear,
            Some(pid) if pid != std::process::id() && pid != parent_id() && is_alive(pid) => {
                Server::Running(Process::examine(pid, directory))
            }
            Some(pid) => Server::Stale(Process { pid, program: None, at_home: None }),
        }
    }

    /// The same for a directory that may be a copy: a process that works in another directory is not
    /// its server.
    pub(super) fn of_copy(self) -> Server {
        match self {
            Server::Running(process) if process.at_home == Some(false) => {
                Server::Elsewhere(process)
            }
            server => server,
        }
    }

    /// Whether we must assume that a server is running.
    pub fn is_running(&self) -> bool {
        matches!(self, Server::Running(_) | Server::Unclear)
    }

    /// The process in the file.
    pub fn process(&self) -> Option<&Process> {
        match self {
            Server::Stale(process) | Server::Running(process) | Server::Elsewhere(process) => {
                Some(process)
            }
            Server::None | Server::Unclear => None,
        }
    }
}

impl Process {
    fn examine(pid: u32, directory: &Path) -> Process {
        let comm = fs::read(format!("/proc/{pid}/comm")).ok();
        let program =
            comm.map(|bytes| String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned().into());
        // Paths may differ between mount namespaces.
        let identity = |path: &Path| fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
        let cwd = identity(Path::new(&format!("/proc/{pid}/cwd")));
        let at_home = cwd.zip(identity(directory)).map(|(cwd, home)| cwd == home);
        Process { pid, program, at_home }
    }

    /// For messages: whether the process works in another directory.
    fn elsewhere(&self) -> &'static str {
        match self.at_home {
            Some(false) => " and works in another directory",
            _ => "",
        }
    }

    /// Whether the process may well be something other than a server of this directory: its program
    /// has another name, or it works in another directory.
    pub(super) fn is_doubtful(&self) -> bool {
        let is_server = |name: &OsString| name == "postgres" || name == "postmaster";
        self.at_home == Some(false) || self.program.as_ref().is_some_and(|it| !is_server(it))
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        match &self.program {
            Some(program) => write!(f, " ({})", program.to_string_lossy()),
            None => Ok(()),
        }
    }
}

/// Checks whether a process exists by sending it signal 0 with kill(2). If we get `EPERM`, the
/// process exists but belongs to another user; only `ESRCH` means that it doesn't exist. PostgreSQL
/// treats `EPERM` as a stale file, because a competing server would be running as the same user. We
/// can't do that, because we may be running as a different user than the server.
///
/// A zombie exists, but isn't alive. If we can't read its state, we assume that it's alive.
fn is_alive(pid: u32) -> bool {
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    let exists = !matches!(test_kill_process(raw), Err(Errno::SRCH));
    exists && !fs::read(format!("/proc/{pid}/stat")).is_ok_and(|stat| has_ended(&stat))
}

/// Whether a process has ended according to its `/proc/PID/stat`: it is a zombie (`Z`) or dead (`X`), and
/// all of its threads are. The first thread of a program can end before the others, which may still write.
fn has_ended(stat: &[u8]) -> bool {
    // The second field is the program's name in parentheses, which can contain anything.
    let Some(name_end) = stat.iter().rposition(|&byte| byte == b')') else { return false };
    let mut fields =
        stat.get(name_end + 1..).unwrap_or_default().split(u8::is_ascii_whitespace).skip(1);
    let state = fields.next();
    // The state is field 3 of proc_pid_stat(5), and the number of threads is field 20.
    let threads = fields.nth(20 - 4);
    matches!(state, Some(b"Z" | b"X")) && matches!(threads, Some(b"0" | b"1"))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::{WaitId, WaitIdOptions, waitid};

    use super::*;

    fn check(content: &str, expected: &str) {
        let server = Server::from_bytes(Path::new("/nowhere"), content.as_bytes());
        assert_eq!(server.to_string(), expected, "{content:?}");
    }

    #[test]
    fn contents() {
        check("", "postmaster.pid contains no process id");
        check("x\n", "postmaster.pid contains no process id");
        check("0\n", "postmaster.pid contains no process id");
        check("99999999999\n", "postmaster.pid contains no process id");
        check("\u{0}\u{0}", "postmaster.pid contains no process id");
        // Larger than the kernel's largest process id.
        check("2147483647\n/data\n", "postmaster.pid names process 2147483647, which is gone");
        check("-2147483647", "postmaster.pid names process 2147483647, which is gone");
        check("-2147483648", "postmaster.pid names process 2147483648, which is gone");
    }

    #[test]
    fn this_process_and_its_parent_are_not_servers() {
        for pid in [std::process::id(), parent_id()] {
            let server = Server::from_bytes(Path::new("/"), format!("{pid}\n").as_bytes());
            assert!(!server.is_running(), "{server}");
        }
    }

    #[test]
    fn a_copy_has_no_server_if_the_process_works_elsewhere() {
        let process = |at_home| Process { pid: 5, program: None, at_home };
        assert!(Server::Running(process(Some(true))).of_copy().is_running());
        assert!(Server::Running(process(None)).of_copy().is_running());
        let elsewhere = Server::Running(process(Some(false))).of_copy();
        assert!(!elsewhere.is_running());
        let text = "postmaster.pid names process 5, which works in another directory";
        assert_eq!(elsewhere.to_string(), text);
    }

    #[test]
    fn the_first_process_is_alive() {
        let server = Server::from_bytes(Path::new("/nowhere"), b"1\n/data\n1700000000\n");
        assert!(server.is_running(), "{server}");
    }

    #[test]
    fn a_zombie_is_gone() {
        // It ends when its input does.
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("started");
        let line = format!("{}\n/data\n", child.id());
        let server = || Server::from_bytes(Path::new("/nowhere"), line.as_bytes());
        assert!(server().is_running(), "{}", server());
        drop(child.stdin.take());
        // Waits for its end, and leaves it a zombie.
        let id = WaitId::Pid(Pid::from_child(&child));
        waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("waited");
        let found = server();
        child.wait().expect("reaped");
        assert!(matches!(found, Server::Stale(_)), "{found}");
    }

    #[test]
    fn states_of_processes() {
        let stat = |name: &str, state: &str, threads: u32| {
            let zeros = "0 ".repeat(16);
            has_ended(format!("77 ({name}) {state} {zeros}{threads} 0 5671457\n").as_bytes())
        };
        for state in ["R", "S", "D", "T", "t", "I"] {
            assert!(!stat("postgres", state, 1), "{state}");
        }
        assert!(stat("postgres", "Z", 1) && stat("postgres", "X", 0));
        // Another thread of the program is still alive.
        assert!(!stat("trunkline", "Z", 2) && !stat("trunkline", "Z", 12));
        assert!(stat("a) S (b", "Z", 1) && !stat(") Z 0 (", "S", 1));
        for odd in ["", "77", "77 (postgres)", "77 (postgres) Z", "77 postgres Z 0"] {
            assert!(!has_ended(odd.as_bytes()), "{odd}");
        }
    }
}
