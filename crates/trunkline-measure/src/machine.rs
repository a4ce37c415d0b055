//! **Machine**: the device, file system and kernel that the numbers belong to.
//!
//! Everything comes from `/proc` and `/sys`. In a container some of it is missing, so each part is
//! optional, and a missing one is shown as unknown instead of failing the measurement.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use trunkline_aio::facade::thread::available_parallelism;
use trunkline_aio::file_system_name;

/// What a report says about a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the first CPU.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cpus: usize,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// The kernel's release.
    pub kernel: String,
    /// Type of the file system that contains the table.
    pub file_system: String,
    /// Its mount options.
    pub mount_options: String,
    /// Its block device.
    pub device: String,
    /// Model of the device.
    pub device_model: String,
    /// Whether it is a rotating disk.
    pub rotational: Option<bool>,
    /// The device's I/O scheduler.
    pub scheduler: String,
}

/// Placeholder for unknown values.
const UNKNOWN: &str = "unknown";

impl Machine {
    /// Describes this machine, and the device that contains `path`.
    pub fn describe(path: &Path) -> Self {
        let number = fs::metadata(path).map(|found| found.dev()).unwrap_or_default();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let mount = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mount = mount_options(&mount, &format!("{major}:{minor}"));
        let device = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok();
        let attribute = |name: &str| device.as_deref().and_then(|device| read(device, name));
        let device_name =
            device.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy());
        let rotational = attribute("queue/rotational").map(|text| text == "1");
        let unknown = || UNKNOWN.to_owned();
        Self {
            cpu: proc_field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
            cpus: available_parallelism(),
            memory_bytes: memory_bytes(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            file_system: file_system_name(path),
            mount_options: mount.unwrap_or_else(unknown),
            device: device_name.map_or_else(unknown, Into::into),
            device_model: attribute("device/model").unwrap_or_else(unknown),
            rotational,
            scheduler: attribute("queue/scheduler").map_or_else(unknown, |text| selected(&text)),
        }
    }

    /// What a page lists: each fact with its name.
    pub fn facts(&self) -> [(&'static str, String); 4] {
        let disk = match self.rotational {
            Some(true) => ", rotating",
            Some(false) => ", not rotating",
            None => "",
        };
        let (device, model, scheduler) = (&self.device, &self.device_model, &self.scheduler);
        let gigabytes = self.memory_bytes as f64 / f64::from(1 << 30);
        // A file system such as tmpfs or FUSE has no device of its own.
        let device = match device.as_str() {
            UNKNOWN => device.clone(),
            _ => format!("{device} ({model}{disk}), scheduler {scheduler}"),
        };
        [
            ("Device", device),
            ("File system", format!("{}, {}", self.file_system, self.mount_options)),
            ("Kernel", format!("Linux {}", self.kernel)),
            (
                "Processor and memory",
                format!("{} CPUs, {}, {gigabytes:.1} GiB", self.cpus, self.cpu),
            ),
        ]
    }

    /// One line with all facts.
    pub fn summary(&self) -> String {
        self.facts().map(|(_, text)| text).join("; ")
    }
}

/// An attribute of a block device. A partition's queue is that of the disk around it.
fn read(device: &Path, name: &str) -> Option<String> {
    let places: [PathBuf; 2] = [device.join(name), device.parent()?.join(name)];
    let text = places.iter().find_map(|place| fs::read_to_string(place).ok())?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The scheduler in brackets: `none [mq-deadline]`.
fn selected(text: &str) -> String {
    let inner = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inner.map_or(text, |(name, _)| name).to_owned()
}

/// The options of the mount of a device, from lines such as
/// `36 35 98:0 /mnt1 /mnt2 rw,noatime shared:1 - ext3 /dev/root rw,errors=continue`.
fn mount_options(mounts: &str, device: &str) -> Option<String> {
    let line = mounts.lines().rfind(|line| line.split(' ').nth(2) == Some(device))?;
    let (mount, of_file_system) = line.split_once(" - ")?;
    let (own, super_block) = (mount.split(' ').nth(5)?, of_file_system.split(' ').nth(2)?);
    let more = super_block.split(',').filter(|word| own.split(',').all(|own| own != *word));
    let all: Vec<&str> = own.split(',').chain(more).collect();
    Some(all.join(","))
}

fn memory_bytes() -> u64 {
    let field = proc_field("/proc/meminfo", "MemTotal");
    let kilobytes = field.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}

/// The first line `name : value` of a file.
fn proc_field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(field, _)| field.trim() == name).map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_those_of_the_last_mount_of_the_device() {
        let mounts = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
37 35 98:0 / /mnt3 ro - ext3 /dev/root rw
";
        assert_eq!(mount_options(mounts, "8:1"), Some("rw,relatime,errors=remount-ro".into()));
        assert_eq!(mount_options(mounts, "98:0"), Some("ro,rw".into()));
        assert_eq!(mount_options(mounts, "0:5"), None);
    }

    #[test]
    fn the_scheduler_in_use_is_in_brackets() {
        assert_eq!(selected("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(selected("none"), "none");
    }

    #[test]
    fn a_machine_is_described_the_same_way_twice() {
        let machine = Machine::describe(Path::new("/proc"));
        assert_eq!(machine, Machine::describe(Path::new("/proc")));
        assert!(machine.cpus > 0 && machine.memory_bytes > 0, "{machine:?}");
        assert!(machine.summary().contains(&machine.kernel));
    }
}
