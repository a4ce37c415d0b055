//! Places: the directories whose file systems a cluster uses, and where we may try something there.
//!
//! ```text
//!   DIR              data      ─┐
//!   DIR/pg_wal       log        ├─ one place for each mount
//!   DIR/pg_tblspc/N  tablespace ─┘
//! ```
//! We never write into a cluster. To try or measure I/O on the file system of a data directory, we need
//! a file beside it: in the nearest parent directory that is on the same mount and belongs to no
//! cluster. If there is none, we can still try to read one of the cluster's files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use trunkline_measure::cluster_around;

use crate::mount::Mount;

/// Files that we look at to find one that can be read.
const LOOKED_AT_MAX: usize = 1000;
/// Size of a file that can be read with any alignment.
const READABLE_MIN: u64 = 4096;

/// A directory on a mount of its own.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) mount: Mount,
    /// The directory is a part of a cluster, wherever it is: a link may lead to a log or a
    /// tablespace that nothing else marks as one.
    pub(crate) in_cluster: bool,
}

/// The places of a directory: its own and, if it is a cluster, those of its log and tablespaces.
///
/// # Errors
/// The directory doesn't exist. Other places that can't be reached are left out.
pub(crate) fn places(directory: &Path) -> io::Result<Vec<Place>> {
    let path = directory.canonicalize()?;
    if !path.is_dir() {
        return Err(io::Error::from(io::ErrorKind::NotADirectory));
    }
    let mount = Mount::of(&path)?;
    let in_cluster = is_cluster(&path);
    let mut places = vec![Place { path: path.clone(), mount, in_cluster }];
    if !in_cluster {
        return Ok(places);
    }
    let tablespaces = fs::read_dir(path.join("pg_tblspc")).into_iter().flatten().flatten();
    let mut others: Vec<PathBuf> = tablespaces.map(|entry| entry.path()).collect();
    others.sort();
    others.insert(0, path.join("pg_wal"));
    for other in others.iter().filter_map(|other| other.canonicalize().ok()) {
        let Ok(mount) = Mount::of(&other) else { continue };
        if places.iter().all(|place| place.mount != mount) {
            places.push(Place { path: other, mount, in_cluster });
        }
    }
    Ok(places)
}

/// Whether this is a data directory, rather than the directory of a database inside one.
pub(crate) fn is_cluster(path: &Path) -> bool {
    has_version(path) && path.join("global").is_dir()
}

/// Whether this is a data directory or that of a database.
fn has_version(path: &Path) -> bool {
    path.join("PG_VERSION").exists()
}

impl Place {
    /// Directories on the same mount in which a file of ours may be created, nearest first.
    pub(crate) fn scratch_directories(&self) -> Vec<PathBuf> {
        let same_mount = |path: &&Path| Mount::of(path).is_ok_and(|it| it == self.mount);
        let near = self.path.ancestors().take_while(same_mount).skip(usize::from(self.in_cluster));
        near.filter(|path| cluster_around(path).is_none()).map(Path::to_owned).collect()
    }

    /// A file of the place that can be read with direct I/O.
    pub(crate) fn readable_file(&self) -> Option<PathBuf> {
        let mut pending = vec![self.path.clone()];
        let mut left = LOOKED_AT_MAX;
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                left = left.checked_sub(1)?;
                let path = entry.path();
                // Links may lead to other mounts.
                let Ok(found) = fs::symlink_metadata(&path) else { continue };
                if found.is_dir() {
                    pending.push(path);
                } else if found.is_file() && found.len() >= READABLE_MIN {
                    return Some(path);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes these files in a new directory.
    fn home(files: &[&str]) -> tempfile::TempDir {
        let home = tempfile::tempdir().expect("a directory");
        for file in files {
            let path = home.path().join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, vec![7; 8192]).expect("written");
        }
        home
    }

    #[test]
    fn scratch_directories_are_outside_of_clusters() {
        let home = home(&[
            "data/PG_VERSION",
            "data/base/5/1259",
            "space/PG_18_202506291/5/1",
            "log/archive_status/000000010000000000000001.done",
        ]);
        let root = home.path().canonicalize().expect("exists");
        for place in
            ["data", "data/base/5", "space", "space/PG_18_202506291/5", "log", "log/archive_status"]
        {
            let place = places(&root.join(place)).expect("a place").remove(0);
            let directories = place.scratch_directories();
            assert_eq!(directories.first(), Some(&root), "{place:?}");
        }
        let place = places(&root).expect("a place").remove(0);
        assert_eq!(place.scratch_directories().first(), Some(&root));
    }

    /// A log directory outside the cluster has no file or name that marks it as one.
    #[test]
    fn a_place_of_a_cluster_has_no_scratch_files_itself() {
        let home = home(&["wal/0001", "other/archive_status/1.ready"]);
        let root = home.path().canonicalize().expect("exists");
        let mount = Mount::of(&root).expect("a mount");
        for (name, in_cluster) in [("wal", true), ("other", false)] {
            let place = Place { path: root.join(name), mount: mount.clone(), in_cluster };
            assert_eq!(place.scratch_directories().first(), Some(&root), "{place:?}");
        }
        let place = Place { path: root.join("wal"), mount, in_cluster: false };
        assert_eq!(place.scratch_directories().first(), Some(&place.path));
    }

    #[test]
    fn a_place_has_files_to_read() {
        let home = home(&["data/PG_VERSION", "data/base/5/1259"]);
        let place = places(&home.path().join("data")).expect("a place").remove(0);
        let file = place.readable_file().expect("a file");
        assert!(file.starts_with(home.path().canonicalize().expect("exists")));
    }
}
