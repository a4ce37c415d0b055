//! How much memory the process can still use, on the machine and in its control groups.
//!
//! A process that exceeds the limit of its control group is killed. A pool gets its memory while it
//! fills up, so that would happen in the middle of a job. The commands therefore compare the size
//! of the pool with the available memory before they start:
//!
//! ```text
//! error: could not map shared memory: shared_buffers needs 6.0 GB, but only 2.0 GB are
//! available in its control group
//! ```
//!
//! The page cache counts as available, because the kernel reclaims it first. Limits that can't be
//! read count as none: a container may hide these files.

use std::fs;
use std::path::Path;

/// File names of one version of control groups, and the lines of `memory.stat` that show the page
/// cache.
struct Version {
    limit: &'static str,
    usage: &'static str,
    page_cache: [&'static str; 2],
}

const VERSION_1: Version = Version {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    page_cache: ["total_inactive_file", "total_active_file"],
};

const VERSION_2: Version = Version {
    limit: "memory.max",
    usage: "memory.current",
    page_cache: ["inactive_file", "active_file"],
};

/// Memory that can be allocated without swapping.
pub(crate) struct MemoryAvailable {
    pub(crate) bytes: u64,
    /// Whether a control group sets this limit, rather than the machine.
    pub(crate) is_of_group: bool,
}

/// Returns how much memory is available, or `None` if we can't read `/proc/meminfo`.
pub(crate) fn memory_available() -> Option<MemoryAvailable> {
    let machine = value(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = available_in_groups(Path::new("/sys/fs/cgroup"), &groups);
    let machine = machine.checked_mul(1024)?;
    Some(MemoryAvailable { bytes: machine.min(groups), is_of_group: groups < machine })
}

/// The bytes available in the groups that `/proc/self/cgroup` lists, and in the groups above them.
fn available_in_groups(root: &Path, groups: &str) -> u64 {
    let mut least = u64::MAX;
    for line in groups.lines() {
        // The number of the hierarchy, its controllers, and the group's path.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (version, mount) = match controllers {
            "" => (&VERSION_2, root.to_owned()),
            list if list.split(',').any(|name| name == "memory") => {
                (&VERSION_1, root.join("memory"))
            }
            _ => continue,
        };
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            least = least.min(available_in(&mount.join(group), version).unwrap_or(u64::MAX));
        }
    }
    least
}

/// The bytes available in one group; `None` if it has no limit.
fn available_in(group: &Path, version: &Version) -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        // An unlimited group has `max` in version 2, and a huge number in version 1.
        fs::read_to_string(group.join(name)).ok()?.trim().parse().ok()
    };
    let (limit, usage) = (number(version.limit)?, number(version.usage)?);
    let statistics = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let page_cache: u64 =
        version.page_cache.iter().filter_map(|name| value(&statistics, name)).sum();
    Some(limit.saturating_sub(usage.saturating_sub(page_cache)))
}

/// The number after a word at the start of a line.
fn value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == name).then(|| words.next()?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
    }

    #[test]
    fn the_tightest_group_counts() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        let available = |groups| available_in_groups(root, groups);
        assert_eq!(available("0::/a/b\n"), u64::MAX, "nothing can be read");
        let files = [
            ("a/memory.max", "5000\n"),
            ("a/memory.current", "1000\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.current", "900\n"),
        ];
        write(root, &files);
        assert_eq!(available("0::/a/b\n"), 4000, "the group above is limited");
        write(root, &[("a/b/memory.max", "2000\n")]);
        assert_eq!(available("0::/a/b\n"), 1100);
        write(root, &[("a/b/memory.stat", "anon 100\ninactive_file 300\nactive_file 7\n")]);
        assert_eq!(available("0::/a/b\n"), 1407, "the page cache can be reclaimed");
        let files = [
            ("memory/c/memory.limit_in_bytes", "3000\n"),
            ("memory/c/memory.usage_in_bytes", "4000\n"),
            ("memory/c/memory.stat", "inactive_file 9000\ntotal_inactive_file 500\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/memory.usage_in_bytes", "5000\n"),
        ];
        write(root, &files);
        let groups = "3:cpu,cpuacct:/c\n2:memory,hugetlb:/c\n0::/a/b\n";
        assert_eq!(available(groups), 0, "more than the limit");
        assert_eq!(available("2:memory:/other\n"), 9_223_372_036_854_771_712 - 5000);
    }
}
