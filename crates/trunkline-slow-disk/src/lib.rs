//! A FUSE file system that makes a directory as slow as a given disk.
//!
//! It shows the files of a directory under a mount point, for any program. Each request that a disk
//! would have to carry out takes the latency of the disk's [`Profile`], within its limits on
//! bandwidth and IOPS and its burst credit. Everything that the kernel's page cache can serve is as
//! fast as on a disk. So a program, a setting or an I/O method can be measured on a cloud volume that
//! never varies, on any machine.
//!
//! ```no_run
//! use std::path::Path;
//! use trunkline_aio::facade::{Arc, Futex};
//! use trunkline_slow_disk::{Profile, SlowDisk};
//!
//! let profile: Profile = "latency=5ms,rate=500MB/s".parse()?;
//! let ended = Arc::new(Futex::new(0));
//! let disk = SlowDisk::mount(Path::new("data"), Path::new("slow"), profile, ended)?;
//! // Reads of uncached data below `slow` now take 5 ms.
//! // Another process unmounts it, by its device number, when it is no longer needed.
//! println!("{:?}", disk.wait()?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The modules, from the bottom layer up: `bucket`, `disk_model` and `profile` are the disk as
//! arithmetic, tested on a simulated clock; `reply_queue` and `simulated_disk` add time; `inodes`,
//! `open_files` and `operations` are the directory below; `file_system` connects them to FUSE; and
//! `slow_disk` mounts.
//!
//! What differs from a disk, since FUSE has no way to change it:
//!
//! - `close` waits until the file's dirty pages are written.
//! - `O_DIRECT` accepts any alignment.
//! - `fsync` also waits for the directory's own file system, so put the directory on a fast one.
//! - `sync` and `syncfs` write back the page cache, but take no time for a flush, and the directory's
//!   own file system keeps what they have written in its cache.
//! - Absolute symbolic links lead out of the mount. POSIX ACLs of the directory are ignored, and
//!   programs can't be set-user-ID.
//! - The directory must be on one file system. An overlayfs with layers on several file systems may
//!   count as several (the option `xino` avoids that); files of the others fail with `EXDEV`.

#![forbid(unsafe_code)]

mod accuracy;
mod attributes;
mod bucket;
mod disk_model;
mod file_system;
mod inodes;
mod known_disks;
mod mount_point;
mod mount_table;
mod open_files;
mod operations;
mod probe;
mod profile;
mod quantity;
mod reply_queue;
mod simulated_disk;
mod slow_disk;
mod statistics;

pub use accuracy::{Accuracy, measure};
pub use disk_model::DiskModel;
pub use known_disks::{KNOWN_DISKS, KnownDisk};
pub use mount_point::{MountError, Unmounted, unmount, unmount_leftover};
pub use profile::{Limit, Profile, ProfileError};
pub use slow_disk::SlowDisk;
pub use statistics::Statistics;
