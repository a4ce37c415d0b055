//! A server in this process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use trunkline_aio::clock;
use trunkline_aio::facade::thread;
use trunkline_engine::Engine;
use trunkline_engine::settings::Settings;
use trunkline_query::{Instance, InstanceOptions};
use trunkline_server::{Server, ServerOptions, Stopper};

/// The port, which only names the socket.
pub(crate) const PORT: u16 = 5432;

/// How long a test waits for something that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The data directories, oldest version first.
#[expect(clippy::disallowed_methods, reason = "a test has no main that could pass this down")]
pub(crate) fn fixtures() -> Vec<PathBuf> {
    let Some(directory) = std::env::var_os("TRUNKLINE_FIXTURE_DIR").map(PathBuf::from) else {
        println!("skipped: no fixture");
        return Vec::new();
    };
    let found = (15..=19).map(|major| directory.join(format!("pg{major}/data")));
    let found: Vec<PathBuf> = found.filter(|data| data.is_dir()).collect();
    assert!(!found.is_empty(), "no fixture in {}", directory.display());
    found
}

/// A server that runs until this is dropped.
pub(crate) struct Serving {
    pub(crate) instance: Arc<Instance>,
    pub(crate) directory: TempDir,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) stopper: Stopper,
    runtime: Runtime,
    /// Where sessions run.
    statements: Option<Runtime>,
    running: Option<JoinHandle<usize>>,
}

/// The options of a server with nothing but its socket.
pub(crate) fn options(directory: &Path) -> ServerOptions {
    ServerOptions {
        socket_directory: Some(directory.to_owned()),
        port: PORT,
        addresses: Vec::new(),
        passwords: None,
        tls: None,
        max_connections: 1000,
    }
}

pub(crate) fn instance(data: &Path, buffers: &str, file: Option<PathBuf>) -> Arc<Instance> {
    let mut settings = Settings::default();
    settings.set("shared_buffers", buffers).expect("a setting");
    let engine = Engine::open(&settings).expect("an engine");
    let cluster = engine.cluster(data).expect("a cluster");
    let options = InstanceOptions { configuration_file: file, ..InstanceOptions::default() };
    Instance::new(engine, cluster, options).expect("an instance")
}

impl Serving {
    /// Serves the newest data directory.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(|_| {})
    }

    pub(crate) fn start_with(change: impl FnOnce(&mut ServerOptions)) -> Option<Self> {
        fixtures().pop().map(|data| Self::of(&data, change))
    }

    pub(crate) fn of(data: &Path, change: impl FnOnce(&mut ServerOptions)) -> Self {
        Self::with_pool(data, "4MB", change)
    }

    pub(crate) fn with_pool(
        data: &Path,
        buffers: &str,
        change: impl FnOnce(&mut ServerOptions),
    ) -> Self {
        let directory = TempDir::new().expect("a directory");
        let mut options = options(directory.path());
        change(&mut options);
        let runtime = || {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            // A statement that keeps a thread busy keeps all threads busy.
            builder.worker_threads(1).enable_all().build().expect("a runtime")
        };
        let (runtime, statements) = (runtime(), runtime());
        let instance = instance(data, buffers, Some(directory.path().join("own.conf")));
        let server = runtime.block_on(Server::bind(Arc::clone(&instance), options));
        let server = server.expect("a server");
        let (stopper, addresses) = (server.stopper(), server.addresses());
        let running = Some(runtime.spawn(server.run(statements.handle().clone())));
        let statements = Some(statements);
        Self { instance, directory, addresses, stopper, runtime, statements, running }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join(format!(".s.PGSQL.{PORT}"))
    }

    /// Waits until the server has stopped. Returns how many connections it had to cut off.
    pub(crate) fn wait_for_end(&mut self) -> usize {
        let running = self.running.take().expect("a server that runs");
        self.runtime.block_on(running).expect("no panic")
    }

    /// Waits until a number of sessions are open.
    pub(crate) fn wait_for_sessions(&self, count: usize) {
        wait_until("sessions", || self.instance.activity().len() == count);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(running) = self.running.take() {
            let _ended = self.runtime.block_on(running);
        }
        if let Some(statements) = self.statements.take() {
            // If a test fails, a statement may still keep its thread busy.
            statements.shutdown_background();
        }
    }
}

/// Waits for a state of the server.
pub(crate) fn wait_until(what: &str, is_reached: impl Fn() -> bool) {
    let deadline = clock::now().after(PATIENCE);
    while !is_reached() {
        assert!(clock::now() < deadline, "waited too long for: {what}");
        thread::yield_now();
    }
}
