//! The relations that cases read: pages that know their numbers, what can be wrong with them, and a
//! file system that stops who opens a file.

use crate::rig::Rig;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use trunkline_aio::sync::Mutex;
use trunkline_engine::storage::FileSystem;
use trunkline_format::{
    BLOCK_SIZE, BlockNo, HeapPageBuilder, PageBytes, SEGMENT_BLOCKS, page_checksum,
};

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
    let mut builder = HeapPageBuilder::new(block);
    builder.push_account(block as i32, number as i32, 7).expect("room");
    builder.finish(true)
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
    /// Makes a relation.
    pub(crate) fn create(&self, number: u32, blocks: u32) {
        let bytes: Vec<u8> = (0..blocks).flat_map(|block| page(number, block)).collect();
        self.write_segment(number, 0, &bytes);
    }

    /// Makes a segment of a relation.
    pub(crate) fn write_segment(&self, number: u32, segment: u32, bytes: &[u8]) {
        let path = self.relation(number).path(segment);
        if self.folder.is_none() {
            return self.disk.create(path.to_str().expect("a name"), 1, bytes);
        }
        fs::create_dir_all(path.parent().expect("a directory")).expect("creates it");
        fs::write(&path, bytes).expect("writes");
    }

    /// Makes a relation's first segment so many blocks long.
    pub(crate) fn set_blocks(&self, number: u32, blocks: u32) {
        let (path, length) = (self.relation(number).path(0), blocks as usize * BLOCK_SIZE);
        if self.folder.is_none() {
            return self.disk.set_length(path.to_str().expect("a name"), length);
        }
        let file = fs::OpenOptions::new().write(true).open(path).expect("opens");
        file.set_len(length as u64).expect("truncates");
    }

    /// Changes a block of the first segment on disk.
    pub(crate) fn put(&self, number: u32, block: BlockNo, page: &[u8]) {
        assert!(block < SEGMENT_BLOCKS);
        let (path, offset) = (self.relation(number).path(0), block as usize * BLOCK_SIZE);
        if self.folder.is_none() {
            return self.disk.overwrite(path.to_str().expect("a name"), offset, page);
        }
        let file = fs::OpenOptions::new().write(true).open(path).expect("opens");
        file.write_all_at(page, offset as u64).expect("writes");
    }

    pub(crate) fn damage(&self, block: BlockNo, damage: Damage) {
        self.put(0, block, &damaged(0, block, damage));
    }

    pub(crate) fn repair(&self, block: BlockNo) {
        self.put(0, block, &page(0, block));
    }
}
