//! Limits that are fixed at compile time, with their reasons.
//!
//! The default of a limit that can be set is with the setting.

/// Iovecs of one handle: PostgreSQL's upper limit of `io_combine_limit`, in blocks.
pub const IOVECS_MAX: usize = 128;

/// I/Os that one session can stage before it must submit: PostgreSQL's batch size.
pub const STAGED_MAX: usize = 32;

/// Callbacks of one slot set, as in PostgreSQL.
pub const CALLBACKS_MAX: usize = 4;

/// Concurrent sessions of one instance, including one that the instance uses itself.
pub const SESSIONS_MAX: usize = 256;

/// Worker threads of one instance: the upper limit of `io_max_workers`.
pub const WORKERS_MAX: usize = 256;

/// Mounts with a lane of their own. Further mounts share the last lane.
pub const LANES_MAX: usize = 16;

/// Handles of one instance.
pub const HANDLES_MAX: usize = 1 << 16;

/// Bytes of one frame of the page region: PostgreSQL's default block size.
pub const FRAME_SIZE: usize = 8192;

/// Bytes of the longest I/O given by frames: the limit of one system call (`MAX_RW_COUNT`), rounded
/// down to whole frames.
pub const TRANSFER_MAX: u32 = 0x7FFF_E000;

/// How often an I/O is executed again after EINTR or EAGAIN before the issuer gets the error. Signals
/// stop eventually; a file that returns EAGAIN for ever must not hang its issuer.
pub const RETRIES_MAX: u32 = 1000;

/// Buffered reads below this many bytes are first tried by the issuing session without waiting
/// (`RWF_NOWAIT`). A hit saves a hop that costs more than the copy (decision 0001).
pub const TRY_CACHED_BELOW: u32 = 128 * 1024;

/// After this many misses in a row, a session tries only one read in [`TRY_CACHED_ONE_IN`], so that a
/// cold scan does not pay for tries that never hit.
pub const TRY_CACHED_MISSES: u32 = 16;

/// See [`TRY_CACHED_MISSES`].
pub const TRY_CACHED_ONE_IN: u32 = 16;

/// Buffered writes of up to this many bytes are executed by the issuing session if the mount takes
/// them fast, because a copy costs less than a hop (decision 0008).
pub const INLINE_WRITE_MAX: u32 = u32::MAX;

/// Age in microseconds from which staged I/O is submitted by the session's next call, even within a
/// batch.
pub const STAGED_AGE_MAX_US: u64 = 500;

/// A worker that has executed one I/O for longer than this many milliseconds counts as stuck. It no
/// longer counts towards `io_max_workers`, only towards the share of its mount.
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
