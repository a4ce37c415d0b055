//! Checks of limits: locked memory, open files, and huge pages.
//!
//! The limits are those of this process. A server that systemd starts has the limits of its unit
//! instead; if a server is running on the directory, we also read its limits from `/proc`.

use std::fs;
use std::path::Path;

use super::check::Check;
use super::host::Host;
use super::ring_probe::Answer;
use super::server_settings::ServerSettings;
use crate::output::human_bytes;

const AREA: &str = "limits";
const BLOCK_KB: u64 = 8;

/// Locked memory and open files of the user that tried io_uring.
pub(crate) fn checks(answer: &Answer, host: &Host) -> Vec<Check> {
    vec![memlock(answer, host), nofile(answer)]
}

fn memlock(answer: &Answer, host: &Host) -> Check {
    let name = "RLIMIT_MEMLOCK";
    let charged =
        if host.charges_rings() { "rings and registered memory" } else { "registered memory" };
    match answer.memlock {
        None => Check::good(AREA, name, "unlimited"),
        Some(limit) if answer.locks_memory => {
            let reason = format!("{} kB, which CAP_IPC_LOCK overrides", limit / 1024);
            Check::good(AREA, name, reason)
        }
        Some(limit) => {
            let reason = format!(
                "{} kB for {charged} of all processes of user {}",
                limit / 1024,
                answer.uid
            );
            let fix = "ulimit -l unlimited, or LimitMEMLOCK=infinity in the systemd unit";
            Check::limited(AREA, name, reason, fix)
        }
    }
}

fn nofile(answer: &Answer) -> Check {
    let name = "RLIMIT_NOFILE";
    match answer.nofile {
        None => Check::good(AREA, name, "unlimited"),
        // A backend may open max_files_per_process files, 1000 by default.
        Some(limit) if limit < 2048 => {
            let reason = format!("{limit} files, of which rings take one for each connection");
            Check::limited(
                AREA,
                name,
                reason,
                "ulimit -n 8192, or LimitNOFILE=8192 in the systemd unit",
            )
        }
        Some(limit) => Check::good(AREA, name, format!("{limit} files")),
    }
}

/// The limits of a running process, as the kernel prints them: locked memory and open files.
pub(crate) fn of_process(pid: u32) -> Option<(String, String)> {
    parse_limits(&fs::read_to_string(format!("/proc/{pid}/limits")).ok()?)
}

fn parse_limits(text: &str) -> Option<(String, String)> {
    let soft = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()).map(str::to_owned)
    };
    Some((soft("Max locked memory")?, soft("Max open files")?))
}

/// Huge pages: those that are reserved, and transparent ones.
pub(crate) fn huge_pages(settings: &ServerSettings) -> Vec<Check> {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let modes = Path::new("/sys/kernel/mm/transparent_hugepage");
    let read = |name: &str| fs::read_to_string(modes.join(name)).unwrap_or_default();
    vec![reserved(settings, &meminfo), transparent(&read("enabled"))]
}

/// Whether the reserved huge pages hold the server's shared memory. It is a little larger than
/// `shared_buffers`, so with too few for those, it is certain that they don't.
fn reserved(settings: &ServerSettings, meminfo: &str) -> Check {
    let name = "huge pages";
    let number = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
    };
    let (Some(free), Some(size_kb)) = (number("HugePages_Free"), number("Hugepagesize")) else {
        let fix = "use a kernel with CONFIG_HUGETLBFS, or huge_pages = off";
        return Check::missing(AREA, name, "the kernel has none", fix);
    };
    // Reserved ones are promised to a program that runs already.
    let free = free.saturating_sub(number("HugePages_Rsvd").unwrap_or(0));
    let needed = (u64::from(settings.buffers) * BLOCK_KB).div_ceil(size_kb.max(1));
    let buffers = human_bytes(u64::from(settings.buffers) * BLOCK_KB * 1024);
    let reason =
        format!("{free} of {size_kb} kB are free; shared_buffers, {buffers}, needs {needed}");
    if free > needed {
        return Check::good(AREA, name, reason);
    }
    let fix =
        "sysctl -w vm.nr_hugepages=N with N from postgres -C shared_memory_size_in_huge_pages";
    Check::missing(AREA, name, reason, fix)
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

    #[test]
    fn huge_pages_must_hold_the_buffers() {
        let settings = ServerSettings::new(18, &BTreeMap::new(), true);
        let meminfo = |free, reserved| {
            format!(
                "HugePages_Free:  {free}\nHugePages_Rsvd: {reserved}\nHugepagesize:   2048 kB\n"
            )
        };
        // 128 MB are 64 of them, and the server needs more than its buffers.
        for (free, taken, status) in [
            (0, 0, Status::Missing),
            (64, 0, Status::Missing),
            (80, 0, Status::Good),
            (80, 20, Status::Missing),
        ] {
            let check = reserved(&settings, &meminfo(free, taken));
            assert_eq!(check.status, status, "{free} {taken}: {check:?}");
        }
        assert_eq!(reserved(&settings, "").status, Status::Missing);
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

    #[test]
    fn limits_of_a_process() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max open files            1024                 524288               files\n\
                    Max locked memory         8388608              8388608              bytes\n";
        let expected = Some(("8388608".to_owned(), "1024".to_owned()));
        assert_eq!(parse_limits(text), expected);
        assert_eq!(parse_limits(""), None);
        assert!(of_process(std::process::id()).is_some());
    }
}
