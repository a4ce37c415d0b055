//! Compile-time limits of an instance, with the reason for each.
//!
//! These limits size arrays, bitmaps and packed words, so they can't be settings. The assertions at
//! the end check that the packed words have room for them. Where a limit *can* be set, its default
//! is documented with the setting in [`crate::Builder`].

/// Iovecs per handle: the maximum of PostgreSQL's `io_combine_limit`, in blocks (`PG_IOV_MAX`).
pub const IOVECS_MAX: usize = 128;

/// I/Os a session can stage before it must submit: PostgreSQL's `PGAIO_SUBMIT_BATCH_SIZE`.
pub const STAGED_MAX: usize = 32;

/// Callbacks per slot set: PostgreSQL's `PGAIO_HANDLE_MAX_CALLBACKS`. An outcome has three bits to
/// identify the callback that decided it.
pub const CALLBACKS_MAX: usize = 4;

/// Concurrent sessions per instance, including the session number the instance itself uses during
/// shutdown. Every handle contains a bitmap with this many bits.
pub const SESSIONS_MAX: usize = 256;

/// Worker threads per instance: the maximum of `io_max_workers`.
pub const WORKERS_MAX: usize = 256;

/// Mounts with a separate lane in the worker queue. Any further mounts share the last lane.
pub const LANES_MAX: usize = 16;

/// Handles per instance.
pub const HANDLES_MAX: usize = 1 << 16;

/// Bytes per frame of the page region: PostgreSQL's default block size.
pub const FRAME_SIZE: usize = 8192;

/// Maximum bytes in one I/O on frames: the limit of one system call (`MAX_RW_COUNT`), rounded down
/// to whole frames.
pub const TRANSFER_MAX: u32 = 0x7FFF_E000;

/// How often we retry an I/O after EINTR or EAGAIN before its issuer gets the error. Signals stop
/// eventually, but a file that always returns EAGAIN must not make its issuer hang.
pub const RETRIES_MAX: u32 = 1000;

/// For buffered reads below this many bytes, the issuing session first tries the page cache without
/// waiting (`RWF_NOWAIT`). If the data is cached, this avoids passing the I/O to another thread,
/// which costs more than the copy (decision 0001).
pub const TRY_CACHED_BELOW: u32 = 128 * 1024;

/// After this many misses in a row, a session tries only one read in [`TRY_CACHED_ONE_IN`].
/// Otherwise a cold scan would pay for a failed system call with every read.
pub const TRY_CACHED_MISSES: u32 = 16;

/// See [`TRY_CACHED_MISSES`].
pub const TRY_CACHED_ONE_IN: u32 = 16;

/// The issuing session executes buffered writes of up to this many bytes itself if the mount
/// accepts them quickly. The copy into the page cache costs less than passing the write to another
/// thread (decision 0008).
pub const INLINE_WRITE_MAX: u32 = u32::MAX;

/// Maximum age of staged I/O in microseconds. Once it is exceeded, the session's next call submits
/// the I/O, even inside a batch. Without this limit, a session that computes between two reads
/// would leave the disk idle.
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
