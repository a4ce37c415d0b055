//! **Mount table**: finds slow disks that are mounted, from `/proc/self/mountinfo`.
//!
//! ```text
//!   36 25 0:45 / /mnt/slow rw,nosuid - fuse trunkline-slow-disk rw,user_id=0,...
//!                ▲ mount point           ▲ source
//! ```
//! If a FUSE process is killed, its mount stays, and every access to it fails with ENOTCONN. Only
//! the source shows which program such a mount belonged to.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The source of our mounts.
pub(crate) const SOURCE: &str = "trunkline-slow-disk";

/// The list of this process's mounts.
const MOUNTS: &str = "/proc/self/mountinfo";

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mounted {
    pub(crate) at: PathBuf,
    /// Major and minor number of its device, such as `0:45`.
    pub(crate) device: String,
    /// Type of the file system, such as `fuse`.
    pub(crate) kind: String,
    pub(crate) source: String,
}

impl Mounted {
    /// Whether this is a slow disk, alive or not.
    pub(crate) fn is_slow_disk(&self) -> bool {
        self.kind.starts_with("fuse") && self.source == SOURCE
    }
}

/// The topmost file system mounted at `at`, which must be absolute.
///
/// # Errors
/// The list can't be read.
pub(crate) fn mounted_at(at: &Path) -> io::Result<Option<Mounted>> {
    Ok(mounts_at(at)?.pop())
}

/// All file systems mounted at `at`, which must be absolute. Later ones cover earlier ones.
///
/// # Errors
/// The list can't be read.
pub(crate) fn mounts_at(at: &Path) -> io::Result<Vec<Mounted>> {
    let list = fs::read(MOUNTS)?;
    Ok(parse(&list).filter(|mounted| mounted.at == at).collect())
}

fn parse(list: &[u8]) -> impl Iterator<Item = Mounted> {
    list.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|&byte| byte == b' ');
        let text = |field: &[u8]| String::from_utf8_lossy(unescaped(field).as_bytes()).into_owned();
        let device = text(fields.by_ref().nth(2)?);
        let at = unescaped(fields.by_ref().nth(1)?);
        // A variable number of optional fields ends with a hyphen.
        fields.by_ref().find(|&field| field == b"-")?;
        let (kind, source) = (text(fields.next()?), text(fields.next()?));
        Some(Mounted { at: PathBuf::from(at), device, kind, source })
    })
}

/// Replaces escapes such as `\040`, which stands for a space.
fn unescaped(field: &[u8]) -> OsString {
    let mut text = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [byte, tail @ ..] = rest {
        let escape = tail.get(..3).filter(|_| *byte == b'\\');
        let octal =
            escape.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match octal {
            Some(octal) => {
                text.push(octal);
                rest = &tail[3..];
            }
            None => {
                text.push(*byte);
                rest = tail;
            }
        }
    }
    OsString::from_vec(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_unescaped_and_the_last_one_counts() {
        let list = b"25 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            36 25 0:45 / /mnt/a\\040b rw shared:1 master:2 - fuse other rw\n\
            37 25 0:46 / /mnt/a\\040b rw - fuse trunkline-slow-disk rw\n\
            damaged line\n";
        let found: Vec<Mounted> = parse(list).collect();
        let shown: Vec<_> = found
            .iter()
            .map(|it| (it.at.to_str().expect("text"), &*it.device, it.is_slow_disk()))
            .collect();
        let expected =
            [("/", "8:1", false), ("/mnt/a b", "0:45", false), ("/mnt/a b", "0:46", true)];
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_list_has_the_file_system_that_it_is_in() {
        let own = mounted_at(Path::new("/proc")).expect("read").expect("mounted");
        assert!(own.kind == "proc" && !own.is_slow_disk(), "{own:?}");
        assert_eq!(mounted_at(Path::new("/nowhere/at/all")).expect("read"), None);
    }
}
