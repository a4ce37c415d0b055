//! Direct I/O and atomic writes on one file system, by trying them in a scratch file.
//!
//! ```text
//!   open O_DIRECT ─▶ write 8 kB ─▶ read it back ─▶ 4 kB and 512 bytes ─▶ RWF_ATOMIC
//! ```
//! PostgreSQL assumes that 4096 bytes is enough alignment for direct I/O. A file system may accept
//! less, which statx(2) reports since Linux 6.1, or need more. Some accept `O_DIRECT` and ignore it,
//! others turn it into buffered writes; trying doesn't show that, so [`super::file_system`] warns of
//! it.

use std::fs::File;
use std::io::{self, IoSlice};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, openat, statx};
use rustix::io::{Errno, ReadWriteFlags, pread, pwrite, pwritev2, retry_on_intr};
use trunkline_engine::scratch_file;

use super::check::Check;
use crate::place::Place;

/// PostgreSQL's block size, and the alignment it uses for direct I/O (`PG_IO_ALIGN_SIZE`).
const BLOCK: usize = 8192;
const SERVER_ALIGNMENT: u32 = 4096;
/// Our memory is aligned to this.
const MEMORY_ALIGNMENT: usize = 65536;

/// `STATX_WRITE_ATOMIC` and `RWF_ATOMIC` of Linux 6.11.
const STATX_WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x0001_0000);
const RWF_ATOMIC: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x0000_0040);

/// The result of trying direct I/O in a place.
#[derive(Debug)]
pub(crate) struct DirectTrial {
    pub(crate) checks: Vec<Check>,
    /// Direct I/O works, as far as could be tried.
    pub(crate) works: bool,
    /// It was tried, and the file system refused it.
    pub(crate) is_refused: bool,
}

/// Memory that is aligned for direct I/O on any file system.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new(fill: u8) -> Aligned {
        let bytes = vec![fill; MEMORY_ALIGNMENT + BLOCK];
        let start =
            bytes.as_ptr().addr().next_multiple_of(MEMORY_ALIGNMENT) - bytes.as_ptr().addr();
        Aligned { bytes, start }
    }

    fn get(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..BLOCK]
    }
}

/// Tries direct I/O and atomic writes in a place.
pub(crate) fn examine(place: &Place) -> DirectTrial {
    let area = place.path.display().to_string();
    let mut refused = None;
    for directory in place.scratch_directories() {
        match scratch_file::create(&directory, true) {
            Ok(file) => return in_scratch_file(&area, &file),
            // Buffered, the same works: then it is direct I/O that is missing.
            Err(error) if scratch_file::create(&directory, false).is_ok() => {
                return missing(&area, &format!("open with O_DIRECT: {error}"));
            }
            Err(error) => refused = Some(refused.unwrap_or(error)),
        }
    }
    let why_not = match refused {
        Some(error) => format!("no scratch file could be created ({error})"),
        None => "no directory outside the cluster is on this mount".to_owned(),
    };
    match place.readable_file() {
        Some(path) => in_existing_file(&area, &path, &why_not),
        None => DirectTrial {
            checks: vec![Check::limited(
                &area,
                "direct I/O",
                format!("not tried: {why_not}, and there is no file to read"),
                "run doctor as the owner of the directory",
            )],
            works: false,
            is_refused: false,
        },
    }
}

fn missing(area: &str, reason: &str) -> DirectTrial {
    let fix =
        "use a file system with direct I/O, such as ext4 or xfs, or leave debug_io_direct empty";
    let checks = vec![Check::missing(area, "direct I/O", reason, fix)];
    DirectTrial { checks, works: false, is_refused: true }
}

fn in_scratch_file(area: &str, file: &File) -> DirectTrial {
    let tried = write_and_read(file, BLOCK);
    if let Err(error) = tried {
        return missing(area, &format!("write and read 8 kB with O_DIRECT: {error}"));
    }
    let least = [512, 4096].into_iter().find(|&size| write_and_read(file, size).is_ok());
    let reported = alignment(file).map_or_else(
        || "the kernel reports no alignment".to_owned(),
        |(memory, offset)| format!("alignment {offset} (memory {memory})"),
    );
    let checks = match least {
        Some(least) => {
            let reason = format!("8 kB and {least} bytes were written and read, {reported}");
            vec![Check::good(area, "direct I/O", reason), atomic_write(area, file)]
        }
        None => {
            let reason = format!("8 kB were written and read, but not 4 kB, {reported}");
            let fix = format!("leave debug_io_direct empty: it assumes {SERVER_ALIGNMENT} bytes");
            vec![Check::limited(area, "direct I/O", reason, fix), atomic_write(area, file)]
        }
    };
    DirectTrial { checks, works: least.is_some(), is_refused: least.is_none() }
}

fn in_existing_file(area: &str, path: &Path, why_not: &str) -> DirectTrial {
    let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let opened = openat(CWD, path, flags | OFlags::NONBLOCK, Mode::empty()).map(File::from);
    let read = opened.and_then(|file| {
        let mut memory = Aligned::new(0);
        let length = SERVER_ALIGNMENT as usize;
        retry_on_intr(|| pread(&file, &mut memory.get()[..length], 0)).map(drop)
    });
    match read {
        Ok(()) => DirectTrial {
            checks: vec![Check::limited(
                area,
                "direct I/O",
                format!("4 kB of a file were read, but writes were not tried: {why_not}"),
                "run doctor as a user with permission to create files beside the directory",
            )],
            works: true,
            is_refused: false,
        },
        Err(Errno::INVAL) => missing(area, "read with O_DIRECT: Invalid argument"),
        Err(error) => DirectTrial {
            checks: vec![Check::limited(
                area,
                "direct I/O",
                format!("not tried: {why_not}, and reading a file failed ({error})"),
                "run doctor as the owner of the directory",
            )],
            works: false,
            is_refused: false,
        },
    }
}

/// Writes `size` bytes at the second multiple of `size` and reads them back.
fn write_and_read(file: &File, size: usize) -> io::Result<()> {
    let (mut written, mut read) = (Aligned::new(0x5A), Aligned::new(0));
    let bytes = &written.get()[..size];
    let count = retry_on_intr(|| pwrite(file, bytes, size as u64))?;
    if count != size {
        return Err(io::Error::other(format!("{count} bytes of {size} were written")));
    }
    let count = retry_on_intr(|| pread(file, &mut read.get()[..size], size as u64))?;
    if read.get()[..size] != written.get()[..size] || count != size {
        return Err(io::Error::other(format!("{count} bytes of {size} were read as written")));
    }
    Ok(())
}

/// The alignments of memory and of offsets, if the kernel reports them.
fn alignment(file: &File) -> Option<(u32, u32)> {
    let stat = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let is_reported = stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    is_reported.then_some((stat.stx_dio_mem_align, stat.stx_dio_offset_align))
}

/// Tries to write a block that can't be torn. It would make full-page images unnecessary, but
/// PostgreSQL 18 and 19 don't use it.
fn atomic_write(area: &str, file: &File) -> Check {
    const NAME: &str = "atomic writes of 8 kB";
    let mut memory = Aligned::new(0x5A);
    let slices = [IoSlice::new(memory.get())];
    let tried = retry_on_intr(|| pwritev2(file, &slices, 0, RWF_ATOMIC));
    let sizes = match statx(file, "", AtFlags::EMPTY_PATH, STATX_WRITE_ATOMIC) {
        Ok(stat) if stat.stx_atomic_write_unit_max > 0 => {
            format!("up to {} bytes", stat.stx_atomic_write_unit_max)
        }
        Ok(_) => "no atomic size".to_owned(),
        Err(error) => error.to_string(),
    };
    let fix = "keep full_page_writes = on; for atomic writes, use Linux 6.13 or newer, a device that \
               supports them, and xfs or ext4 with bigalloc";
    match tried {
        Ok(BLOCK) => {
            let reason =
                format!("RWF_ATOMIC wrote 8 kB, statx reports {sizes}; servers don't use it");
            Check::good(area, NAME, reason)
        }
        Ok(count) => Check::missing(area, NAME, format!("{count} bytes were written"), fix),
        Err(Errno::OPNOTSUPP | Errno::INVAL) => {
            let reason = format!("RWF_ATOMIC is refused, statx reports {sizes}");
            Check::missing(area, NAME, reason, fix)
        }
        Err(error) => Check::missing(area, NAME, format!("RWF_ATOMIC: {error}"), fix),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned() {
        let mut memory = Aligned::new(1);
        assert_eq!(memory.get().as_ptr().addr() % MEMORY_ALIGNMENT, 0);
        assert_eq!(memory.get(), [1; BLOCK]);
    }

    #[test]
    fn what_is_written_is_read() {
        let home = tempfile::tempdir().expect("a directory");
        let file = scratch_file::create(home.path(), false).expect("made");
        for size in [512, 4096, BLOCK] {
            write_and_read(&file, size).expect("the same");
        }
        let closed = File::open(home.path()).expect("a directory");
        assert!(write_and_read(&closed, 512).is_err());
    }
}
