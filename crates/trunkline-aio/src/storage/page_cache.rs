//! Page-cache residency: how much of a file the kernel has cached (mincore(2)).
//!
//! Prewarming reports how much of a file is cached before and after, and the benchmarks use this
//! module to prove that they start with a cold cache. We map the file without any access rights and
//! never touch the mapping, so the check itself doesn't change what is cached.

use crate::storage::file::File;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::process::geteuid;
use std::ffi::c_void;
use std::io;
use std::ops::Range;

/// Bytes examined per mapping. Bounds the address space and memory needed for a large file.
const WINDOW: u64 = 1 << 30;

/// How much of a file is in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Residency {
    /// Size of the file in bytes, rounded up to whole pages.
    pub total: u64,
    /// How many of those bytes are in the page cache.
    pub cached: u64,
}

impl Residency {
    /// Adds the residency of another file.
    pub fn add(&mut self, other: Residency) {
        self.total += other.total;
        self.cached += other.cached;
    }

    /// The cached fraction, 0 to 1; 1 for an empty file.
    pub fn fraction(&self) -> f64 {
        if self.total == 0 { 1.0 } else { self.cached as f64 / self.total as f64 }
    }
}

/// Reports how much of a file is cached, without reading the file.
///
/// Since Linux 5.2, the result is correct only for files that the caller owns or has permission to
/// write. For any other file, the kernel reports every page as cached.
///
/// # Errors
/// The file cannot be mapped.
pub fn residency(file: &File) -> io::Result<Residency> {
    let page = rustix::param::page_size() as u64;
    let mut sum = Residency::default();
    for_each_window(file, 0..u64::MAX, |states| {
        sum.total += states.len() as u64 * page;
        sum.cached += states.iter().filter(|&&state| state & 1 != 0).count() as u64 * page;
    })?;
    Ok(sum)
}

/// Whether the kernel says how much of a file is cached: it does so for the file's owner, for root,
/// and for users that may write to the file (`can_do_mincore`). To all others, every page of the
/// file seems to be cached.
///
/// # Errors
/// The owner of the file is unknown.
pub fn is_residency_known(file: &File) -> io::Result<bool> {
    let fd = file.descriptor().ok_or(io::ErrorKind::Unsupported)?;
    let (owner, user) = (rustix::fs::fstat(fd)?.st_uid, geteuid());
    let may_write = || accessat(CWD, file.path(), Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    Ok(owner == user.as_raw() || user.is_root() || may_write())
}

/// Reports for each whole block of `block_bytes` in a range, in file order, whether it is cached.
/// The part of the range that is beyond the end of the file is ignored. See [`residency`].
///
/// # Errors
/// The file cannot be mapped.
/// # Panics
/// If `block_bytes` is not a multiple of the page size, or does not divide a gigabyte.
pub fn resident_blocks(
    file: &File,
    block_bytes: usize,
    blocks: Range<u32>,
) -> io::Result<Vec<bool>> {
    let page = page_of(block_bytes);
    let start_of = |block: u32| u64::from(block) * block_bytes as u64;
    let mut cached = Vec::new();
    for_each_window(file, start_of(blocks.start)..start_of(blocks.end), |states| {
        let whole = states.chunks_exact(block_bytes / page);
        cached.extend(whole.map(|pages| pages.iter().all(|state| state & 1 != 0)));
    })?;
    Ok(cached)
}

/// Reports for each of the given blocks whether it is cached, in their order. A block that isn't
/// whole in the file is not. The part of the file from the first to the last of them is mapped
/// once, so this is cheaper than asking for them one by one. See [`residency`].
///
/// # Errors
/// The file cannot be mapped.
/// # Panics
/// As for [`resident_blocks`].
pub fn sampled_blocks(file: &File, block_bytes: usize, blocks: &[u32]) -> io::Result<Vec<bool>> {
    let page = page_of(block_bytes);
    let whole = (file.length()? / block_bytes as u64).try_into().unwrap_or(u32::MAX);
    let (first, last) = (blocks.iter().min(), blocks.iter().max());
    let (Some(&first), Some(&last)) = (first, last) else { return Ok(Vec::new()) };
    let end = last.saturating_add(1).min(whole);
    if end <= first {
        return Ok(vec![false; blocks.len()]);
    }
    let bytes = (end - first) as usize * block_bytes;
    let mapping = Mapping::new(file, u64::from(first) * block_bytes as u64, bytes)?;
    let mut states = vec![0_u8; block_bytes / page];
    let is_cached = |&block: &u32| {
        if block >= end {
            return Ok(false);
        }
        mapping.examine((block - first) as usize * block_bytes, &mut states, page)?;
        Ok(states.iter().all(|state| state & 1 != 0))
    };
    blocks.iter().map(is_cached).collect()
}

/// The size of a memory page, of which a block must have a whole number.
fn page_of(block_bytes: usize) -> usize {
    let page = rustix::param::page_size();
    let fits = block_bytes.is_multiple_of(page) && WINDOW.is_multiple_of(block_bytes as u64);
    assert!(fits && block_bytes > 0, "blocks of {block_bytes} bytes, pages of {page}");
    page
}

/// Calls `each` with one byte per page, for one window after another of the given part of the file,
/// which starts at a page.
fn for_each_window(file: &File, part: Range<u64>, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let end = file.length()?.min(part.end);
    let page = rustix::param::page_size() as u64;
    let mut states = Vec::new();
    let mut offset = part.start;
    while offset < end {
        let bytes = WINDOW.min(end - offset).next_multiple_of(page);
        states.clear();
        states.resize((bytes / page) as usize, 0_u8);
        Mapping::new(file, offset, bytes as usize)?.examine(0, &mut states, page as usize)?;
        each(&states);
        offset += bytes;
    }
    Ok(())
}

/// A part of a file, mapped without access rights.
struct Mapping {
    base: *mut c_void,
    bytes: usize,
}

impl Mapping {
    fn new(file: &File, offset: u64, bytes: usize) -> io::Result<Self> {
        let fd = file.descriptor().ok_or(io::ErrorKind::Unsupported)?;
        // SAFETY: we create a new mapping without access rights, at an address chosen by the kernel,
        // and never dereference it. A concurrent truncation of the file therefore can't cause a fault.
        let base = unsafe {
            mmap(std::ptr::null_mut(), bytes, ProtFlags::empty(), MapFlags::SHARED, fd, offset)
        }?;
        Ok(Self { base, bytes })
    }

    /// Finds out which pages are cached, from the one that begins at `skip` bytes. The kernel stores one
    /// byte per page in `states`, and sets the lowest bit of that byte if the page is cached.
    fn examine(&self, skip: usize, states: &mut [u8], page: usize) -> io::Result<()> {
        let bytes = states.len() * page;
        assert!(skip.is_multiple_of(page) && skip + bytes <= self.bytes, "outside of the mapping");
        let start = self.base.wrapping_byte_add(skip);
        // SAFETY: the range is in our mapping, as was just checked, and there is one byte per page of it.
        match unsafe { libc::mincore(start, bytes, states.as_mut_ptr()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what was mapped; nothing points into it.
        let unmapped = unsafe { munmap(self.base, self.bytes) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}
