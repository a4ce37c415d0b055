//! Files that others must not read: private keys and password files.
//!
//! The rule is PostgreSQL's for `ssl_key_file`: the file belongs to the user that runs the server, and
//! no other user may read it; or it belongs to root, and a group may read it.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Reads a file of which the permissions are strict enough.
///
/// # Errors
/// Why it can't be read, or that other users could read it.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    // A pipe must not make us wait. What was opened is checked, so the file can't be replaced meanwhile.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path);
    let mut file = file.map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    check(&metadata)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn check(metadata: &Metadata) -> Result<(), String> {
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let own = rustix::process::geteuid().as_raw();
    check_access(metadata.uid(), own, metadata.mode()).map_err(str::to_owned)
}

fn check_access(owner: u32, own: u32, mode: u32) -> Result<(), &'static str> {
    let forbidden = match owner {
        owner if owner == own => 0o077,
        0 => 0o037,
        _ => return Err("it must be owned by the user that runs the server, or by root"),
    };
    match mode & forbidden {
        0 => Ok(()),
        _ => Err("it has group or world access; its permissions must be u=rw (0600) or less, or \
                  u=rw,g=r (0640) or less if it is owned by root"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_those_that_the_server_asks_for() {
        for (owner, mode, is_good) in [
            (7, 0o600, true),
            (7, 0o400, true),
            (7, 0o640, false),
            (7, 0o604, false),
            (0, 0o640, true),
            (0, 0o600, true),
            (0, 0o660, false),
            (0, 0o644, false),
            (8, 0o600, false),
        ] {
            assert_eq!(
                check_access(owner, 7, 0o100_000 | mode).is_ok(),
                is_good,
                "{owner} {mode:o}"
            );
        }
        // A server that runs as root.
        assert!(check_access(0, 0, 0o640).is_err());
    }

    #[test]
    fn a_directory_is_not_a_secret() {
        let directory = tempfile::TempDir::new().unwrap();
        read(directory.path()).unwrap_err();
        read(&directory.path().join("none")).unwrap_err();
    }
}
