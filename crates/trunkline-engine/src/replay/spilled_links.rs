//! Links of chains that don't fit into `--replay-memory`, in a scratch file.
//!
//! ```text
//!   chain in memory ─▶ part 3: links ─▶ part 2: links ─▶ part 1: links      newest first
//! ```
//! When the memory is used up, the links of every chain become a part in the file, and the chain only
//! keeps where its last part is. A part is the place of the part before it (8 bytes, 0 if there is
//! none), the number of links (4 bytes), and the links, oldest first (10 bytes each: position, kind,
//! block reference). Parts of chains that began again are not used any more; their room isn't reused.
//!
//! The file is outside of the data directory and has no name, so it goes with the process.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;

use trunkline_format::Lsn;

use super::chain_link::{ChainLink, Part};
use crate::scratch_file;

/// The file begins with this, so no part is at place 0.
const MAGIC: &[u8; 8] = b"TLCHAINS";
const HEADER_BYTES: u64 = 12;
const LINK_BYTES: u64 = 10;
/// How much is written at once.
const BUFFERED: usize = 256 << 10;

/// The scratch file.
#[derive(Debug)]
pub(super) struct SpilledLinks {
    file: File,
    /// Its length in bytes.
    end: u64,
}

impl SpilledLinks {
    /// Creates the file in a folder.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        let file = scratch_file::create(folder, false)?;
        file.write_all_at(MAGIC, 0)?;
        Ok(Self { file, end: MAGIC.len() as u64 })
    }

    /// The length of the file in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.end
    }

    /// Adds parts. Each is written by one call of `add` with the place of the part before it, which
    /// returns its own place.
    pub(super) fn write<'l>(
        &mut self,
        parts: impl Iterator<Item = (&'l mut Option<NonZeroU64>, &'l [ChainLink])>,
    ) -> io::Result<()> {
        let mut place = self.end;
        let mut out = BufWriter::with_capacity(BUFFERED, At { file: &self.file, at: place });
        for (before, links) in parts {
            let previous = before.map_or(0, NonZeroU64::get);
            let count = u32::try_from(links.len()).map_err(io::Error::other)?;
            out.write_all(&previous.to_le_bytes())?;
            out.write_all(&count.to_le_bytes())?;
            for link in links {
                let (kind, id) = match link.part {
                    Part::Block(id) => (0, id),
                    Part::DerivedMap => (1, 0),
                    Part::TruncatedMap => (2, 0),
                };
                out.write_all(&link.record.0.to_le_bytes())?;
                out.write_all(&[kind, id])?;
            }
            *before = NonZeroU64::new(place);
            place += HEADER_BYTES + LINK_BYTES * u64::from(count);
        }
        out.flush()?;
        drop(out);
        self.end = place;
        Ok(())
    }

    /// The links of the part at `last` and of those before it, oldest first.
    pub(super) fn read(&self, last: NonZeroU64) -> io::Result<Vec<ChainLink>> {
        let mut links = Vec::new();
        let mut next = Some(last);
        while let Some(place) = next {
            let mut header = [0; HEADER_BYTES as usize];
            self.file.read_exact_at(&mut header, place.get())?;
            let [previous @ .., a, b, c, d] = header;
            let count = u64::from(u32::from_le_bytes([a, b, c, d]));
            let mut bytes = vec![0; (count * LINK_BYTES) as usize];
            self.file.read_exact_at(&mut bytes, place.get() + HEADER_BYTES)?;
            // Newest first, until all parts are there.
            for bytes in bytes.as_chunks::<{ LINK_BYTES as usize }>().0.iter().rev() {
                let [record @ .., kind, id] = *bytes;
                let part = match kind {
                    0 => Part::Block(id),
                    1 => Part::DerivedMap,
                    _ => Part::TruncatedMap,
                };
                links.push(ChainLink { record: Lsn(u64::from_le_bytes(record)), part });
            }
            next = NonZeroU64::new(u64::from_le_bytes(previous));
        }
        links.reverse();
        Ok(links)
    }
}

/// Writes to a file from a place on.
struct At<'f> {
    file: &'f File,
    at: u64,
}

impl io::Write for At<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write_at(bytes, self.at)?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
