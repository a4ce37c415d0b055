//! How much of a file the operating system's page cache holds (mincore).
//!
//! Prewarming reports what was there before and after, and a measurement that claims to be cold must
//! show it. The file is mapped without any access right and never touched.

use crate::file::File;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;

/// Bytes looked at per mapping, so that a large file needs little address space and memory.
const WINDOW: u64 = 1 << 30;

/// Part of a file in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Residency {
    /// Bytes of the file, rounded up to whole pages.
    pub total: u64,
    /// Bytes of those that are in the page cache.
    pub cached: u64,
}

impl Residency {
    /// Adds another file's.
    pub fn add(&mut self, other: Residency) {
        self.total += other.total;
        self.cached += other.cached;
    }

    /// The part cached, 0 to 1; 1 for an empty file.
    pub fn fraction(&self) -> f64 {
        if self.total == 0 { 1.0 } else { self.cached as f64 / self.total as f64 }
    }
}

/// Looks at the page cache without reading the file.
///
/// Since Linux 5.2 the answer is true only for files that the caller owns or may write; for others
/// the kernel claims that everything is cached.
///
/// # Errors
/// The file cannot be mapped.
pub fn residency(file: &File) -> io::Result<Residency> {
    let page = rustix::param::page_size() as u64;
    let mut sum = Residency::default();
    look_at_all(file, |states| {
        sum.total += states.len() as u64 * page;
        sum.cached += states.iter().filter(|&&state| state & 1 != 0).count() as u64 * page;
    })?;
    Ok(sum)
}

/// Which whole blocks of `block_bytes` are in the page cache, in the order of the file; see
/// [`residency`].
///
/// # Errors
/// The file cannot be mapped.
/// # Panics
/// If `block_bytes` is no multiple of the system's page size that divides a gigabyte.
pub fn resident_blocks(file: &File, block_bytes: usize) -> io::Result<Vec<bool>> {
    let page = rustix::param::page_size();
    let fits = block_bytes.is_multiple_of(page) && WINDOW.is_multiple_of(block_bytes as u64);
    assert!(fits && block_bytes > 0, "blocks of {block_bytes} bytes, pages of {page}");
    let mut blocks = Vec::new();
    look_at_all(file, |states| {
        let whole = states.chunks_exact(block_bytes / page);
        blocks.extend(whole.map(|pages| pages.iter().all(|state| state & 1 != 0)));
    })?;
    Ok(blocks)
}

/// Looks at one window of the file after the other: a byte for each of its pages.
fn look_at_all(file: &File, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let length = file.length()?;
    let page = rustix::param::page_size() as u64;
    let mut states = Vec::new();
    let mut offset = 0;
    while offset < length {
        let bytes = WINDOW.min(length - offset).next_multiple_of(page);
        states.clear();
        states.resize((bytes / page) as usize, 0_u8);
        look(file, offset, &mut states, page as usize)?;
        each(&states);
        offset += bytes;
    }
    Ok(())
}

fn look(file: &File, offset: u64, states: &mut [u8], page: usize) -> io::Result<()> {
    let fd = file.descriptor().ok_or(io::ErrorKind::Unsupported)?;
    let bytes = states.len() * page;
    // SAFETY: a fresh mapping at an address of the kernel's choice, without any access right: it
    // is never dereferenced, so a file that shrinks meanwhile cannot fault.
    let base = unsafe {
        mmap(std::ptr::null_mut(), bytes, ProtFlags::empty(), MapFlags::SHARED, fd, offset)
    }?;
    // SAFETY: the range is the mapping just made, and the vector has one byte per page of it.
    let result = unsafe { libc::mincore(base, bytes, states.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: unmaps exactly what was mapped above; nothing points into it.
    unsafe { munmap(base, bytes) }?;
    if result == 0 { Ok(()) } else { Err(error) }
}
