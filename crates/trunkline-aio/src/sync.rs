//! The façade: every source of non-determinism the project may touch (invariant 12).
//!
//! Time, randomness, threads, locks, futexes, channels, hashing seeds and the environment are
//! reached only through this module and [`crate::clock`]. Three implementations stand behind it:
//!
//! ```text
//!   ordinary build            std atomics, std locks, the kernel's futex, the monotonic clock
//!   feature `sched` (tests)   the same, but a thread started by sync::sched::run yields at every
//!                             atomic, lock and futex to a seeded scheduler that runs one thread
//!                             at a time and owns the clock
//!   cfg(loom)                 loom's types, for the small lock-free pieces
//! ```
//!
//! A thread that was not started by the scheduler pays one thread-local look-up per operation in
//! a `sched` build and nothing at all in an ordinary one.

pub mod atomic;
pub mod channel;
pub mod env;
mod futex;
pub mod hash;
mod mutex;
pub mod random;
#[cfg(all(feature = "sched", not(loom)))]
pub mod sched;
pub mod thread;

pub use futex::{Futex, FutexWait};
pub use mutex::{Mutex, MutexGuard};

#[cfg(loom)]
pub use loom::sync::Arc;
#[cfg(not(loom))]
pub use std::sync::Arc;
