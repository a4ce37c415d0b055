//! Instances whose I/O waits at a gate, as if the storage hung.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use trunkline_aio::facade::Futex;
use trunkline_aio::facade::atomic::Ordering;
use trunkline_aio::{Executor, File, Kernel, Request, clock};
use trunkline_engine::Engine;
use trunkline_engine::settings::Settings;
use trunkline_engine::storage::{FileSystem, KernelFiles};
use trunkline_query::{Instance, InstanceOptions, Session, Startup};

/// How long a state is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Nothing passes while the word is 1.
#[derive(Default)]
pub(crate) struct Gate(Futex);

impl Gate {
    pub(crate) fn set(&self, is_closed: bool) {
        self.0.word().store(u32::from(is_closed), Ordering::SeqCst);
        self.0.wake(u32::MAX >> 1);
    }

    /// Waits until the gate is open, or as long as a test waits for a state.
    fn pass(&self) {
        let deadline = clock::now().after(PATIENCE);
        while self.0.word().load(Ordering::SeqCst) == 1 && clock::now() < deadline {
            self.0.wait(1, Some(PATIENCE));
        }
    }
}

/// Executes reads when its gate is open.
struct GatedReads(Arc<Gate>);

impl Executor for GatedReads {
    fn execute(&self, request: &mut Request<'_>) -> i32 {
        self.0.pass();
        Kernel.execute(request)
    }

    fn advise(&self, file: &File, offset: u64, length: u64) -> bool {
        Kernel.advise(file, offset, length)
    }
}

/// Answers when its gate is open.
struct GatedFiles {
    gate: Arc<Gate>,
    files: KernelFiles,
}

impl FileSystem for GatedFiles {
    fn open(&self, path: &Path, direct: bool) -> io::Result<File> {
        self.gate.pass();
        self.files.open(path, direct)
    }

    fn length(&self, file: &File) -> io::Result<u64> {
        self.gate.pass();
        self.files.length(file)
    }

    fn file_length(&self, path: &Path) -> io::Result<Option<u64>> {
        self.gate.pass();
        self.files.file_length(path)
    }
}

/// Two sessions of an instance whose reads wait at one gate, and whose other calls wait at another one.
pub(crate) async fn sessions(data: PathBuf, reads: &Arc<Gate>, calls: &Arc<Gate>) -> [Session; 2] {
    let mut settings = Settings::default();
    settings.set("shared_buffers", "2MB").expect("a setting");
    settings.set("io_method", "worker").expect("a setting");
    let executor = Arc::new(GatedReads(Arc::clone(reads)));
    let aio = settings.io_builder().executor(executor).region_bytes(16 << 20);
    let aio = aio.start().expect("an instance");
    let files = GatedFiles { gate: Arc::clone(calls), files: KernelFiles::new(&aio) };
    let engine = Engine::builder(&settings).io(&aio).file_system(files);
    let engine = engine.open().expect("an engine");
    let cluster = engine.cluster(data).expect("a cluster");
    let instance = Instance::new(engine, cluster, InstanceOptions::default()).expect("an instance");
    let startup =
        || Startup { database: "fixture".into(), user: "postgres".into(), ..Startup::default() };
    let first = Session::open(&instance, startup()).await.expect("a session");
    [first, Session::open(&instance, startup()).await.expect("a session")]
}
