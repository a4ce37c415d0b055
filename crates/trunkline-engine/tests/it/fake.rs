//! A minimal data directory in PostgreSQL 18's format: valid, shut down and empty. Tests then
//! damage it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use trunkline_engine::datadir::{DataDir, DataDirError, OpenOptions};

use crate::child;

/// Offsets in PostgreSQL 18's control file; see the layout in `trunkline_format::control`.
pub(crate) const CATALOG_VERSION: usize = 12;
pub(crate) const STATE: usize = 16;
pub(crate) const BLOCK_SIZE: usize = 216;
pub(crate) const SEGMENT_SIZE: usize = 220;
const CRC: usize = 292;

pub(crate) const SEGMENT_BYTES: u64 = 1 << 30;

pub(crate) struct Fake {
    _home: TempDir,
    pub(crate) path: PathBuf,
}

impl Fake {
    /// The directory isn't in `/tmp`, which may be a tmpfs, where direct I/O is not possible. But an
    /// unprivileged child might not be allowed to use any other directory.
    pub(crate) fn new() -> Fake {
        let home = match child::is_child() && !child::is_root() {
            true => tempfile::tempdir(),
            false => tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")),
        };
        let home = home.expect("temporary directory");
        let path = home.path().join("data");
        for name in ["global", "base/1", "base/5", "pg_tblspc"] {
            fs::create_dir_all(path.join(name)).expect("directory made");
        }
        let fake = Fake { _home: home, path };
        fake.write("PG_VERSION", b"18\n");
        fake.write("base/5/PG_VERSION", b"18\n");
        fake.write("global/pg_control", &control_file());
        fake
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.at(name), bytes).expect("file written");
    }

    /// Creates a sparse file of `bytes` zero bytes.
    pub(crate) fn sparse(&self, name: &str, bytes: u64) {
        fs::File::create(self.at(name)).and_then(|file| file.set_len(bytes)).expect("file made");
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, name: &str) {
        std::os::unix::fs::symlink(target, self.at(name)).expect("link made");
    }

    pub(crate) fn pipe(&self, name: &str) {
        let status = Command::new("mkfifo").arg(self.at(name)).status().expect("mkfifo runs");
        assert!(status.success());
    }

    /// Writes a number into the control file and recomputes the checksum.
    pub(crate) fn control(&self, offset: usize, value: u32) {
        let mut bytes = fs::read(self.at("global/pg_control")).expect("control file read");
        put(&mut bytes, offset, value);
        seal(&mut bytes);
        self.write("global/pg_control", &bytes);
    }

    pub(crate) fn open(&self) -> Result<DataDir, DataDirError> {
        DataDir::open(&self.path, OpenOptions::default())
    }

    pub(crate) fn open_forced(&self) -> DataDir {
        DataDir::open(&self.path, OpenOptions { force_unclean: true, ..OpenOptions::default() })
            .expect("opened by force")
    }

    /// Opens the directory, which must fail. Returns the error's text, with `DIR` in place of the
    /// path.
    pub(crate) fn refusal(&self) -> String {
        let error = self.open().expect_err("refused");
        error.to_string().replace(&*self.path.to_string_lossy(), "DIR")
    }
}

fn put(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
}

fn seal(bytes: &mut [u8]) {
    let crc = crc32c::crc32c(&bytes[..CRC]);
    put(bytes, CRC, crc);
}

fn control_file() -> Vec<u8> {
    let mut bytes = vec![0; 8192];
    let fields = [
        (8, 1800),
        (CATALOG_VERSION, 202_506_291),
        (STATE, 1),
        (204, 8),
        (BLOCK_SIZE, 8192),
        (SEGMENT_SIZE, 131_072),
        (224, 8192),
        (228, 16 << 20),
        (232, 64),
        (236, 32),
        (240, 1996),
        (244, 2048),
        (252, 1),
    ];
    for (offset, value) in fields {
        put(&mut bytes, offset, value);
    }
    bytes[208..216].copy_from_slice(&1_234_567.0_f64.to_le_bytes());
    seal(&mut bytes);
    bytes
}
