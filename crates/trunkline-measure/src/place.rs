//! **Places to write to**: never inside a data directory or a tablespace of PostgreSQL.
//!
//! A measurement writes a scratch table and reports. A user may well name a directory on the
//! cluster's own disk, because that is the disk to measure, and the nearest one is the cluster
//! itself. So we look at each directory above the place, after following symbolic links.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::MeasureError;

/// Refuses a file or directory, which needn't exist, if it would be inside a cluster.
///
/// # Errors
/// [`MeasureError::InsideCluster`].
pub fn refuse_cluster(path: &Path) -> Result<(), MeasureError> {
    match cluster_around(path) {
        None => Ok(()),
        Some(cluster) => Err(MeasureError::InsideCluster { path: path.to_owned(), cluster }),
    }
}

/// The directory of a cluster that a file or directory, which needn't exist, is or would be in.
pub fn cluster_around(path: &Path) -> Option<PathBuf> {
    let real = real_path(path);
    real.ancestors().find(|directory| is_of_cluster(directory)).map(Path::to_owned)
}

/// The path without symbolic links, as far as it exists.
fn real_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for existing in absolute.ancestors() {
        if let Ok(real) = existing.canonicalize() {
            let rest = absolute.strip_prefix(existing).unwrap_or(Path::new(""));
            return real.join(rest);
        }
    }
    absolute
}

/// Whether files in this directory may belong to a cluster. This is so for:
///
/// - a data directory, or the directory of a database;
/// - a tablespace, or the directory of one version in it, such as `PG_18_202506291`;
/// - a directory with write-ahead log, which `pg_wal` may link to.
fn is_of_cluster(directory: &Path) -> bool {
    if directory.file_name().is_some_and(is_version_directory)
        || directory.join("PG_VERSION").exists()
        || directory.join("archive_status").is_dir()
    {
        return true;
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| is_version_directory(&name) || is_wal(&name))
}

/// Names such as `PG_18_202506291`.
fn is_version_directory(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let version = name.strip_prefix("PG_").and_then(|rest| rest.split_once('_'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    version.is_some_and(|(major, catalog)| is_number(major) && is_number(catalog))
}

/// Names of WAL segments: a timeline and a position, 24 hexadecimal digits in upper case.
fn is_wal(name: &OsStr) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
    name.len() == 24 && name.as_encoded_bytes().iter().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_into_a_cluster_or_a_tablespace() {
        let home = tempfile::tempdir().expect("a directory");
        let at = |name: &str| home.path().join(name);
        let made = [
            "data/base/5",
            "space/PG_18_202506291/5",
            "free/PG_x_1",
            "wal/archive_status",
            "archive",
            "numbers",
        ];
        for name in made {
            fs::create_dir_all(at(name)).expect("made");
        }
        for (name, text) in [
            ("data/PG_VERSION", "18\n"),
            ("archive/0000000100000000000000A7", ""),
            ("numbers/00000001000000000000000x", ""),
            ("numbers/0000000100000000", ""),
        ] {
            fs::write(at(name), text).expect("written");
        }
        std::os::unix::fs::symlink(at("data/base"), at("link")).expect("linked");
        let refused = [
            "data",
            "data/base/5",
            "data/new/file",
            "link/x",
            "space",
            "space/other",
            "space/PG_18_202506291/y",
            "wal/x",
            "archive",
            "archive/x",
        ];
        for name in refused {
            let error = refuse_cluster(&at(name)).expect_err(name);
            assert!(matches!(error, MeasureError::InsideCluster { .. }), "{error}");
        }
        for name in ["", "free", "free/PG_x_1", "numbers/x", "database"] {
            refuse_cluster(&at(name)).expect(name);
        }
    }
}
