//! **Cluster** of the crash soak: a server that is started, killed and started again, with copies of its files.
//!
//! ```text
//! home/  data/            the cluster
//!        space/           its tablespace
//!        round.conf       settings of this round
//!        archive/         finished segments, while there are backups
//!        copy/            data/ and space/ after the server was killed
//!        sessions/        scripts and what psql printed
//! ```
//! A server may be in another root directory, such as one that debootstrap made. Its programs then run under
//! `chroot`. The home is in the temporary directory of that root, and a symbolic link leads there under the
//! name that the server knows, so that all paths are the same for both.

use std::fs;
use std::path::{Path, PathBuf};

use super::random::Random;
use crate::failure::Failure;
use crate::fixtures::Account;
use crate::invocation::{Invocation, Outcome};

/// Settings of every round. Locks are short, because sessions must not wait for each other until the end.
const SETTINGS: &str = "
listen_addresses = ''
fsync = off
max_connections = 30
max_prepared_transactions = 20
max_locks_per_transaction = 200
shared_buffers = '16MB'
lock_timeout = '300ms'
deadlock_timeout = '100ms'
statement_timeout = '20s'
log_min_messages = log
timezone = 'UTC'
max_wal_size = '400MB'
";

/// Where the server's programs run.
enum Host {
    Here(Account),
    /// In this root directory.
    Root(PathBuf),
}

/// A server and its directories.
pub(super) struct Cluster {
    host: Host,
    bin: PathBuf,
    psql: String,
    pub(super) home: PathBuf,
    /// Where the home is, if the name is a symbolic link.
    place: Option<PathBuf>,
    running: bool,
}

impl Cluster {
    /// Creates a cluster for the server in `bin`, which is `DIR` or `ROOT:DIR`.
    pub(super) fn create(bin: &str, name: &str, random: &mut Random) -> Result<Self, Failure> {
        let home = std::env::temp_dir().join(name);
        let (root, bin) = match bin.split_once(':') {
            Some((root, bin)) => (Some(Path::new(root)), bin),
            None => (None, bin),
        };
        let inside = |root: &Path| match home.strip_prefix("/") {
            Ok(path) => root.join(path),
            Err(_) => home.clone(),
        };
        let place = root.map(inside);
        let real = place.as_deref().unwrap_or(&home);
        fs::create_dir(real).map_err(|error| Failure::io(real.display(), error))?;
        let host = match root {
            None => Host::Here(Account::own(&home)?),
            Some(root) => {
                std::os::unix::fs::symlink(real, &home)
                    .map_err(|error| Failure::io(home.display(), error))?;
                let own = Invocation::new(Path::new("/"), "chroot", "").arg(root);
                succeed(&own.arg("chown").arg("postgres").arg(&home))?;
                Host::Root(root.to_owned())
            }
        };
        let bin = PathBuf::from(bin);
        let mut cluster = Self { host, psql: "psql".to_owned(), bin, home, place, running: false };
        let own = cluster.program("psql");
        if cluster.shell(&format!("test -x {own}"))?.success() {
            cluster.psql = own;
        }
        let segment = random.pick(&["1", "1", "4", "16"]);
        let checksums = random.pick(&["", "--data-checksums"]);
        cluster.run(&format!(
            "mkdir space sessions archive && {} -D data -U postgres -E UTF8 --no-locale --no-sync \
             --wal-segsize={segment} {checksums} && echo \"include '$PWD/round.conf'\" >>data/postgresql.conf",
            cluster.program("initdb"),
        ))?;
        Ok(cluster)
    }

    /// The path of one of the server's programs.
    pub(super) fn program(&self, name: &str) -> String {
        self.bin.join(name).display().to_string()
    }

    /// The server's version.
    pub(super) fn version(&self) -> Result<String, Failure> {
        let version = self.run(&format!("{} --version", self.program("postgres")))?;
        Ok(version.trim().trim_start_matches("postgres (PostgreSQL) ").to_owned())
    }

    /// Does the server have this program?
    pub(super) fn has(&self, name: &str) -> bool {
        let test = self.shell(&format!("test -x {}", self.program(name)));
        test.is_ok_and(|outcome| outcome.success())
    }

    /// A shell script in the home, as the server's user.
    pub(super) fn invocation(&self, script: &str) -> Invocation {
        let script = format!("cd {} && export LC_ALL=C PGTZ=UTC; {script}", self.home.display());
        match &self.host {
            Host::Here(account) => account.shell(Path::new("/"), &script),
            Host::Root(root) => {
                let call =
                    Invocation::new(Path::new("/"), "chroot", "--userspec=postgres").arg(root);
                call.arg("bash").arg("-c").arg(&script)
            }
        }
    }

    /// Runs a script that may fail.
    pub(super) fn shell(&self, script: &str) -> Result<Outcome, Failure> {
        self.invocation(script).capture()
    }

    /// Runs a script that must not fail, and returns what it prints.
    pub(super) fn run(&self, script: &str) -> Result<String, Failure> {
        let outcome = self.shell(script)?;
        if outcome.success() {
            return Ok(outcome.text);
        }
        let line: String = script.lines().next().unwrap_or("").chars().take(120).collect();
        Err(Failure::new(format!("{line}: {}", last_lines(&outcome))))
    }

    /// A command that opens a session with the server of the directory with this socket.
    pub(super) fn psql(&self, database: &str) -> String {
        let home = self.home.display();
        format!("{} -X -q -A -t -h {home} -U postgres -d {database} -v ON_ERROR_STOP=1", self.psql)
    }

    /// Executes statements and returns what psql prints. The text must not contain `EOF` as a line.
    pub(super) fn sql(&self, database: &str, sql: &str) -> Result<String, Failure> {
        self.run(&format!("{} <<'EOF'\n{sql}\nEOF\n", self.psql(database)))
    }

    /// Starts the server of one of the directories in the home. Returns which files had to be removed for that.
    ///
    /// Servers have a race: a transaction creates an unlogged table and aborts, and its init fork is removed before
    /// its abort record is durable. After a crash in between, recovery creates the init fork again, and fails because
    /// the empty main fork exists. The table is that of an aborted transaction, so we remove the file.
    pub(super) fn start(&mut self, data: &str, settings: &str) -> Result<Vec<String>, Failure> {
        let text =
            format!("{SETTINGS}unix_socket_directories = '{}'\n{settings}", self.home.display());
        let conf = self.home.join("round.conf");
        fs::write(&conf, text).map_err(|error| Failure::io(conf.display(), error))?;
        let start = format!(
            "{} -D {data} -w -t 300 -l log start </dev/null >start 2>&1",
            self.program("pg_ctl")
        );
        let mut removed = Vec::new();
        loop {
            self.running = true;
            if self.shell(&format!("rm -f log; {start}"))?.success() {
                return Ok(removed);
            }
            let log = self.shell("cat log")?.text;
            match unremoved(&log).map(|name| (self.home.join(data).join(name), name)) {
                Some((path, name)) if fs::metadata(&path).is_ok_and(|file| file.len() == 0) => {
                    fs::remove_file(&path).map_err(|error| Failure::io(path.display(), error))?;
                    removed.push(name.to_owned());
                }
                _ => {
                    let log: Vec<&str> = log.lines().collect();
                    let log = log[log.len().saturating_sub(12)..].join(" / ");
                    return Err(Failure::new(format!(
                        "the server of {data} does not start: {log}"
                    )));
                }
            }
        }
    }

    /// Shuts the server down, in one of the modes of `pg_ctl`.
    pub(super) fn stop(&mut self, data: &str, mode: &str) -> Result<(), Failure> {
        let stop = format!("{} -D {data} -w -t 300 -m {mode} stop", self.program("pg_ctl"));
        self.run(&stop)?;
        self.running = false;
        Ok(())
    }

    /// Kills the postmaster and its children, and waits until they are gone.
    pub(super) fn kill(&mut self) -> Result<(), Failure> {
        let file = self.home.join("data/postmaster.pid");
        let text = fs::read_to_string(&file).map_err(|error| Failure::io(file.display(), error))?;
        let postmaster: u32 = (text.lines().next().and_then(|line| line.trim().parse().ok()))
            .ok_or_else(|| Failure::new(format!("{}: no process", file.display())))?;
        signal("STOP", &[postmaster])?;
        let mut all = vec![postmaster];
        all.extend(
            processes().into_iter().filter(|one| one.parent == postmaster).map(|one| one.id),
        );
        // The postmaster is the first, so no child is replaced.
        signal("KILL", &all)?;
        let remain = |zombies: bool| {
            let found = processes();
            found.iter().any(|one| all.contains(&one.id) && (zombies || !one.is_zombie))
        };
        while remain(false) {
            self.run("sleep 0.01")?;
        }
        // A new server takes a zombie for the old one. Their parent may be slow to collect them, but not longer
        // than our copy of the directory, which still has the file, takes.
        for _ in 0..20 {
            if !remain(true) {
                break;
            }
            self.run("sleep 0.05")?;
        }
        self.running = false;
        Ok(())
    }

    /// Copies `data` and `space` to a new directory `name`. The copied link leads to the copied tablespace.
    pub(super) fn copy_to(&self, name: &str) -> Result<(), Failure> {
        self.run(&format!("rm -rf {name} && mkdir {name} && cp -a data space {name}/"))?;
        self.relink(name)
    }

    /// Makes the links of the directory `name/data` lead to `name/space`.
    pub(super) fn relink(&self, name: &str) -> Result<(), Failure> {
        let home = self.home.display();
        self.run(&format!(
            "for link in {name}/data/pg_tblspc/*; do if test -L $link; then ln -sfn {home}/{name}/space $link; \
             fi; done"
        ))?;
        Ok(())
    }

    /// Names, sizes, times and contents of all files of a directory in the home.
    pub(super) fn fingerprint(&self, name: &str) -> Result<String, Failure> {
        self.run(&format!(
            "cd {name} && {{ find . -printf '%p %y %s %T@ %m %l\\n' | sort; find . -type f -print0 | sort -z | \
             xargs -0 sha256sum; }} | sha256sum"
        ))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.running {
            // The server of the cluster, or one of a backup: the directory has a file with its process.
            let stop = "for data in data restored/data; do test -f $data/postmaster.pid && ";
            let _ = self.shell(&format!(
                "{stop} {} -D $data -m immediate stop; done",
                self.program("pg_ctl")
            ));
        }
        let _ = fs::remove_dir_all(self.place.as_deref().unwrap_or(&self.home));
        if self.place.is_some() {
            let _ = fs::remove_file(&self.home);
        }
    }
}

/// Runs a command that must not fail, and returns its output.
pub(super) fn succeed(command: &Invocation) -> Result<String, Failure> {
    let outcome = command.capture()?;
    if outcome.success() {
        return Ok(outcome.text);
    }
    Err(Failure::new(format!("{command}: {}", last_lines(&outcome))))
}

/// The end of what a program printed.
pub(super) fn last_lines(outcome: &Outcome) -> String {
    let lines: Vec<&str> = outcome.text.lines().collect();
    lines[lines.len().saturating_sub(4)..].join(" / ")
}

/// The file that recovery could not create because it exists.
fn unremoved(log: &str) -> Option<&str> {
    let line = log.lines().find(|line| line.ends_with("\": File exists"))?;
    line.split("could not create file \"").nth(1)?.split('"').next()
}

/// A process of this machine.
struct Process {
    id: u32,
    parent: u32,
    is_zombie: bool,
}

/// All processes that can be examined.
fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    texts.filter_map(|text| process(&text)).collect()
}

/// Reads `/proc/PID/stat`. The name may contain spaces and parentheses.
fn process(text: &str) -> Option<Process> {
    let (head, tail) = text.rsplit_once(") ")?;
    let mut tail = tail.split(' ');
    let state = tail.next()?;
    let id = head.split(' ').next()?.parse().ok()?;
    Some(Process { id, parent: tail.next()?.parse().ok()?, is_zombie: state == "Z" })
}

fn signal(name: &str, processes: &[u32]) -> Result<(), Failure> {
    let list: Vec<String> = processes.iter().map(u32::to_string).collect();
    // A child that has ended by itself is no failure.
    Invocation::new(Path::new("/"), "kill", &format!("-{name} {}", list.join(" "))).capture()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_that_stops_recovery_is_found() {
        let log = "LOG:  redo done\nFATAL:  could not create file \"base/5/7\": File exists\n";
        assert_eq!(unremoved(log), Some("base/5/7"));
        assert_eq!(unremoved("FATAL:  other"), None);
    }

    #[test]
    fn processes_are_read_with_any_name() {
        let found = process("12 (a) b) c) S 7 12 12 0 -1").unwrap();
        assert_eq!((found.id, found.parent, found.is_zombie), (12, 7, false));
        assert!(process("12 (a) Z 7 12").unwrap().is_zombie && process("").is_none());
        let own = std::process::id();
        assert!(processes().iter().any(|one| one.id == own && !one.is_zombie));
    }
}
