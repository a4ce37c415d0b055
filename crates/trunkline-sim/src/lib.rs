//! Simulated disk with fault injection, seeded workloads, and the test matrix of the contract suites.
//!
//! # The fault model
//!
//! A [`Disk`] keeps two images of each file. The volatile image is what a read returns, as if from
//! the page cache. The durable image is what survives a crash, as if on the medium. A write changes
//! the volatile image. An fsync or fdatasync makes all earlier writes of the file durable.
//! [`Disk::crash`] decides for each unsynced write whether all, none, or some of its sectors
//! survive. An operation takes effect atomically, when it completes. The seed decides in which
//! order operations complete.
//!
//! A [`FaultPlan`] is consulted for each execution of an operation and decides whether a fault
//! strikes it. Faults are drawn at random with given rates, or are listed exactly, by operation and
//! execution number.
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
//! The model excludes what a correct kernel never does. No I/O changes bytes outside its memory. No
//! I/O reports more bytes than were requested. A crash never loses a write that was synced. A mount
//! can *hang* ([`Disk::hold`]), as NFS does: I/O to it neither completes nor fails until the mount
//! is released.
//!
//! Two components execute I/O on the disk. [`SimExecutor`] replaces the kernel below `sync`,
//! `worker` and inline execution. [`SimMethod`] is a fourth I/O method: a device with a short queue
//! and a thread that completes I/O out of order, as io_uring may. Both run under the deterministic
//! scheduler of [`trunkline_aio::sync::sched`]. There the seed decides every thread switch and time
//! is virtual, so a failure can be repeated from its seed alone:
//!
//! ```
//! use trunkline_aio::sync::{Arc, sched};
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
mod disk;
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
