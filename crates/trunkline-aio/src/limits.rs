//! Every bound of the crate, named, with the reason, checked at compile time.
//!
//! A bound that a user can set has its default with the setting; what stands here cannot be set.

/// Iovecs of one handle: PostgreSQL's upper bound for `io_combine_limit`, in blocks.
pub const IOVECS_MAX: usize = 128;

/// I/Os that one session stages before it must submit: PostgreSQL's batch size.
pub const STAGED_MAX: usize = 32;

/// Callbacks stacked on one set of operations, as in PostgreSQL.
pub const CALLBACKS_MAX: usize = 4;

/// Sessions of one instance at the same time.
pub const SESSIONS_MAX: usize = 256;

/// Worker threads of one instance, whatever `io_max_workers` says.
pub const WORKERS_MAX: usize = 256;

/// Mounts told apart by the worker method; further ones share the last lane.
pub const LANES_MAX: usize = 16;

/// Handles of one instance.
pub const HANDLES_MAX: usize = 1 << 16;

/// Bytes of one frame of the page region: PostgreSQL's block size.
pub const FRAME_SIZE: usize = 8192;

/// Bytes of the longest I/O given by frames: what one system call transfers at most
/// (`MAX_RW_COUNT`), in whole frames.
pub const TRANSFER_MAX: u32 = 0x7FFF_E000;

/// How often EINTR, or EAGAIN, is answered by executing the same I/O again before the error is
/// given to the issuer. Signals stop at some time; a file that says EAGAIN for ever must not hang.
pub const RETRIES_MAX: u32 = 1000;

/// Buffered reads below this many bytes are first tried in the issuing session without waiting
/// (`RWF_NOWAIT`): a hit saves a hop that costs more than the copy. Decision record 0001.
pub const TRY_CACHED_BELOW: u32 = 128 * 1024;

/// After this many tries in a row that found nothing cached, a session tries one read in
/// [`TRY_CACHED_ONE_IN`], so that a cold scan does not pay for a look that never hits.
pub const TRY_CACHED_MISSES: u32 = 16;

/// See [`TRY_CACHED_MISSES`].
pub const TRY_CACHED_ONE_IN: u32 = 16;

/// Buffered writes of up to this many bytes are made by the issuing session itself where the file
/// system takes them at once: a copy costs less than a hop. Decision record 0008.
pub const INLINE_WRITE_MAX: u32 = u32::MAX;

/// Age, in microseconds, at which I/O that a session staged and left lying is submitted by the
/// session's next call, batch or not.
pub const STAGED_AGE_MAX_US: u64 = 500;

/// A worker that has executed one I/O for longer than this many milliseconds counts as stuck: it
/// stays bound by its mount's share but no longer by `io_max_workers`.
pub const STUCK_AFTER_MS: u64 = 1000;

const _: () = assert!(IOVECS_MAX <= 1024, "the kernel takes at most UIO_MAXIOV iovecs");
const _: () = assert!(
    IOVECS_MAX * FRAME_SIZE <= i32::MAX as usize,
    "a full combined I/O must fit a raw result"
);
const _: () = assert!(TRANSFER_MAX <= 0x7FFF_F000, "the kernel would cut it short");
const _: () = assert!((TRANSFER_MAX as usize).is_multiple_of(FRAME_SIZE), "in whole frames");
const _: () = assert!(HANDLES_MAX <= 1 << 20, "a handle index must fit the mailbox word");
const _: () = assert!(SESSIONS_MAX.is_multiple_of(64), "joiners are whole words of bits");
