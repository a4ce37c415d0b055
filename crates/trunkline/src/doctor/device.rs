//! Checks of the block device below a mount: its I/O scheduler, queue and largest request.
//!
//! ```text
//!   mount source /dev/nvme0n1p2 ─▶ 259:2 ─▶ /sys/dev/block/259:2/../queue/scheduler: [none] ...
//! ```
//! A partition has no queue of its own, so we use that of its disk. A device below another one, as
//! with LVM or RAID, is not followed: the upper device's queue is what the file system sees.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

use super::check::Check;
use crate::place::Place;

/// The largest I/O of a server by default (`io_combine_limit`), in kilobytes.
const COMBINE_LIMIT_KB: u64 = 128;

/// Disks of a hypervisor, by the begin of their names (virtio, Xen). Their drivers say that they rotate,
/// without knowing what the host stores them on.
const VIRTUAL: [&str; 2] = ["vd", "xvd"];

/// The queue of a block device, as its directory in `/sys`.
#[derive(Debug)]
struct Queue {
    name: String,
    path: PathBuf,
}

/// All checks of the device of a place. None if no block device is visible, as in many containers.
pub(crate) fn checks(place: &Place) -> Vec<Check> {
    let area = place.path.display().to_string();
    let source = Path::new(&place.mount.source);
    let device = fs::metadata(source).ok().filter(|found| found.file_type().is_block_device());
    // The kernel calls the root device /dev/root, which doesn't exist.
    let number =
        device.map_or(place.mount.device, |found| (major(found.rdev()), minor(found.rdev())));
    let device = PathBuf::from(format!("/sys/dev/block/{}:{}", number.0, number.1));
    Queue::of(&device).map(|queue| queue.checks(&area)).unwrap_or_default()
}

impl Queue {
    /// The queue of a device in `/sys`, or of the disk that it is a part of.
    fn of(device: &Path) -> Option<Queue> {
        let device = device.canonicalize().ok()?;
        let mut near = [Some(&*device), device.parent()].into_iter().flatten();
        let disk = near.find(|path| path.join("queue").is_dir())?;
        let name = disk.file_name()?.to_string_lossy().into_owned();
        Some(Queue { name, path: disk.join("queue") })
    }

    fn text(&self, name: &str) -> Option<String> {
        Some(fs::read_to_string(self.path.join(name)).ok()?.trim().to_owned())
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    fn checks(&self, area: &str) -> Vec<Check> {
        let mut checks = Vec::new();
        let is_virtual = VIRTUAL.iter().any(|name| self.name.starts_with(name));
        let rotates = match self.number("rotational") {
            _ if is_virtual => None,
            number => number.map(|number| number == 1),
        };
        if let Some(list) = self.text("scheduler") {
            checks.push(self.scheduler(area, &list, rotates));
        }
        if let Some(size) = self.number("max_sectors_kb") {
            let name = "largest request";
            let reason = format!("{} takes {size} kB at once", self.name);
            checks.push(match size < COMBINE_LIMIT_KB {
                false => Check::good(area, name, reason),
                true => {
                    let most = self.number("max_hw_sectors_kb").unwrap_or(size);
                    let reason = format!("{reason}, less than io_combine_limit = 128kB");
                    let fix = match most > size {
                        true => self.fix("max_sectors_kb", &most.min(1024).to_string()),
                        false => format!("io_combine_limit = {size}kB"),
                    };
                    Check::limited(area, name, reason, fix)
                }
            });
        }
        checks
    }

    fn scheduler(&self, area: &str, list: &str, rotates: Option<bool>) -> Check {
        let name = "scheduler";
        // The one in use is in brackets. A device without a choice has only a name.
        let used = list.split(['[', ']']).nth(1).unwrap_or(list);
        let kind = match rotates {
            Some(true) => "reported as rotating",
            Some(false) => "reported as not rotating",
            None => "unknown whether it rotates",
        };
        let rotates = rotates == Some(true);
        let reason = format!("{used} for {}, {kind}", self.name);
        let advised = if rotates { "mq-deadline" } else { "none" };
        let is_slow = used == "bfq" || (rotates && used == "none" && list.contains("mq-deadline"));
        if is_slow && list.contains(advised) {
            return Check::limited(area, name, reason, self.fix("scheduler", advised));
        }
        Check::good(area, name, reason)
    }

    fn fix(&self, file: &str, value: &str) -> String {
        format!("echo {value} > /sys/block/{}/queue/{file}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::Status;

    /// The checks of a device with these files in its queue.
    fn found(files: &[(&str, &str)]) -> Vec<Check> {
        of_disk("sdx", files)
    }

    fn of_disk(disk: &str, files: &[(&str, &str)]) -> Vec<Check> {
        let home = tempfile::tempdir().expect("a directory");
        let (queue, part) =
            (home.path().join(disk).join("queue"), home.path().join(disk).join("part"));
        fs::create_dir_all(&queue).expect("made");
        fs::create_dir_all(&part).expect("made");
        for (name, text) in files {
            fs::write(queue.join(name), format!("{text}\n")).expect("written");
        }
        Queue::of(&part).expect("a queue").checks("x")
    }

    #[test]
    fn schedulers_fit_the_device() {
        for (list, rotational, status) in [
            ("[none] mq-deadline", "0", Status::Good),
            ("none [mq-deadline] bfq", "0", Status::Good),
            ("none mq-deadline [bfq]", "0", Status::Limited),
            ("[none] mq-deadline", "1", Status::Limited),
            ("none [mq-deadline]", "1", Status::Good),
            ("none", "0", Status::Good),
        ] {
            let found = found(&[("scheduler", list), ("rotational", rotational)]);
            assert_eq!((found.len(), found[0].status), (1, status), "{list} {rotational}");
            assert_eq!(found[0].fix.is_some(), status == Status::Limited);
        }
    }

    /// virtio-blk reports every disk as rotating.
    #[test]
    fn a_virtual_disk_is_not_called_rotating() {
        for disk in ["vda", "xvda"] {
            let found = of_disk(disk, &[("scheduler", "[none] mq-deadline"), ("rotational", "1")]);
            assert_eq!(found[0].status, Status::Good, "{found:?}");
            assert!(found[0].reason.contains("unknown whether it rotates"), "{found:?}");
        }
    }

    #[test]
    fn small_requests_are_reported() {
        let small = [("max_sectors_kb", "64"), ("max_hw_sectors_kb", "2048")];
        let check = found(&small).remove(0);
        let fix = "echo 1024 > /sys/block/sdx/queue/max_sectors_kb";
        assert_eq!((check.status, check.fix.as_deref()), (Status::Limited, Some(fix)));
        let check = found(&[("max_sectors_kb", "64"), ("max_hw_sectors_kb", "64")]).remove(0);
        assert_eq!(check.fix.as_deref(), Some("io_combine_limit = 64kB"));
        assert_eq!(found(&[("max_sectors_kb", "1280")])[0].status, Status::Good);
    }
}
