//! Registration of the page region with a ring, slice by slice as it is populated.
//!
//! For registered memory the kernel doesn't have to pin pages for each I/O (decision 0001). But
//! registering pins all pages, and allocates those that are missing. So the ring starts with a
//! table of empty places, one for each slice of the region, and the driver fills a place when its
//! slice has been populated. I/O on other memory uses the opcodes for unregistered memory.
//!
//! Empty places in the table need Linux 5.13.

use crate::storage::region::Region;
use crate::storage::request::IoVec;
use io_uring::Submitter;

/// The registered slices of the region, for one ring.
pub(crate) struct Registration {
    /// Address of the region.
    base: usize,
    slice_bytes: usize,
    registered: Box<[bool]>,
    /// Number of slices that were populated when we looked last.
    seen: u32,
}

impl Registration {
    /// Registers the table, and the slices that are populated already.
    ///
    /// # Errors
    /// The errno of the kernel.
    pub(crate) fn open(ring: &Submitter<'_>, region: &Region) -> Result<Self, i32> {
        let ((base, bytes), slice_bytes) = (region.span(), region.population().slice_bytes());
        let slices = bytes.div_ceil(slice_bytes);
        let empty = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        // SAFETY: the places are empty, so no memory is registered.
        unsafe { ring.register_buffers(&vec![empty; slices]) }.map_err(|error| errno_of(&error))?;
        let registered = vec![false; slices].into_boxed_slice();
        let mut opened = Self { base: base.addr(), slice_bytes, registered, seen: 0 };
        opened.follow(ring, region)?;
        Ok(opened)
    }

    /// Registers the slices that were populated since the last call.
    ///
    /// # Errors
    /// The errno of the kernel, for example because the limit of locked memory is reached. From
    /// then on all I/O uses unregistered memory, and further calls do nothing. What has been
    /// registered stays so for the sake of I/O in flight.
    pub(crate) fn follow(&mut self, ring: &Submitter<'_>, region: &Region) -> Result<(), i32> {
        let population = region.population();
        let complete = population.complete_slices();
        if complete <= self.seen {
            return Ok(());
        }
        self.seen = complete;
        let (base, bytes) = region.span();
        for slice in 0..self.registered.len() {
            if self.registered[slice] || !population.is_complete(slice) {
                continue;
            }
            let at = slice * self.slice_bytes;
            let memory = libc::iovec {
                iov_base: base.wrapping_add(at).cast(),
                iov_len: self.slice_bytes.min(bytes - at),
            };
            // SAFETY: the region stays mapped as long as the I/O in flight, which outlives its
            // drivers.
            let updated = unsafe { ring.register_buffers_update(slice as u32, &[memory], None) };
            if let Err(error) = updated {
                self.seen = u32::MAX;
                self.registered.fill(false);
                return Err(errno_of(&error));
            }
            self.registered[slice] = true;
        }
        Ok(())
    }

    /// The index of the registered buffer that contains all pieces of memory. `None` if they are in
    /// different slices, or in one that is not registered.
    pub(crate) fn buffer_of(&self, iovecs: &[IoVec]) -> Option<u16> {
        let slice = |address: usize| (address - self.base) / self.slice_bytes;
        let first = slice(iovecs.first()?.start.addr());
        let inside = iovecs.iter().all(|v| {
            slice(v.start.addr()) == first && slice(v.start.addr() + v.length - 1) == first
        });
        let registered = inside && self.registered.get(first).copied().unwrap_or(false);
        registered.then(|| u16::try_from(first).ok()).flatten()
    }
}

fn errno_of(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
