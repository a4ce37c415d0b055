//! A simulated disk with fault injection, random workloads, and the test matrix of the contract
//! suites.
//!
//! # The fault model
//!
//! A [`Disk`] keeps two images of each file. The volatile image simulates the page cache, and the
//! durable image simulates the storage device, which is all that survives a crash. Reads and writes
//! only use the volatile image. After an fsync or fdatasync, all earlier writes to the file are
//! durable. For each write that has not been synced, [`Disk::crash`] chooses whether all, none, or
//! some of its sectors survive. An operation takes effect atomically, at the moment it completes.
//! The order in which operations complete depends on the seed.
//!
//! Every time we execute an operation, we ask a [`FaultPlan`] whether to inject a fault. A plan
//! either chooses faults at random, using the given rates, or contains a list that specifies
//! exactly which execution of which operation gets which fault.
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
//! We never simulate anything that a correct kernel would not do. For example, an I/O never changes
//! any memory outside its buffers or returns more bytes than were requested, and a write that has
//! been synced is never lost in a crash. However, a mount can *hang* (see [`Disk::hold`]), like an
//! NFS mount whose server is down. In that case, I/O neither completes nor fails until the mount is
//! released.
//!
//! There are two ways to execute I/O on the simulated disk. [`SimExecutor`] is used by `sync`,
//! `worker` and inline execution in place of the kernel's system calls. [`SimMethod`] is an
//! additional I/O method. It simulates a device that has a short queue, and a thread that completes
//! I/O out of order, as can happen with io_uring. Both of them run under the deterministic
//! scheduler [`trunkline_aio::facade::sched`]. With this scheduler, time is virtual and all thread
//! switches depend only on the seed, so if a run fails, we can repeat it exactly if we know the
//! seed:
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
