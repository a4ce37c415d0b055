//! Simulated disk with fault injection, seeded workloads, and the test matrix of the contract suites.
//!
//! # The fault model
//!
//! A [`Disk`] keeps two images of each file. Reads return the volatile image, which models the page
//! cache. The durable image models the medium, and is all that survives a crash. A write changes
//! only the volatile image. An fsync or fdatasync makes all earlier writes to the file durable.
//! [`Disk::crash`] decides for each unsynced write whether all, none, or some of its sectors
//! survive. Operations take effect atomically when they complete, and the seed determines their
//! completion order.
//!
//! Each execution of an operation consults a [`FaultPlan`], which decides whether a fault strikes
//! it. A plan either draws faults at random with given rates, or lists them exactly by operation
//! and execution number.
//!
//! | Fault | What happens | What the issuer sees |
//! |---|---|---|
//! | short | only the first bytes are transferred | that many bytes |
//! | EINTR, EAGAIN | nothing | nothing: the method retries |
//! | EIO, ENOSPC, any errno | nothing | the error |
//! | end of file | nothing | 0 bytes |
//! | lost write | nothing | success |
//! | misdirected write | the data goes to another block | success |
//! | torn write | every other sector of the data arrives | success |
//! | bit rot | one bit of what is read is wrong | success |
//! | delay | the I/O takes long, in virtual time | success |
//! | reorder | a later I/O is executed first | success |
//!
//! The model excludes anything a correct kernel never does. An I/O never changes bytes outside its
//! memory, and never reports more bytes than requested. A crash never loses a synced write. A mount
//! can *hang* ([`Disk::hold`]), as an NFS mount does: its I/O then neither completes nor fails
//! until the mount is released.
//!
//! Two components execute I/O on the disk. [`SimExecutor`] replaces the kernel underneath `sync`,
//! `worker` and inline execution. [`SimMethod`] is a fourth I/O method: a device with a short queue
//! and a thread that completes I/O out of order, as io_uring may. Both run under the deterministic
//! scheduler [`trunkline_aio::facade::sched`]. There time is virtual and the seed determines every
//! thread switch, so a failure can be repeated from its seed alone:
//!
//! ```
//! use trunkline_aio::facade::{Arc, sched};
//! use trunkline_aio::{Builder, Class, MethodKind, Slots};
//! use trunkline_sim::{Disk, FaultPlan, SimExecutor, SimMethod};
//!
//! let report = sched::run(sched::Config::new(7), || {
//!     let disk = Arc::new(Disk::new());
//!     let aio = Builder::new()
//!         .executor(Arc::new(SimExecutor::new(&disk, FaultPlan::none())))
//!         .custom_method(Arc::new(SimMethod::new(&disk, FaultPlan::none(), 4)))
//!         .method(MethodKind::Custom)
//!         .start();
//!     let Ok(aio) = aio else { return };
//!     let file = disk.open(&aio, "data", 1, &[7; 8192]);
//!     let (Ok(mut session), mut slots) = (aio.session(), Slots::new(1)) else {
//!         return;
//!     };
//!     if let (Some(memory), Some(lease)) = (slots.memory(0), aio.region().lease(1)) {
//!         memory.push(lease);
//!     }
//!     let issued = session.acquire(Class::Foreground).map(|io| io.read(&file, 0, 8192, &mut slots, 0));
//!     assert!(matches!(issued, Ok(Ok(_))));
//!     assert!(session.wait(&mut slots, 0).is_ok_and(|outcome| outcome.count == 8192));
//! });
//! assert!(report.is_ok());
//! ```

#![forbid(unsafe_code)]

mod block_model;
mod clients;
mod disk;
mod event_count;
mod executor;
mod fault;
mod files;
pub mod matrix;
mod method;
mod pause;
pub mod pool_workload;
mod probe;
mod waker;
mod workload;

pub use block_model::{BLOCK, Baseline, BlockModel, content};
pub use disk::{Disk, SECTOR_SIZES};
pub use executor::SimExecutor;
pub use fault::{Fault, FaultPlan, Rates, Rule};
pub use files::SimFiles;
pub use method::SimMethod;
pub use pause::{PausePoint, pause};
pub use probe::{PausedIo, TestProbe};
pub use waker::{CountingWaker, block_on};
pub use workload::{Workload, poll_until_done, run};
