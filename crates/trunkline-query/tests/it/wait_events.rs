//! What running statements wait for, as `pg_stat_activity` shows it.

use std::sync::Arc;

use trunkline_aio::clock;

use crate::cluster::{fixtures, runtime};
use crate::gate::{Gate, PATIENCE, sessions};
use crate::sessions::run;

#[test]
fn a_statement_that_waits_for_pages_shows_it() {
    let Some(data) = fixtures().pop() else { return };
    runtime().block_on(async {
        let gate = Arc::new(Gate::default());
        let [mut reader, mut watcher] = sessions(data, &gate, &Arc::default()).await;
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
