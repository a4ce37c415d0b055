//! Shared helpers for job tests: instances with every I/O method, valid pages, and an executor that
//! injects faults.

use std::path::Path;

use trunkline_aio::facade::atomic::{AtomicBool, AtomicU64, Ordering};
use trunkline_aio::facade::{Arc, Futex};
use trunkline_aio::{Aio, Builder, Executor, Kernel, MethodKind, Request};
use trunkline_engine::Engine;
use trunkline_engine::datadir::DataDir;
use trunkline_engine::file_scan::ReadOptions;
use trunkline_engine::job::{Observer, Unobserved};
use trunkline_engine::settings::Settings;
use trunkline_engine::verify::{self, VerifyReport, verify};
use trunkline_format::{HeapPageBuilder, PageBytes};
use trunkline_sample::push_account;

pub(crate) const METHODS: [MethodKind; 3] =
    [MethodKind::Sync, MethodKind::Worker, MethodKind::IoUring];

pub(crate) const READ: ReadOptions = ReadOptions { direct: false, depth: 16, combine_blocks: 16 };

pub(crate) const OPTIONS: verify::Options = verify::Options { read: READ, findings_listed: 10_000 };

pub(crate) fn instance(method: MethodKind) -> Aio {
    Builder::new().method(method).start().expect("started")
}

/// An engine on a running instance, with a pool of `buffers` buffers.
pub(crate) fn engine(aio: &Aio, buffers: u32, direct: bool) -> Engine {
    let mut settings = Settings::default();
    settings.set("io_direct", if direct { "data" } else { "" }).expect("a setting");
    Engine::builder(&settings).io(aio).buffers(buffers).open().expect("an engine")
}

/// Verifies without an observer.
pub(crate) fn verified(aio: &Aio, dir: &DataDir, options: verify::Options) -> VerifyReport {
    verify(aio, dir, options, Arc::new(Unobserved)).expect("verified")
}

/// The findings, one per line, with paths relative to the data directory.
pub(crate) fn lines(dir: &DataDir, report: &VerifyReport) -> Vec<String> {
    let line = |finding: &verify::Finding| {
        let path = finding.path.strip_prefix(dir.path()).expect("inside");
        format!("{}: {finding}", path.display())
    };
    report.findings.iter().map(line).collect()
}

/// A valid page with two rows.
pub(crate) fn page(block: u32) -> PageBytes {
    let mut builder = HeapPageBuilder::new(block);
    push_account(&mut builder, block as i32, 1, 0).expect("room");
    push_account(&mut builder, block as i32, 2, 0).expect("room");
    builder.finish(true)
}

/// Consecutive valid pages.
pub(crate) fn pages(blocks: std::ops::Range<u32>) -> Vec<u8> {
    blocks.flat_map(page).collect()
}

/// An observer that calls a function once, at the n-th read.
pub(crate) struct At<F> {
    reads: AtomicU64,
    read: u64,
    action: F,
}

impl<F: Fn() + Send + Sync> At<F> {
    pub(crate) fn new(read: u64, action: F) -> Arc<Self> {
        Arc::new(At { reads: AtomicU64::new(0), read, action })
    }
}

impl<F: Fn() + Send + Sync> Observer for At<F> {
    fn reading(&self, _path: &Path, _first: u32, _blocks: u32) {
        if self.reads.fetch_add(1, Ordering::SeqCst) == self.read {
            (self.action)();
        }
    }
}

/// An injected storage fault.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// Any read that touches one of these blocks, in any file, fails with EIO.
    Eio(&'static [u64]),
    /// Every read returns at most this number of bytes (a short read).
    Short(usize),
    /// This read and all later reads hang forever.
    Hang(u64),
}

/// Executes I/O with real system calls, except for the injected fault.
pub(crate) struct Faulty {
    fault: Fault,
    reads: AtomicU64,
    never: Futex,
    hung: Arc<AtomicBool>,
}

impl Faulty {
    pub(crate) fn instance(method: MethodKind, fault: Fault) -> (Aio, Arc<AtomicBool>) {
        let hung = Arc::new(AtomicBool::new(false));
        let faulty = Faulty {
            fault,
            reads: AtomicU64::new(0),
            never: Futex::new(0),
            hung: Arc::clone(&hung),
        };
        let builder = Builder::new().method(method).executor(Arc::new(faulty));
        (builder.start().expect("started"), hung)
    }
}

impl Executor for Faulty {
    fn execute(&self, request: &mut Request<'_>) -> i32 {
        let number = self.reads.fetch_add(1, Ordering::SeqCst);
        let blocks = request.offset / 8192..(request.offset + u64::from(request.length)) / 8192;
        match self.fault {
            Fault::Eio(bad) if bad.iter().any(|block| blocks.contains(block)) => return -5,
            Fault::Hang(from) if number >= from => {
                self.hung.store(true, Ordering::SeqCst);
                loop {
                    self.never.wait(0, None);
                }
            }
            _ => {}
        }
        let read = Kernel.execute(request);
        match self.fault {
            Fault::Short(most) if read > most as i32 => most as i32,
            _ => read,
        }
    }

    fn advise(&self, file: &trunkline_aio::File, offset: u64, length: u64) -> bool {
        Kernel.advise(file, offset, length)
    }
}
