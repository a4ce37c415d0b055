//! Reads a log from one place on to its end, in order.

use std::io;

use trunkline_format::Lsn;

use super::error::LogFilesError;
use super::read_ahead::ReadAhead;
use super::segments::{LogFiles, SegmentCursor};
use crate::settings::Settings;

/// Part of the log, in memory that is valid until the next read.
pub(crate) struct LogPart<'r> {
    pub(crate) bytes: &'r [u8],
    /// The length of the file that contains it, in bytes.
    pub(crate) file_length: u64,
}

/// Reads a log, ahead of its user if it was asked to.
pub(crate) struct LogScan<'f> {
    files: &'f LogFiles,
    cursor: SegmentCursor,
    buffer: Vec<u8>,
    ahead: Option<ReadAhead>,
}

impl<'f> LogScan<'f> {
    /// A scan with reads of its own.
    pub(crate) fn new(files: &'f LogFiles) -> Self {
        Self { files, cursor: SegmentCursor::default(), buffer: Vec::new(), ahead: None }
    }

    /// A scan that reads ahead, with an I/O instance of these settings. If `maintenance_io_concurrency` is
    /// 0, it doesn't.
    ///
    /// # Errors
    /// The instance can't be started.
    pub(crate) fn ahead(files: &'f LogFiles, settings: &Settings) -> io::Result<Self> {
        if settings.maintenance_io_concurrency() == 0 {
            return Ok(Self::new(files));
        }
        Ok(Self { ahead: Some(ReadAhead::start(settings)?), ..Self::new(files) })
    }

    /// The files that are read.
    pub(crate) fn files(&self) -> &'f LogFiles {
        self.files
    }

    /// The log from `place` on, as far as it was read at once. `None` if there is no such file.
    ///
    /// # Errors
    /// As for [`LogFiles::read`].
    pub(crate) fn read(&mut self, place: Lsn) -> Result<Option<LogPart<'_>>, LogFilesError> {
        if let Some(ahead) = &mut self.ahead
            && let Some(part) = ahead.wait_for(self.files, place)
        {
            let file_length = part.file_length;
            return Ok(Some(LogPart { bytes: ahead.bytes(&part), file_length }));
        }
        let length = self.files.read(&mut self.cursor, place, &mut self.buffer)?;
        Ok(length.map(|file_length| LogPart { bytes: &self.buffer, file_length }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_files::test_segments::{SIZE, name, packed, segment};
    use std::fs;

    /// The files and lengths that a scan of the whole log comes upon, with the first byte behind the header.
    fn parts(files: &LogFiles, mut scan: LogScan<'_>, from: u64) -> Vec<(u64, u64, u8)> {
        let (mut place, mut found) = (from, Vec::new());
        while let Some(part) = scan.read(Lsn(place)).expect("readable")
            && !part.bytes.is_empty()
        {
            let count = part.bytes.len() as u64;
            let fill = part.bytes[100];
            // The bytes are those of this place, up to the last one.
            assert_eq!(part.bytes[8..16], place.to_le_bytes());
            let last = part.bytes[part.bytes.len() - 8192..][8..16].to_vec();
            assert_eq!(last, (place + count - 8192).to_le_bytes());
            let segment = place / u64::from(SIZE);
            match found.last_mut() {
                Some((known, bytes, _)) if *known == segment => *bytes += count,
                _ => found.push((segment, count, fill)),
            }
            place += count;
        }
        assert_eq!(files.path(Lsn(place)), None);
        found
    }

    #[test]
    fn a_scan_that_reads_ahead_sees_the_same_log() {
        let folder = tempfile::tempdir().expect("a folder");
        for (number, suffix) in
            [(3, ""), (4, ""), (5, ".gz"), (6, ""), (7, ".zst"), (8, ".lz4"), (9, ""), (10, "")]
        {
            let bytes = packed(&segment(1, number, number as u8), suffix);
            fs::write(folder.path().join(name(1, number) + suffix), bytes).expect("written");
        }
        let files = LogFiles::of_folders(&[folder.path().into()], None, None).expect("a log");
        // A segment has two chunks, and the first is not read from its beginning.
        let from = (3 << 20) + 8192;
        let expected = parts(&files, LogScan::new(&files), from);
        assert_eq!(expected.len(), 8);
        assert_eq!(expected[0], (3, u64::from(SIZE) - 8192, 3));
        for method in ["sync", "worker", "io_uring"] {
            for depth in ["0", "1", "3", "64", "1000"] {
                let mut settings = Settings::default();
                settings.set("io_method", method).expect("valid");
                settings.set("maintenance_io_concurrency", depth).expect("valid");
                let scan = LogScan::ahead(&files, &settings).expect("started");
                assert_eq!(parts(&files, scan, from), expected, "{method}, {depth}");
            }
        }
    }

    #[test]
    fn a_scan_may_jump_and_may_end_early() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 1..9 {
            let bytes = segment(1, number, number as u8);
            fs::write(folder.path().join(name(1, number)), bytes).expect("written");
        }
        let short = folder.path().join(name(1, 9));
        fs::write(&short, &segment(1, 9, 9)[..16384]).expect("written");
        let files = LogFiles::of_folders(&[folder.path().into()], None, None).expect("a log");
        let mut scan = LogScan::ahead(&files, &Settings::default()).expect("started");
        for place in [2 << 20, 7 << 20, 3 << 20, (3 << 20) + 40 * 8192, 8 << 20, (9 << 20) + 8192] {
            let part = scan.read(Lsn(place)).expect("readable").expect("there");
            assert_eq!(part.bytes[8..16], place.to_le_bytes());
        }
        // Behind the end of the short file.
        let part = scan.read(Lsn((9 << 20) + 16384)).expect("readable").expect("there");
        assert_eq!((part.bytes.len(), part.file_length), (0, 16384));
        // A file that is gone is an error of the read that needs it, not of those before it.
        fs::remove_file(folder.path().join(name(1, 5))).expect("removed");
        assert!(scan.read(Lsn(4 << 20)).expect("readable").is_some());
        let mut scan = LogScan::ahead(&files, &Settings::default()).expect("started");
        assert!(scan.read(Lsn((4 << 20) + (512 << 10))).expect("readable").is_some());
        let error = scan.read(Lsn(5 << 20)).err().expect("gone").to_string();
        assert!(error.contains(&name(1, 5)), "{error}");
    }
}
