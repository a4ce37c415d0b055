//! The memory of a large region: populated while it is used, and then registered with the rings.

use crate::{BLOCK, METHODS, sample};
use std::fs;
use std::ops::Range;
use trunkline_aio::limits::FRAME_SIZE;
use trunkline_aio::{Aio, Builder, Class, File, MethodKind, OpenOptions, Session, Slots, Status};

/// Two slices of 16 MiB and a shorter one.
const BYTES: usize = 40 << 20;
/// A unit of population.
const UNIT: u64 = 2 << 20;
/// How much is populated ahead of its use.
const AHEAD: u64 = 16 << 20;
const BLOCKS: usize = 16;

fn start(method: MethodKind, bytes: usize) -> Aio {
    let builder = Builder::new().method(method).region_bytes(bytes);
    let aio = builder.try_cached_below(0).start().expect("starts");
    assert_eq!(aio.method_status().used, method, "{:?}", aio.method_status());
    aio
}

/// Reads the sample into the memory of the slot, and checks every byte.
fn read(session: &mut Session, file: &File, slots: &mut Slots<()>) {
    let io = session.acquire(Class::Maintenance).expect("a handle");
    io.read(file, 0, (BLOCKS * BLOCK) as u32, slots, 0).expect("defined");
    let outcome = session.wait(slots, 0).expect("waits");
    assert_eq!((outcome.status, outcome.count as usize), (Status::Ok, BLOCKS * BLOCK));
    let memory = slots.memory(0).expect("idle");
    for (block, page) in memory[0].chunks(BLOCK).enumerate() {
        assert!(page.iter().all(|&byte| byte == block as u8), "block {block}");
    }
}

/// The addresses of the region.
fn addresses(aio: &Aio) -> Range<u64> {
    let lease = aio.region().lease(1).expect("a frame");
    let first = lease.as_ptr().addr() as u64 - u64::from(lease.first_frame()) * FRAME_SIZE as u64;
    first..first + BYTES as u64
}

/// The lengths of the buffers in `region` that the kernel lists for the rings of this process.
fn registered(region: &Range<u64>) -> Vec<u64> {
    let infos = fs::read_dir("/proc/self/fdinfo").expect("lists").flatten();
    // A descriptor of another test may be gone by now.
    let texts = infos.filter_map(|info| fs::read_to_string(info.path()).ok());
    let lengths = texts.flat_map(|text| {
        let buffers = text.lines().filter_map(|line| {
            let (address, length) = line.split_once(": 0x")?.1.split_once('/')?;
            let address = u64::from_str_radix(address, 16).ok()?;
            region.contains(&address).then(|| length.trim().parse().ok()).flatten()
        });
        buffers.collect::<Vec<u64>>()
    });
    lengths.collect()
}

#[test]
fn a_start_does_not_wait_for_memory() {
    let sample = sample(BLOCKS);
    for method in METHODS {
        let aio = start(method, 1 << 30);
        assert_eq!(aio.region().populated_bytes(), 0, "{method}: nothing is needed yet");
        let file = aio.open(sample.path(), OpenOptions::default()).expect("opens");
        let mut session = aio.session().expect("a session");
        let mut slots = Slots::new(1);
        slots.memory(0).expect("idle").push(aio.region().lease(BLOCKS as u32).expect("frames"));
        for _ in 0..3 {
            read(&mut session, &file, &mut slots);
        }
        let populated = aio.region().populated_bytes();
        assert!((UNIT..=UNIT + AHEAD).contains(&populated), "{method}: {populated} bytes");
    }
}

#[test]
fn all_memory_is_populated_by_use() {
    let sample = sample(BLOCKS);
    for method in METHODS {
        let aio = start(method, BYTES);
        let file = aio.open(sample.path(), OpenOptions::default()).expect("opens");
        let mut session = aio.session().expect("a session");
        let mut slots = Slots::new(1);
        let mut leases = Vec::new();
        while let Some(lease) = aio.region().lease(BLOCKS as u32) {
            slots.memory(0).expect("idle").push(lease);
            read(&mut session, &file, &mut slots);
            leases.append(slots.memory(0).expect("idle"));
        }
        assert_eq!(aio.region().populated_bytes(), BYTES as u64, "{method}");
        // The data in the memory that was populated first is still there.
        assert!(leases.iter().all(|lease| lease[BLOCK..][..BLOCK].iter().all(|&byte| byte == 1)));
    }
}

/// Registering memory that isn't populated would allocate all of it, in the ring's driver.
#[test]
fn registration_follows_population() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    if !rustix::process::geteuid().is_root() && limit.is_some_and(|limit| limit < 2 * BYTES as u64)
    {
        return println!("skipped: the limit of locked memory is too low, and not root");
    }
    let sample = sample(BLOCKS);
    let aio = start(MethodKind::IoUring, BYTES);
    let uring = aio.method_status().uring.expect("rings");
    assert!(uring.registered, "{:?}", aio.method_status());
    let region = addresses(&aio);
    assert_eq!(registered(&region), [], "nothing is populated");
    let file = aio.open(sample.path(), OpenOptions::default()).expect("opens");
    let mut session = aio.session().expect("a session");
    let mut slots = Slots::new(1);
    let slices: [u64; 3] = [16 << 20, 16 << 20, 8 << 20];
    let mut leases = Vec::new();
    for (at, bytes) in slices.into_iter().enumerate() {
        for _ in 0..bytes / (BLOCKS * BLOCK) as u64 {
            let lease = aio.region().lease(BLOCKS as u32).expect("frames");
            slots.memory(0).expect("idle").push(lease);
            read(&mut session, &file, &mut slots);
            leases.append(slots.memory(0).expect("idle"));
        }
        // The driver registers what is populated before it submits a read.
        slots.memory(0).expect("idle").push(leases.pop().expect("the last one"));
        read(&mut session, &file, &mut slots);
        // The kernel lists nothing while the driver uses the ring.
        let found = (0..10_000).map(|_| registered(&region)).find(|found| found.len() > at);
        // The following slices may be populated, and registered, ahead of their use.
        assert!(found.expect("registered").starts_with(&slices[..=at]));
        leases.append(slots.memory(0).expect("idle"));
    }
    let uring = aio.method_status();
    assert!(uring.fallbacks.is_empty() && uring.uring.is_some_and(|u| u.registered), "{uring:?}");
}
