//! Checks of a file system and its mount options, with the cautions that trying can't show.
//!
//! A file system may accept `O_DIRECT` and still go through the page cache, or keep nothing over a
//! crash. Each rule below says where it comes from.

use std::fs::File;

use rustix::fs::{IFlags, ioctl_getflags};

use super::check::Check;
use super::host::Host;
use crate::place::Place;

/// File systems that go over a network.
const NETWORK: [&str; 7] = ["nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs"];

/// All checks of a place's file system. `uses_direct` says whether direct I/O works there.
pub(crate) fn checks(place: &Place, host: &Host, uses_direct: bool) -> Vec<Check> {
    let (mount, area) = (&place.mount, place.path.display().to_string());
    let mut checks = Vec::new();
    let at = format!("{} on {}, {}", mount.kind, mount.path.display(), mount.options.join(","));
    let name = "file system";
    checks.push(match &*mount.kind {
        "tmpfs" | "ramfs" => {
            Check::limited(&area, name, format!("{at}: nothing outlives a restart"), MOVE)
        }
        "overlay" | "aufs" => {
            let reason = format!("{at}: the writable layer of a container, lost with it");
            Check::limited(&area, name, reason, "put the directory on a volume")
        }
        kind if NETWORK.contains(&kind) || kind.starts_with("fuse") => {
            let reason = format!("{at}: submitting I/O can block on the other side");
            Check::limited(&area, name, reason, "io_method = worker, or a local file system")
        }
        _ => Check::good(&area, name, at),
    });
    if mount.has("ro") {
        let fix = format!("mount -o remount,rw {}", mount.path.display());
        checks.push(Check::missing(&area, "writes", "the mount is read-only (ro)", fix));
    }
    let options = [
        ("sync", None, "every write waits for the device", "mount without sync"),
        ("nobarrier", None, "a power failure can lose fsynced data", "mount without nobarrier"),
        ("barrier", Some("0"), "a power failure can lose fsynced data", "mount with barrier=1"),
        ("strictatime", None, "every read writes an access time", "mount with relatime or noatime"),
    ];
    for (option, value, reason, fix) in options {
        if mount.has(option) && (value.is_none() || mount.value(option) == value) {
            checks.push(Check::limited(&area, format!("mount option {option}"), reason, fix));
        }
    }
    if uses_direct {
        checks.extend(direct_cautions(place, &area, host));
    }
    checks
}

const MOVE: &str = "put the directory on a disk";

/// Why direct I/O that seems to work may not be what it seems, in words.
pub(crate) fn direct_caution(place: &Place, host: &Host) -> Option<String> {
    direct_cautions(place, "", host).map(|check| check.reason)
}

/// Why direct I/O that seems to work isn't what it seems.
fn direct_cautions(place: &Place, area: &str, host: &Host) -> Option<Check> {
    let mount = &place.mount;
    let name = "direct I/O caution";
    match &*mount.kind {
        // Since Linux 6.6 ("tmpfs: trivial support for direct IO").
        "tmpfs" => Some(Check::limited(
            area,
            name,
            "tmpfs accepts O_DIRECT and ignores it: there is only memory",
            MOVE,
        )),
        "btrfs" => btrfs_caution(place, area, host),
        // Release notes of OpenZFS 2.3, and zfsprops(7), "direct".
        "zfs" => {
            let version = std::fs::read_to_string("/sys/module/zfs/version").unwrap_or_default();
            let (reason, fix) = match zfs_has_direct(&version) {
                true => (
                    "a direct write fails if the page changes meanwhile (hint bits)",
                    "zfs set direct=disabled, or leave debug_io_direct empty",
                ),
                false => (
                    "OpenZFS before 2.3 accepts O_DIRECT and ignores it",
                    "use OpenZFS 2.3 or newer, or leave debug_io_direct empty",
                ),
            };
            Some(Check::limited(area, name, reason, fix))
        }
        // Documentation/filesystems/ext4: data=journal disables O_DIRECT.
        "ext4" if mount.value("data") == Some("journal") => Some(Check::limited(
            area,
            name,
            "data=journal turns direct I/O into buffered I/O",
            "mount with data=ordered",
        )),
        _ => None,
    }
}

/// btrfs checksums a page before it writes it, and a page that changes in between becomes
/// unreadable. Since Linux 6.14, it therefore writes files with checksums through the page cache
/// (btrfs documentation, "Checksumming").
fn btrfs_caution(place: &Place, area: &str, host: &Host) -> Option<Check> {
    let mount = &place.mount;
    let name = "direct I/O caution";
    let without_checksums = mount.has("nodatasum") || mount.has("nodatacow") || has_nocow(place);
    if without_checksums {
        return None;
    }
    let fix = "chattr +C on the empty directory, before the cluster is created";
    let compresses = mount.has("compress") || mount.has("compress-force");
    let reason = match (host.has((6, 14)), compresses) {
        (true, _) => "btrfs turns direct writes into buffered ones, because files have checksums",
        (false, true) => "btrfs reads compressed files through the page cache",
        (false, false) => {
            "btrfs checksums become wrong if a page changes while it is written (hint bits)"
        }
    };
    Some(Check::limited(area, name, reason, fix))
}

/// Whether new files in the directory have neither copy-on-write nor checksums (`chattr +C`).
fn has_nocow(place: &Place) -> bool {
    let flags = File::open(&place.path).and_then(|file| Ok(ioctl_getflags(&file)?));
    flags.is_ok_and(|flags| flags.contains(IFlags::NOCOW))
}

fn zfs_has_direct(version: &str) -> bool {
    let mut numbers = version.trim().split(['.', '-']).map(|part| part.parse::<u32>());
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
    (next(), next()) >= (2, 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::Status;
    use crate::mount::Mount;

    /// The checks of a mount, except the first one, which names the file system.
    fn found(kind: &str, options: &str, kernel: (u32, u32)) -> Vec<(Status, String)> {
        let home = tempfile::tempdir().expect("a directory");
        let mount = Mount::of(home.path()).expect("a mount");
        let options = options.split(',').map(str::to_owned).collect();
        let mount = Mount { kind: kind.to_owned(), options, ..mount };
        let place = Place { path: home.path().to_owned(), mount, in_cluster: false };
        let checks = checks(&place, &Host { kernel, ..Host::read() }, true);
        checks.into_iter().map(|check| (check.status, check.reason)).collect()
    }

    #[test]
    fn options_and_file_systems_have_cautions() {
        for (kind, options, kernel, text) in [
            ("tmpfs", "rw", (6, 6), "nothing outlives"),
            ("overlay", "rw", (6, 6), "writable layer"),
            ("nfs4", "rw", (6, 6), "can block"),
            ("fuse.sshfs", "rw", (6, 6), "can block"),
            ("ext4", "ro", (6, 6), "read-only"),
            ("ext4", "rw,sync", (6, 6), "waits for the device"),
            ("ext4", "rw,barrier=0", (6, 6), "lose fsynced"),
            ("ext4", "rw,data=journal", (6, 6), "data=journal turns"),
            ("btrfs", "rw", (6, 14), "turns direct writes into buffered"),
            ("btrfs", "rw", (6, 12), "become wrong"),
            ("btrfs", "rw,compress=zstd:3", (6, 12), "reads compressed"),
        ] {
            let found = found(kind, options, kernel);
            let named = found
                .iter()
                .any(|(status, reason)| *status != Status::Good && reason.contains(text));
            assert!(named, "{kind} {options} {kernel:?}: {found:?}");
        }
    }

    #[test]
    fn ordinary_mounts_are_good() {
        for (kind, options) in [
            ("ext4", "rw,relatime,barrier=1,data=ordered"),
            ("xfs", "rw,noatime"),
            ("btrfs", "rw,nodatasum"),
        ] {
            let found = found(kind, options, (6, 18));
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].0, Status::Good);
        }
    }

    #[test]
    fn versions_of_zfs() {
        assert!(zfs_has_direct("2.3.0-1\n") && zfs_has_direct("2.10.1") && zfs_has_direct("3.0"));
        assert!(!zfs_has_direct("2.2.7-r0") && !zfs_has_direct(""));
    }
}
