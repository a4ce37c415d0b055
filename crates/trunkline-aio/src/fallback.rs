//! Why a way of doing I/O is not to be had, in words that end in a fix.
//!
//! Whoever adopts io_uring meets the same start-up errors: a sysctl, a container's seccomp profile,
//! the locked-memory limit, the descriptor limit, an old kernel. None of them is a reason to stop;
//! each is recognised, explained in one line with its fix, and answered by the next best way.

use std::fmt;

/// What was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// io_uring itself; the worker method stands in.
    IoUring,
    /// The registration of the page region with the ring; io_uring works without.
    Registration,
    /// Worker threads; every I/O is executed by its issuer.
    Workers,
    /// A method of the embedder's own, which was not given; the worker method stands in.
    Custom,
}

/// The cause, recognised from the errno and from what the system says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// `kernel.io_uring_disabled` is 1 or 2.
    Sysctl(u8),
    /// A seccomp filter forbids the system call.
    Seccomp,
    /// The kernel has no io_uring, or not what we need of it.
    Kernel,
    /// `RLIMIT_MEMLOCK`, in bytes.
    LockedMemory(u64),
    /// `RLIMIT_NOFILE`.
    Descriptors(u64),
    /// The limits of processes and threads (`RLIMIT_NPROC`, the cgroup's `pids.max`).
    Threads,
    /// No permission, for a reason not recognised.
    Permission,
    /// Anything else.
    Other,
}

/// One step down, with its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback {
    /// What was given up.
    pub feature: Feature,
    /// Why.
    pub cause: Cause,
    /// What the system call said.
    pub errno: i32,
}

impl Fallback {
    /// Recognises the cause of `errno` from a system call that is about `feature`.
    pub fn recognise(feature: Feature, errno: i32) -> Self {
        Self { feature, cause: recognise(feature, errno, &Surroundings::look()), errno }
    }

    /// One line of advice.
    pub fn fix(&self) -> String {
        match self.cause {
            Cause::Sysctl(1) => "run as a member of the group in kernel.io_uring_group, or set \
                 kernel.io_uring_disabled = 0"
                .into(),
            Cause::Sysctl(_) => "sysctl -w kernel.io_uring_disabled=0".into(),
            Cause::Seccomp => "allow io_uring_setup, io_uring_enter and io_uring_register in the \
                 container's seccomp profile"
                .into(),
            Cause::Kernel => "use Linux 5.15 or newer".into(),
            Cause::LockedMemory(_) => {
                "raise the limit: ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit".into()
            }
            Cause::Descriptors(_) => "raise the limit: ulimit -n 4096".into(),
            Cause::Threads => "raise the limits: ulimit -u, and pids.max of the cgroup".into(),
            Cause::Permission => "see the security policy of this host".into(),
            Cause::Other => "none known".into(),
        }
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.feature {
            Feature::IoUring => "io_uring is not available, using worker",
            Feature::Registration => "io_uring works without registered memory",
            Feature::Workers => "no worker threads, using sync",
            Feature::Custom => "no method of the embedder's own was given, using worker",
        };
        let error = std::io::Error::from_raw_os_error(self.errno);
        write!(f, "{what}: ")?;
        match self.cause {
            Cause::Sysctl(value) => write!(f, "the sysctl kernel.io_uring_disabled is {value}"),
            Cause::Seccomp => write!(f, "a seccomp filter forbids it ({error})"),
            Cause::Kernel => write!(f, "the kernel does not have it ({error})"),
            Cause::LockedMemory(bytes) => {
                write!(f, "the limit of locked memory is {} kB ({error})", bytes / 1024)
            }
            Cause::Descriptors(count) => write!(f, "the limit of open files is {count} ({error})"),
            Cause::Threads => write!(f, "the limit of threads is reached ({error})"),
            Cause::Permission | Cause::Other => write!(f, "{error}"),
        }
    }
}

/// What the system says about itself.
#[derive(Debug, Clone, Copy)]
struct Surroundings {
    disabled: u8,
    seccomp: bool,
    locked_memory: Option<u64>,
    descriptors: u64,
}

impl Surroundings {
    fn look() -> Self {
        use rustix::process::{Resource, getrlimit};
        let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let seccomp = status
            .lines()
            .find_map(|line| line.strip_prefix("Seccomp:"))
            .is_some_and(|mode| mode.trim() == "2");
        Self {
            disabled: disabled.and_then(|text| text.trim().parse().ok()).unwrap_or(0),
            seccomp,
            locked_memory: getrlimit(Resource::Memlock).current,
            descriptors: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        }
    }
}

fn recognise(feature: Feature, errno: i32, around: &Surroundings) -> Cause {
    match errno {
        libc::EPERM | libc::EACCES if feature == Feature::IoUring && around.disabled != 0 => {
            Cause::Sysctl(around.disabled)
        }
        // A filter answers with whatever errno its author chose; these two are the usual ones.
        libc::EPERM | libc::ENOSYS | libc::EACCES if around.seccomp => Cause::Seccomp,
        libc::EPERM | libc::EACCES => Cause::Permission,
        libc::ENOSYS | libc::EOPNOTSUPP => Cause::Kernel,
        libc::EINVAL if feature == Feature::IoUring => Cause::Kernel,
        libc::EAGAIN if feature == Feature::Workers => Cause::Threads,
        libc::EMFILE | libc::ENFILE => Cause::Descriptors(around.descriptors),
        libc::ENOMEM => around.locked_memory.map_or(Cause::Other, Cause::LockedMemory),
        _ => Cause::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Surroundings =
        Surroundings { disabled: 0, seccomp: false, locked_memory: None, descriptors: 1024 };

    #[test]
    fn each_reason_is_recognised() {
        let sysctl = Surroundings { disabled: 2, ..FREE };
        let seccomp = Surroundings { seccomp: true, ..FREE };
        let memlock = Surroundings { locked_memory: Some(65536), ..FREE };
        for (errno, around, cause) in [
            (libc::EPERM, sysctl, Cause::Sysctl(2)),
            (libc::EPERM, seccomp, Cause::Seccomp),
            (libc::ENOSYS, seccomp, Cause::Seccomp),
            (libc::EPERM, FREE, Cause::Permission),
            (libc::ENOSYS, FREE, Cause::Kernel),
            (libc::EINVAL, FREE, Cause::Kernel),
            (libc::EMFILE, FREE, Cause::Descriptors(1024)),
            (libc::ENOMEM, memlock, Cause::LockedMemory(65536)),
            (libc::EIO, FREE, Cause::Other),
        ] {
            assert_eq!(recognise(Feature::IoUring, errno, &around), cause, "errno {errno}");
        }
    }

    #[test]
    fn the_text_has_a_reason_and_a_fix() {
        let note =
            Fallback { feature: Feature::IoUring, cause: Cause::Sysctl(2), errno: libc::EPERM };
        assert_eq!(
            note.to_string(),
            "io_uring is not available, using worker: the sysctl kernel.io_uring_disabled is 2"
        );
        assert_eq!(note.fix(), "sysctl -w kernel.io_uring_disabled=0");
    }
}
