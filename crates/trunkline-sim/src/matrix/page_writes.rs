//! Page changes, checkpoints and damaged pages of a cluster case.
//!
//! To change a page, a case follows PostgreSQL's rules: it pins the page, takes the exclusive lock,
//! writes a WAL record, applies the change, sets the page LSN to that of the record, and marks the
//! buffer dirty.

use super::cluster::includes;
use super::{Cluster, is_sound, is_version, page};
use crate::probe::PausedIo;
use trunkline_aio::Operation;
use trunkline_aio::facade::atomic::Ordering;
use trunkline_engine::checkpoint::{
    CheckpointError, CheckpointOptions, CheckpointReport, checkpoint,
};
use trunkline_engine::pool::{Backend, Pin};
use trunkline_engine::storage::FileSystem;
use trunkline_format::{BLOCK_SIZE, BlockNo, page_checksum};

/// How a page is damaged. Reads check the checksum and the header separately, and their policies
/// treat the two differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The checksum doesn't match, but the header is valid.
    Checksum,
    /// The header is invalid, but the checksum matches.
    Header,
    /// Both.
    Both,
}

impl Cluster {
    /// Whether a relation's first segment exists.
    ///
    /// # Panics
    /// If the file system or the engine returns an error.
    pub fn exists(&self, number: u32) -> bool {
        let path = self.relation(number).path(0);
        self.files.file_length(&path).expect("a length").is_some()
    }

    /// Whether the file has this version of a block of relation 0, with a valid checksum.
    pub fn is_on_disk(&self, block: BlockNo, version: u32) -> bool {
        let at = block as usize * BLOCK_SIZE;
        let bytes = self.on_disk(0);
        bytes
            .get(at..at + BLOCK_SIZE)
            .is_some_and(|found| is_sound(found, block) && is_version(found, 0, block, version))
    }

    /// Changes a block of relation 0 to the given version.
    pub fn change(&self, backend: &mut Backend, block: BlockNo, version: u32) {
        self.change_in(backend, 0, block, version);
    }

    /// Reads a block and changes it to the given version.
    ///
    /// # Panics
    /// See [`Cluster::exists`].
    pub fn change_in(&self, backend: &mut Backend, number: u32, block: BlockNo, version: u32) {
        let pin = backend.read(&self.relation(number), block).expect("reads");
        self.change_pinned(backend, number, &pin, version);
    }

    /// Changes a pinned block to the given version.
    ///
    /// # Panics
    /// See [`Cluster::exists`].
    pub fn change_pinned(&self, backend: &mut Backend, number: u32, pin: &Pin, version: u32) {
        let block = pin.page().block();
        let mut bytes = backend.write_lock(pin.page()).expect("locks");
        // Write the WAL record first, because the page needs its LSN. A local pool is not
        // WAL-logged.
        let lsn = if self.environment.local_pool { 0 } else { self.log.append(64).0 };
        bytes.copy_from_slice(&page(number, block, version, lsn));
        bytes.mark_dirty();
    }

    /// Changes a relation's first 16 blocks to the given version.
    pub fn change_sixteen(&self, number: u32, version: u32) {
        let mut backend = self.backend();
        (0..16).for_each(|block| self.change_in(&mut backend, number, block, version));
    }

    /// Asserts that relation 0's first 16 blocks have this version on disk.
    ///
    /// # Panics
    /// If a block has another version.
    pub fn assert_sixteen_on_disk(&self, version: u32) {
        for block in 0..16 {
            assert!(self.is_on_disk(block, version), "block {block} is not {version} on disk");
        }
    }

    /// Asserts that every checkpoint fails because of an earlier fsync failure. We try two
    /// checkpoints, because the kernel reports an fsync failure only once. The second fsync would
    /// succeed even though data was lost, and the checkpoint must still fail.
    ///
    /// # Panics
    /// If a checkpoint succeeds.
    pub fn assert_checkpoints_fail(&self, backend: &mut Backend) {
        for _ in 0..2 {
            let error = self.checkpoint(backend).expect_err("permanent");
            assert!(matches!(error, CheckpointError::EarlierSync), "{error}");
        }
    }

    /// Asserts that a block of relation 0 is readable and has this version.
    ///
    /// # Panics
    /// If the read fails, or the block has another version.
    pub fn assert_reads(&self, backend: &mut Backend, block: BlockNo, version: u32) {
        let pin = backend.read(&self.relation(0), block).expect("reads");
        let found = backend.read_lock(pin.page()).expect("locks");
        assert!(is_version(&*found, 0, block, version), "block {block} is not version {version}");
    }

    /// Runs a checkpoint with default options.
    ///
    /// # Errors
    /// If the checkpoint fails.
    pub fn checkpoint(&self, backend: &mut Backend) -> Result<CheckpointReport, CheckpointError> {
        self.checkpoint_with(backend, CheckpointOptions::default())
    }

    /// Runs a checkpoint. If an fsync has failed, remembers that for the final checks.
    ///
    /// # Errors
    /// If the checkpoint fails.
    pub fn checkpoint_with(
        &self,
        backend: &mut Backend,
        options: CheckpointOptions,
    ) -> Result<CheckpointReport, CheckpointError> {
        let result = checkpoint(&self.pool, backend, options, |_| {});
        if result.as_ref().is_err_and(CheckpointError::is_sync_failure) {
            self.sync_failed.store(true, Ordering::SeqCst);
        }
        result
    }

    /// Holds back the result of the next write that covers a block.
    pub fn hold_write(&self, block: BlockNo) -> PausedIo {
        self.probe.hold_result(move |io| io.operation == Operation::Writev && includes(io, block))
    }

    /// Whether a block is dirty in the pool.
    pub fn is_dirty(&self, number: u32, block: BlockNo) -> bool {
        self.row(number, block).is_some_and(|row| row.dirty)
    }

    /// Whether a block of relation 0 is being read or written.
    pub fn is_under_io(&self, block: BlockNo) -> bool {
        self.row(0, block).is_some_and(|row| row.io.is_some())
    }

    /// Damages a block of relation 0 on disk, bypassing the engine.
    pub fn damage(&self, block: BlockNo, damage: Damage) {
        let mut page = page(0, block, 0, 0);
        match damage {
            // Byte 5000 is in free space or row data, so the header stays valid.
            Damage::Checksum => page[5000] ^= 1,
            // Set undefined flag bits.
            Damage::Header | Damage::Both => page[11] = 0xFF,
        }
        if damage == Damage::Header {
            let checksum = page_checksum(&page, block);
            page[8..10].copy_from_slice(&checksum.to_le_bytes());
        }
        self.put(0, block, &page);
    }

    /// Restores a damaged block of relation 0.
    pub fn repair(&self, block: BlockNo) {
        self.put(0, block, &page(0, block, 0, 0));
    }
}
