//! Simulated disk with fault injection, seeded workloads, and the test matrix of the contract suites.
//!
//! # The fault model
//!
//! A [`Disk`] has two images of each file: what a read sees (volatile), and what survives a crash
//! (durable). A write changes the volatile image. An fsync or fdatasync makes all earlier writes of
//! the file durable. [`Disk::crash`] keeps all, nothing, or some sectors of every write that was not
//! synced. An operation takes effect at one moment, when it completes. The seed decides the order of
//! these moments.
//!
//! A [`FaultPlan`] decides for each execution of an operation whether a fault strikes: at random by
//! rates, or exactly by operation and number.
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
//! Some things never happen: no I/O changes bytes outside its memory, none reports more bytes than
//! were asked for, and a crash loses no write that was synced. A mount can *hang* ([`Disk::hold`]): I/O
//! to it does not complete until the mount is released, and does not fail.
//!
//! There are two ways to the disk. [`SimExecutor`] replaces the kernel below `sync`, `worker` and
//! inline execution. [`SimMethod`] is a fourth I/O method. It has a queue with few places, and a device
//! thread that completes I/O out of order. Both run under the deterministic scheduler of
//! [`trunkline_aio::sync::sched`], where the seed decides everything:
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
