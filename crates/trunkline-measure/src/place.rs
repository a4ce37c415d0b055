//! **Places to write to**: never inside a data directory or a tablespace of PostgreSQL.
//!
//! A measurement writes a scratch table and reports. A user may well name a directory on the
//! cluster's own disk, because that is the disk to measure, and the nearest one is the cluster
//! itself. So we look at each directory above the place, after following symbolic links.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::MeasureError;

/// Refuses a file or directory, which needn't exist, if it would be inside a cluster.
///
/// # Errors
/// [`MeasureError::InsideCluster`].
pub fn refuse_cluster(path: &Path) -> Result<(), MeasureError> {
    let real = real_path(path);
    match real.ancestors().find(|directory| is_of_cluster(directory)) {
        None => Ok(()),
        Some(cluster) => {
            Err(MeasureError::InsideCluster { path: path.to_owned(), cluster: cluster.to_owned() })
        }
    }
}

/// Writes a report, which replaces an older one only when it is complete.
///
/// # Errors
/// [`MeasureError::InsideCluster`] or [`MeasureError::File`].
pub fn write_report(path: &Path, text: &str) -> Result<(), MeasureError> {
    refuse_cluster(path)?;
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, path));
    written.map_err(|error| {
        // The partial file is ours, or could not be created.
        let _ = fs::remove_file(&partial);
        MeasureError::file(path, error)
    })
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

/// Whether this directory is a data directory, or the directory of one version in a tablespace,
/// such as `PG_18_202506291`.
fn is_of_cluster(directory: &Path) -> bool {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let version = name.strip_prefix("PG_").and_then(|rest| rest.split_once('_'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let in_tablespace =
        version.is_some_and(|(major, catalog)| is_number(major) && is_number(catalog));
    in_tablespace || directory.join("PG_VERSION").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_into_a_cluster_or_a_tablespace() {
        let home = tempfile::tempdir().expect("a directory");
        let at = |name: &str| home.path().join(name);
        for name in ["data/base/5", "space/PG_18_202506291/5", "free/PG_x_1"] {
            fs::create_dir_all(at(name)).expect("made");
        }
        fs::write(at("data/PG_VERSION"), "18\n").expect("written");
        std::os::unix::fs::symlink(at("data/base"), at("link")).expect("linked");
        let refused = ["data", "data/base/5", "data/new/file", "link/x", "space/PG_18_202506291/y"];
        for name in refused {
            let error = refuse_cluster(&at(name)).expect_err(name);
            assert!(matches!(error, MeasureError::InsideCluster { .. }), "{error}");
            let error = write_report(&at(name), "x").expect_err(name);
            assert!(matches!(error, MeasureError::InsideCluster { .. }), "{error}");
        }
        for name in ["", "free", "free/PG_x_1", "space/other", "database"] {
            refuse_cluster(&at(name)).expect(name);
        }
        write_report(&at("report"), "x").expect("written");
        assert_eq!(fs::read(at("report")).expect("read"), b"x");
        assert!(!at("report.partial").exists());
    }
}
