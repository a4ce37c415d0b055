//! **Bare loops**: the baselines. Each is the smallest program that performs the same I/O on the
//! same device.
//!
//! The bare loops share no code with the I/O core that we compare them with. They use their own
//! memory mapping, their own ring and their own threads. The difference between a bare loop and the
//! core is therefore the overhead of handles, sessions and counters.

#![expect(unsafe_code, reason = "a reference must not go through the core that it is to judge")]

mod files;
mod futex;
mod memory;
mod ring;
mod ring_io;
mod threads;
mod write_behind;
mod write_ring;
mod write_threads;

pub(crate) use files::{Access, Files};
pub(crate) use futex::{Placement, ping_pong};
pub(crate) use ring::Ring;
pub(crate) use threads::{Look, Threads};
pub(crate) use write_behind::{Range, lengthen};
pub(crate) use write_ring::WriteRing;
pub(crate) use write_threads::WriteThreads;
