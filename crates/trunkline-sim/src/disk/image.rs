//! One file: what a read sees, what survives a crash, and the changes in between.
//!
//! ```text
//!   write ──▶ volatile ──sync──▶ durable
//!                 │                 ▲
//!              unsynced ───crash────┘   of each change all, nothing, or some of its sectors
//! ```

use crate::fault::Fault;
use trunkline_aio::Request;
use trunkline_aio::sync::random::Rng;

/// Sizes in which a crash can tear a write, in bytes.
pub const SECTOR_SIZES: [usize; 2] = [512, 4096];

/// What a crash may undo.
#[derive(Debug, Clone)]
enum Change {
    /// Bytes written at an offset.
    Bytes(usize, Vec<u8>),
    /// The file was cut off, or made longer by zeros.
    Length(usize),
}

/// See the module.
#[derive(Debug, Default, Clone)]
pub(super) struct Image {
    pub(super) device: u64,
    pub(super) volatile: Vec<u8>,
    pub(super) durable: Vec<u8>,
    /// Changes since the last sync, oldest first.
    unsynced: Vec<Change>,
    /// So many times it could not be written back, and how many of them some open file was told of.
    losses: u64,
    told: u64,
}

impl Image {
    /// A file that holds `content` durably.
    pub(super) fn new(device: u64, content: &[u8]) -> Self {
        let (volatile, durable) = (content.to_vec(), content.to_vec());
        Self { device, volatile, durable, ..Self::default() }
    }

    /// Cuts it off, or makes it longer by zeros.
    pub(super) fn resize(&mut self, length: usize) {
        self.volatile.resize(length, 0);
        self.unsynced.push(Change::Length(length));
    }

    /// Whether a sync has anything to do.
    pub(super) fn is_synced(&self) -> bool {
        self.unsynced.is_empty()
    }

    /// Changes bytes durably, and with them everything that was not synced.
    pub(super) fn overwrite(&mut self, offset: usize, bytes: &[u8]) {
        store(&mut self.volatile, offset, bytes);
        self.settle();
    }

    /// Reads, as far as there is anything. Bytes; so does the next.
    pub(super) fn read(&self, request: &mut Request<'_>, fault: Option<Fault>) -> i32 {
        let start = (request.offset as usize).min(self.volatile.len());
        let mut left = &self.volatile[start..];
        if let Some(Fault::Short(length)) = fault {
            left = &left[..left.len().min(length as usize)];
        }
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

    /// Writes, if the disk has `free` bytes to grow by. Bytes, or minus errno.
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

    /// Writes bytes, not yet durable.
    pub(super) fn put(&mut self, offset: usize, bytes: &[u8]) {
        store(&mut self.volatile, offset, bytes);
        self.unsynced.push(Change::Bytes(offset, bytes.to_vec()));
    }

    /// Makes durable what was changed since the last sync, unless that is lost.
    pub(super) fn sync(&mut self, lost: bool) -> i32 {
        let changes = std::mem::take(&mut self.unsynced);
        if lost {
            return -libc::EIO;
        }
        for change in changes {
            match change {
                Change::Bytes(offset, bytes) => store(&mut self.durable, offset, &bytes),
                Change::Length(length) => self.durable.resize(length, 0),
            }
        }
        0
    }

    /// It could not be written back: what was changed since the last sync will never be durable.
    pub(super) fn lose(&mut self) {
        self.unsynced.clear();
        self.losses += 1;
    }

    /// Losses that some open file was told of: one that is opened later never hears of them.
    pub(super) fn told(&self) -> u64 {
        self.told
    }

    /// Tells an open file of losses that it has not heard of: minus errno, or 0.
    pub(super) fn tell(&mut self, heard: &mut u64) -> i32 {
        if *heard >= self.losses {
            return 0;
        }
        *heard = self.losses;
        self.told = self.losses;
        -libc::EIO
    }

    /// Makes everything durable that can be read.
    pub(super) fn settle(&mut self) {
        self.durable.clone_from(&self.volatile);
        self.unsynced.clear();
    }

    /// Keeps, of every change that was not synced, all, nothing or some.
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

fn store(image: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if image.len() < end {
        image.resize(end, 0);
    }
    image[offset..end].copy_from_slice(bytes);
}

/// All of a write, nothing of it, or a random half of its sectors.
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
    fn each_open_file_is_told_of_a_loss_once() {
        let mut file = Image::new(1, &[0; 8192]);
        let (mut one, mut other) = (file.told(), file.told());
        file.put(0, &[1; 4096]);
        file.lose();
        assert_eq!((file.tell(&mut one), file.tell(&mut one)), (-libc::EIO, 0));
        assert_eq!((file.tell(&mut other), file.sync(false)), (-libc::EIO, 0));
        let mut late = file.told();
        assert_eq!(file.tell(&mut late), 0, "opened when somebody had been told");
        assert_eq!((file.volatile[0], file.durable[0]), (1, 0));
    }

    #[test]
    fn what_a_sync_has_lost_is_there_until_the_crash_and_never_synced() {
        let mut file = Image::new(1, &[0; 8192]);
        file.put(0, &[1; 4096]);
        assert_eq!(file.sync(true), -libc::EIO);
        file.put(4096, &[2; 4096]);
        assert_eq!(file.sync(false), 0, "the second sync knows nothing");
        assert_eq!(file.volatile[..4096], [1; 4096]);
        assert_eq!(
            (&file.durable[..4096], &file.durable[4096..]),
            (&[0; 4096][..], &[2; 4096][..])
        );
    }
}
