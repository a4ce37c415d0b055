//! Paths of relation files: from a path to the relation, and back (`relpath.c`).
//!
//! ```text
//!   global/1262                             database 0, tablespace 1664
//!   base/5/16384.1                          database 5, tablespace 1663
//!   pg_tblspc/16766/PG_18_202506291/5/1     database 5, tablespace 16766
//! ```

use std::path::{Path, PathBuf};

use trunkline_format::segment::tablespace_directory;
use trunkline_format::{Oid, RelationFile};

use crate::datadir::{DataDir, database_directory};
use crate::storage::{DEFAULT_TABLESPACE, GLOBAL_TABLESPACE, RelationLocator};

/// The tablespace, database and file number encoded in a path below a data directory. We only parse
/// the path itself, so the file doesn't have to exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelationPath {
    /// The tablespace.
    pub tablespace: Oid,
    /// The database, 0 for `global`; `None` if the path ends above a database's directory.
    pub database: Option<Oid>,
    /// The file number; `None` if it is not a relation's file.
    pub relfilenode: Option<u32>,
}

impl RelationPath {
    /// Parses a path, which must be below the data directory, or below the directory of a
    /// tablespace that was moved without updating its link. Returns `None` for any other path.
    pub fn of(dir: &DataDir, path: &Path) -> Option<Self> {
        Self::find(dir.path(), dir.moved_tablespaces(), path)
    }

    fn find(root: &Path, moved: &[(Oid, PathBuf)], path: &Path) -> Option<Self> {
        let moved = moved.iter().find_map(|(oid, to)| Some((oid, path.strip_prefix(to).ok()?)));
        let below = match moved {
            Some((oid, below)) => Path::new("pg_tblspc").join(oid.to_string()).join(below),
            None => path.strip_prefix(root).ok()?.to_owned(),
        };
        let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
        let parts = parts?;
        let number = |part: &&str| part.parse().ok().map(Oid);
        let (tablespace, database, file) = match *parts.as_slice() {
            ["global", ref rest @ ..] => (GLOBAL_TABLESPACE, Some(Oid(0)), rest.first()),
            ["base", ref rest @ ..] => {
                (DEFAULT_TABLESPACE, rest.first().and_then(number), rest.get(1))
            }
            ["pg_tblspc", ref tablespace, ref rest @ ..] => {
                (number(tablespace)?, rest.get(1).and_then(number), rest.get(2))
            }
            _ => return None,
        };
        let relfilenode = file.and_then(|name| RelationFile::parse(name));
        let relfilenode = relfilenode.map(|file| file.relfilenode);
        Some(Self { tablespace, database, relfilenode })
    }

    /// The relation, if this is the path of a relation file.
    pub fn locator(&self) -> Option<RelationLocator> {
        let (database, relfilenode) = (self.database?, self.relfilenode?);
        Some(RelationLocator { tablespace: self.tablespace, database, relfilenode })
    }
}

/// The path of a relation's first segment.
pub fn first_file(dir: &DataDir, locator: RelationLocator) -> PathBuf {
    let version = tablespace_directory(dir.control().version);
    let place = (locator.tablespace, locator.database);
    let directory = database_directory(dir.path(), dir.moved_tablespaces(), &version, place);
    directory.join(locator.relfilenode.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_relations() {
        let root = Path::new("/data");
        for (path, tablespace, database, file) in [
            ("global/1262", 1664, Some(0), Some(1262)),
            ("global/1262_vm.1", 1664, Some(0), Some(1262)),
            ("global/pg_control", 1664, Some(0), None),
            ("base/5/16384.1", 1663, Some(5), Some(16384)),
            ("base/5", 1663, Some(5), None),
            ("base", 1663, None, None),
            ("pg_tblspc/16766/PG_18_202506291/5/16767_fsm", 16766, Some(5), Some(16767)),
            ("pg_tblspc/16766/PG_18_202506291", 16766, None, None),
        ] {
            let found = RelationPath::find(root, &[], &root.join(path)).expect(path);
            let expected = (Oid(tablespace), database.map(Oid), file);
            assert_eq!((found.tablespace, found.database, found.relfilenode), expected, "{path}");
        }
        for path in ["/data/pg_wal/1", "/data", "/elsewhere/base/5/1", "/data/pg_tblspc/x/y"] {
            assert_eq!(RelationPath::find(root, &[], Path::new(path)), None, "{path}");
        }
        let moved = [(Oid(16766), PathBuf::from("/space"))];
        let path = Path::new("/space/PG_18_202506291/5/16767");
        let found = RelationPath::find(root, &moved, path).and_then(|place| place.locator());
        let (tablespace, database) = (Oid(16766), Oid(5));
        assert_eq!(found, Some(RelationLocator { tablespace, database, relfilenode: 16767 }));
    }
}
