//! A lane: what one flush needs to do its I/O.
//!
//! A lane has its own session, so cancelling the waiting session does not interrupt a flush that has started, and
//! another session's flush can't be held up by that session's I/O. The thread that flushes
//! executes the I/O itself ([`Io::needed_now`](trunkline_aio::Io::needed_now)), so a single client has no hop to
//! another thread.

use std::io;

use trunkline_aio::{Aio, Class, File, Io, Outcome, Session, Slots, WaitRef};
use trunkline_format::BLOCK_SIZE;

use super::error::LogWriterError;

/// How much of the log is written at once, in bytes.
const BUFFER: usize = 256 << 10;

/// The ring is read in words of this many bytes, so a short write is continued at the last whole word, or with direct
/// I/O at the last whole block.
const WORD: u32 = 8;

/// The only slot.
const SLOT: usize = 0;

/// A segment that a lane has opened.
#[derive(Debug, Clone)]
pub(super) struct OpenSegment {
    number: u64,
    file: File,
    /// The number of the first flush whose write came after the file was opened. A failed write that was reported
    /// before is not reported to this file any more, so its sync says nothing about earlier flushes.
    since: u64,
}

impl OpenSegment {
    /// The open file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// The number of the first flush that a sync of this file vouches for.
    pub(super) fn since(&self) -> u64 {
        self.since
    }
}

/// A session, memory to write from, and an open segment. The control file and recovery write through lanes, too.
pub(crate) struct Lane {
    session: Session,
    slots: Slots<()>,
    segment: Option<OpenSegment>,
}

impl Lane {
    /// A new lane.
    ///
    /// # Errors
    /// [`LogWriterError::Resources`].
    pub(crate) fn new(aio: &Aio) -> Result<Self, LogWriterError> {
        let missing = |what| LogWriterError::Resources { what };
        let session = aio.session().map_err(|_| missing("session of the I/O instance"))?;
        let lease = aio.region().lease((BUFFER / BLOCK_SIZE) as u32);
        let lease = lease.ok_or(missing("memory of the page region"))?;
        let mut slots = Slots::new(1);
        if let Some(memory) = slots.memory(SLOT) {
            memory.push(lease);
        }
        Ok(Self { session, slots, segment: None })
    }

    /// The lane's own open file of a segment, for flush number `flush`. `open` opens it.
    ///
    /// # Errors
    /// That of `open`.
    pub(super) fn segment(
        &mut self,
        number: u64,
        flush: u64,
        open: impl FnOnce() -> io::Result<File>,
    ) -> io::Result<OpenSegment> {
        if let Some(known) = self.segment.as_ref().filter(|known| known.number == number) {
            return Ok(known.clone());
        }
        let opened = OpenSegment { number, file: open()?, since: flush };
        self.segment = Some(opened.clone());
        Ok(opened)
    }

    /// The memory to write from.
    fn buffer(&mut self) -> &mut [u8] {
        let memory = self.slots.memory(SLOT).and_then(|memory| memory.first_mut());
        memory.map_or(&mut [], |lease| &mut lease[..])
    }

    /// Writes `length` bytes at `offset`, which `fill` puts into the memory piece by piece. The number that it
    /// gets is the number of bytes before the piece. With `is_durable`, the bytes are durable when this returns: several
    /// pieces by one sync, since durable writes one after the other would take longer.
    ///
    /// # Errors
    /// The write failed, or wrote nothing.
    pub(super) fn write(
        &mut self,
        file: &File,
        (offset, length): (u64, u64),
        is_durable: bool,
        mut fill: impl FnMut(u64, &mut [u8]),
    ) -> io::Result<()> {
        let mut done = 0;
        let is_single = length <= BUFFER as u64;
        while done < length {
            let piece = (length - done).min(BUFFER as u64);
            fill(done, &mut self.buffer()[..piece as usize]);
            let each = is_durable && is_single;
            let written = self.write_piece(file, offset + done, piece as u32, each)?;
            done += u64::from(written);
        }
        if is_durable && !is_single { self.sync(file, false) } else { Ok(()) }
    }

    /// Reads bytes at `offset`, at most as many as the memory has.
    ///
    /// # Errors
    /// The read failed, or the file is shorter.
    pub(super) fn read(&mut self, file: &File, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let rest = &mut bytes[done..];
            let (at, length) = (offset + done as u64, rest.len() as u32);
            let io = acquire(&mut self.session)?;
            let _: WaitRef =
                io.read(file, at, length, &mut self.slots, SLOT).map_err(io::Error::other)?;
            let read = self.finish()?.count as usize;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            rest[..read].copy_from_slice(&self.buffer()[..read]);
            done += read;
        }
        Ok(())
    }

    /// Writes these bytes at `offset`.
    ///
    /// # Errors
    /// As for [`Lane::write`].
    pub(crate) fn write_bytes(&mut self, file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write(file, (offset, bytes.len() as u64), false, |done, piece| {
            let from = done as usize;
            piece.copy_from_slice(&bytes[from..from + piece.len()]);
        })
    }

    /// Writes `length` zeros at `offset`.
    ///
    /// # Errors
    /// As for [`Lane::write`].
    pub(super) fn zero(&mut self, file: &File, offset: u64, length: u64) -> io::Result<()> {
        self.write(file, (offset, length), false, |_, piece| piece.fill(0))
    }

    /// Makes the file durable: with `metadata`, by fsync, otherwise by fdatasync.
    ///
    /// # Errors
    /// The sync failed. It must not be repeated.
    pub(crate) fn sync(&mut self, file: &File, metadata: bool) -> io::Result<()> {
        let io = acquire(&mut self.session)?;
        if metadata {
            io.fsync(file, &mut self.slots, SLOT);
        } else {
            io.fdatasync(file, &mut self.slots, SLOT);
        }
        self.finish().map(drop)
    }

    /// Writes the first `length` bytes of the memory. Returns how many of them were written, in whole words or
    /// blocks: a write may be interrupted, and is then continued.
    fn write_piece(
        &mut self,
        file: &File,
        offset: u64,
        length: u32,
        is_durable: bool,
    ) -> io::Result<u32> {
        let io = acquire(&mut self.session)?;
        let io = if is_durable { io.durable() } else { io };
        let _: WaitRef =
            io.write(file, offset, length, &mut self.slots, SLOT).map_err(io::Error::other)?;
        let written = self.finish()?.count;
        match written - written % file.alignment().max(WORD) {
            0 => Err(io::Error::new(
                io::ErrorKind::WriteZero,
                format!("only {written} of {length} bytes at offset {offset} were written"),
            )),
            words => Ok(words),
        }
    }

    fn finish(&mut self) -> io::Result<Outcome> {
        let outcome = self.session.wait(&mut self.slots, SLOT).map_err(io::Error::other)?;
        match outcome.errno() {
            None => Ok(outcome),
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

/// A handle for an I/O that the thread executes itself.
fn acquire(session: &mut Session) -> io::Result<Io<'_>> {
    Ok(session.acquire(Class::Log).map_err(io::Error::other)?.needed_now())
}
