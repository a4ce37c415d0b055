//! What this process runs on: the kernel, a container, a seccomp filter, and the sysctl of io_uring.
//!
//! These facts explain failures, but they don't decide anything: a check first tries what it is
//! about. A sysctl may say one thing while the kernel does another, for example because its file is
//! hidden by a container.

use std::fs;
use std::path::Path;

/// Bit of `CapEff` in `/proc/PID/status`.
const CAP_IPC_LOCK: u32 = 14;

/// The host as this process sees it.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    /// `uname -r`.
    pub(crate) release: String,
    /// Major and minor version of the kernel.
    pub(crate) kernel: (u32, u32),
    /// The container's runtime, if there are marks of one.
    pub(crate) container: Option<&'static str>,
    /// `kernel.io_uring_group`; -1 if no group is set.
    pub(crate) uring_group: Option<i64>,
    /// Number of processors that this process may use.
    pub(crate) processors: usize,
}

impl Host {
    pub(crate) fn read() -> Host {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        Host {
            kernel: version(&release),
            release,
            container: container(Path::new("/")),
            uring_group: number("/proc/sys/kernel/io_uring_group"),
            processors: trunkline_aio::facade::thread::available_parallelism(),
        }
    }

    /// Whether the kernel has at least this version.
    pub(crate) fn has(&self, version: (u32, u32)) -> bool {
        self.kernel >= version
    }

    /// Whether the kernel charges the memory of rings to `RLIMIT_MEMLOCK`. It did so before Linux
    /// 5.12 (seastar#1436), and does so again since 6.14 (zulip#39449).
    pub(crate) fn charges_rings(&self) -> bool {
        !self.has((5, 12)) || self.has((6, 14))
    }

    /// How to run the server with a seccomp profile that allows io_uring.
    pub(crate) fn seccomp_fix(&self) -> String {
        let calls = "io_uring_setup, io_uring_enter and io_uring_register";
        match self.container {
            Some(runtime @ ("docker" | "podman")) => format!(
                "{runtime} run --security-opt seccomp=PROFILE with a profile that allows {calls}"
            ),
            Some("kubernetes") => format!(
                "set securityContext.seccompProfile to a Localhost profile that allows {calls}"
            ),
            Some("systemd-nspawn") => "systemd-nspawn --system-call-filter=@aio".to_owned(),
            _ => format!(
                "allow {calls} in the seccomp profile, or @aio in SystemCallFilter= of the systemd unit"
            ),
        }
    }
}

/// What `/proc/self` says about privileges.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Privileges {
    /// A seccomp filter is installed.
    pub(crate) seccomp: bool,
    /// `RLIMIT_MEMLOCK` doesn't apply (`CAP_IPC_LOCK`).
    pub(crate) locks_memory: bool,
}

impl Privileges {
    /// Those of this process.
    pub(crate) fn own() -> Privileges {
        let read = |name: &str| fs::read_to_string(name).unwrap_or_default();
        Privileges::parse(&read("/proc/self/status"), &read("/proc/self/uid_map"))
    }

    /// io_uring asks for `CAP_IPC_LOCK` in the initial user namespace. In any other one, a process
    /// may have the capability without its effect.
    fn parse(status: &str, uid_map: &str) -> Privileges {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.unwrap_or_default().trim()
        };
        let capabilities = u64::from_str_radix(field("CapEff"), 16).unwrap_or(0);
        let is_initial = uid_map.split_whitespace().eq(["0", "0", "4294967295"]);
        Privileges {
            seccomp: field("Seccomp") == "2",
            locks_memory: is_initial && capabilities >> CAP_IPC_LOCK & 1 == 1,
        }
    }
}

fn version(release: &str) -> (u32, u32) {
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse());
    let mut next = || parts.next().and_then(Result::ok).unwrap_or(0);
    (next(), next())
}

fn number<T: std::str::FromStr>(path: &str) -> Option<T> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Looks for the marks that runtimes leave in a container.
fn container(root: &Path) -> Option<&'static str> {
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let exists = |path: &str| root.join(path).exists();
    let group = text("proc/self/cgroup");
    let host_name = host_name_source(&text("proc/self/mountinfo"));
    let manager = text("run/systemd/container");
    let is_docker = ["/docker/", "/docker-"].iter().any(|mark| group.contains(mark));
    let marks = [
        ("podman", exists("run/.containerenv") || group.contains("/libpod-")),
        ("kubernetes", exists("var/run/secrets/kubernetes.io") || group.contains("/kubepods")),
        ("docker", exists(".dockerenv") || is_docker || host_name.contains("/docker/containers/")),
        ("lxc", manager.trim() == "lxc" || group.contains("/lxc/")),
        ("systemd-nspawn", manager.trim() == "systemd-nspawn"),
    ];
    marks.into_iter().find(|(_, is_marked)| *is_marked).map(|(name, _)| name)
}

/// Which file of the host is mounted as `/etc/hostname`; empty if none is. Runtimes mount one of their
/// own. The other mounts say nothing: a host that runs containers has theirs in its list, too.
fn host_name_source(mounts: &str) -> String {
    let fields = mounts.lines().map(|line| line.split(' ').skip(3));
    let sources = fields.filter_map(|mut fields| Some((fields.next()?, fields.next()?)));
    let mut found = sources.filter(|(_, path)| *path == "/etc/hostname");
    found.next_back().map(|(source, _)| source.to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_distributions_are_parsed() {
        for (release, expected) in [
            ("6.18.44-fc-v782", (6, 18)),
            ("5.15.0-91-generic", (5, 15)),
            ("4.18.0-553.el8_10.x86_64", (4, 18)),
            ("7.0-rc1", (7, 0)),
            ("", (0, 0)),
        ] {
            assert_eq!(version(release), expected, "{release}");
        }
    }

    #[test]
    fn containers_are_known_by_their_marks() {
        for (file, text, expected) in [
            (".dockerenv", "", Some("docker")),
            ("run/.containerenv", "engine=\"podman\"", Some("podman")),
            ("proc/self/cgroup", "0::/kubepods/burstable/pod1\n", Some("kubernetes")),
            ("run/systemd/container", "lxc\n", Some("lxc")),
            ("run/systemd/container", "systemd-nspawn\n", Some("systemd-nspawn")),
            ("etc/hostname", "docker", None),
            ("proc/self/cgroup", "0::/system.slice/docker-1f.scope\n", Some("docker")),
            ("proc/self/cgroup", "0::/system.slice/docker.service\n", None),
            // In a container, and on the host that runs it.
            (
                "proc/self/mountinfo",
                "9 8 8:1 /var/lib/docker/containers/1f/hostname /etc/hostname rw - ext4 /dev/sda rw\n",
                Some("docker"),
            ),
            (
                "proc/self/mountinfo",
                "9 8 0:5 / /var/lib/docker/overlay2/1f/merged rw - overlay overlay rw\n\
                 10 8 0:6 net:[4026532] /run/docker/netns/1f rw - nsfs nsfs rw\n\
                 11 8 0:7 /lxc/a /sys/fs/cgroup/lxc rw - cgroup2 cgroup2 rw\n",
                None,
            ),
        ] {
            let root = tempfile::tempdir().expect("a directory");
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(&path, text).expect("written");
            assert_eq!(container(root.path()), expected, "{file}");
        }
    }

    #[test]
    fn privileges_are_read_from_the_status() {
        let status = "Name:\tx\nCapEff:\t0000000000004000\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        let initial = "         0          0 4294967295\n";
        let found = Privileges::parse(status, initial);
        assert!(found.seccomp && found.locks_memory);
        let found = Privileges::parse("CapEff:\t0000000000200000\nSeccomp:\t0\n", initial);
        assert!(!found.seccomp && !found.locks_memory);
        // A user namespace with a single user, and one of a rootless container.
        for map in ["0 1000 1\n", "0 1000 1\n1 100000 65536\n", ""] {
            assert!(!Privileges::parse(status, map).locks_memory, "{map}");
        }
    }
}
