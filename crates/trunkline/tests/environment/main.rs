//! Runs the binary in hostile environments: with forbidden system calls, with low resource limits,
//! and on file systems that hang, fail or report wrong sizes. Also tests the engine on btrfs, and
//! on a device that runs out of space.
//!
//! ```text
//!   test ── spawns ──▶ trunkline verify ── reads ──▶ data directory on disk
//!    │                                        └────▶ tablespace on a FUSE mount
//!    └── serves that mount, and decides what it replies, if anything
//! ```
//!
//! Most of these tests need root, and many need `/dev/fuse`. If something is missing, they print
//! `skipped:` and the reason, which `cargo xtask ci` lists, and which fails it with `CI=true`.
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

mod bench;
mod btrfs;
mod calibrate;
mod configuration;
mod doctor;
mod doctor_places;
mod doctor_server;
mod doctor_user;
mod faulty;
mod hung;
mod kills;
mod limits;
mod prewarm;
mod seccomp;
mod slow_disk;
mod starved;
mod swallowed;
mod unreadable;
