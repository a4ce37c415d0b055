//! Checks of huge pages: whether enough are reserved for a server's shared memory, and whether the
//! kernel uses transparent ones.
//!
//! ```text
//!   0        shared_buffers          upper estimate
//!   ├─ missing ─┼── can't be decided ──┼─ good ─▶  pages that are free, or the running server's own
//! ```
//! Only the server knows how much shared memory it needs (`postgres -C
//! shared_memory_size_in_huge_pages`): it depends on settings and extensions that have nothing to do
//! with I/O. A running server's mapping shows it, too.

use std::fs;
use std::path::Path;

use super::check::Check;
use super::limits::AREA;
use super::server_settings::ServerSettings;
use crate::output::human_bytes;

const NAME: &str = "huge pages";
const BLOCK_BYTES: u64 = 8192;

/// Upper estimate of the shared memory beside the buffers, for each process, for each I/O that it may
/// have in flight, and once. Measured with PostgreSQL 18 and 19 (decision 0026): up to 100 kB for each
/// process with 64 I/Os, and 16 MB for the log's buffers.
const PROCESS_BYTES: u64 = 100 << 10;
const IO_BYTES: u64 = 640;
const OTHER_BYTES: u64 = 24 << 20;

/// The huge pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pool {
    size_kb: u64,
    /// Free pages that are not promised to a running program.
    free: u64,
    /// Pages that the kernel may still add when they are asked for.
    surplus: u64,
}

/// Huge pages: those that are reserved, and transparent ones. `pid` is the server that is running on the
/// directory, whose pages are free again at the next start. `is_configured` says whether the settings
/// are those of the cluster alone.
pub(crate) fn checks(
    settings: &ServerSettings,
    pid: Option<u32>,
    is_configured: bool,
) -> [Check; 2] {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let own = pid.and_then(|pid| fs::read_to_string(format!("/proc/{pid}/maps")).ok());
    let own = own.map_or(0, |maps| mapped_bytes(&maps));
    let pool = Pool::read(settings.huge_page_kb, &meminfo, Path::new("/sys/kernel/mm/hugepages"));
    let modes = Path::new("/sys/kernel/mm/transparent_hugepage");
    let enabled = fs::read_to_string(modes.join("enabled")).unwrap_or_default();
    [reserved(settings, pool, own, is_configured), transparent(&enabled)]
}

impl Pool {
    /// The pages of a size in kilobytes, or of the default size if it is 0. `None` if the kernel has none
    /// of this size.
    fn read(size_kb: u64, meminfo: &str, pools: &Path) -> Option<Pool> {
        let line = meminfo.lines().find_map(|line| line.strip_prefix("Hugepagesize:"));
        let default = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        let size_kb = if size_kb == 0 { default? } else { size_kb };
        let pool = pools.join(format!("hugepages-{size_kb}kB"));
        let number = |name: &str| -> Option<u64> {
            fs::read_to_string(pool.join(name)).ok()?.trim().parse().ok()
        };
        let free = number("free_hugepages")?.saturating_sub(number("resv_hugepages")?);
        let most = number("nr_overcommit_hugepages").unwrap_or(0);
        let surplus = most.saturating_sub(number("surplus_hugepages").unwrap_or(0));
        Some(Pool { size_kb, free, surplus })
    }
}

/// Huge pages that a process has mapped, or that were promised to it, in bytes. The lines begin with the
/// first address and the one after the last.
fn mapped_bytes(maps: &str) -> u64 {
    let lines = maps.lines().filter(|line| line.contains("/anon_hugepage"));
    let sizes = lines.filter_map(|line| {
        let (first, end) = line.split_whitespace().next()?.split_once('-')?;
        let address = |text: &str| u64::from_str_radix(text, 16).ok();
        address(end)?.checked_sub(address(first)?)
    });
    sizes.sum()
}

/// Whether the reserved huge pages hold the server's shared memory.
fn reserved(
    settings: &ServerSettings,
    pool: Option<Pool>,
    own_bytes: u64,
    is_configured: bool,
) -> Check {
    let Some(Pool { size_kb, free, surplus }) = pool.filter(|pool| pool.size_kb > 0) else {
        let size = match settings.huge_page_kb {
            0 => String::new(),
            size => format!(" of {size} kB (huge_page_size)"),
        };
        let reason = format!("the kernel has no huge pages{size}");
        let fix = "use a kernel with CONFIG_HUGETLBFS and this size, or huge_pages = off";
        return Check::missing(AREA, NAME, reason, fix);
    };
    let size = size_kb << 10;
    let buffers = u64::from(settings.buffers) * BLOCK_BYTES;
    // The server needs more than its buffers, so even if they fit exactly, it doesn't.
    let least = buffers / size + 1;
    let most = upper_estimate(settings, buffers).div_ceil(size);
    let own = own_bytes / size;
    let usable = free + own;
    let of_server = match own {
        0 => String::new(),
        own => format!(", {own} of them the running server's"),
    };
    let reason = format!(
        "{usable} of {size_kb} kB can be used{of_server}; shared_buffers, {}, needs {least}",
        human_bytes(buffers)
    );
    // It has as many as it needs, unless its settings were changed since it started.
    let is_running_with_them = is_configured && (least..=most).contains(&own);
    if usable >= most || is_running_with_them {
        return Check::good(AREA, NAME, reason);
    }
    let setting = match settings.huge_page_kb {
        0 => "sysctl -w vm.nr_hugepages=N".to_owned(),
        size => format!("echo N > /sys/kernel/mm/hugepages/hugepages-{size}kB/nr_hugepages"),
    };
    let fix = format!("{setting} with N from postgres -C shared_memory_size_in_huge_pages");
    if usable + surplus < least {
        return Check::missing(AREA, NAME, reason, fix);
    }
    let reason =
        format!("{reason} and the rest of shared memory more, which can't be decided here");
    Check::limited(AREA, NAME, reason, fix)
}

/// More shared memory than a server needs without extensions and with defaults of other settings.
fn upper_estimate(settings: &ServerSettings, buffers: u64) -> u64 {
    let ios = u64::from(settings.ring_entries()) * IO_BYTES;
    // A buffer has a descriptor, a place in the hash table and in the checkpoint's list.
    buffers + buffers / 32 + u64::from(settings.processes()) * (PROCESS_BYTES + ios) + OTHER_BYTES
}

fn transparent(enabled: &str) -> Check {
    let name = "transparent huge pages";
    let used = enabled.split(['[', ']']).nth(1).unwrap_or("not available");
    let reason = format!("{used}: trunkline's pool uses them, a server's shared memory doesn't");
    match used {
        "always" | "madvise" => Check::good(AREA, name, reason),
        _ => Check::limited(
            AREA,
            name,
            reason,
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::Status;
    use std::collections::BTreeMap;

    fn settings(given: &[(&str, &str)]) -> ServerSettings {
        let values: BTreeMap<String, String> =
            given.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        ServerSettings::new(18, &values, true)
    }

    #[test]
    fn huge_pages_must_hold_the_shared_memory() {
        // 128 MB are 64 of them. A server of 18 needs 75.
        for (free, surplus, own, status) in [
            (0, 0, 0, Status::Missing),
            (64, 0, 0, Status::Missing),
            (65, 0, 0, Status::Limited),
            (80, 0, 0, Status::Limited),
            (0, 80, 0, Status::Limited),
            (100, 0, 0, Status::Good),
            (20, 0, 80, Status::Good),
            // All of them are in use, by the server itself.
            (0, 0, 75, Status::Good),
            // One with smaller buffers.
            (0, 0, 30, Status::Missing),
        ] {
            let pool = Pool { size_kb: 2048, free, surplus };
            let check = reserved(&settings(&[]), Some(pool), own * (2 << 20), true);
            assert_eq!(check.status, status, "{free} {surplus} {own}: {check:?}");
        }
        let pool = Pool { size_kb: 2048, free: 0, surplus: 0 };
        // Other settings than those of the running server.
        let check = reserved(&settings(&[]), Some(pool), 75 * (2 << 20), false);
        assert_eq!(check.status, Status::Limited, "{check:?}");
        assert_eq!(reserved(&settings(&[]), None, 0, true).status, Status::Missing);
        let pool = Pool { size_kb: 1 << 20, free: 1, surplus: 0 };
        let large = settings(&[("huge_page_size", "1GB")]);
        assert_eq!(reserved(&large, Some(pool), 0, true).status, Status::Good);
    }

    /// The sizes that servers reported with `postgres -C shared_memory_size`, in megabytes.
    #[test]
    fn the_estimate_is_above_what_servers_need() {
        for (given, version_18, version_19) in [
            (&[][..], 151, 154),
            (&[("shared_buffers", "8MB")], 18, 21),
            (&[("shared_buffers", "1GB")], 1086, 1089),
            (&[("shared_buffers", "8GB")], 8443, 8446),
            (&[("max_connections", "1000")], 206, 226),
            (&[("max_connections", "20000")], 1118, 1047),
            (
                &[
                    ("max_connections", "5000"),
                    ("shared_buffers", "8GB"),
                    ("io_max_concurrency", "64"),
                ],
                8838,
                8934,
            ),
        ] {
            let settings = settings(given);
            let estimate =
                upper_estimate(&settings, u64::from(settings.buffers) * BLOCK_BYTES) >> 20;
            assert!(estimate >= version_18.max(version_19), "{given:?}: {estimate} MB");
        }
    }

    #[test]
    fn pages_of_each_size_are_counted() {
        let home = tempfile::tempdir().expect("a directory");
        for (size, numbers) in [("2048", ["90", "20", "7", "3"]), ("1048576", ["1", "0", "0", "0"])]
        {
            let pool = home.path().join(format!("hugepages-{size}kB"));
            fs::create_dir(&pool).expect("made");
            let names = ["free", "resv", "nr_overcommit", "surplus"];
            for (name, number) in names.iter().zip(numbers) {
                fs::write(pool.join(format!("{name}_hugepages")), number).expect("written");
            }
        }
        let read = |size| Pool::read(size, "Hugepagesize:       2048 kB\n", home.path());
        let usual = Pool { size_kb: 2048, free: 70, surplus: 4 };
        assert_eq!(read(0), Some(usual));
        assert_eq!(read(2048), Some(usual));
        assert_eq!(read(1 << 20), Some(Pool { size_kb: 1 << 20, free: 1, surplus: 0 }));
        assert_eq!(read(64), None);
        assert_eq!(Pool::read(0, "", home.path()), None);
    }

    #[test]
    fn the_mapping_of_a_server_is_found() {
        let maps = "7f0000000000-7f0009600000 rw-s 00000000 00:0f 4242  /anon_hugepage (deleted)\n\
                    7f0009600000-7f0009700000 rw-s 00000000 00:01 7  /dev/zero (deleted)\n";
        assert_eq!(mapped_bytes(maps), 75 * (2 << 20));
        assert_eq!(mapped_bytes(""), 0);
    }

    #[test]
    fn modes_of_transparent_huge_pages() {
        for (text, status) in [
            ("[always] madvise never", Status::Good),
            ("always [madvise] never", Status::Good),
            ("always madvise [never]", Status::Limited),
            ("", Status::Limited),
        ] {
            assert_eq!(transparent(text).status, status, "{text}");
        }
    }
}
