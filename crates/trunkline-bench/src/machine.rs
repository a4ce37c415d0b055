//! **Machine description** for the report. Ratios are more comparable between machines than rates,
//! but neither means much unless you know the hardware they were measured on.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use trunkline_aio::file_system_name;

/// One line: CPUs, kernel, file system and block device of `dir`.
pub(crate) fn describe(dir: &Path) -> String {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let memory = field("/proc/meminfo", "MemTotal").unwrap_or_else(|| "unknown".into());
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown model".into());
    let huge = word("/sys/kernel/mm/transparent_hugepage/enabled");
    format!(
        "{cpus} CPUs ({model}), memory {memory}, kernel {kernel}, transparent huge pages {huge}, \
         {} on {}",
        file_system_name(dir),
        device(dir)
    )
}

/// Name and I/O scheduler of the block device that contains `dir`, from sysfs.
fn device(dir: &Path) -> String {
    let Ok(metadata) = fs::metadata(dir) else { return "unknown".into() };
    let number = metadata.dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let link = format!("/sys/dev/block/{major}:{minor}");
    match fs::canonicalize(&link) {
        Ok(path) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            format!("{name} (scheduler {})", word(&format!("{link}/queue/scheduler")))
        }
        Err(_) => format!("device {major}:{minor}"),
    }
}

/// The value of the first `name : value` line in a file such as `/proc/cpuinfo`.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The selected option of a sysfs file such as `none [mq-deadline]`: the word in brackets.
fn word(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or_else(|| "unknown".into(), |(word, _)| word.to_owned())
}
