//! A simulated disk for every I/O method, and the random workloads that test them under a seed.
//!
//! # The fault model
//!
//! A [`Disk`] holds files as bytes, twice: what a read sees (volatile) and what survives a crash
//! (durable). A write changes the volatile image only; fsync and fdatasync of a file make all of
//! its earlier writes durable; [`Disk::crash`] keeps, of every write that was not synced, all,
//! nothing, or some of its sectors. An operation takes effect at one moment, when it completes, and
//! moments of different operations come in any order that the seed likes.
//!
//! On top of that a [`Plan`] decides, for each execution of an operation, whether something goes
//! wrong, by a seed with rates or exactly by operation and number:
//!
//! | Fault | What happens | What the issuer is told |
//! |---|---|---|
//! | short | only the first bytes are transferred | that many bytes |
//! | EINTR, EAGAIN | nothing | nothing: the method tries again |
//! | EIO, ENOSPC, any errno | nothing | the error |
//! | end of file | nothing | 0 bytes |
//! | lost write | nothing | success |
//! | misdirected write | the data goes to another block | success |
//! | torn write | every other sector of the data arrives | success |
//! | bit rot | one bit of what is read is wrong | success |
//! | delay | it takes long, in virtual time | success |
//! | reorder | later I/O overtakes it | success |
//!
//! What never happens: bytes outside the I/O's memory change, an I/O reports more than was asked,
//! a synced write is lost by a crash. A mount can *hang* ([`Disk::hold`]): whatever is given to it
//! stays there until it is released, and nothing fails.
//!
//! The disk is reached in two ways. [`SimExecutor`] stands in for the kernel below `sync`, `worker`
//! and every inline execution. [`SimMethod`] is a fourth method beside the three: it queues, has
//! few places, and completes out of order from a device thread of its own. Both under the
//! deterministic scheduler of [`trunkline_aio::sync::sched`], where a seed decides everything:
//!
//! ```
//! use trunkline_aio::sync::{Arc, sched};
//! use trunkline_aio::{Builder, Class, MethodKind, Slots};
//! use trunkline_sim::{Disk, Plan, SimExecutor, SimMethod};
//!
//! let report = sched::run(sched::Config::new(7), || {
//!     let disk = Arc::new(Disk::new());
//!     let aio = Builder::new()
//!         .executor(Arc::new(SimExecutor::new(&disk, Plan::none())))
//!         .custom_method(Arc::new(SimMethod::new(&disk, Plan::none(), 4)))
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

mod alarm;
mod checker;
mod disk;
mod executor;
mod fault;
mod files;
mod gate;
mod hooks;
mod method;
pub mod pool_workload;
pub mod rig;
mod workload;

pub use alarm::{Alarm, block_on};
pub use checker::{BLOCK, Known, Ledger, content};
pub use disk::{Disk, SECTOR_SIZES};
pub use executor::SimExecutor;
pub use fault::{Fault, Plan, Rates, Rule};
pub use files::SimFiles;
pub use gate::{Gate, pause};
pub use hooks::{Held, Hooks};
pub use method::SimMethod;
pub use workload::{Workload, poll_until_done, run};
