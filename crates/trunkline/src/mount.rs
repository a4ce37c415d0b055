//! Mounts: which one a directory is on, its file system, and its options.
//!
//! `/proc/self/mountinfo` has a line for each mount. We find ours by the mount's number, which
//! statx(2) returns, because device numbers are not unique: each btrfs subvolume has one of its own.
//!
//! ```text
//!   36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext4 /dev/root rw,errors=continue
//!   id parent dev root  where  options optional -  type source  options of the file system
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Number of the mount.
    pub(crate) id: u64,
    /// Device number of the file system.
    pub(crate) device: (u32, u32),
    /// Where it is mounted.
    pub(crate) path: PathBuf,
    /// The type, such as `ext4`.
    pub(crate) kind: String,
    /// The device, or what stands for it.
    pub(crate) source: String,
    /// Options of the mount and of the file system.
    pub(crate) options: Vec<String>,
}

impl Mount {
    /// The mount that contains `path`.
    ///
    /// # Errors
    /// The path doesn't exist, or `/proc` isn't mounted.
    pub(crate) fn of(path: &Path) -> io::Result<Mount> {
        let stat =
            statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)?;
        let all = parse_all(&fs::read("/proc/self/mountinfo")?);
        let device = (stat.stx_dev_major, stat.stx_dev_minor);
        // Before Linux 5.8, statx(2) doesn't return the number.
        let knows_id = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        let is_ours = |mount: &&Mount| match knows_id {
            true => mount.id == stat.stx_mnt_id,
            false => mount.device == device,
        };
        let found = all.iter().rev().find(is_ours).cloned();
        found.ok_or_else(|| io::Error::other("its mount is not in /proc/self/mountinfo"))
    }

    /// Whether the mount has an option, such as `ro`, or `compress` with any value.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|it| it.split('=').next() == Some(option))
    }

    /// The value of an option.
    pub(crate) fn value(&self, option: &str) -> Option<&str> {
        let mut pairs = self.options.iter().filter_map(|it| it.split_once('='));
        pairs.find(|(name, _)| *name == option).map(|(_, value)| value)
    }
}

/// All mounts. Names don't have to be UTF-8, and those that aren't are only printed.
fn parse_all(bytes: &[u8]) -> Vec<Mount> {
    String::from_utf8_lossy(bytes).lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Mount> {
    let (mount, file_system) = line.split_once(" - ")?;
    let fields: Vec<&str> = mount.split(' ').collect();
    let mut of_file_system = file_system.split(' ');
    let (kind, source) = (of_file_system.next()?, of_file_system.next()?);
    let (major, minor) = fields.get(2)?.split_once(':')?;
    let options = fields.get(5)?.split(',').chain(of_file_system.next()?.split(','));
    Some(Mount {
        id: fields.first()?.parse().ok()?,
        device: (major.parse().ok()?, minor.parse().ok()?),
        path: PathBuf::from(unescape(fields.get(4)?)),
        kind: kind.to_owned(),
        source: unescape(source),
        options: options.map(str::to_owned).collect(),
    })
}

/// Blanks, tabs, line feeds and backslashes are octal in this file.
fn unescape(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (octal, plain)| text.replace(octal, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_mount() {
        let line = "36 35 98:0 /mnt1 /a\\040b rw,noatime master:1 - ext4 /dev/root rw,data=journal";
        let mount = parse(line).expect("a mount");
        assert_eq!((mount.id, mount.device), (36, (98, 0)));
        assert_eq!(mount.path, Path::new("/a b"));
        assert_eq!((&*mount.kind, &*mount.source), ("ext4", "/dev/root"));
        assert!(mount.has("noatime") && mount.has("data") && !mount.has("no"));
        assert_eq!(mount.value("data"), Some("journal"));
        assert_eq!(mount.value("rw"), None);
        // No optional fields, or several.
        assert!(parse("22 1 0:20 / /p rw - proc proc rw").is_some());
        assert!(parse("22 1 0:20 / /p rw shared:1 master:2 - proc proc rw").is_some());
        assert!(parse("22 1 0:20").is_none());
    }

    #[test]
    fn names_of_other_mounts_may_be_any_bytes() {
        let found =
            parse_all(b"22 1 0:20 / /\xFF rw - proc proc rw\n23 1 0:21 / /b rw - proc p rw\n");
        let ids: Vec<u64> = found.iter().map(|mount| mount.id).collect();
        assert_eq!(ids, [22, 23]);
    }

    #[test]
    fn this_directory_has_a_mount() {
        let home = tempfile::tempdir().expect("a directory");
        let mount = Mount::of(home.path()).expect("a mount");
        let path = home.path().canonicalize().expect("exists");
        assert!(path.starts_with(&mount.path), "{mount:?}");
    }
}
