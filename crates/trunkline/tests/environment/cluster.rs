//! Builds cleanly shut down PostgreSQL 18 data directories with valid pages and checksums.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use trunkline_format::{BLOCK_SIZE, HeapPageBuilder};
use trunkline_sample::push_account;

/// Name of PostgreSQL 18's directory within a tablespace.
const TABLESPACE: &str = "PG_18_202506291";

pub(crate) struct Cluster {
    home: TempDir,
    pub(crate) path: PathBuf,
}

impl Cluster {
    /// An empty data directory, readable by all users.
    pub(crate) fn new() -> Cluster {
        let home = tempfile::tempdir().expect("temporary directory");
        fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).expect("opened");
        let path = home.path().join("data");
        for name in ["global", "base/5", "pg_tblspc"] {
            fs::create_dir_all(path.join(name)).expect("directory made");
        }
        fs::write(path.join("PG_VERSION"), "18\n").expect("written");
        fs::write(path.join("global/pg_control"), control_file()).expect("written");
        Cluster { home, path }
    }

    /// A data directory with `files` relations of `blocks` each.
    pub(crate) fn with_files(files: u32, blocks: u32) -> Cluster {
        let cluster = Cluster::new();
        let bytes = relation(blocks);
        for number in 0..files {
            let name = format!("base/5/{}", 16_384 + number);
            fs::write(cluster.path.join(name), &bytes).expect("written");
        }
        cluster
    }

    /// A directory next to the data directory, removed together with it.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Links a tablespace to a directory.
    pub(crate) fn link_tablespace(&self, oid: u32, target: &Path) {
        symlink(target, self.path.join(format!("pg_tblspc/{oid}"))).expect("link made");
    }
}

/// Path of the database's directory in a tablespace.
pub(crate) fn database() -> String {
    format!("{TABLESPACE}/5")
}

/// Path of a relation file in a tablespace.
pub(crate) fn file(relation: u32) -> String {
    format!("{TABLESPACE}/5/{relation}")
}

/// The first blocks of a relation.
pub(crate) fn relation(blocks: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(blocks as usize * BLOCK_SIZE);
    for block in 0..blocks {
        let mut page = HeapPageBuilder::new(block);
        push_account(&mut page, 1, 1, 0).expect("room");
        bytes.extend_from_slice(&page.finish(true));
    }
    bytes
}

/// A control file. See `trunkline_format::control` for the offsets.
fn control_file() -> Vec<u8> {
    let mut bytes = vec![0; 8192];
    let mut put = |offset: usize, value: u32| {
        bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    };
    for (offset, value) in [(8, 1800), (12, 202_506_291), (16, 1), (204, 8), (252, 1)] {
        put(offset, value);
    }
    for (offset, value) in [(216, 8192), (220, 131_072), (224, 8192), (228, 16 << 20)] {
        put(offset, value);
    }
    bytes[208..216].copy_from_slice(&1_234_567.0_f64.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..292]);
    bytes[292..296].copy_from_slice(&crc.to_le_bytes());
    bytes
}
