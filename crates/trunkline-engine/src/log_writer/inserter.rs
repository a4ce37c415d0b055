//! Inserts records into the WAL.
//!
//! ```text
//!   room ─▶ lock and change pages ─▶ insert: assemble, reserve, copy ─▶ set the pages' LSN, unlock ─▶ flush at commit
//! ```
//! Whether a page needs a full-page image depends on the redo point. The reservation rechecks it: if a checkpoint has
//! begun since, the record is assembled again (as `XLogInsert` does when `RedoRecPtr` has moved).

use std::fmt;
use std::sync::Arc;

use trunkline_aio::facade::atomic::Ordering;
use trunkline_format::control::Checkpoint;
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::resource_manager::xlog_operation::{
    CHECKPOINT_ONLINE, CHECKPOINT_REDO, CHECKPOINT_SHUTDOWN,
};
use trunkline_format::wal::{ImagePolicy, NewRecord, RecordBuffer};

use super::error::LogWriterError;
use super::reservation::Reserved;
use super::room::{Room, worst_case_bytes};
use super::writer::{LogWriter, RecordLocation, VERSION};

/// One session's insertion slot and record buffer (compare a WAL insertion lock).
pub struct Inserter {
    log: Arc<LogWriter>,
    slot: usize,
    buffer: RecordBuffer,
}

impl Inserter {
    /// The right to insert records into `log`. `None` if all its inserters are in use.
    pub fn new(log: &Arc<LogWriter>) -> Option<Self> {
        let slot = log.free_slots.lock().pop()?;
        Some(Self { log: Arc::clone(log), slot, buffer: RecordBuffer::default() })
    }

    /// Inserts a record. The caller holds exclusive locks of the pages that it names, has changed them, and sets
    /// their LSN to the end of the record before it unlocks them.
    ///
    /// # Errors
    /// [`LogWriterError::Record`] or [`LogWriterError::RoomExceeded`]: the parts don't make a record that fits into the room.
    /// Nothing was inserted.
    pub fn insert(
        &mut self,
        room: &mut Room,
        record: &NewRecord<'_>,
    ) -> Result<RecordLocation, LogWriterError> {
        let log = &*self.log;
        let reserved = loop {
            let redo = log.redo();
            self.buffer.assemble(record, &log.policy(redo))?;
            self.check_length(room)?;
            let length = self.buffer.length() as u64;
            // If a checkpoint has begun meanwhile, some pages may need images now.
            let oldest = self.buffer.oldest_without_image();
            let is_current = || oldest.is_none_or(|oldest| oldest > log.redo());
            if let Some(reserved) = log.reservations.reserve(self.slot, length, is_current) {
                break reserved;
            }
        };
        let location = self.copy(room, &reserved);
        self.log.reservations.finish(self.slot);
        Ok(location)
    }

    /// Inserts the record of a new checkpoint's redo point (`CHECKPOINT_REDO`). The first change of a page after it is
    /// logged with a full-page image.
    ///
    /// # Errors
    /// As for [`Inserter::insert`].
    pub fn begin_checkpoint(&mut self, room: &mut Room) -> Result<RecordLocation, LogWriterError> {
        let log = &*self.log;
        let level = log.options.wal_level.to_le_bytes();
        let main_data: &[&[u8]] = &[&level];
        let record = NewRecord::plain(number::XLOG, CHECKPOINT_REDO, 0, main_data);
        self.buffer.assemble(&record, &ImagePolicy::NONE)?;
        self.check_length(room)?;
        let reserved = log.reservations.reserve_exclusive(self.buffer.length() as u64);
        let location = self.copy(room, &reserved);
        self.log.redo.store(location.start.0, Ordering::SeqCst);
        self.log.reservations.end_exclusive(&reserved);
        Ok(location)
    }

    /// Inserts the record of a shutdown checkpoint, whose redo point is the record itself. Nothing else may insert
    /// records meanwhile, or after it.
    ///
    /// # Errors
    /// As for [`Inserter::insert`]; [`LogWriterError::NotAlone`] if another session has inserted a record.
    pub fn insert_shutdown(
        &mut self,
        room: &mut Room,
        checkpoint: &Checkpoint,
    ) -> Result<RecordLocation, LogWriterError> {
        let main_data: &[&[u8]] = &[&checkpoint.to_record(VERSION)];
        let location =
            self.insert(room, &NewRecord::plain(number::XLOG, CHECKPOINT_SHUTDOWN, 0, main_data))?;
        match location.start == checkpoint.redo {
            true => Ok(location),
            false => Err(LogWriterError::NotAlone { place: checkpoint.redo }),
        }
    }

    /// Inserts the record that a checkpoint is complete.
    ///
    /// # Errors
    /// As for [`Inserter::insert`].
    pub fn end_checkpoint(
        &mut self,
        room: &mut Room,
        checkpoint: &Checkpoint,
    ) -> Result<RecordLocation, LogWriterError> {
        let main_data: &[&[u8]] = &[&checkpoint.to_record(VERSION)];
        self.insert(room, &NewRecord::plain(number::XLOG, CHECKPOINT_ONLINE, 0, main_data))
    }

    fn check_length(&self, room: &Room) -> Result<(), LogWriterError> {
        let (bytes, left) = (worst_case_bytes(1, self.buffer.length() as u64), room.bytes());
        match bytes <= left {
            true => Ok(()),
            false => Err(LogWriterError::RoomExceeded { bytes, left }),
        }
    }

    /// Copies the assembled record to its place, and takes its bytes from the room.
    fn copy(&mut self, room: &mut Room, reserved: &Reserved) -> RecordLocation {
        let log = &*self.log;
        let bytes = self.buffer.seal(log.previous(reserved));
        log.pages.put_record(&log.ring, &log.positions, reserved, bytes);
        let (from, to) = (log.positions.end(reserved.start), log.positions.end(reserved.end));
        room.spend(to.0 - from.0);
        log.location(reserved)
    }
}

impl Drop for Inserter {
    fn drop(&mut self) {
        self.log.free_slots.lock().push(self.slot);
    }
}

impl fmt::Debug for Inserter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inserter({})", self.slot)
    }
}
