//! The binary in hostile environments: forbidden system calls, low resource limits, and file
//! systems that hang, fail or report wrong sizes. Also the engine on btrfs, and on a device that
//! runs out of space.
//!
//! ```text
//!   test ── spawns ──▶ trunkline verify ── reads ──▶ data directory on disk
//!    │                                        └────▶ tablespace on a FUSE mount
//!    └── serves that mount, and decides what it replies, if anything
//! ```
//!
//! These tests need root and `/dev/fuse`. Otherwise they print `skipped:` and the reason. With
//! `CI=true`, a test that would be skipped fails instead.
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
