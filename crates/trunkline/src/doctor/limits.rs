//! Checks of limits: locked memory and open files.
//!
//! The limits are those of this process. A server that systemd starts has the limits of its unit
//! instead; if a server is running on the directory, we also read its limits from `/proc`.

use std::fs;

use super::check::Check;
use super::host::Host;
use super::ring_probe::Answer;

pub(crate) const AREA: &str = "limits";

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

/// Rings that a running process has open.
pub(crate) fn rings_of_process(pid: u32) -> u32 {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let is_ring = |link: &std::path::PathBuf| link.as_os_str() == "anon_inode:[io_uring]";
    let rings = files.filter_map(|file| fs::read_link(file.path()).ok()).filter(is_ring).count();
    u32::try_from(rings).unwrap_or(u32::MAX)
}

fn parse_limits(text: &str) -> Option<(String, String)> {
    let soft = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()).map(str::to_owned)
    };
    Some((soft("Max locked memory")?, soft("Max open files")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_a_process() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max open files            1024                 524288               files\n\
                    Max locked memory         8388608              8388608              bytes\n";
        let expected = Some(("8388608".to_owned(), "1024".to_owned()));
        assert_eq!(parse_limits(text), expected);
        assert_eq!(parse_limits(""), None);
        assert!(of_process(std::process::id()).is_some());
        assert_eq!(rings_of_process(std::process::id()), 0);
    }
}
