//! A file of the simulated disk: volatile bytes, durable bytes, and the changes between the two.
//!
//! ```text
//!   write ──▶ volatile ──sync──▶ durable
//!                 │                 ▲
//!              unsynced ───crash────┘   all, nothing, or some sectors of each change
//! ```

use crate::fault::Fault;
use trunkline_aio::Request;
use trunkline_aio::facade::random::Rng;

/// The sector sizes that we simulate, in bytes. Real devices write each sector atomically, so a
/// crash can only tear a write at a sector boundary.
pub const SECTOR_SIZES: [usize; 2] = [512, 4096];

/// A change that was made since the last sync. In a crash, all of it, none of it, or part of it may
/// survive.
#[derive(Debug, Clone)]
enum Change {
    /// Bytes written at this offset.
    Bytes(usize, Vec<u8>),
    /// The file was truncated, or extended with zeros.
    Length(usize),
}

/// One file: its volatile image, its durable image, and a log of the changes between them.
#[derive(Debug, Default, Clone)]
pub(super) struct Image {
    /// The file's mount. [`Disk::hold`](super::Disk::hold) makes a whole mount hang.
    pub(super) device: u64,
    pub(super) volatile: Vec<u8>,
    pub(super) durable: Vec<u8>,
    /// Changes since the last sync, oldest first.
    unsynced: Vec<Change>,
    /// Number of writeback failures so far; corresponds to Linux's `errseq_t` sequence number.
    losses: u64,
    /// The value that `losses` had when an open file last reported a failure. If the file is opened
    /// again, the new open file starts from this value, so that it doesn't report the same failure
    /// again.
    reported: u64,
}

impl Image {
    /// A file with durable `content`.
    pub(super) fn new(device: u64, content: &[u8]) -> Self {
        let (volatile, durable) = (content.to_vec(), content.to_vec());
        Self { device, volatile, durable, ..Self::default() }
    }

    /// Truncates the file, or extends it with zeros.
    pub(super) fn resize(&mut self, length: usize) {
        self.volatile.resize(length, 0);
        self.unsynced.push(Change::Length(length));
    }

    /// Whether a sync would have nothing to do.
    pub(super) fn is_synced(&self) -> bool {
        self.unsynced.is_empty()
    }

    /// Changes bytes durably. All earlier changes become durable as well.
    pub(super) fn overwrite(&mut self, offset: usize, bytes: &[u8]) {
        store(&mut self.volatile, offset, bytes);
        self.settle();
    }

    /// Reads up to the end of the file and returns the number of bytes transferred.
    pub(super) fn read(&self, request: &mut Request<'_>, fault: Option<Fault>) -> i32 {
        let start = (request.offset as usize).min(self.volatile.len());
        let mut left = &self.volatile[start..];
        if let Some(Fault::Short(length)) = fault {
            left = &left[..left.len().min(length as usize)];
        }
        // Offset of the byte in which we must flip a bit, if any. In a vectored read, we adjust
        // this as we go along, so that it is always relative to the start of the current buffer.
        let mut rotten = match fault {
            Some(Fault::BitRot(at)) => Some(at as usize % (request.length as usize).max(1)),
            _ => None,
        };
        let mut count = 0;
        for buffer in request.targets() {
            let length = buffer.len().min(left.len());
            buffer[..length].copy_from_slice(&left[..length]);
            if let Some(at) = rotten
                && at < length
            {
                buffer[at] ^= 1 << (at % 8);
                rotten = None;
            }
            rotten = rotten.map(|at| at - length.min(at));
            left = &left[length..];
            count += length;
        }
        count as i32
    }

    /// Performs a write and returns the number of bytes transferred, or a negative errno. The file
    /// may grow by at most `free` bytes. If the write needs more space than that, it is short, as
    /// on a full file system. A fault can change what we store. If it is a silent fault, we still
    /// return the full length.
    pub(super) fn write(&mut self, request: &Request<'_>, fault: Option<Fault>, free: u64) -> i32 {
        let offset = request.offset as usize;
        let mut bytes: Vec<u8> = Vec::with_capacity(request.length as usize);
        request.sources().for_each(|buffer| bytes.extend_from_slice(buffer));
        let end = (self.volatile.len() as u64).saturating_add(free);
        let room = usize::try_from(end).unwrap_or(usize::MAX).saturating_sub(offset);
        if room == 0 {
            return -libc::ENOSPC;
        }
        bytes.truncate(room);
        match fault {
            Some(Fault::LostWrite) => {}
            Some(Fault::Short(length)) => {
                bytes.truncate(length as usize);
                self.put(offset, &bytes);
            }
            Some(Fault::Misdirected(by)) => self.put(offset + by as usize, &bytes),
            Some(Fault::TornWrite(sector)) => {
                for (number, part) in bytes.chunks((sector as usize).max(1)).enumerate() {
                    if number % 2 == 0 {
                        self.put(offset + number * sector as usize, part);
                    }
                }
            }
            _ => self.put(offset, &bytes),
        }
        bytes.len() as i32
    }

    /// Writes bytes to the volatile image and logs the change.
    pub(super) fn put(&mut self, offset: usize, bytes: &[u8]) {
        store(&mut self.volatile, offset, bytes);
        self.unsynced.push(Change::Bytes(offset, bytes.to_vec()));
    }

    /// Makes all changes since the last sync durable.
    pub(super) fn sync(&mut self) -> i32 {
        let changes = std::mem::take(&mut self.unsynced);
        for change in changes {
            match change {
                Change::Bytes(offset, bytes) => store(&mut self.durable, offset, &bytes),
                Change::Length(length) => self.durable.resize(length, 0),
            }
        }
        0
    }

    /// Makes the last write durable, which consists of the changes since the first `first` ones. The
    /// file's length becomes durable as well, but no other bytes do. If `lost` is true, we drop the
    /// write instead, and return `EIO`.
    pub(super) fn sync_write(&mut self, first: usize, lost: bool) -> i32 {
        let written = self.unsynced.split_off(first);
        if lost {
            return -libc::EIO;
        }
        let earlier = std::mem::take(&mut self.unsynced);
        for change in earlier {
            match change {
                Change::Bytes(..) => self.unsynced.push(change),
                Change::Length(length) => {
                    self.durable.resize(length, 0);
                    // The bytes that were cut off must not come back.
                    self.forget(length, usize::MAX);
                }
            }
        }
        for change in written {
            if let Change::Bytes(offset, bytes) = change {
                // A later sync or a crash must not replace these bytes with older ones.
                self.forget(offset, offset + bytes.len());
                store(&mut self.durable, offset, &bytes);
            }
        }
        0
    }

    /// Removes a range of bytes from the unsynced writes.
    fn forget(&mut self, from: usize, to: usize) {
        for change in std::mem::take(&mut self.unsynced) {
            let Change::Bytes(offset, bytes) = change else {
                self.unsynced.push(change);
                continue;
            };
            let end = offset + bytes.len();
            let before = &bytes[..from.clamp(offset, end) - offset];
            let after = &bytes[to.clamp(offset, end) - offset..];
            for (at, part) in [(offset, before), (to.max(offset), after)] {
                if !part.is_empty() {
                    self.unsynced.push(Change::Bytes(at, part.to_vec()));
                }
            }
        }
    }

    /// Number of changes since the last sync.
    pub(super) fn changes(&self) -> usize {
        self.unsynced.len()
    }

    /// Drops all changes since the last sync, as if the kernel's writeback had failed. The error is
    /// reported later, by [`Image::report_loss`].
    pub(super) fn lose(&mut self) {
        self.unsynced.clear();
        self.losses += 1;
    }

    /// Number of writeback failures that have already been reported through some open file. They
    /// are not reported again if the file is reopened.
    pub(super) fn reported_losses(&self) -> u64 {
        self.reported
    }

    /// Returns `-EIO` if there has been a writeback failure that this open file has not reported
    /// yet, or else 0. `seen` is the number of failures that this open file has reported so far,
    /// which we update.
    pub(super) fn report_loss(&mut self, seen: &mut u64) -> i32 {
        if *seen >= self.losses {
            return 0;
        }
        *seen = self.losses;
        self.reported = self.losses;
        -libc::EIO
    }

    /// Makes the volatile image durable.
    pub(super) fn settle(&mut self) {
        self.durable.clone_from(&self.volatile);
        self.unsynced.clear();
    }

    /// Simulates a crash. We go through the unsynced changes, starting with the oldest, and apply a
    /// random part of each to the durable image. After that, we replace the volatile image with a
    /// copy of the durable image.
    pub(super) fn crash(&mut self, rng: &mut Rng) {
        for change in std::mem::take(&mut self.unsynced) {
            match change {
                Change::Bytes(offset, bytes) => {
                    keep_some(&mut self.durable, offset, &bytes, rng);
                }
                Change::Length(length) if rng.below(2) == 0 => self.durable.resize(length, 0),
                Change::Length(_) => {}
            }
        }
        self.volatile = self.durable.clone();
    }
}

/// Stores bytes at an offset, filling any gap before them with zeros.
fn store(image: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if image.len() < end {
        image.resize(end, 0);
    }
    image[offset..end].copy_from_slice(bytes);
}

/// Keeps all, none, or about half of a write's sectors.
fn keep_some(image: &mut Vec<u8>, offset: usize, bytes: &[u8], rng: &mut Rng) {
    match rng.below(3) {
        0 => {}
        1 => store(image, offset, bytes),
        _ => {
            let sector = SECTOR_SIZES[rng.below(SECTOR_SIZES.len() as u64) as usize];
            for (number, part) in bytes.chunks(sector).enumerate() {
                if rng.below(2) == 0 {
                    store(image, offset + number * sector, part);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_open_file_reports_a_loss_once() {
        let mut file = Image::new(1, &[0; 8192]);
        let (mut one, mut other) = (file.reported_losses(), file.reported_losses());
        file.put(0, &[1; 4096]);
        file.lose();
        assert_eq!((file.report_loss(&mut one), file.report_loss(&mut one)), (-libc::EIO, 0));
        assert_eq!((file.report_loss(&mut other), file.sync()), (-libc::EIO, 0));
        let mut late = file.reported_losses();
        assert_eq!(file.report_loss(&mut late), 0, "opened after the loss was reported");
        assert_eq!((file.volatile[0], file.durable[0]), (1, 0));
    }

    #[test]
    fn a_durable_write_makes_no_other_bytes_durable() {
        let mut file = Image::new(1, &[0; 4096]);
        file.put(0, &[1; 1024]);
        file.resize(512);
        file.put(512, &[2; 1024]);
        let first = file.changes();
        file.put(1024, &[3; 1024]);
        assert_eq!(file.sync_write(first, false), 0);
        let durable = [&[0; 1024][..], &[3; 1024]].concat();
        assert_eq!(file.durable, durable, "the length, and these bytes");
        let mut rng = Rng::new(1);
        for _ in 0..100 {
            let mut crashed = file.clone();
            crashed.crash(&mut rng);
            assert_eq!(crashed.volatile[1024..], [3; 1024], "nothing older");
        }
        assert_eq!(file.sync(), 0);
        assert_eq!(file.durable, [&[1; 512][..], &[2; 512], &[3; 1024]].concat());
        let first = file.changes();
        file.put(0, &[4; 512]);
        assert_eq!(file.sync_write(first, true), -libc::EIO);
        assert_eq!((file.volatile[0], file.durable[0], file.is_synced()), (4, 1, true));
    }

    #[test]
    fn data_that_a_sync_has_lost_is_readable_and_never_durable() {
        let mut file = Image::new(1, &[0; 8192]);
        file.put(0, &[1; 4096]);
        let mut seen = file.reported_losses();
        file.lose();
        assert_eq!(file.sync().min(file.report_loss(&mut seen)), -libc::EIO);
        file.put(4096, &[2; 4096]);
        assert_eq!(file.sync(), 0, "the second sync succeeds");
        assert_eq!(file.volatile[..4096], [1; 4096]);
        assert_eq!(
            (&file.durable[..4096], &file.durable[4096..]),
            (&[0; 4096][..], &[2; 4096][..])
        );
    }
}
