//! Compile-time limits of an instance, with the reason for each.
//!
//! These limits determine the sizes of arrays, bitmaps and packed words, so they can't be settings.
//! The assertions at the end of the file check that they fit into the packed words. If a limit
//! *can* be configured, its default is documented with the corresponding setting in
//! [`crate::Builder`].

/// Iovecs per handle: the maximum of PostgreSQL's `io_combine_limit`, in blocks (`PG_IOV_MAX`).
pub const IOVECS_MAX: usize = 128;

/// I/Os a session can stage before it must submit: PostgreSQL's `PGAIO_SUBMIT_BATCH_SIZE`.
pub const STAGED_MAX: usize = 32;

/// Callbacks per slot set: PostgreSQL's `PGAIO_HANDLE_MAX_CALLBACKS`. The outcome uses three bits
/// to identify the callback that decided it.
pub const CALLBACKS_MAX: usize = 4;

/// Maximum of [`crate::Builder::sessions`]. Each session adds one bit to every handle's bitmap and
/// makes some scans longer, so it's better to share sessions than to have tens of thousands.
pub const SESSIONS_MAX: usize = 8191;

/// Worker threads per instance: the maximum of `io_max_workers`.
pub const WORKERS_MAX: usize = 256;

/// How many workers there may be in addition to `io_max_workers` for the log's I/O. Such a worker
/// is started if no worker is idle when the log's I/O is queued. Like any other worker, it first
/// completes I/O from the ready set.
pub const LOG_WORKERS: usize = 1;

/// Maximum number of threads in a worker pool: `io_max_workers`, and some more in case workers are
/// stuck.
pub const WORKER_PLACES: usize = WORKERS_MAX + 64;

/// Mounts with a separate lane in the worker queue. Any further mounts share the last lane.
pub const LANES_MAX: usize = 16;

/// Lanes of the worker pool for blocking calls, such as open(2). A session chooses the lane of each
/// call by a number, so calls on a mount that hangs hold up only the calls in the same lane.
pub const CALL_LANES_MAX: usize = 16;

/// Handles per instance.
pub const HANDLES_MAX: usize = 1 << 16;

/// Bytes per frame of the page region: PostgreSQL's default block size.
pub const FRAME_SIZE: usize = 8192;

/// Maximum bytes in one I/O on frames: the limit of one system call (`MAX_RW_COUNT`), rounded down
/// to whole frames.
pub const TRANSFER_MAX: u32 = 0x7FFF_E000;

/// How many times we retry an I/O that returned EINTR or EAGAIN before we report the error to its
/// issuer. Signals stop sooner or later, but a file might return EAGAIN forever, and in that case
/// the issuer must not hang.
pub const RETRIES_MAX: u32 = 1000;

/// If a buffered read is smaller than this many bytes, the issuing session first tries to read it
/// from the page cache without waiting (`RWF_NOWAIT`). If the data is cached, we don't have to pass
/// the I/O to another thread, which is more expensive than copying the data (decision 0001).
pub const TRY_CACHED_BELOW: u32 = 128 * 1024;

/// After this many misses in a row, a session tries the page cache for only one in every
/// [`TRY_CACHED_ONE_IN`] reads. Otherwise, each read of a cold scan would pay for an additional
/// system call that fails.
pub const TRY_CACHED_MISSES: u32 = 16;

/// See [`TRY_CACHED_MISSES`].
pub const TRY_CACHED_ONE_IN: u32 = 16;

/// As long as the mount accepts writes quickly, the issuing session itself executes buffered writes
/// of up to this many bytes. Copying the data into the page cache is cheaper than passing the write
/// to another thread (decision 0008).
pub const INLINE_WRITE_MAX: u32 = u32::MAX;

/// How long an I/O may stay staged, in microseconds. After that, the session's next call submits
/// it, even in the middle of a batch. Without this limit, the disk would be idle while a session
/// does some computation between two reads.
pub const STAGED_AGE_MAX_US: u64 = 500;

/// If a worker has been executing a single I/O for more than this many milliseconds, we consider it
/// stuck. A stuck worker no longer counts towards `io_max_workers`, so we can start another worker
/// to replace it. However, it still counts towards its mount's share.
pub const STUCK_AFTER_MS: u64 = 1000;

const _: () = assert!(IOVECS_MAX <= 1024, "the kernel takes at most UIO_MAXIOV iovecs");
const _: () = assert!(
    IOVECS_MAX * FRAME_SIZE <= i32::MAX as usize,
    "a full combined I/O must fit a raw result"
);
const _: () = assert!(
    WORKER_PLACES > WORKERS_MAX + LOG_WORKERS + LANES_MAX + CALL_LANES_MAX,
    "if one mount hangs with all workers, every other mount can have one"
);
const _: () = assert!(TRANSFER_MAX <= 0x7FFF_F000, "the kernel would transfer less");
const _: () = assert!((TRANSFER_MAX as usize).is_multiple_of(FRAME_SIZE), "in whole frames");
const _: () = assert!(HANDLES_MAX <= 1 << 20, "a handle index must fit the mailbox word");
