//! Known caveats of kernel versions, each with its source.
//!
//! Trying can't show these: a ring works, but fork is slow, or a limit applies that did not apply
//! before an upgrade.

use super::check::Check;
use super::host::Host;

/// A caveat of the kernels from `since`, and before `until`.
struct Caveat {
    since: (u32, u32),
    until: (u32, u32),
    name: &'static str,
    reason: &'static str,
    fix: &'static str,
}

const NEVER: (u32, u32) = (u32::MAX, 0);

const CAVEATS: [Caveat; 4] = [
    Caveat {
        since: (0, 0),
        until: (5, 12),
        name: "locked memory of rings",
        reason: "rings count against RLIMIT_MEMLOCK before Linux 5.12 (scylladb/seastar#1436)",
        fix: "LimitMEMLOCK=infinity in the systemd unit, or a newer kernel",
    },
    Caveat {
        since: (0, 0),
        until: (5, 15),
        name: "kernel threads of rings",
        reason: "before Linux 5.15, a hung mount can take all kernel threads of a ring (no \
                 IORING_REGISTER_IOWQ_MAX_WORKERS)",
        fix: "use Linux 5.15 or newer, or io_method = worker",
    },
    Caveat {
        since: (0, 0),
        until: (6, 5),
        name: "mappings of rings",
        reason: "before Linux 6.5, each ring of a server is mapped in every process, which makes \
                 connections slow to start and end with a large max_connections (PostgreSQL 18 \
                 combines the mappings with IORING_SETUP_NO_MMAP)",
        fix: "use Linux 6.5 or newer, or a small max_connections",
    },
    Caveat {
        since: (6, 14),
        until: NEVER,
        name: "locked memory of rings",
        reason: "rings count against RLIMIT_MEMLOCK since Linux 6.14, so a server can fail to start \
                 after a kernel upgrade (zulip/zulip#39449)",
        fix: "LimitMEMLOCK=256M or more in the systemd unit",
    },
];

/// The caveats of this kernel.
pub(crate) fn checks(host: &Host) -> Vec<Check> {
    let applies = |caveat: &&Caveat| host.has(caveat.since) && !host.has(caveat.until);
    let found = CAVEATS.iter().filter(applies);
    found.map(|it| Check::limited("kernel", it.name, it.reason, it.fix)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caveats_belong_to_versions() {
        for (kernel, expected) in
            [((5, 10), 3), ((5, 14), 2), ((6, 1), 1), ((6, 8), 0), ((6, 14), 1), ((7, 1), 1)]
        {
            let found = checks(&Host { kernel, ..Host::read() });
            assert_eq!(found.len(), expected, "{kernel:?}: {found:?}");
        }
    }
}
