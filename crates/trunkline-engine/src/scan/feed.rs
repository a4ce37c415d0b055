//! Which piece of which file comes next.
//!
//! First what must be read again: the rest of a short read, and block by block what failed as a
//! whole. Then the files from front to back, opened when their turn comes and closed with their last
//! piece, so that few are open at any time.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use trunkline_aio::{File, OpenOptions};
use trunkline_format::BlockNo;

use super::Trouble;
use super::job::Job;
use crate::datadir::FileEntry;

/// Blocks of one file that may fail before the rest of it is left out.
const FAILED_BLOCKS_MAX: u32 = 1024;

/// Attempts at opening a file while descriptors are short and none of them is this thread's.
const OPEN_ATTEMPTS: u32 = 100;

/// A file that is being read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) entry: FileEntry,
    pub(super) file: File,
    /// Blocks to read: fewer than there were if the file shrank or was given up.
    pub(super) end: Cell<u32>,
    failed: Cell<u32>,
}

impl Reading {
    /// The number within the relation of a block of this file.
    pub(super) fn block_no(&self, block: u32) -> BlockNo {
        self.entry.first_block().unwrap_or_default().saturating_add(block)
    }

    /// The file ends at `block`, or before; true when that is sooner than was known.
    pub(super) fn ends_at(&self, block: u32) -> bool {
        let sooner = block < self.end.get();
        self.end.set(self.end.get().min(block));
        sooner
    }

    /// One more block has failed; true when it is one too many.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.set(self.failed.get() + 1);
        self.failed.get() == FAILED_BLOCKS_MAX
    }
}

/// Neighbouring blocks of a file.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) reading: Rc<Reading>,
    /// Within the file.
    pub(super) block: u32,
    pub(super) blocks: u32,
    /// Reads that brought nothing whole.
    pub(super) attempts: u32,
    /// To be read block by block.
    pub(super) singly: bool,
}

/// What comes next.
pub(super) enum Next {
    Piece(Piece),
    /// Something must end first.
    Later,
    /// Nothing is left.
    Nothing,
}

pub(super) struct Feed {
    files: std::vec::IntoIter<FileEntry>,
    again: VecDeque<Piece>,
    /// Taken off the files, and advised, ahead of being read.
    ready: VecDeque<Piece>,
    current: Option<(Rc<Reading>, u32)>,
    /// Could not be opened for want of descriptors.
    put_off: Option<FileEntry>,
    combine: u32,
    direct: bool,
    open_max: usize,
}

impl Feed {
    pub(super) fn new(files: Vec<FileEntry>, job: &Job, open_max: usize) -> Self {
        Self {
            files: files.into_iter(),
            again: VecDeque::new(),
            ready: VecDeque::new(),
            current: None,
            put_off: None,
            combine: job.options.combine_blocks,
            direct: job.options.direct,
            open_max,
        }
    }

    /// To be read again.
    pub(super) fn again(&mut self, piece: Piece) {
        self.again.push_back(piece);
    }

    /// The next piece was not read after all.
    pub(super) fn put_back(&mut self, piece: Piece) {
        self.again.push_front(piece);
    }

    /// The next piece to read. `in_flight` pieces hold files open.
    pub(super) fn next(&mut self, job: &Job, in_flight: usize) -> Next {
        while let Some(mut piece) = self.again.pop_front() {
            let end = piece.reading.end.get();
            if piece.block >= end {
                job.count(piece.blocks, 0);
                continue;
            }
            if piece.singly && piece.blocks > 1 {
                let rest = Piece { block: piece.block + 1, blocks: piece.blocks - 1, ..piece };
                piece = Piece {
                    reading: Rc::clone(&rest.reading),
                    blocks: 1,
                    block: rest.block - 1,
                    ..rest
                };
                self.again.push_front(rest);
            }
            return Next::Piece(piece);
        }
        while let Some(piece) = self.ready.pop_front() {
            if piece.block < piece.reading.end.get() {
                return Next::Piece(piece);
            }
            job.count(piece.blocks, 0);
        }
        self.take(job, in_flight)
    }

    /// Takes pieces off the files until so many are ready, and shows each new one to `advise`.
    pub(super) fn look_ahead(&mut self, job: &Job, pieces: usize, advise: impl Fn(&Piece)) {
        while self.ready.len() < pieces {
            let Next::Piece(piece) = self.take(job, self.ready.len()) else { return };
            advise(&piece);
            self.ready.push_back(piece);
        }
    }

    fn take(&mut self, job: &Job, in_flight: usize) -> Next {
        loop {
            if let Some((reading, block)) = self.current.take() {
                let left = reading.end.get().saturating_sub(block);
                if left > 0 {
                    let blocks = left.min(self.combine);
                    if left > blocks {
                        self.current = Some((Rc::clone(&reading), block + blocks));
                    }
                    return Next::Piece(Piece {
                        reading,
                        block,
                        blocks,
                        attempts: 0,
                        singly: false,
                    });
                }
                let skipped = reading.entry.blocks().saturating_sub(block);
                job.count(skipped, 0);
            }
            let Some(entry) = self.put_off.take().or_else(|| self.files.next()) else {
                return Next::Nothing;
            };
            if in_flight >= self.open_max {
                self.put_off = Some(entry);
                return Next::Later;
            }
            match self.open(job, &entry, in_flight) {
                Ok(Some(file)) => {
                    let (end, failed) = (Cell::new(entry.blocks()), Cell::new(0));
                    let first = job.visitor.skipped(&entry);
                    job.count(first, 0);
                    self.current = Some((Rc::new(Reading { entry, file, end, failed }), first));
                }
                Ok(None) => {
                    self.put_off = Some(entry);
                    return Next::Later;
                }
                Err(error) => {
                    job.count(entry.blocks(), 0);
                    job.visitor.trouble(&entry, Trouble::Open(error));
                }
            }
        }
    }

    /// Opens a file; `None` if another one must be closed first.
    fn open(&self, job: &Job, entry: &FileEntry, in_flight: usize) -> io::Result<Option<File>> {
        let options =
            OpenOptions { direct: self.direct, no_follow: true, ..OpenOptions::default() };
        let mut attempt = 0;
        loop {
            match job.aio.open(&entry.path, options) {
                Ok(file) => return Ok(Some(file)),
                Err(error) if !is_shortage(&error) => return Err(error),
                Err(_) if in_flight > 0 => return Ok(None),
                Err(error) if attempt == OPEN_ATTEMPTS || job.is_stopping() => return Err(error),
                Err(_) => job.pause(),
            }
            attempt += 1;
        }
    }
}

/// No descriptor is free, in the process or in the system.
fn is_shortage(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(errno, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}
