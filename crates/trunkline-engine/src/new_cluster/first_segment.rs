//! The first segment of a new cluster's WAL: a page header and a shutdown checkpoint (`BootStrapXLOG`).

use trunkline_format::text_output::FIRST_USER_OID;
use trunkline_format::transam::FIRST_NORMAL_XID;
use trunkline_format::wal::resource_manager::number;
use trunkline_format::wal::resource_manager::xlog_operation::CHECKPOINT_SHUTDOWN;
use trunkline_format::wal::{
    ImagePolicy, LONG_HEADER_SIZE, LogPageHeader, LongHeader, NewRecord, NewRecordError,
    RecordBuffer, SegmentName, SegmentSize,
};
use trunkline_format::{Checkpoint, ControlFile, Lsn, Oid};

/// Where the first record begins, in bytes from the start of the segment.
pub(super) const HEADER: u64 = LONG_HEADER_SIZE as u64;

/// The database that `initdb` makes first (`Template1DbOid`).
const TEMPLATE1: Oid = Oid(1);

/// The counters of a cluster in which nothing has happened.
pub(super) fn checkpoint(redo: Lsn, time: i64) -> Checkpoint {
    Checkpoint {
        location: redo,
        redo,
        timeline: 1,
        previous_timeline: 1,
        full_page_writes: true,
        wal_level: Some(0),
        logical_decoding: None,
        next_xid: FIRST_NORMAL_XID.into(),
        next_oid: Oid(FIRST_USER_OID),
        next_multi: 1,
        next_multi_offset: 0,
        oldest_xid: FIRST_NORMAL_XID,
        oldest_xid_db: TEMPLATE1,
        oldest_multi: 1,
        oldest_multi_db: TEMPLATE1,
        time,
        oldest_commit_ts_xid: 0,
        newest_commit_ts_xid: 0,
        oldest_active_xid: 0,
    }
}

/// The first segment.
pub(super) struct FirstSegment {
    pub(super) name: SegmentName,
    pub(super) bytes: Vec<u8>,
    /// Where its only record ends.
    pub(super) end: Lsn,
}

/// Builds the segment.
pub(super) fn build(
    control: &ControlFile,
    size: SegmentSize,
) -> Result<FirstSegment, NewRecordError> {
    let mut segment = vec![0; size.bytes() as usize];
    let redo = control.checkpoint.redo;
    let address = Lsn(redo.0 - HEADER);
    let file = LongHeader::new(control.system_identifier, size);
    let timeline = control.checkpoint.timeline;
    LogPageHeader::new(control.version, timeline, file, address, None).write(&mut segment);
    let data = control.checkpoint.to_record(control.version);
    let main_data: &[&[u8]] = &[&data];
    let record = NewRecord::plain(number::XLOG, CHECKPOINT_SHUTDOWN, 0, main_data);
    let mut buffer = RecordBuffer::default();
    buffer.assemble(&record, &ImagePolicy::NONE)?;
    let record = buffer.seal(Lsn(0));
    let start = HEADER as usize;
    segment[start..start + record.len()].copy_from_slice(record);
    let name = SegmentName::of(timeline, size.segment_of(address), size);
    let end = Lsn((redo.0 + record.len() as u64).next_multiple_of(8));
    Ok(FirstSegment { name, bytes: segment, end })
}
