//! The binary in surroundings that do not help: system calls forbidden, limits low, file systems
//! that hang, lie and refuse; and the engine on one that checksums what it is given, and on one
//! that takes what it has no room for.
//!
//! ```text
//!   test ── spawns ──▶ trunkline verify ── reads ──▶ data directory on disk
//!    │                                        └────▶ tablespace on a FUSE mount
//!    └── is the file system behind that mount, and decides what it answers, if anything
//! ```
//!
//! These tests want root and `/dev/fuse`. Without, they say `skipped:` and why; a CI machine has
//! both, and there a test that would be skipped fails.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends, also in its helpers"
)]

mod child;
mod cluster;
mod fuse;
mod looped;
mod need;
mod verify;

mod btrfs;
mod faulty;
mod hung;
mod limits;
mod prewarm;
mod seccomp;
mod swallowed;
