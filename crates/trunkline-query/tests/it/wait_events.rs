//! What running statements wait for, as `pg_stat_activity` shows it.

use std::sync::Arc;
use std::time::Duration;

use trunkline_aio::facade::Futex;
use trunkline_aio::facade::atomic::Ordering;
use trunkline_aio::{Executor, File, Kernel, Request, clock};
use trunkline_engine::Engine;
use trunkline_engine::settings::Settings;
use trunkline_query::{Instance, InstanceOptions, Session, Startup};

use crate::cluster::{fixtures, runtime};
use crate::sessions::run;

/// How long a state is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads wait while the word is 1.
#[derive(Default)]
struct Gate(Futex);

impl Gate {
    fn set(&self, is_closed: bool) {
        self.0.word().store(u32::from(is_closed), Ordering::SeqCst);
        self.0.wake(u32::MAX >> 1);
    }
}

/// Executes reads when its gate is open.
struct Gated(Arc<Gate>);

impl Executor for Gated {
    fn execute(&self, request: &mut Request<'_>) -> i32 {
        while self.0.0.word().load(Ordering::SeqCst) == 1 {
            self.0.0.wait(1, None);
        }
        Kernel.execute(request)
    }

    fn advise(&self, file: &File, offset: u64, length: u64) -> bool {
        Kernel.advise(file, offset, length)
    }
}

/// Two sessions of an instance whose reads wait at a gate.
async fn sessions(gate: &Arc<Gate>) -> Option<[Session; 2]> {
    let data = fixtures().pop()?;
    let mut settings = Settings::default();
    settings.set("shared_buffers", "2MB").expect("a setting");
    settings.set("io_method", "worker").expect("a setting");
    let gated = Arc::new(Gated(Arc::clone(gate)));
    let engine = Engine::builder(&settings).configure_io(|io| io.executor(gated));
    let engine = engine.open().expect("an engine");
    let cluster = engine.cluster(data).expect("a cluster");
    let instance = Instance::new(engine, cluster, InstanceOptions::default()).expect("an instance");
    let startup =
        || Startup { database: "fixture".into(), user: "postgres".into(), ..Startup::default() };
    let first = Session::open(&instance, startup()).await.expect("a session");
    Some([first, Session::open(&instance, startup()).await.expect("a session")])
}

#[test]
fn a_statement_that_waits_for_pages_shows_it() {
    runtime().block_on(async {
        let gate = Arc::new(Gate::default());
        let Some([mut reader, mut watcher]) = sessions(&gate).await else { return };
        // The function reads no catalog.
        let shown = format!(
            "select state, wait_event_type, wait_event from pg_stat_get_activity({})",
            reader.pid()
        );
        run(&mut watcher, "select * from pg_buffercache_evict_all()").await;
        gate.set(true);
        let statement = run(&mut reader, "select count(*) > 1000 from pg_attribute");
        let watching = async {
            let deadline = clock::now().after(PATIENCE);
            loop {
                let found = run(&mut watcher, &shown).await;
                let is_reached = found == "active\tIO\tAioIoCompletion";
                if is_reached || clock::now() > deadline {
                    gate.set(false);
                    break found;
                }
                tokio::task::yield_now().await;
            }
        };
        let (found, event) = tokio::join!(statement, watching);
        assert_eq!((&*found, &*event), ("t", "active\tIO\tAioIoCompletion"));
        assert_eq!(run(&mut watcher, &shown).await, "idle\tClient\tClientRead");
    });
}
