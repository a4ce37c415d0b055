//! The directory of a sample: whose it is, and whether the sample in it is complete.
//!
//! ```text
//!   empty ─ claim ─▶ MARKER.new, files ─ complete ─▶ MARKER, files ─ remove ─▶ gone
//!                        ▲                               │
//!                        └──────── claim anew ───────────┘
//! ```
//!
//! Each kind of sample has a marker of its own and keeps off directories in which there is anything
//! and not that marker: other people's files, above all a cluster's, and samples of other kinds.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Advice;
use trunkline_format::{BLOCK_SIZE, Fork, Oid, RelationFile};

use super::write::NewFile;
use crate::datadir::FileEntry;

/// The tablespace that samples pretend to be in: `pg_default`.
pub(super) const TABLESPACE: Oid = Oid(1663);
/// The database that samples pretend to be in: `postgres`.
pub(super) const DATABASE: Oid = Oid(5);

/// A directory for one kind of sample.
pub(super) struct Directory<'a> {
    path: &'a Path,
    marker: PathBuf,
    claim: PathBuf,
}

impl<'a> Directory<'a> {
    pub(super) fn new(path: &'a Path, marker: &str) -> Self {
        Self { path, marker: path.join(marker), claim: path.join(format!("{marker}.new")) }
    }

    /// Where the relation files are.
    pub(super) fn base(&self) -> PathBuf {
        self.path.join("base").join(DATABASE.to_string())
    }

    /// Whether the sample that `text` describes was completed here.
    pub(super) fn is_complete(&self, text: &str) -> bool {
        fs::read_to_string(&self.marker).is_ok_and(|found| found == text)
    }

    /// Makes the directory ours to write a sample that `text` describes.
    pub(super) fn claim(&self, text: &str) -> io::Result<()> {
        fs::create_dir_all(self.path)?;
        self.check_ours()?;
        let file = fs::File::create(&self.claim)?;
        io::Write::write_all(&mut &file, text.as_bytes())?;
        file.sync_all()?;
        // An older sample is no longer one from here on.
        unlink(&self.marker)?;
        fs::create_dir_all(self.base())
    }

    /// Says that all files are written and durable.
    pub(super) fn complete(&self) -> io::Result<()> {
        // The files' names too must be on disk before the marker is.
        for directory in [self.base(), self.path.join("base")] {
            fs::File::open(directory)?.sync_all()?;
        }
        fs::rename(&self.claim, &self.marker)?;
        fs::File::open(self.path)?.sync_all()
    }

    /// Removes the files that `files` finds below the base directory, the marker, and every
    /// directory that is empty then.
    pub(super) fn remove(&self, files: impl FnOnce(&Path) -> Vec<PathBuf>) -> io::Result<()> {
        self.check_ours()?;
        files(&self.base()).iter().try_for_each(|path| unlink(path))?;
        unlink(&self.marker)?;
        unlink(&self.claim)?;
        for directory in [self.base(), self.path.join("base"), self.path.to_owned()] {
            match fs::remove_dir(directory) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => break,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Makes sure that nobody else's files are in the directory: it is empty, or a sample of this
    /// kind is in it already.
    fn check_ours(&self) -> io::Result<()> {
        let ours = self.marker.is_file() || self.claim.is_file();
        if ours || fs::read_dir(self.path)?.next().is_none() {
            return Ok(());
        }
        let text = format!("\"{}\" is not empty and holds no sample", self.path.display());
        Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
    }
}

/// Removes a file if it is there.
pub(super) fn unlink(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The files, if they are there and whole.
pub(super) fn entries(plan: &[NewFile]) -> io::Result<Vec<FileEntry>> {
    plan.iter().map(entry).collect()
}

fn entry(new: &NewFile) -> io::Result<FileEntry> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::symlink_metadata(&new.path)?;
    let bytes = u64::from(new.blocks) * BLOCK_SIZE as u64;
    let name = new.path.file_name().and_then(|name| name.to_str());
    let Some(name) = name.and_then(RelationFile::parse) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    if !metadata.is_file() || metadata.len() != bytes {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(FileEntry {
        path: new.path.clone(),
        tablespace: TABLESPACE,
        database: DATABASE,
        relfilenode: name.relfilenode,
        fork: Fork::Main,
        segment: name.segment,
        bytes,
        device: metadata.dev(),
    })
}

/// Asks the system to forget what it has cached of the files, after it has written them.
pub(super) fn evict(files: &[FileEntry]) -> io::Result<()> {
    for file in files {
        let file = fs::File::open(&file.path)?;
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}
