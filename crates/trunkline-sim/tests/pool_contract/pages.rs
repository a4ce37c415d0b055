//! What the relations that cases read consist of: pages, what can be wrong with them, and a file
//! system that stops who opens a file.

use crate::rig::Rig;
use std::path::Path;
use trunkline_aio::sync::Mutex;
use trunkline_engine::storage::FileSystem;
use trunkline_format::{BlockNo, PageBytes, page_checksum};
use trunkline_sim::rig;

/// A file system that can be told to hold who opens a file.
pub(crate) struct HeldFiles {
    inner: Box<dyn FileSystem>,
    gate: Mutex<Option<trunkline_sim::Gate>>,
}

impl HeldFiles {
    pub(crate) fn new(inner: Box<dyn FileSystem>) -> Self {
        Self { inner, gate: Mutex::new(None) }
    }

    /// The next one who opens a file stops before it.
    pub(crate) fn hold_open(&self) -> trunkline_sim::Gate {
        let gate = trunkline_sim::Gate::new();
        *self.gate.lock() = Some(gate.clone());
        gate
    }
}

impl FileSystem for HeldFiles {
    fn open(&self, path: &Path, direct: bool) -> std::io::Result<trunkline_aio::File> {
        let gate = self.gate.lock().take();
        if let Some(gate) = gate {
            gate.pass();
        }
        self.inner.open(path, direct)
    }

    fn length(&self, file: &trunkline_aio::File) -> std::io::Result<u64> {
        self.inner.length(file)
    }

    fn file_length(&self, path: &Path) -> std::io::Result<Option<u64>> {
        self.inner.file_length(path)
    }
}

/// What can be wrong with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    /// The checksum is wrong, the header sane.
    Checksum,
    /// The header is bad, the checksum right.
    Header,
    /// Both.
    Both,
}

/// What block `block` of relation `number` holds.
pub(crate) fn page(number: u32, block: BlockNo) -> PageBytes {
    rig::page(number, block, 0, 0)
}

fn damaged(number: u32, block: BlockNo, damage: Damage) -> PageBytes {
    let mut page = page(number, block);
    match damage {
        Damage::Checksum => page[5000] ^= 1,
        // Flags that do not exist.
        Damage::Header | Damage::Both => page[11] = 0xFF,
    }
    if damage == Damage::Header {
        let checksum = page_checksum(&page, block);
        page[8..10].copy_from_slice(&checksum.to_le_bytes());
    }
    page
}

impl Rig {
    pub(crate) fn damage(&self, block: BlockNo, damage: Damage) {
        self.put(0, block, &damaged(0, block, damage));
    }

    pub(crate) fn repair(&self, block: BlockNo) {
        self.put(0, block, &page(0, block));
    }
}
