//! Frames that a test leases and passes to I/O by number, like a buffer pool.
//!
//! I/O by frame number is unsafe, because only the owner of the frames knows which threads access
//! them. Here the owner is a test, which always waits for an I/O before it reads or writes the
//! frames. The contract suite in `trunkline-sim` includes this file, so that it doesn't need any
//! unsafe code itself.

use trunkline_aio::limits::FRAME_SIZE;
use trunkline_aio::{Aio, DefineError, File, Io, Lease, Payload, Slots, WaitRef};

/// Leases of one frame each. The tests never dereference a lease. Like a buffer pool, they access
/// the frames only through their addresses.
pub(crate) struct Frames(Vec<Lease>);

impl Frames {
    /// `count` frames, each filled with `fill`.
    pub(crate) fn new(aio: &Aio, count: usize, fill: u8) -> Self {
        let lease = |_| aio.region().lease(1).expect("a frame");
        let frames = Self((0..count).map(lease).collect());
        (0..count).for_each(|at| frames.put(at, &[fill; FRAME_SIZE]));
        frames
    }

    /// The numbers of the given frames, in that order.
    pub(crate) fn numbers(&self, which: &[usize]) -> Vec<u32> {
        which.iter().map(|&at| self.0[at].first_frame()).collect()
    }

    /// The bytes of the given frames, in that order.
    pub(crate) fn bytes(&self, which: &[usize]) -> Vec<u8> {
        let page = |&at: &usize| {
            // SAFETY: the lease keeps the frame mapped; the test has waited for every read into it.
            unsafe { std::slice::from_raw_parts(self.0[at].as_ptr(), FRAME_SIZE) }
        };
        which.iter().flat_map(page).copied().collect()
    }

    /// Copies `bytes` to the start of a frame. No I/O may be using the frame.
    pub(crate) fn put(&self, at: usize, bytes: &[u8]) {
        assert!(bytes.len() <= FRAME_SIZE, "longer than a frame");
        // SAFETY: the lease keeps the frame mapped, and the frame is large enough. The test has
        // waited for all of its I/O and doesn't hold any other reference to the frame.
        unsafe { self.0[at].as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }
}

/// [`Io::read_frames`], for a test that keeps the frames until the I/O completes.
pub(crate) fn read_frames<P: Payload>(
    io: Io<'_>,
    file: &File,
    offset: u64,
    frames: &[u32],
    slots: &mut Slots<P>,
    slot: usize,
) -> Result<WaitRef, DefineError> {
    // SAFETY: the test passes each frame only once, keeps its leases, and doesn't access the frames
    // until it has waited for the I/O to complete.
    unsafe { io.read_frames(file, offset, frames.iter().copied(), slots, slot) }
}

/// [`Io::write_frames`], for a test that doesn't change the frames until the I/O completes.
pub(crate) fn write_frames<P: Payload>(
    io: Io<'_>,
    file: &File,
    offset: u64,
    frames: &[u32],
    slots: &mut Slots<P>,
    slot: usize,
) -> Result<WaitRef, DefineError> {
    // SAFETY: the test keeps its leases, and doesn't change the frames until it has waited for the
    // I/O.
    unsafe { io.write_frames(file, offset, frames.iter().copied(), slots, slot) }
}
