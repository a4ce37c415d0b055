//! Sizes of databases and tablespaces, as the server computes them (`dbsize.c`): the bytes of all
//! files in their directories, whatever they are called.
//!
//! So they include files that belong to no relation, such as `pg_filenode.map`, and the sum of the
//! relations is smaller.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use trunkline_format::Oid;
use trunkline_format::segment::tablespace_directory;

use super::DataDir;
use super::error::DataDirError;
use super::files::{DEFAULT_TABLESPACE, GLOBAL_TABLESPACE, database_directory};

impl DataDir {
    /// The bytes of a database in all its tablespaces; 0 if there is no such database.
    ///
    /// # Errors
    /// [`DataDirError::Io`]: a directory cannot be read.
    pub fn database_bytes(&self, database: Oid) -> Result<u64, DataDirError> {
        let mut bytes = files_bytes(&self.database_path(DEFAULT_TABLESPACE, database))?;
        // Those of a backup needn't have links.
        let mut tablespaces: BTreeSet<Oid> = self.moved.iter().map(|(oid, _)| *oid).collect();
        for entry in entries(&self.path.join("pg_tblspc"))? {
            let name = entry.file_name();
            tablespaces.extend(name.to_str().and_then(|name| name.parse().ok()).map(Oid));
        }
        for tablespace in tablespaces {
            bytes += files_bytes(&self.database_path(tablespace, database))?;
        }
        Ok(bytes)
    }

    /// The bytes of all files in a tablespace. `None` if it has no directory.
    ///
    /// # Errors
    /// As for [`DataDir::database_bytes`].
    pub fn tablespace_bytes(&self, tablespace: Oid) -> Result<Option<u64>, DataDirError> {
        let directory = match tablespace {
            GLOBAL_TABLESPACE => self.path.join("global"),
            DEFAULT_TABLESPACE => self.path.join("base"),
            tablespace => {
                let mut path = self.database_path(tablespace, Oid(0));
                path.pop();
                path
            }
        };
        if !directory.is_dir() {
            return Ok(None);
        }
        let mut bytes = 0;
        for entry in entries(&directory)? {
            let Some(metadata) = metadata(&entry.path())? else { continue };
            if metadata.is_dir() {
                bytes += files_bytes(&entry.path())?;
            }
            bytes += metadata.len();
        }
        Ok(Some(bytes))
    }

    /// Where the symbolic link of a tablespace points, or will point when a server has recovered the
    /// backup; its path in the data directory if it is no link. `None` if there is no such tablespace. The
    /// path of `pg_default` and `pg_global` is empty.
    ///
    /// # Errors
    /// [`DataDirError::Io`]: the link cannot be read.
    pub fn tablespace_location(&self, tablespace: Oid) -> Result<Option<PathBuf>, DataDirError> {
        if [GLOBAL_TABLESPACE, DEFAULT_TABLESPACE].contains(&tablespace) {
            return Ok(Some(PathBuf::new()));
        }
        let relative = Path::new("pg_tblspc").join(tablespace.to_string());
        let path = self.path.join(&relative);
        let mut mapped = self.replay.iter().flat_map(|replay| replay.tablespaces());
        let mapped = mapped.find(|(oid, _)| *oid == tablespace).map(|(_, place)| place.clone());
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => Ok(Some(relative)),
            _ if mapped.is_some() => Ok(mapped),
            Ok(metadata) if metadata.is_symlink() => {
                let target = fs::read_link(&path);
                target.map(Some).map_err(|source| DataDirError::io("read link", &path, source))
            }
            Ok(_) => Ok(Some(relative)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(DataDirError::io("stat file", &path, source)),
        }
    }

    fn database_path(&self, tablespace: Oid, database: Oid) -> PathBuf {
        let version = tablespace_directory(self.control.version);
        database_directory(&self.path, &self.moved, &version, (tablespace, database))
    }
}

/// The bytes of everything in a directory; 0 if there is none.
fn files_bytes(directory: &Path) -> Result<u64, DataDirError> {
    let mut bytes = 0;
    for entry in entries(directory)? {
        bytes += metadata(&entry.path())?.map_or(0, |metadata| metadata.len());
    }
    Ok(bytes)
}

/// What a path leads to; `None` if the file has been removed meanwhile.
fn metadata(path: &Path) -> Result<Option<fs::Metadata>, DataDirError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(DataDirError::io("stat file", path, source)),
    }
}

/// The entries of a directory; none if it doesn't exist.
fn entries(directory: &Path) -> Result<Vec<fs::DirEntry>, DataDirError> {
    let fail = |source| DataDirError::io("open directory", directory, source);
    match fs::read_dir(directory) {
        Ok(entries) => entries.collect::<Result<Vec<_>, _>>().map_err(fail),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(fail(source)),
    }
}
