//! The façade, which provides threads, locks, atomics, futexes, channels, random numbers, hashing
//! and the environment.
//!
//! Apart from the time ([`crate::clock`]), these are the only things that can make two runs of the
//! same test behave differently. All crates therefore access them only through this façade, which
//! has three implementations:
//!
//! ```text
//!   ordinary build            std atomics, std locks, the kernel's futex, the monotonic clock
//!   feature `sched` (tests)   the same, but a thread started by facade::sched::run yields at every
//!                             atomic, lock and futex to a seeded scheduler that runs one thread
//!                             at a time and owns the clock
//!   cfg(loom)                 loom's types, for the small lock-free pieces
//! ```
//!
//! In a `sched` build, each operation in a thread that wasn't started by the scheduler requires an
//! additional thread-local look-up. There is no extra cost in an ordinary build.
//!
//! This module contains every `cfg(loom)` in the crate. All other code compiles under loom
//! unchanged.

pub mod atomic;
pub mod channel;
pub mod env;
mod futex;
pub mod hash;
mod mutex;
pub mod random;
mod rng;
#[cfg(all(feature = "sched", not(loom)))]
pub mod sched;
pub mod thread;
#[cfg(not(loom))]
mod zeroed;

pub use futex::{Futex, FutexWait};
pub use mutex::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub use zeroed::ZeroedSlice;

/// std's `Arc`, or loom's in models. Outside of models and in public signatures, use
/// [`std::sync::Arc`].
#[cfg(loom)]
pub use loom::sync::Arc;
#[cfg(not(loom))]
pub use std::sync::Arc;
