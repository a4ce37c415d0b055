//! Writes a control file: the inverse of [`ControlFile::parse`].
//!
//! ```text
//!   fields at the offsets of the version's layout ─▶ CRC of the bytes before it ─▶ zeros up to 8192
//! ```

use super::error::FLOAT_FORMAT;
use super::layout::Layout;
use super::{CONTROL_FILE_SIZE, Checkpoint, ControlFile, PgVersion};
use crate::little_endian::put;

impl ControlFile {
    /// The contents of `global/pg_control`. A field that the file's version doesn't have is left out, and a
    /// field that it has and this value doesn't is 0.
    pub fn encode(&self) -> Box<[u8; CONTROL_FILE_SIZE]> {
        let layout = Layout::of_release(self.version);
        let mut file = Box::new([0; CONTROL_FILE_SIZE]);
        self.write(&mut file[..], &layout);
        let crc = crc32c::crc32c(file.get(..layout.crc).unwrap_or_default());
        put(&mut file[..], layout.crc, crc.to_le_bytes());
        file
    }

    fn write(&self, file: &mut [u8], layout: &Layout) {
        put(file, 0, self.system_identifier.to_le_bytes());
        put(file, 24, self.time.to_le_bytes());
        self.checkpoint.write(file, layout);
        let time = layout.checkpoint_time;
        let mut word = |at, value: u32| put(file, at, value.to_le_bytes());
        word(8, self.version.control_version());
        word(12, self.version.catalog_version());
        word(16, self.state.to_bits());
        word(time + 40, self.min_recovery_timeline);
        word(time + 64, self.backup_end_required.into());
        word(time + 68, self.wal_level);
        word(time + 72, self.wal_log_hints.into());
        word(time + 76, self.max_connections);
        word(time + 80, self.max_worker_processes);
        word(time + 84, self.max_wal_senders);
        word(time + 88, self.max_prepared_xacts);
        word(time + 92, self.max_locks_per_xact);
        word(time + 96, self.track_commit_timestamp.into());
        word(time + 100, self.max_align);
        word(time + 112, self.block_size);
        word(time + 116, self.segment_blocks);
        let sizes = layout.wal_block_size;
        word(sizes, self.wal_block_size);
        word(sizes + 4, self.wal_segment_size);
        word(sizes + 8, self.name_length);
        word(sizes + 12, self.index_columns);
        word(sizes + 16, self.toast_chunk);
        word(sizes + 20, self.large_object_block);
        word(sizes + 24, self.float8_by_value.into());
        word(layout.data_checksum, self.data_checksum_version);
        let mut optional = |at: Option<usize>, value: Option<u32>| {
            at.into_iter().for_each(|at| word(at, value.unwrap_or_default()));
        };
        optional(layout.slru_pages, self.slru_pages_per_segment);
        optional(layout.initial_checksum, self.initial_data_checksum_version);
        for (at, lsn) in [
            (time + 24, self.unlogged_lsn),
            (time + 32, self.min_recovery_point),
            (time + 48, self.backup_start),
            (time + 56, self.backup_end),
        ] {
            put(file, at, lsn.0.to_le_bytes());
        }
        put(file, time + 104, FLOAT_FORMAT.to_le_bytes());
        if let Some(at) = layout.char_signed {
            put(file, at, [self.char_signed.unwrap_or_default().into()]);
        }
        put(file, layout.nonce, self.mock_nonce);
    }
}

impl Checkpoint {
    /// The main data of a checkpoint record: the bytes of which the control file contains a copy.
    pub fn to_record(&self, version: PgVersion) -> Vec<u8> {
        let layout = Layout::of_release(version);
        let mut bytes = vec![0; layout.checkpoint_time + 20];
        self.write(&mut bytes, &layout);
        // The C struct is padded to a multiple of 8 bytes.
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.split_off(Self::COPY)
    }

    /// Writes this copy into a control file.
    fn write(&self, file: &mut [u8], layout: &Layout) {
        put(file, 32, self.location.0.to_le_bytes());
        put(file, 40, self.redo.0.to_le_bytes());
        put(file, layout.next_xid, self.next_xid.to_le_bytes());
        put(file, 56, [self.full_page_writes.into()]);
        if let Some(at) = layout.logical_decoding {
            put(file, at, [self.logical_decoding.unwrap_or_default().into()]);
        }
        if let Some(at) = layout.wal_level {
            put(file, at, self.wal_level.unwrap_or_default().to_le_bytes());
        }
        let multi_offset = layout.next_xid + 16;
        if layout.wide_multi_offset {
            put(file, multi_offset, self.next_multi_offset.to_le_bytes());
        } else {
            put(file, multi_offset, (self.next_multi_offset as u32).to_le_bytes());
        }
        let time = layout.checkpoint_time;
        put(file, time, self.time.to_le_bytes());
        for (at, word) in [
            (48, self.timeline),
            (52, self.previous_timeline),
            (layout.next_xid + 8, self.next_oid.0),
            (layout.next_xid + 12, self.next_multi),
            (layout.oldest_xid, self.oldest_xid),
            (layout.oldest_xid + 4, self.oldest_xid_db.0),
            (layout.oldest_xid + 8, self.oldest_multi),
            (layout.oldest_xid + 12, self.oldest_multi_db.0),
            (time + 8, self.oldest_commit_ts_xid),
            (time + 12, self.newest_commit_ts_xid),
            (time + 16, self.oldest_active_xid),
        ] {
            put(file, at, word.to_le_bytes());
        }
    }
}
