//! Fallbacks: why an I/O method is unavailable, and how to fix it.
//!
//! Every project that adopts io_uring runs into the same start-up errors, caused by a sysctl, a
//! container's seccomp profile, the locked-memory limit, the descriptor limit, or an old kernel.
//! None of these is a good reason to refuse to start. Instead, we find out which of them it was,
//! record the problem and how to fix it, each as one line of text, and fall back to the next best
//! method.
//!
//! The errno alone doesn't tell us the cause. For example, EPERM can be caused by the sysctl or by
//! a seccomp filter. So we also look at the state of the system at the time of the failure.

use std::fmt;

/// What is unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// io_uring itself. The method falls back to `worker`.
    IoUring,
    /// Registering the page region with the ring. io_uring works without it.
    Registration,
    /// Worker threads. The method falls back to `sync`.
    Workers,
    /// A custom method was requested, but the embedder hasn't supplied one. The method falls back
    /// to `worker`.
    Custom,
}

/// The cause, recognised from the errno and the state of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// `kernel.io_uring_disabled` is 1 or 2.
    Sysctl(u8),
    /// A seccomp filter forbids the system call.
    Seccomp,
    /// The kernel does not have io_uring, or lacks a feature that is needed.
    Kernel,
    /// `RLIMIT_MEMLOCK`, in bytes.
    LockedMemory(u64),
    /// `RLIMIT_NOFILE`.
    Descriptors(u64),
    /// The process and thread limits (`RLIMIT_NPROC`, the cgroup's `pids.max`).
    Threads,
    /// No permission, for an unknown reason.
    Permission,
    /// Anything else.
    Other,
}

/// One fallback, with its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback {
    /// What is unavailable.
    pub feature: Feature,
    /// Why.
    pub cause: Cause,
    /// The errno of the system call.
    pub errno: i32,
}

impl Fallback {
    /// Determines why a system call that `feature` needs has failed with `errno`.
    pub fn recognise(feature: Feature, errno: i32) -> Self {
        Self { feature, cause: recognise(feature, errno, &SystemState::read()), errno }
    }

    /// How to fix it, in one line.
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
            Feature::Custom => "no custom method was supplied, using worker",
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

/// The system state that explains such errors. It's a separate type so that tests can supply it.
#[derive(Debug, Clone, Copy)]
struct SystemState {
    /// `kernel.io_uring_disabled`; 0 on kernels that do not have the sysctl.
    disabled: u8,
    /// Whether a seccomp filter is installed (mode 2 in `/proc/self/status`).
    seccomp: bool,
    /// `RLIMIT_MEMLOCK` in bytes; `None` if unlimited.
    locked_memory: Option<u64>,
    descriptors: u64,
}

impl SystemState {
    fn read() -> Self {
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

/// The rules, most specific first.
fn recognise(feature: Feature, errno: i32, system: &SystemState) -> Cause {
    match errno {
        libc::EPERM | libc::EACCES if feature == Feature::IoUring && system.disabled != 0 => {
            Cause::Sysctl(system.disabled)
        }
        // A filter's author chooses the errno it returns; these are the usual ones.
        libc::EPERM | libc::ENOSYS | libc::EACCES if system.seccomp => Cause::Seccomp,
        libc::EPERM | libc::EACCES => Cause::Permission,
        libc::ENOSYS | libc::EOPNOTSUPP => Cause::Kernel,
        libc::EINVAL if feature == Feature::IoUring => Cause::Kernel,
        // Before Linux 5.13, the table of registered buffers can't have empty places.
        libc::EFAULT if feature == Feature::Registration => Cause::Kernel,
        libc::EAGAIN if feature == Feature::Workers => Cause::Threads,
        libc::EMFILE | libc::ENFILE => Cause::Descriptors(system.descriptors),
        libc::ENOMEM => system.locked_memory.map_or(Cause::Other, Cause::LockedMemory),
        _ => Cause::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: SystemState =
        SystemState { disabled: 0, seccomp: false, locked_memory: None, descriptors: 1024 };

    #[test]
    fn each_cause_is_recognised() {
        let sysctl = SystemState { disabled: 2, ..FREE };
        let seccomp = SystemState { seccomp: true, ..FREE };
        let memlock = SystemState { locked_memory: Some(65536), ..FREE };
        for (errno, system, cause) in [
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
            assert_eq!(recognise(Feature::IoUring, errno, &system), cause, "errno {errno}");
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
