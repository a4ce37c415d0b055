//! Compile-time limits of an instance, with the reason for each.
//!
//! They size arrays, bitmaps and packed words, which is why they cannot be settings. The assertions
//! at the end check that the packed words have room for them. The default of a limit that *can* be
//! set is documented with the setting in [`crate::Builder`].

/// Iovecs of one handle: the upper limit of PostgreSQL's `io_combine_limit`, in blocks
/// (`PG_IOV_MAX`).
pub const IOVECS_MAX: usize = 128;

/// I/Os that one session can stage before it must submit: PostgreSQL's `PGAIO_SUBMIT_BATCH_SIZE`.
pub const STAGED_MAX: usize = 32;

/// Callbacks of one slot set: PostgreSQL's `PGAIO_HANDLE_MAX_CALLBACKS`. An outcome has three bits
/// for the callback that decided it.
pub const CALLBACKS_MAX: usize = 4;

/// Concurrent sessions of one instance, including the one that the instance uses itself during
/// shutdown. Every handle has a bitmap of this many bits.
pub const SESSIONS_MAX: usize = 256;

/// Worker threads of one instance: the upper limit of `io_max_workers`.
pub const WORKERS_MAX: usize = 256;

/// Mounts that get a separate lane in the worker queue. Further mounts share the last lane.
pub const LANES_MAX: usize = 16;

/// Handles of one instance.
pub const HANDLES_MAX: usize = 1 << 16;

/// Bytes of one frame of the page region: PostgreSQL's default block size.
pub const FRAME_SIZE: usize = 8192;

/// Bytes of the longest I/O given by frames: the limit of one system call (`MAX_RW_COUNT`), rounded
/// down to whole frames.
pub const TRANSFER_MAX: u32 = 0x7FFF_E000;

/// How often an I/O is retried after EINTR or EAGAIN before its issuer gets the error. Signals stop
/// eventually, but a file that always returns EAGAIN must not hang its issuer.
pub const RETRIES_MAX: u32 = 1000;

/// Buffered reads below this many bytes are first tried by the issuing session without waiting
/// (`RWF_NOWAIT`). If the data is in the page cache, this saves passing the I/O to another thread,
/// which costs more than the copy (decision 0001).
pub const TRY_CACHED_BELOW: u32 = 128 * 1024;

/// After this many misses in a row, a session tries only one read in [`TRY_CACHED_ONE_IN`]. A cold
/// scan would otherwise pay for a failed system call with every read.
pub const TRY_CACHED_MISSES: u32 = 16;

/// See [`TRY_CACHED_MISSES`].
pub const TRY_CACHED_ONE_IN: u32 = 16;

/// Buffered writes of up to this many bytes are executed by the issuing session if the mount
/// accepts them quickly. The copy into the page cache costs less than passing the write to another
/// thread (decision 0008).
pub const INLINE_WRITE_MAX: u32 = u32::MAX;

/// Age in microseconds at which staged I/O is submitted by the session's next call, even inside a
/// batch. Without this limit, a session that computes between two reads would leave the disk idle.
pub const STAGED_AGE_MAX_US: u64 = 500;

/// A worker that has executed one I/O for longer than this many milliseconds counts as stuck. It no
/// longer counts towards `io_max_workers`, so that another worker can replace it. It still counts
/// towards its mount's share.
pub const STUCK_AFTER_MS: u64 = 1000;

const _: () = assert!(IOVECS_MAX <= 1024, "the kernel takes at most UIO_MAXIOV iovecs");
const _: () = assert!(
    IOVECS_MAX * FRAME_SIZE <= i32::MAX as usize,
    "a full combined I/O must fit a raw result"
);
const _: () = assert!(TRANSFER_MAX <= 0x7FFF_F000, "the kernel would transfer less");
const _: () = assert!((TRANSFER_MAX as usize).is_multiple_of(FRAME_SIZE), "in whole frames");
const _: () = assert!(HANDLES_MAX <= 1 << 20, "a handle index must fit the mailbox word");
const _: () =
    assert!(SESSIONS_MAX.is_multiple_of(64), "bitmaps of sessions consist of whole words");
